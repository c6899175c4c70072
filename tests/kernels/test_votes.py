"""Votes that are counted without a report have the distribution of Subset Selection."""

import itertools
import math

import numpy as np
import pytest

from fedhh.kernels import votes
from fedhh.kernels.prng import lane_states
from fedhh.kernels.reports import draw_subsets
from fedhh.kernels.votes import add_distinct, add_subset_votes
from fedhh.oracles import OracleSpec, SubsetSelection, make_oracle
from fedhh.oracles.subset_selection import coin_threshold
from fedhh.random import kernel_state
from fedhh.testing import ALPHA, distribution_p_value, follows_distribution, tally_distribution
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned

BUFFER = 4096

# Sizes, subset sizes, p, value: among them d = 1, d = s - 1, and rows that fill whole words.
TINY = [
    (2, 1, 0.7, 1),
    (4, 2, 0.55, 1),
    (5, 3, 0.6, 4),
    (6, 5, 0.9, 2),
    (7, 1, 0.2, 0),
    (8, 4, 0.51, 0),
]


def tally_of(values, s, d, p, rng):
    out = np.zeros(s, dtype=np.int64)
    miss = coin_threshold(heads=p, tails=1 - p)
    add_subset_votes(np.asarray(values), d, miss, out, lane_states(rng))
    return out


def draws(num, *what):
    return np.array([tally_of(*what) for _ in range(num)])


def subset_distribution(s, d, p, value):
    with_value, without = p / math.comb(s - 1, d - 1), (1 - p) / math.comb(s - 1, d)
    return {
        tuple(int(v in subset) for v in range(s)): with_value if value in subset else without
        for subset in itertools.combinations(range(s), d)
    }


@pytest.mark.parametrize(("s", "d", "p", "value"), thinned(TINY, keep=2))
def test_the_tally_of_one_report_is_a_subset_of_the_exact_distribution(s, d, p, value):
    rng = np.random.default_rng(0)
    drawn = draws(6_000, [value], s, d, p, rng)
    assert follows_distribution(drawn, subset_distribution(s, d, p, value))


@pytest.mark.slow("::test_the_tally_of_one_report_is_a_subset_of_the_exact_distribution")
def test_the_tally_of_three_reports_has_the_exact_joint_distribution():
    rng = np.random.default_rng(1)
    oracle = SubsetSelection(epsilon=math.log(2.25), domain_size=5)
    assert (oracle.d, oracle.p) == (2, pytest.approx(0.6))
    drawn = draws(10_000, [0, 3, 3], 5, 2, 0.6, rng)
    assert follows_distribution(drawn, tally_distribution(oracle, [0, 3, 3]))


def test_a_coin_far_off_is_detected():
    drawn = draws(1_000, [3], 5, 2, 0.75, np.random.default_rng(2))
    assert distribution_p_value(drawn, subset_distribution(5, 2, 0.6, 3)) < ALPHA


@pytest.mark.slow("::test_a_coin_far_off_is_detected")
@pytest.mark.parametrize("wrong", [0.65, 0.55])
def test_a_coin_five_percent_off_is_detected(wrong):
    rng = np.random.default_rng(2)
    drawn = draws(10_000, [3], 5, 2, wrong, rng)
    assert distribution_p_value(drawn, subset_distribution(5, 2, 0.6, 3)) < ALPHA


@pytest.mark.parametrize(("wrong_d", "wrong_value"), [(3, 3), (1, 3), (2, 4)])
def test_a_wrong_size_or_value_is_detected(wrong_d, wrong_value):
    rng = np.random.default_rng(3)
    drawn = draws(500, [wrong_value], 5, wrong_d, 0.6, rng)
    assert distribution_p_value(drawn, subset_distribution(5, 2, 0.6, 3)) < ALPHA


def power(distribution: np.ndarray, n: int) -> np.ndarray:
    """The distribution of the sum of n draws from a distribution on 0, 1, 2, ..."""
    size = n * (len(distribution) - 1) + 1
    return np.clip(np.fft.irfft(np.fft.rfft(distribution, 2 * size) ** n, 2 * size)[:size], 0, None)


