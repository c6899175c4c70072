"""Distributions of an oracle on a tiny domain: by enumeration, then the code against them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.oracles.base import FrequencyOracle, Reports, Tally
from fedhh.oracles.families import SampledAggregates
from fedhh.oracles.hashed import SketchOracle
from fedhh.testing.checks import Checks, expect, expect_added, expect_equal
from fedhh.testing.statistics import ALPHA, distribution_p_value, rows

CHECKS: Checks[FrequencyOracle] = Checks()
"""What enumeration shows, and what sampling shows of the code."""

_PAIRS = 50_000
_SINGLE_REPORTS = 3_000
_JOINT_TALLIES = 2_500

Outcome = tuple[int, ...]
Distribution = dict[Outcome, float]


def report_distribution(oracle: FrequencyOracle, value: int) -> Distribution:
    """Return the probability of each report of a client with a value."""
    space = oracle.report_space()
    return dict(zip(rows(space), np.exp(oracle.log_prob(space, value)).tolist(), strict=True))


def tally_distribution(oracle: FrequencyOracle, values: Sequence[int]) -> Distribution:
    """Return the distribution of the support of all values in one report per given value."""
    return _sum_distribution(oracle, lambda report: oracle.support(reports=report), values)


def aggregate_distribution(oracle: FrequencyOracle, values: Sequence[int]) -> Distribution:
    """Return the distribution of the aggregate of one report per given value."""
    return _sum_distribution(oracle, oracle.aggregate, values)


def _sum_distribution(
    oracle: FrequencyOracle, share: Callable[[Reports], Tally], values: Sequence[int]
) -> Distribution:
    """Return the distribution of a sum over one report per value, given each report's share."""
    space = oracle.report_space()
    singles = np.array([share(space[i : i + 1]) for i in range(len(space))])
    outcomes = np.zeros((1, singles.shape[1]), dtype=np.int64)
    # A number for each row, by pseudorandom places of its digits, is sorted faster than rows are.
    places = np.random.default_rng(0).integers(2**63, size=singles.shape[1])
    chances: npt.NDArray[Any] = np.ones(1)
    for value in values:
        sums = (outcomes[:, None] + singles).reshape(-1, singles.shape[1])
        weights = np.outer(chances, np.exp(oracle.log_prob(space, value))).ravel()
        _, first, which = np.unique(sums @ places, return_index=True, return_inverse=True)
        outcomes, chances = sums[first], np.bincount(which, weights=weights)
        assert np.array_equal(outcomes[which], sums)
    return dict(zip(rows(outcomes), chances.tolist(), strict=True))


def _values_of(oracle: FrequencyOracle) -> list[int]:
    """Return values of three clients, of which two hold the same."""
    other = min(2, oracle.domain_size - 1)
    return [0, other, other]


def _has_no_public_coins(oracle: FrequencyOracle) -> bool:
    return not oracle.has_public_coins


def _expect_distribution(draws: npt.NDArray[Any], distribution: Distribution, what: str) -> None:
    p_value = distribution_p_value(draws.reshape(len(draws), -1), distribution)
    if p_value == 0:
        strange = next((draw for draw in rows(draws) if distribution.get(draw, 0.0) <= 0), None)
        expect(strange is None, f"{what} drew {strange}, which has no chance under log_prob")
    expect(
        p_value > ALPHA,
        f"{len(draws)} draws of {what} do not follow log_prob: chi-square p-value {p_value:.1e}, "
        f"expected above {ALPHA:g}",
    )


@CHECKS.add()
def _probabilities_sum_to_one(oracle: FrequencyOracle, seed: int) -> None:
    for value in range(oracle.domain_size):
        total = np.exp(oracle.log_prob(oracle.report_space(), value)).sum()
        what = f"the sum of exp(log_prob) over report_space() for value {value}"
        expect_equal(total, 1.0, what, tolerance=1e-12)


@CHECKS.add()
def _reports_of_the_space_are_distinct(oracle: FrequencyOracle, seed: int) -> None:
    space = rows(oracle.report_space())
    expect(
        len(set(space)) == len(space),
        f"report_space() has {len(space)} reports, of which {len(set(space))} are different",
    )


