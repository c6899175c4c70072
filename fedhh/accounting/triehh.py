"""What TrieHH costs in central privacy: sampling and a threshold, without noise.

The arithmetic of the theorem is in `fedhh.mechanisms.sampled_threshold`.
"""

from __future__ import annotations

import math

from fedhh.accounting.guarantees import Guarantee, NotApplicable, Trust, Unit
from fedhh.accounting.report import PrivacyReport
from fedhh.mechanisms.sampled_threshold import triehh_delta, triehh_epsilon
from fedhh.validation import InputError

_METHOD, _NOTHING = "sampling and threshold", "no randomizer"
_THEOREM = "Zhu et al. (2020), privacy of TrieHH by sampling and threshold"


def account_triehh(
    *, num_clients: int, sample_size: int, threshold: int, num_rounds: int
) -> PrivacyReport:
    """Return the privacy report of a run of TrieHH: central and of a user, nothing local.

    Args:
        num_clients: Users n of the population, from all of which every round samples.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L at most; a run that stops early has used no fewer, since when it stops
            depends on the data.
    """

    def guarantee(
        unit: Unit, trust: Trust, method: str, epsilon: float | NotApplicable, delta: float
    ) -> Guarantee:
        theorem, assumptions = "no randomizer", "votes are read as they are"
        if method != _NOTHING:
            theorem = _THEOREM
            assumptions = (
                f"all {num_rounds} rounds sample afresh, and only kept prefixes are published"
            )
            if unit == "item":
                assumptions += "; a user's guarantee covers each of its items"
        return Guarantee(
            unit=unit,
            trust=trust,
            method=method,
            epsilon=epsilon,
            delta=delta,
            theorem=theorem,
            assumptions=assumptions,
            smallest_cohort=sample_size,
            best=not isinstance(epsilon, NotApplicable),
        )

    units: tuple[Unit, Unit] = ("item", "user")
    guarantees = [guarantee(unit, "local", _NOTHING, math.inf, 0.0) for unit in units]
    epsilon: float | NotApplicable
    try:
        epsilon = triehh_epsilon(
            num_clients=num_clients,
            sample_size=sample_size,
            threshold=threshold,
            num_rounds=num_rounds,
        )
        delta = triehh_delta(threshold)
    except InputError as error:
        epsilon, delta = NotApplicable(str(error)), 0.0
        guarantees += [guarantee(unit, "central", _NOTHING, math.inf, 0.0) for unit in units]
    guarantees += [guarantee(unit, "central", _METHOD, epsilon, delta) for unit in units]
    return PrivacyReport(
        guarantees=tuple(guarantees),
        anonymity=(),
        notes=(
            "Neighbors are swaps: all data of one client, replaced by other data.",
            "Votes are not randomized: the server, or a secure sum in its place, is trusted.",
            f"Delta follows from the threshold of {threshold} votes; it is not a target.",
        ),
    )
