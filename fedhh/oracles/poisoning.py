"""What a fake device can report: data poisoning of frequency oracles.

A fake device controls its reports, and nothing but the oracle's report space limits them. Source of
the attacks and their gains: Cao, Jia, Gong (2021), "Data poisoning attacks to local differential
privacy protocols", USENIX Security. Its maximal gain attack (MGA) sends `supporting_reports`, its
random perturbed-value attack (RPA) `random_reports`, and its random item attack (RIA) a random
wanted value through the honest randomizer. The paper has `grr`, `oue` and `olh`; the same is done
here to all others.

A server estimates the frequencies of r wanted values among n honest and m fake devices. The gain is
by how much their estimates' sum changes, in expectation. Estimates are linear in what reports add
up to, so with beta = m / (n + m) and f the wanted values' share of the honest devices,

    gain = beta (effect - f),

where the effect is the sum of the estimates made of one fake report. Where a report supports c of
the wanted values, it is (c - r q) / (p - q) for a `PureOracle`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from fedhh.oracles.base import (
    Floats,
    FrequencyOracle,
    Reports,
    Tally,
    Values,
    as_numbers,
    require_in_domain,
)
from fedhh.oracles.bits import DBitFlip, UnaryEncoding
from fedhh.oracles.codes import HadamardResponse, ProjectiveGeometryResponse
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.crafted_hashes import (
    HASH_FUNCTIONS,
    CraftedCells,
    CraftedHalfBlocks,
    CraftedHashes,
    CraftedPoints,
    CraftedSigns,
    CraftedVectors,
)
from fedhh.oracles.crafted_reports import (
    CraftedBits,
    CraftedEntries,
    CraftedReports,
    CraftedSampledBits,
    CraftedSubsets,
    CraftedValues,
    in_turn,
    other_values,
)
from fedhh.oracles.hadamard_sketches import HadamardSketch
from fedhh.oracles.hashed_response import HashedResponseOracle
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.oracles.local_hashing import LocalHashing
from fedhh.oracles.subset_selection import SubsetSelection
from fedhh.oracles.values import GeneralizedRandomizedResponse, Identity
from fedhh.validation import InputError, require_at_least, require_between

__all__ = [
    "HASH_FUNCTIONS",
    "HONEST_REPORTS",
    "add_supporting_reports",
    "effect",
    "expected_gain",
    "expected_load",
    "maximal_gain",
    "opposing_reports",
    "random_reports",
    "supporting_reports",
]

HONEST_REPORTS = 32
"""Honest reports of which the best is sent to an oracle of a family that nothing is known of."""


def effect(oracle: FrequencyOracle, reports: Reports, values: npt.ArrayLike) -> float:
    """Return what one of some reports adds, in the mean, to the estimated counts of values in all.

    Args:
        oracle: The randomizer with its estimator.
        reports: Any of its report space, at least one.
        values: ``(r,)`` distinct values.
    """
    return _crafted(oracle).effect(reports, _distinct(oracle, values))


class BestOfHonest(CraftedReports[FrequencyOracle]):
    """An oracle of no known family: the best of `HONEST_REPORTS` honest ones of a wanted value.

    Nothing is known of its report space, so random reports are honest ones of random values. Each
    report's `effect` is looked at by itself.
    """

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        return self.oracle.privatize(rng.integers(self.oracle.domain_size, size=count), rng=rng)

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        held = in_turn(wanted, count * HONEST_REPORTS, rng=rng)
        return self._best(held, wanted, 1, rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        rest = self.oracle.domain_size - len(unwanted)
        size = count * HONEST_REPORTS
        held = (
            other_values(rng.integers(rest, size=size), unwanted)
            if rest
            else rng.integers(self.oracle.domain_size, size=size)
        )
        return self._best(held, unwanted, -1, rng)

    def _best(self, held: Values, values: Values, sign: int, rng: np.random.Generator) -> Reports:
        reports = self.oracle.privatize(held, rng=rng)
        effects = [sign * self.effect(reports[i : i + 1], values) for i in range(len(reports))]
        best = np.argmax(np.reshape(effects, (-1, HONEST_REPORTS)), axis=1)
        return np.asarray(reports[best + HONEST_REPORTS * np.arange(len(best))])


FAMILIES: dict[type[Any], type[CraftedReports[Any]]] = {
    GeneralizedRandomizedResponse: CraftedValues,
    Identity: CraftedValues,
    SubsetSelection: CraftedSubsets,
    UnaryEncoding: CraftedBits,
    HistogramEncoding: CraftedEntries,
    DBitFlip: CraftedSampledBits,
    LocalHashing: CraftedHashes,
    HashedResponseOracle: CraftedCells,
    HadamardSketch: CraftedSigns,
    CountMeanSketch: CraftedVectors,
    HadamardResponse: CraftedHalfBlocks,
    ProjectiveGeometryResponse: CraftedPoints,
}
"""What is made up for which family; subclasses have their reports from it."""


def random_reports(oracle: FrequencyOracle, count: int, *, rng: np.random.Generator) -> Reports:
    """Return ``count`` reports that are uniform over the oracle's report space.

    Of an oracle of no known family: honest reports of uniform values.

    Args:
        oracle: The randomizer.
        count: How many.
        rng: Source of the attacker's coins.
    """
    return _crafted(oracle).uniform(count, rng=rng)


def supporting_reports(
    oracle: FrequencyOracle,
    wanted: npt.ArrayLike,
    count: int,
    *,
    rng: np.random.Generator,
    num_functions: int = HASH_FUNCTIONS,
) -> Reports:
    """Return reports that each raise the estimates of wanted values as much as a report can.

    A family's class says how, and what the rest of a report is. Where a report has no room for all
    wanted values, each has its turn. Of an oracle of no known family: see `BestOfHonest`.

    Args:
        oracle: The randomizer.
        wanted: ``(r,)`` values, at least one.
        count: How many reports.
        rng: Source of the attacker's coins.
        num_functions: Hash functions that are tried for a report of local hashing.
    """
    return _crafted(oracle, num_functions).supporting(_distinct(oracle, wanted), count, rng=rng)


def add_supporting_reports(
    oracle: FrequencyOracle,
    wanted: npt.ArrayLike,
    count: int,
    *,
    rng: np.random.Generator,
    out: Tally,
) -> None:
    """Add as many `supporting_reports` to an aggregate, for speed; the bits drawn may differ.

    Args:
        oracle: The randomizer.
        wanted: ``(r,)`` values, at least one.
        count: How many reports.
        rng: Source of the attacker's coins.
        out: ``(aggregate_size,) int64``, contiguous, changed in place.
    """
    _crafted(oracle).add_supporting(_distinct(oracle, wanted), count, out, rng=rng)


def opposing_reports(
    oracle: FrequencyOracle,
    unwanted: npt.ArrayLike,
    count: int,
    *,
    rng: np.random.Generator,
    num_functions: int = HASH_FUNCTIONS,
) -> Reports:
    """Return reports that each support others, so that estimates of unwanted values fall.

    Arguments are those of `supporting_reports`. One report lowers an estimate by q / (p - q) where
    it can leave all unwanted values out.
    """
    return _crafted(oracle, num_functions).opposing(_distinct(oracle, unwanted), count, rng=rng)


def expected_gain(
    oracle: FrequencyOracle,
    reports: Reports,
    values: npt.ArrayLike,
    *,
    share: float,
    frequency: float = 0.0,
) -> float:
    """Return the gain of values if fake devices send reports like these: beta (effect - f).

    Args:
        oracle: The randomizer with its estimator.
        reports: What they send, at least one.
        values: ``(r,)`` values.
        share: beta, fake devices among all.
        frequency: f, how many of the honest devices hold one of the values.
    """
    require_between(0, 1, share=share, frequency=frequency)
    return share * (effect(oracle, reports, values) - frequency)


def maximal_gain(
    oracle: FrequencyOracle, wanted: npt.ArrayLike, *, share: float, frequency: float = 0.0
) -> float:
    """Return the largest gain of wanted values by any reports: exact, for the oracle's functions.

    With r wanted values and E = e**epsilon, it is, for beta = ``share`` and f = ``frequency``,

    * beta (1 - f) + beta (s - r) / (E - 1) for generalized randomized response over s values;
    * beta (2 r - f) + 2 beta r / (E - 1) for optimized unary encoding;
    * beta ((min(r, d) - r q) / (p - q) - f) for Subset Selection;
    * beta (r (1 - q) / (p - q) - f) for local hashing, by a function that sends all values to one
      cell. A search among random functions finds less: `expected_load`.

    For others it follows from the best report, for which all reports are looked at. Of an oracle of
    no known family, it is the gain of one report of `BestOfHonest`, and no bound.

    >>> from fedhh.oracles import OracleSpec, make_oracle
    >>> oue = make_oracle(OracleSpec(name="oue", epsilon=1.0), 128)
    >>> round(maximal_gain(oue, range(10), share=0.05), 5)
    1.58198
    """
    values = _distinct(oracle, wanted)
    best = _crafted(oracle).best(values)
    return expected_gain(oracle, best, values, share=share, frequency=frequency)


def expected_load(num_wanted: int, num_cells: int, num_functions: int = HASH_FUNCTIONS) -> float:
    """Return how many wanted values the fullest cell has, under the best of some functions.

    The expectation, exact for functions that send each value to a cell independently of all others:
    P(no cell has more than c) = r! g**-r [x**r] (sum over j <= c of x**j / j!)**g. Multiply-shift
    functions send values that are close to each other together more often.

    Args:
        num_wanted: r.
        num_cells: g.
        num_functions: How many are tried.

    >>> round(expected_load(10, 4, 1000), 2)
    7.93
    """
    require_at_least(1, num_wanted=num_wanted, num_cells=num_cells, num_functions=num_functions)
    # As Poisson numbers, cells are independent; their sum is then known to be r.
    sizes = np.arange(num_wanted + 1)
    of_cell, of_sum = (
        np.exp(sizes * math.log(mean) - mean - gammaln(sizes + 1))
        for mean in (num_wanted / num_cells, num_wanted)
    )
    chances = [
        _power(of_cell * (sizes <= most), num_cells)[-1] / of_sum[-1] for most in range(num_wanted)
    ]
    return float((1 - np.minimum(chances, 1.0) ** num_functions).sum())


def _power(coefficients: Floats, exponent: int) -> Floats:
    """Return the power of a polynomial, lowest degree first, up to its own degree."""
    size = len(coefficients)
    power = np.eye(1, size)[0]
    while exponent:
        if exponent & 1:
            power = np.convolve(power, coefficients)[:size]
        coefficients = np.convolve(coefficients, coefficients)[:size]
        exponent >>= 1
    return np.asarray(power, dtype=np.float64)


def _crafted(oracle: FrequencyOracle, num_functions: int = HASH_FUNCTIONS) -> CraftedReports[Any]:
    """Return what is made up for an oracle, by the nearest of its classes that has a family."""
    require_at_least(1, num_functions=num_functions)
    family = next((FAMILIES[each] for each in type(oracle).__mro__ if each in FAMILIES), None)
    crafted = (family or BestOfHonest)(oracle)
    if isinstance(crafted, CraftedHashes):
        crafted.num_functions = num_functions
    return crafted


def _distinct(oracle: FrequencyOracle, values: npt.ArrayLike) -> Values:
    """Return values of the oracle's domain, ascending and each once; InputError without any."""
    distinct = np.unique(as_numbers(values))
    if not len(distinct):
        raise InputError("Expected at least one value to support or oppose, got none; name some.")
    require_in_domain(distinct, oracle.domain_size)
    return distinct
