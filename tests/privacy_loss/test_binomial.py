"""Numerics of the bounds against exact fractions and 50-digit references."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from fedhh.privacy_loss.binomial import (
    binomial_excess,
    excess_of_coins,
    lattice,
    lower_tail,
    pmf,
    upper_tail,
)
from tests.every import every


@cache
def binomials(trials: int) -> list[int]:
    return [math.comb(trials, a) for a in range(trials + 1)]


def exact_excess(trials: int, threshold: float) -> float:
    # One division at the end: sums of fractions would look for a common divisor with every term.
    at, unit = threshold.as_integer_ratio()
    above = range(max(0, at // unit + 1), trials + 1)
    total = sum(binomials(trials)[a] * (a * unit - at) for a in above)
    return float(Fraction(total, unit << trials))


@every("trials", [1, 2, 3, 10, 61, 400])
def test_excess_is_the_sum_over_all_outcomes(trials):
    thresholds = np.unique(np.r_[np.linspace(-1, trials + 1, 41), np.arange(trials + 1.0)])
    got = binomial_excess(np.full(thresholds.size, float(trials)), thresholds)
    expected = [exact_excess(trials, float(threshold)) for threshold in thresholds]
    assert np.allclose(got, expected, rtol=4e-9, atol=1e-300)


@pytest.mark.parametrize("most", [1, 2, 61, 400, 1000])
def test_excess_of_coins_is_the_sum_over_all_outcomes_and_is_bounded_where_the_columns_end(most):
    trials = np.array([[1.0], [math.ceil(most / 2)], [most - most // 7], [most]])
    table = excess_of_coins(trials)
    for (count,), row in zip(trials.astype(int).tolist(), table, strict=True):
        exact = np.array([exact_excess(count, float(count // 2 + k)) for k in range(row.size)])
        likely = exact > 1e-60
        assert np.allclose(row[likely], exact[likely], rtol=4e-9, atol=0)
        assert (row >= exact * (1 - 4e-9)).all()
        assert (row[~likely] < 1e-60).all()


def test_excess_of_coins_keeps_its_precision_over_many_columns():
    trials = np.array([[200_001.0], [229_679.0]])
    table = excess_of_coins(trials)[:, :1500]
    thresholds = np.floor(trials / 2) + np.arange(1500)
    expected = binomial_excess(trials.repeat(1500), thresholds.ravel()).reshape(2, -1)
    assert np.allclose(table, expected, rtol=4e-9, atol=0)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_excess_of_an_uneven_coin_is_the_sum_over_all_outcomes(p):
    trials = np.array([[1.0], [7.0], [60.0]])
    thresholds = np.maximum(0.0, trials * np.linspace(-0.2, 1.1, 23))
    got = binomial_excess(trials, thresholds, p)
    for (n,), row, found in zip(trials.astype(int), thresholds, got, strict=True):
        counts = np.arange(n + 1)
        at = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in counts]
        expected = np.maximum(counts - row[:, None], 0.0) @ at
        assert np.allclose(found, expected, rtol=1e-8, atol=1e-15)


# Independently computed reference, 50 digits.
@pytest.mark.parametrize(
    ("trials", "threshold", "expected"),
    [
        (10**5, 50500.25, 0.03346961641356989),
        (10**7, 5015000.5, 1.936755304773432e-19),
        (10**9, 500130000.75, 1.871734621047424e-13),
    ],
)
def test_excess_keeps_its_precision_far_out(trials, threshold, expected):
    got = binomial_excess(np.array([float(trials)]), np.array([threshold]))[0]
    assert got == pytest.approx(expected, rel=4e-9)


# Independently computed reference, 50 digits.
@pytest.mark.parametrize(
    ("successes", "trials", "p", "expected"),
    [
        (904700000, 10**9, 0.9048, 2.700683685805029e-30),
        (30, 10**7, 1e-6, 1.711540071699328e-07),
        (1500, 3 * 10**7, 4.5e-5, 3.316078042219953e-06),
    ],
)
def test_pmf_keeps_its_precision_with_many_trials(successes, trials, p, expected):
    assert float(pmf(successes, trials, p)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("trials", "p"), [(1, 0.3), (2, 0.9), (30, 0.5), (200, 0.01)])
def test_pmf_and_tails_are_those_of_integer_arithmetic(trials, p):
    exact = [
        float(math.comb(trials, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (trials - k))
        for k in range(trials + 1)
    ]
    counts = np.arange(-2, trials + 3)
    padded = np.r_[0.0, 0.0, exact, 0.0, 0.0]
    assert np.allclose(pmf(counts, trials, p), padded, rtol=1e-12)
    assert np.allclose(upper_tail(counts, trials, p), padded[::-1].cumsum()[::-1], rtol=1e-11)
    assert np.allclose(lower_tail(counts, trials, p), padded.cumsum(), rtol=1e-11)


@every(
    ("trials", "p", "tolerance"),
    [
        (1, 0.5, 1e-6),
        (9, 1e-7, 1e-6),
        (10**6, 0.3, 1e-4),
        (10**9, 0.9048, 1e-5),
        (10**9, 1e-9, 1),
        (10**7, 0.3, 1e-6),
    ],
)
def test_a_lattice_accounts_for_all_the_probability(trials, p, tolerance):
    bins = lattice(trials, p, tolerance=tolerance)
    total = bins.probability.sum() + bins.below + bins.above
    assert total == pytest.approx(1, abs=1e-10)
    assert (bins.first[1:] == bins.last[:-1] + 1).all()
    assert (bins.first <= bins.last).all()
    assert bins.below < 1e-40
    assert bins.first[0] >= 0
    assert bins.last[-1] <= trials


@every("num_reports", [0, 1, 7, 2_000, 10**7])
@every("q", [0.0, 1e-9, 0.1, 0.5, 1.0])
def test_upper_tails_are_those_of_scipy_also_at_their_ends(num_reports: int, q: float) -> None:
    rng = np.random.default_rng(0)
    votes = np.unique(
        np.r_[np.arange(-2, 12), rng.binomial(num_reports, q, 40), num_reports + np.arange(-2, 3)]
    )
    expected = stats.binom.sf(votes - 1, num_reports, q)
    assert upper_tail(votes, num_reports, q) == pytest.approx(expected, rel=1e-9, abs=0)
    shifted = upper_tail(votes + 1, num_reports, q)
    if num_reports and 0 < q < 1:
        assert shifted != pytest.approx(expected, rel=1e-9, abs=0)
