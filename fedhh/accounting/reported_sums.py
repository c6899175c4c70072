"""What runs cost whose server reads noisy sums of plain votes: secure aggregation, two servers.

The arithmetic, with its proofs, is in `fedhh.accounting.noise_privacy` and
`fedhh.accounting.noisy_sums`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fedhh.accounting.account import account
from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.collusion import Collusion
from fedhh.accounting.guarantees import Guarantee, NotApplicable, PrivacyReport
from fedhh.accounting.noise_privacy import pure_epsilon
from fedhh.accounting.noisy_sums import NoisySums, SecureSums, TwoServerSums, Unit
from fedhh.accounting.plan import PlannedRound
from fedhh.accounting.run_facts import LayerRecord
from fedhh.accounting.sources import NOISY_SUMS, PURE_NOISY_SUMS
from fedhh.questions.noise_shares import DiscreteLaplace

_UNITS: tuple[Unit, Unit] = ("item", "user")
_NOTHING = "no randomizer"
_SWAPS = "Neighbors are swaps: one item, or all items of one client, replaced by others."


@account.register
def _of_secure_sums(
    plan: SecureSums,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run by secure aggregation: `account_secure_sums`."""
    return account_secure_sums(plan, layers, delta=delta)


def account_secure_sums(
    plan: SecureSums,
    layers: Sequence[LayerRecord],
    *,
    delta: float,
    collusion: Collusion | None = None,
) -> PrivacyReport:
    """Return the privacy report of a run by secure aggregation.

    Before the run, every layer may lack as many shares as the plan allows. A realised guarantee is
    for the shares that arrived. Shares that colluders tell the server are no noise to it, and count
    as missing.

    Args:
        plan: What the run does.
        layers: What took part, one record for each round that took place; none before the run.
        delta: Of the central guarantees, but for what colluders add.
        collusion: Clients who tell the server their votes and their shares, if any.
    """
    check_delta(delta)
    planned = {(each.pass_index + 1, each.layer): each for each in plan.layers}

    def part_of(each: PlannedRound, shares: int) -> float:
        if collusion is not None:
            shares = collusion.fewest_honest(each.num_clients, shares)
        return shares / each.num_clients

    arrived = [part_of(planned[each.pass_index, each.layer], each.num_clients) for each in layers]
    part = min(part_of(each, plan.fewest_shares(each)) for each in plan.layers)
    added = 0.0 if collusion is None else collusion.added_delta(plan.most_rounds_per_client)
    trusted = (
        "secure aggregation shows a server that follows the protocol the sums alone, modulo "
        f"M = {plan.modulus:,}; "
    )
    honest = f"at least {part:.4%} of each cohort's shares arrive and are nobody else's to know"

    def guarantee(unit: Unit, at: float, said: str, *, realised: bool) -> Guarantee:
        epsilon = plan.epsilon(unit, delta, part=at)
        found = _central(plan, unit, epsilon, assumptions=trusted + said, delta=delta)
        return replace(found, realised=realised)

    guarantees = _local(plan)
    for unit in _UNITS:
        guarantees.append(guarantee(unit, part, honest, realised=False))
        guarantees += _pure(plan, unit, trusted + honest, part=part)
    if arrived and min(arrived) > part:
        # Whether a client drops out must not depend on its data for this.
        whose = "" if collusion is None else " from clients who keep theirs to themselves"
        said = f"{min(arrived):.4%} of the shares arrived{whose}, whatever the clients hold"
        guarantees += [guarantee(unit, min(arrived), said, realised=True) for unit in _UNITS]
    stated = [
        replace(each, delta=each.delta + added) if each.trust == "central" else each
        for each in guarantees
    ]
    return PrivacyReport(
        guarantees=tuple(stated),
        anonymity=(),
        notes=(
            _SWAPS,
            "Cohorts are disjoint and chosen without the data: maximum over layers.",
            "A client's own share of the noise hides nothing: whoever reads one vector before the "
            "sum reads the votes.",
            *(() if collusion is None else (f"{collusion}.",)),
        ),
    )


@account.register
def _of_two_servers(
    plan: TwoServerSums,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run by two servers: all layers are about the same clients."""
    check_delta(delta)
    said = (
        f"the two servers do not work together and follow the protocol; all {len(plan.layers)} "
        "layers are about the same uploads and compose"
    )
    guarantees = _local(plan)
    for unit in _UNITS:
        epsilon: float | NotApplicable = plan.epsilon(unit, delta)
        proven = isinstance(plan.noise, DiscreteLaplace) or unit == "item" or plan.max_items == 1
        if not proven:
            epsilon = NotApplicable(
                f"no bound is proven for {plan.noise.name} noise where a client's "
                f"{plan.max_items} words may share a prefix; take discrete-laplace, or one word"
            )
        guarantees.append(_central(plan, unit, epsilon, assumptions=said, delta=delta))
        guarantees += _pure(plan, unit, said)
    return PrivacyReport(
        guarantees=tuple(guarantees),
        anonymity=(),
        notes=(
            _SWAPS,
            "One upload answers every layer: all layers that the settings allow are composed, "
            "however many took place.",
            "Two servers that work together read every word.",
        ),
    )


def _cohort(plan: NoisySums) -> int:
    return min(each.num_clients for each in plan.layers)


def _local(plan: NoisySums) -> list[Guarantee]:
    return [
        Guarantee(
            unit=unit,
            trust="local",
            method=_NOTHING,
            epsilon=math.inf,
            delta=0.0,
            theorem=_NOTHING,
            assumptions="votes are read as they are",
            smallest_cohort=_cohort(plan),
            best=True,
        )
        for unit in _UNITS
    ]


def _central(
    plan: NoisySums,
    unit: Unit,
    epsilon: float | NotApplicable,
    *,
    assumptions: str,
    delta: float,
) -> Guarantee:
    if epsilon == math.inf:
        epsilon = NotApplicable("double precision certifies none; raise noise_std or delta")
    return Guarantee(
        unit=unit,
        trust="central",
        method=f"noisy sums, {plan.noise.name}",
        epsilon=epsilon,
        delta=delta,
        theorem=NOISY_SUMS,
        assumptions=assumptions,
        smallest_cohort=_cohort(plan),
        best=True,
    )


def _pure(plan: NoisySums, unit: Unit, assumptions: str, *, part: float = 1.0) -> list[Guarantee]:
    """Return the guarantee at delta 0, which discrete Laplace noise has, of a part of the noise."""
    items = plan.max_items if unit == "user" else 1
    rounds = len(plan.layers) if isinstance(plan, TwoServerSums) else 1
    # A sum that moves by B has at most B times the loss of one that moves by one.
    epsilon = pure_epsilon(plan.noise, total=2 * items * rounds, part=part)
    if math.isinf(epsilon):
        return []
    found = _central(plan, unit, epsilon, assumptions=assumptions, delta=0.0)
    method = f"{found.method}, pure"
    return [replace(found, method=method, theorem=PURE_NOISY_SUMS, best=False)]