def binned(distribution: np.ndarray, draws: np.ndarray, bins: int = 24):
    """Draws and distribution in bins of about equal probability."""
    bin_of = np.minimum((np.cumsum(distribution) * bins).astype(int), bins - 1)
    probabilities = np.bincount(bin_of, weights=distribution, minlength=bins)
    return bin_of[draws], dict(enumerate((probabilities / probabilities.sum()).tolist()))


@pytest.mark.parametrize(
    ("s", "d", "p"), thinned([(6, 1, 0.4), (6, 2, 0.4), (70, 9, 0.55), (300, 60, 0.5)])
)
def test_long_calls_sum_independent_reports(s, d, p):
    # Sums over more than one buffer: own + 2 other has a distribution that any
    # tie between coins or draws of different reports would widen or narrow.
    n, repeats = BUFFER + 300, 600
    rng = np.random.default_rng(4)
    values = np.zeros(n, dtype=np.int64)
    tallies = draws(repeats, values, s, d, p, rng)
    assert (tallies.sum(axis=1) == n * d).all()
    both = p * (d - 1) / (s - 1)
    neither = (1 - p) * (1 - d / (s - 1))
    other = (1 - p) * d / (s - 1)
    distribution = power(np.array([neither, p - both, other, both]), n)
    for candidate in (1, s - 1):
        drawn, bins = binned(distribution, tallies[:, 0] + 2 * tallies[:, candidate])
        assert follows_distribution(drawn, bins)


