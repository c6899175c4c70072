"""Distributions of an oracle on a tiny domain: by enumeration, then the code against them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.oracles.base import FrequencyOracle, PureOracle, Reports, Tally
from fedhh.oracles.hashed import SketchOracle, sample_sketch
from fedhh.oracles.sampling import SampledAggregates
from fedhh.testing.checks import Checks, expect, expect_added
from fedhh.testing.statistics import ALPHA, distinct_rows, distribution_p_value, rows

CHECKS: Checks[FrequencyOracle] = Checks()
"""What enumeration shows, and what sampling shows of the code."""

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
    chances: npt.NDArray[Any] = np.ones(1)
    for value in values:
        sums = (outcomes[:, None] + singles).reshape(-1, singles.shape[1])
        weights = np.outer(chances, np.exp(oracle.log_prob(space, value))).ravel()
        outcomes, places = distinct_rows(sums)
        chances = np.bincount(places, weights=weights)
    return dict(zip(rows(outcomes), chances.tolist(), strict=True))


def _values_of(oracle: FrequencyOracle) -> list[int]:
    """Return values of three clients, of which two hold the same."""
    other = min(2, oracle.domain_size - 1)
    return [0, other, other]


def _has_no_public_coins(oracle: FrequencyOracle) -> bool:
    return not oracle.has_public_coins


def _samples_aggregates(oracle: FrequencyOracle) -> bool:
    return isinstance(oracle, SampledAggregates)


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
        expect(
            abs(total - 1) <= 1e-12,
            f"exp(log_prob) over report_space() sums to {total!r} for value {value}, expected 1",
        )


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
    expect(
        worst == oracle.epsilon or abs(worst - oracle.epsilon) <= 1e-12,
        f"the worst log-ratio of log_prob between two values is {worst!r}, at report {report}; "
        f"expected the stated epsilon={oracle.epsilon!r}",
    )


@CHECKS.add(lambda oracle: isinstance(oracle, PureOracle) and not oracle.has_public_coins)
def _reports_support_values_with_p_and_q(oracle: FrequencyOracle, seed: int) -> None:
    assert isinstance(oracle, PureOracle)
    for value in range(oracle.domain_size):
        distribution = tally_distribution(oracle, [value])
        support = sum(np.array(tally) * chance for tally, chance in distribution.items())
        expected = np.where(np.arange(oracle.domain_size) == value, oracle.p, oracle.q)
        expect(
            np.allclose(support, expected, rtol=0, atol=1e-12),
            f"a report of value {value} supports the values with chances {support}, expected "
            f"{expected} from p and q",
        )


def _mean_and_variance(
    oracle: FrequencyOracle, values: list[int]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    distribution = tally_distribution(oracle, values)
    estimates = np.array([oracle.estimate(np.array(tally), len(values)) for tally in distribution])
    weights = np.array(list(distribution.values()))[:, None]
    mean = (weights * estimates).sum(axis=0)
    return mean, (weights * (estimates - mean) ** 2).sum(axis=0)


@CHECKS.add(_has_no_public_coins)
def _estimates_are_unbiased(oracle: FrequencyOracle, seed: int) -> None:
    values = _values_of(oracle)
    counts = np.bincount(values, minlength=oracle.domain_size)
    mean, _ = _mean_and_variance(oracle, values)
    expect(
        np.allclose(mean, counts, rtol=0, atol=1e-10),
        f"the expected estimates of true counts {counts} are {mean}",
    )


@CHECKS.add(_has_no_public_coins)
def _variance_is_exact(oracle: FrequencyOracle, seed: int) -> None:
    values = _values_of(oracle)
    counts = np.bincount(values, minlength=oracle.domain_size)
    _, variance = _mean_and_variance(oracle, values)
    stated = oracle.variance(counts, len(values))
    expect(
        np.allclose(variance, stated, rtol=0, atol=1e-10),
        f"estimates of true counts {counts} have the variances {variance}, but variance() says "
        f"{stated}",
    )


@CHECKS.add(_has_no_public_coins)
def _privatize_follows_the_distribution(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for value in (0, oracle.domain_size - 1):
        reports = oracle.privatize(np.full(100_000, value), rng=rng)
        _expect_distribution(
            reports, report_distribution(oracle, value), f"privatize of value {value}"
        )


@CHECKS.add(_has_no_public_coins)
def _reports_of_clients_are_independent(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reports = oracle.privatize(np.tile([0, 1], 50_000), rng=rng)
    first, second = report_distribution(oracle, 0), report_distribution(oracle, 1)
    pairs = {a + b: p * q for (a, p), (b, q) in itertools.product(first.items(), second.items())}
    _expect_distribution(
        reports.reshape(len(reports) // 2, -1),
        pairs,
        "privatize of values 0 and 1, two reports at a time,",
    )


@CHECKS.add(_has_no_public_coins)
def _fused_reports_follow_the_distribution(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for values, draws in (([1], _SINGLE_REPORTS), (_values_of(oracle), _JOINT_TALLIES)):
        held = np.array(values)
        drawn = np.array(
            [oracle.support(oracle.aggregate(values=held, rng=rng)) for _ in range(draws)]
        )
        _expect_distribution(
            drawn, tally_distribution(oracle, values), f"aggregate of values {values}"
        )


@CHECKS.add(_samples_aggregates)
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


@CHECKS.add(_samples_aggregates)
def _noise_free_counts_add_up(oracle: FrequencyOracle, seed: int) -> None:
    assert isinstance(oracle, SampledAggregates)
    values = np.arange(500) % oracle.domain_size

    def counted(out: Tally | None = None) -> Tally:
        return oracle.noise_free_counts(values, rng=np.random.default_rng(seed), out=out)

    expect_added("noise_free_counts", counted, oracle.aggregate_size)
    fresh = counted()
    if oracle.counts_values and not oracle.is_sketch:
        counts = np.bincount(values, minlength=oracle.domain_size)
        expect(
            np.array_equal(fresh, counts),
            f"counts_values is True, but noise-free counts of {counts} values are {fresh}",
        )
    oracle.sample_aggregate(fresh, rng=np.random.default_rng(seed))
    expect(np.array_equal(fresh, counted()), "sample_aggregate changed the counts")


@CHECKS.add(lambda oracle: isinstance(oracle, SketchOracle))
def _sampled_sketches_follow_the_distribution(oracle: FrequencyOracle, seed: int) -> None:
    assert isinstance(oracle, SketchOracle)
    rng = np.random.default_rng(seed)
    values = _values_of(oracle)
    counts = np.bincount(values, minlength=oracle.domain_size)
    drawn = [oracle.support(sample_sketch(oracle, counts, rng=rng)) for _ in range(_JOINT_TALLIES)]
    _expect_distribution(
        np.array(drawn),
        tally_distribution(oracle, values),
        f"sample_sketch of true counts {counts}",
    )
