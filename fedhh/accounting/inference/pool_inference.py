"""Which group of values a client prefers, inferred from many reports about its own draws.

Values fall into pools: skin tones of emoji, words of two dialects. A client prefers one pool: each
time it reports, it draws a value of that pool with a chance, its polarization, and otherwise any
value; given which of the two, all values are equally likely. It reports t times, each time about a
new draw and with fresh coins. The attacker knows the pools, the polarization and the stated
distribution of reports, and guesses by Bayes; all pools are equally likely before.

**What local privacy allows.** A report about a draw is a report about the pool: under two pools its
likelihoods are mixtures over values, whose ratio is at most e**epsilon. So t reports about the pool
have the epsilon t epsilon, and not less because values differ: repeated use is composed, whatever
it is about.

References:
    Gadotti, Houssiau, Annamalai, de Montjoye (2022), "Pool inference attacks on local differential
    privacy: quantifying the privacy guarantees of Apple's count mean sketch in practice", USENIX
    Security. Its clients also draw values by their popularity; polarization is defined as here up
    to that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import check_levels
from fedhh.accounting.inference.evidence import Evidence, TooManyKindsError
from fedhh.accounting.inference.success import GuessesMade, InferenceVerdict, Success
from fedhh.oracles.base import FrequencyOracle
from fedhh.validation import InputError, require_at_least, require_between

Floats = npt.NDArray[np.float64]

_AT_ONCE = 2_000_000
"""Likelihoods computed together."""


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Pools of as many values each, and how strongly a client prefers one.

    Attributes:
        num_pools: m.
        pool_size: Values of a pool; pool j has the values j size .. (j + 1) size - 1.
        polarization: Chance that a draw is from the preferred pool on purpose, from 0 to 1.
    """

    num_pools: int
    pool_size: int
    polarization: float = 1.0

    def __post_init__(self) -> None:
        require_at_least(2, num_pools=self.num_pools)
        require_at_least(1, pool_size=self.pool_size)
        require_between(0, 1, polarization=self.polarization)

    @property
    def num_values(self) -> int:
        return self.num_pools * self.pool_size

    @property
    def weights(self) -> Floats:
        """``(m, values)``: chance of each value under each preferred pool."""
        own = np.repeat(np.eye(self.num_pools), self.pool_size, axis=1) / self.pool_size
        return np.asarray(
            self.polarization * own + (1 - self.polarization) / self.num_values, dtype=np.float64
        )

    def draw(
        self, pools: npt.NDArray[np.int64], *, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Return ``(n,)`` one value for each client, given ``(n,)`` the pools that they prefer."""
        on_purpose = rng.random(len(pools)) < self.polarization
        own = pools * self.pool_size + rng.integers(self.pool_size, size=len(pools))
        return np.where(on_purpose, own, rng.integers(self.num_values, size=len(pools)))


def infer_pool(
    oracle: FrequencyOracle,
    pools: Pools,
    *,
    reports: Sequence[int],
    num_clients: int,
    rng: np.random.Generator,
    stated: float | None = None,
    confidence: float = 0.999,
) -> InferenceVerdict:
    """Return how often an attacker guesses which pool a client prefers, by number of reports.

    Args:
        oracle: The randomizer, any that states `log_prob`.
        pools: The pools, of no more values than the oracle has.
        reports: Numbers of reports after which it guesses, ascending.
        num_clients: Simulated.
        rng: Source of pools, values and coins.
        stated: Local epsilon of a report; the oracle's own if None.
        confidence: Of the verdict.

    Raises:
        InputError: A value is out of range.
    """
    check_levels(0.0, confidence)
    require_at_least(1, num_clients=num_clients)
    if not reports or list(reports) != sorted(set(reports)) or reports[0] < 1:
        raise InputError(f"Expected ascending numbers of reports from 1, got {list(reports)}.")
    if pools.num_values > oracle.domain_size:
        raise InputError(
            f"Expected pools of at most domain_size={oracle.domain_size} values in all, got "
            f"{pools.num_pools} x {pools.pool_size}."
        )
    epsilon = oracle.epsilon if stated is None else stated
    exact = exact_successes(oracle, pools, reports)
    made = _simulated(oracle, pools, reports, num_clients, rng)
    return InferenceVerdict(
        audited="which pool of values a client prefers, by all its reports",
        successes=[
            Success(
                attack="Bayes",
                reports=number,
                hypotheses=pools.num_pools,
                stated=epsilon,
                exact=chance,
                made=guesses,
            )
            for number, chance, guesses in zip(reports, exact, made, strict=True)
        ],
        confidence=confidence,
        facts={
            "oracle": type(oracle).__name__,
            "local_epsilon": epsilon,
            "domain_size": oracle.domain_size,
            "pools": pools.num_pools,
            "pool_size": pools.pool_size,
            "polarization": pools.polarization,
        },
    )


def exact_successes(
    oracle: FrequencyOracle, pools: Pools, reports: Sequence[int]
) -> list[float | None]:
    """Return the chance of a right guess after so many reports; None where it is not exact.

    Args:
        oracle: As it states its distribution.
        pools: The pools.
        reports: Ascending.
    """
    found: list[float | None] = []
    try:
        one = Evidence.of_oracle(oracle, range(pools.num_values)).mixed(pools.weights)
        evidence, heard = one, 1
        for number in reports:
            while heard < number:
                evidence, heard = evidence.followed_by(one), heard + 1
            found.append(evidence.success)
    except TooManyKindsError:
        pass
    return found + [None] * (len(reports) - len(found))


def _simulated(
    oracle: FrequencyOracle,
    pools: Pools,
    reports: Sequence[int],
    num_clients: int,
    rng: np.random.Generator,
) -> Iterator[GuessesMade]:
    """Yield how many guesses are right after so many reports, by those that the oracle makes."""
    values = np.arange(pools.num_values)
    preferred = rng.integers(pools.num_pools, size=num_clients)
    scores = np.zeros((num_clients, pools.num_pools))
    at_once = max(1, _AT_ONCE // pools.num_values)
    weights = pools.weights
    heard = 0
    for number in reports:
        for _ in range(number - heard):
            for start in range(0, num_clients, at_once):
                some = slice(start, start + at_once)
                drawn = pools.draw(preferred[some], rng=rng)
                logs = oracle.log_probs(oracle.privatize(drawn, rng=rng), values)
                largest = logs.max(axis=1, keepdims=True)
                with np.errstate(divide="ignore"):
                    scores[some] += np.log(np.exp(logs - largest) @ weights.T)
        heard = number
        best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
        guesses = np.where(best, rng.random(scores.shape), -math.inf).argmax(axis=1)
        yield GuessesMade(right=int((guesses == preferred).sum()), clients=num_clients)