def test_correlated_reports_would_be_caught():
    # The same coin for pairs of reports: right marginals, twice the variance.
    n, p = 1_000, 0.4
    rng = np.random.default_rng(5)
    distribution = power(np.array([1 - p, p]), n)
    drawn, bins = binned(distribution, 2 * rng.binomial(n // 2, p, size=600))
    assert distribution_p_value(drawn, bins) < ALPHA
    drawn, bins = binned(distribution, rng.binomial(n, p, size=600))
    assert follows_distribution(drawn, bins)


def test_all_values_get_equal_shares_of_the_votes_they_do_not_hold():
    # More reports than have a stamp.
    s, d, n = 129, 40, 70_000
    rng = np.random.default_rng(6)
    tally = tally_of(np.full(n, 64), s, d, 0.5, rng)
    q = (d - 0.5) / (s - 1)
    assert tally.sum() == n * d
    others = np.delete(tally, 64)
    assert (np.abs(others - n * q) < 6.2 * math.sqrt(n * q * (1 - q))).all()


def test_narrow_and_wide_tables_count_alike(monkeypatch):
    values = np.random.default_rng(8).integers(129, size=70_000)
    wide = tally_of(values, 129, 40, 0.5, np.random.default_rng(9))
    monkeypatch.setattr(votes, "_LARGE", 128)
    assert np.array_equal(tally_of(values, 129, 40, 0.5, np.random.default_rng(9)), wide)


@pytest.mark.parametrize("rare_side", ["heads", "tails"])
@pytest.mark.parametrize("bits", thinned([19, 17]))
def test_a_coin_finer_than_its_first_sixteen_bits_is_exact(rare_side, bits):
    # 305 of 40 million coins come up on a side of probability 2**-17; sixteen bits alone would give
    # none or twice as many.
    rare, n, calls = 2.0**-bits, 4_000_000, 10
    rng = np.random.default_rng(7)
    values = np.zeros(n, dtype=np.int64)
    p = rare if rare_side == "heads" else 1 - rare
    held = sum(int(tally_of(values, 1_000, 1, p, rng)[0]) for _ in range(calls))
    count = held if rare_side == "heads" else n * calls - held
    expected = n * calls * rare
    assert abs(count - expected) < 6.2 * math.sqrt(expected)


@pytest.mark.parametrize(
    "n", thinned([0, 1, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER + 5], keep=2)
)
@pytest.mark.parametrize(("s", "d"), [(2, 1), (63, 7), (64, 12), (65, 64), (1_000, 3), (40_000, 9)])
def test_every_report_gives_d_votes_to_distinct_values(n, s, d):
    rng = np.random.default_rng(8)
    tally = tally_of(rng.integers(0, s, size=n), s, d, 0.5, rng)
    assert tally.sum() == n * d
    assert tally.min() >= 0
    assert tally.max() <= n


def test_votes_are_added_to_what_is_there():
    values = np.arange(50) % 20
    fresh = tally_of(values, 20, 4, 0.5, np.random.default_rng(9))
    out = np.arange(20) * 10**12
    miss = coin_threshold(heads=0.5, tails=0.5)
    add_subset_votes(values, 4, miss, out, lane_states(np.random.default_rng(9)))
    assert (out - np.arange(20) * 10**12).tolist() == fresh.tolist()


@every("stranger", [-1, 30, 2**32, 2**32 + 3, 2**63 - 1])
@every("name", ["ss", "grr", "oue", "cms"])
def test_values_outside_the_domain_are_refused_before_any_vote_counts(name, stranger):
    values = np.zeros(3 * BUFFER, dtype=np.int64)
    values[BUFFER + 7] = stranger
    oracle = make_oracle(OracleSpec(name=name, epsilon=2.0), 30)
    out = np.arange(oracle.aggregate_size)
    with pytest.raises(InputError, match=r"Expected values in \[0, 30\)"):
        oracle.aggregate(values=values, rng=np.random.default_rng(10), out=out)
    assert np.array_equal(out, np.arange(oracle.aggregate_size))


def test_coin_thresholds_keep_the_smaller_side_exact():
    assert coin_threshold(heads=0.25, tails=0.75) == 3 * 2**62
    assert coin_threshold(heads=0.75, tails=0.25) == 2**62
    assert coin_threshold(heads=1.0, tails=1e-18) == round(1e-18 * 2**64)
    assert coin_threshold(heads=1.0, tails=0.0) == 0
    assert coin_threshold(heads=2.0**-40, tails=1 - 2.0**-40) == 2**64 - 2**24


@every(("s", "d", "p", "value"), TINY)
def test_drawn_subsets_have_the_exact_distribution(s, d, p, value):
    values = np.full(60_000, value)
    reports = np.empty((60_000, d), dtype=np.int64)
    state = kernel_state(np.random.default_rng(10))
    draw_subsets(values, s, coin_threshold(heads=p, tails=1 - p), reports, state)
    members = np.zeros((60_000, s), dtype=np.int64)
    np.put_along_axis(members, reports, 1, axis=1)
    assert follows_distribution(members, subset_distribution(s, d, p, value))


def test_drawn_subsets_of_a_large_domain_are_distinct_values():
    values = np.arange(300)
    reports = np.empty((300, 5_000), dtype=np.int64)
    state = kernel_state(np.random.default_rng(11))
    draw_subsets(values, 2**32 - 1, coin_threshold(heads=0.5, tails=0.5), reports, state)
    reports.sort(axis=1)
    assert (np.diff(reports, axis=1) > 0).all()
    assert reports.min() >= 0
    assert reports.max() < 2**32 - 1
    # The mean of 1.5 million uniform values is within six deviations of the middle.
    spread = 2**32 / math.sqrt(12 * reports.size)
    assert abs(reports.mean() - 2**31) < 6.2 * spread


def votes_of_clients(supported: np.ndarray, size: int) -> np.ndarray:
    return np.sum([np.isin(np.arange(size), row) for row in supported], axis=0)


def test_a_row_counts_once_for_each_of_its_values():
    rng = np.random.default_rng(3)
    supported = rng.integers(0, 9, (200, 7))
    out = np.arange(9)
    add_distinct(supported, out)
    np.testing.assert_array_equal(out - np.arange(9), votes_of_clients(supported, 9))
    assert (out - np.arange(9) < np.bincount(supported.ravel(), minlength=9)).any()


def test_no_row_and_no_column_add_nothing():
    for shape in ((0, 3), (4, 0)):
        out = np.zeros(5, dtype=np.int64)
        add_distinct(np.zeros(shape, dtype=np.int64), out)
        assert not out.any()
