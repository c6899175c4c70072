"""What TrieHH costs in central privacy: sampling and a threshold, without noise.

The arithmetic is in `fedhh.mechanisms.sampled_threshold`, the proof in docs/accounting.md.
"""

from __future__ import annotations

import math

from fedhh.accounting.guarantees import Guarantee, NotApplicable, Trust, Unit
from fedhh.accounting.report import PrivacyReport
from fedhh.accounting.sources import SAMPLED_VOTES
from fedhh.mechanisms.sampled_threshold import triehh_epsilon

_METHOD, _NOTHING = "sampling and threshold", "no randomizer"


def account_triehh(
    *, num_clients: int, sample_size: int, threshold: int, num_rounds: int, delta: float
) -> PrivacyReport:
    """Return the privacy report of a run of TrieHH: central and of a user, nothing local.

    Args:
        num_clients: Users n of the population, from all of which every round samples.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L at most; a run that stops early has used no fewer, since when it stops
            depends on the data.
        delta: Of the central guarantee.
    """

    def guarantee(
        unit: Unit, trust: Trust, method: str, epsilon: float | NotApplicable
    ) -> Guarantee:
        theorem, assumptions = "no randomizer", "votes are read as they are"
        if method != _NOTHING:
            theorem = SAMPLED_VOTES
            assumptions = (
                f"all {num_rounds} rounds sample afresh, every sampled client answers, and only "
                "which prefixes are kept is published"
            )
            if unit == "item":
                assumptions += "; a user's guarantee covers each of its items"
        return Guarantee(
            unit=unit,
            trust=trust,
            method=method,
            epsilon=epsilon,
            delta=0.0 if method == _NOTHING else delta,
            theorem=theorem,
            assumptions=assumptions,
            smallest_cohort=sample_size,
            best=not isinstance(epsilon, NotApplicable),
        )

    units: tuple[Unit, Unit] = ("item", "user")
    guarantees = [guarantee(unit, "local", _NOTHING, math.inf) for unit in units]
    epsilon: float | NotApplicable = triehh_epsilon(
        num_clients=num_clients,
        sample_size=sample_size,
        threshold=threshold,
        num_rounds=num_rounds,
        delta=delta,
    )
    if epsilon == math.inf:
        epsilon = NotApplicable(
            f"no epsilon is proven at delta={delta:g} for sample_size={sample_size:,} of "
            f"num_clients={num_clients:,}, threshold={threshold} and num_rounds={num_rounds}; "
            "raise delta or the population, or let triehh_parameters choose"
        )
        guarantees += [guarantee(unit, "central", _NOTHING, math.inf) for unit in units]
    guarantees += [guarantee(unit, "central", _METHOD, epsilon) for unit in units]
    return PrivacyReport(
        guarantees=tuple(guarantees),
        anonymity=(),
        notes=(
            "Neighbors are swaps: all data of one client, replaced by other data.",
            "Votes are not randomized: the server, or a secure sum in its place, is trusted.",
            "Numbers of votes are exact, and no guarantee covers their publication: the columns "
            "estimate and variance are for evaluation.",
        ),
    )