@CHECKS.add()
def _epsilon_is_exact(oracle: FrequencyOracle, seed: int) -> None:
    space = oracle.report_space()
    logs = np.array([oracle.log_prob(space, v) for v in range(oracle.domain_size)])
    with np.errstate(invalid="ignore"):
        spread = logs.max(axis=0) - logs.min(axis=0)
    worst = float(np.nanmax(spread))
    report = rows(space)[int(np.nanargmax(spread))]
    what = f"the worst log-ratio of log_prob between two values, at report {report},"
    expect_equal(worst, oracle.epsilon, what, tolerance=1e-12)


@CHECKS.add(_has_no_public_coins)
def _estimates_are_unbiased_with_the_stated_variance(oracle: FrequencyOracle, seed: int) -> None:
    values = _values_of(oracle)
    counts = np.bincount(values, minlength=oracle.domain_size)
    distribution = tally_distribution(oracle, values)
    estimates = np.array([oracle.estimate(np.array(tally), len(values)) for tally in distribution])
    weights = np.array(list(distribution.values()))[:, None]
    mean = (weights * estimates).sum(axis=0)
    expect_equal(mean, counts, "the mean of estimates of true counts", tolerance=1e-10)
    variance = (weights * (estimates - mean) ** 2).sum(axis=0)
    stated = oracle.variance(counts, len(values))
    what = f"the variance of estimates of true counts {counts}, which variance() states,"
    expect_equal(variance, stated, what, tolerance=1e-10)


@CHECKS.add(_has_no_public_coins)
def _reports_follow_the_distribution_and_are_independent(
    oracle: FrequencyOracle, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    for held in ((0, 1), (oracle.domain_size - 1, 0)):
        reports = oracle.privatize(np.tile(held, _PAIRS), rng=rng).reshape(_PAIRS, -1)
        first, second = (report_distribution(oracle, value) for value in held)
        both = itertools.product(first.items(), second.items())
        pairs = {one + other: chance * rate for (one, chance), (other, rate) in both}
        _expect_distribution(reports, pairs, f"privatize of values {held}, in pairs,")


@CHECKS.add(_has_no_public_coins)
def _aggregates_of_values_follow_the_distribution(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for values, draws in (([1], _SINGLE_REPORTS), (_values_of(oracle), _JOINT_TALLIES)):
        held = np.array(values)
        drawn = [oracle.aggregate(values=held, rng=rng) for _ in range(draws)]
        distribution = aggregate_distribution(oracle, values)
        _expect_distribution(np.array(drawn), distribution, f"aggregate of values {values}")


@CHECKS.add(lambda oracle: isinstance(oracle, SampledAggregates))
def _sampled_aggregates_follow_the_distribution(oracle: FrequencyOracle, seed: int) -> None:
    assert isinstance(oracle, SampledAggregates)
    rng = np.random.default_rng(seed)
    values = _values_of(oracle)
    drawn = [
        oracle.sample_aggregate(oracle.noise_free_counts(np.array(values), rng=rng), rng=rng)
        for _ in range(_JOINT_TALLIES)
    ]
    distribution = aggregate_distribution(oracle, values)
    _expect_distribution(np.array(drawn), distribution, f"sample_aggregate for values {values}")


@CHECKS.add(lambda oracle: isinstance(oracle, SampledAggregates))
def _noise_free_counts_add_up(oracle: FrequencyOracle, seed: int) -> None:
    assert isinstance(oracle, SampledAggregates)
    values = np.arange(500) % oracle.domain_size

    def counted(out: Tally | None = None) -> Tally:
        return oracle.noise_free_counts(values, rng=np.random.default_rng(seed), out=out)

    expect_added("noise_free_counts", counted, oracle.aggregate_size)
    fresh = counted()
    if oracle.counts_values and not oracle.is_sketch:
        expect_equal(fresh, np.bincount(values, minlength=oracle.domain_size), "noise_free_counts")
    oracle.sample_aggregate(fresh, rng=np.random.default_rng(seed))
    expect_equal(fresh, counted(), "what sample_aggregate leaves of the counts")


@CHECKS.add(lambda oracle: isinstance(oracle, SketchOracle))
def _sampled_sketches_follow_the_distribution(oracle: FrequencyOracle, seed: int) -> None:
    assert isinstance(oracle, SketchOracle)
    rng = np.random.default_rng(seed)
    values = _values_of(oracle)
    counts = np.bincount(values, minlength=oracle.domain_size)
    drawn = [oracle.support(oracle.sample_sketch(counts, rng=rng)) for _ in range(_JOINT_TALLIES)]
    distribution = tally_distribution(oracle, values)
    _expect_distribution(np.array(drawn), distribution, f"sample_sketch of true counts {counts}")
