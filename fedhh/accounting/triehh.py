"""What TrieHH costs in central privacy: sampling and a threshold, without noise.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, the privacy theorem of TrieHH and its corollary; the settings agree with those of
the authors' code. The unit is a user with one word (or one vote drawn from its words) per round.
Neighbors swap one user; for one round, tests confirm by enumeration that the theorem covers that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.accounting.guarantees import Guarantee, NotApplicable, Trust, Unit
from fedhh.accounting.report import PrivacyReport
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

_LEAST_THRESHOLD = 4
_METHOD, _NOTHING = "sampling and threshold", "no randomizer"
_THEOREM = "Zhu et al. (2020), privacy of TrieHH by sampling and threshold"


@dataclass(frozen=True, kw_only=True)
class TrieHHParameters:
    """Settings that a privacy target allows.

    Attributes:
        threshold: Votes theta that keep a prefix.
        sample_size: Users m asked per round.
    """

    threshold: int
    sample_size: int


def triehh_parameters(
    *, num_clients: int, epsilon: float, delta: float, num_rounds: int
) -> TrieHHParameters:
    """Return the least threshold and the largest sample with (epsilon, delta) privacy.

    The threshold follows from delta alone (and is at least e**(epsilon / num_rounds) - 1); the
    sample then from epsilon.

    Args:
        num_clients: Users n of the population.
        epsilon: Central privacy of the whole discovery.
        delta: Its delta.
        num_rounds: Rounds L: symbols of the longest word, the end symbol included.

    Raises:
        InputError: The population is too small for the target.

    >>> triehh_parameters(num_clients=650_000, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    TrieHHParameters(threshold=15, sample_size=14286)
    """
    require_at_least(1, num_clients=num_clients, num_rounds=num_rounds)
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    threshold = max(_LEAST_THRESHOLD, math.ceil(math.expm1(epsilon / num_rounds)))
    while triehh_delta(threshold) > delta:
        threshold += 1
    sample_size = math.floor(num_clients * -math.expm1(-epsilon / num_rounds) / threshold)
    if threshold > math.sqrt(num_clients) or sample_size < threshold:
        raise InputError(
            f"Expected more clients for epsilon={epsilon} and delta={delta}: the threshold is "
            f"{threshold} votes, but num_clients={num_clients:,} allow a sample of only "
            f"{sample_size:,}. Raise epsilon, or ask a larger population."
        )
    return TrieHHParameters(threshold=threshold, sample_size=sample_size)


def triehh_epsilon(*, num_clients: int, sample_size: int, threshold: int, num_rounds: int) -> float:
    """Return the central epsilon of TrieHH: L ln(1 + 1 / (n / (m theta) - 1)).

    The paper writes m = gamma sqrt(n).

    Args:
        num_clients: Users n.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L.

    Raises:
        InputError: The theorem does not cover these settings.
    """
    require_at_least(1, num_clients=num_clients, sample_size=sample_size, num_rounds=num_rounds)
    require_at_least(_LEAST_THRESHOLD, threshold=threshold)
    if sample_size * (threshold + 1) > num_clients or threshold**2 > num_clients:
        raise InputError(
            f"Expected sample_size * (threshold + 1) <= num_clients and threshold**2 <= "
            f"num_clients, got {sample_size} * {threshold + 1} and {threshold**2} with "
            f"num_clients={num_clients}."
        )
    return -num_rounds * math.log1p(-sample_size * threshold / num_clients)


def triehh_delta(threshold: int) -> float:
    """Return the delta of TrieHH: (theta - 2) / ((theta - 3) theta!).

    Args:
        threshold: Votes theta that keep a prefix, at least 4.
    """
    require_at_least(_LEAST_THRESHOLD, threshold=threshold)
    return (threshold - 2) / ((threshold - 3) * math.factorial(threshold))


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
