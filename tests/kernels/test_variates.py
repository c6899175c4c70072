"""Binomial and hypergeometric draws against their exact distributions, in each method's range."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedhh.kernels.variates import binomials, draw_hypergeometric
from fedhh.random import kernel_state
from tests.every import every

ALPHA = 1e-9
DRAWS = 40_000


def fresh_state(seed=0):
    return kernel_state(np.random.default_rng(seed))


def p_value(drawn, distribution):
    """Chi-square p-value of draws under a scipy distribution, in cells of about equal chance."""
    edges = np.unique(distribution.ppf(np.linspace(0, 1, 41)[1:-1]))
    chances = np.diff(np.r_[0.0, distribution.cdf(edges), 1.0])
    edges, chances = edges[chances[:-1] > 0], chances[chances > 0]
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=len(chances))
    return stats.chisquare(observed, chances * len(drawn)).pvalue


BINOMIALS = [
    (1, 0.3),
    (7, 0.5),
    (64, 0.5),
    (65, 0.5),
    (40, 0.24),
    (40, 0.26),
    (200, 0.9),
    (10**6, 9.9e-6),
    (10**6, 10.1e-6),
    (5_000, 0.5),
    (10**9, 0.3),
    (10**11, 1e-10),
    (10**11, 0.4),
]


@every(("trials", "chance"), BINOMIALS)
def test_binomials_have_their_distribution(trials, chance):
    drawn = binomials(np.full(DRAWS, trials), chance, 1 - chance, fresh_state())
    distribution = stats.binom(trials, chance)
    assert drawn.min() >= 0
    assert drawn.max() <= trials
    assert p_value(drawn, distribution) > ALPHA
    # A twentieth of a standard deviation more or less shows.
    off = 0.06 * np.sqrt((1 - chance) / (chance * trials))
    for wrong in (1 - off, 1 + off):
        assert p_value(drawn, stats.binom(trials, chance * wrong)) < ALPHA


def test_binomials_follow_weights_whose_chance_is_no_float_below_one():
    drawn = binomials(np.full(DRAWS, 10**11), 1.0, 5e-11, fresh_state())
    # 1 - 5e-11 has five digits left of the failures' chance; their number has its distribution.
    assert p_value(10**11 - drawn, stats.binom(10**11, 5e-11)) > ALPHA
    assert p_value(10**11 - drawn, stats.binom(10**11, 5.3e-11)) < ALPHA


def test_sure_outcomes_are_sure():
    trials = np.array([0, 1, 5, 10**11])
    assert binomials(trials, 0.0, 1.0, fresh_state()).tolist() == [0] * 4
    assert binomials(trials, 1.0, 0.0, fresh_state()).tolist() == trials.tolist()


HYPERGEOMETRICS = [
    (3, 5, 4),
    (3, 10**6, 500_000),
    (10**6, 5, 10**6 - 2),
    (11, 12, 11),
    (12, 10**6, 30),
    (300, 100, 390),
    (1_000, 1_000, 1_000),
    (60, 10**7, 3 * 10**6),
    (10**9, 3 * 10**9, 10**9),
    (4 * 10**10, 6 * 10**10, 3 * 10**10),
]


@pytest.mark.parametrize(("good", "bad", "sample"), HYPERGEOMETRICS)
def test_hypergeometrics_have_their_distribution(good, bad, sample):
    state = fresh_state()
    drawn = np.array([draw_hypergeometric(good, bad, sample, state) for _ in range(DRAWS)])
    assert drawn.min() >= max(0, sample - bad)
    assert drawn.max() <= min(good, sample)
    mean = sample * (good / (good + bad))
    share = good / (good + bad)
    spread = np.sqrt(sample * share * (1 - share) * (good + bad - sample) / (good + bad - 1))
    if spread > 1_000:
        # The skew is below 1e-3 and numbers lie dense: the normal distribution, to what a test can
        # see.
        exact = stats.norm(mean, spread)
        shifted = [stats.norm(mean + by * spread, spread) for by in (-0.06, 0.06)]
        assert p_value(drawn, exact) > ALPHA
        assert max(p_value(drawn, wrong) for wrong in shifted) < ALPHA
        return
    near = np.arange(
        max(0, sample - bad, int(mean - 12 * spread - 12)),
        min(good, sample, int(mean + 12 * spread + 12)) + 1,
    )
    chances = stats.hypergeom.pmf(near, good + bad, good, sample)
    distribution = stats.rv_discrete(values=(near, chances / chances.sum()))
    assert p_value(drawn, distribution) > ALPHA
    for by in (-0.06, 0.06):
        tilted = chances * np.exp(by * (near - mean) / spread)
        wrong = stats.rv_discrete(values=(near, tilted / tilted.sum()))
        assert p_value(drawn, wrong) < ALPHA


def test_the_same_state_gives_the_same_numbers():
    trials = np.arange(1_000)
    first, second, other = (binomials(trials, 0.2, 0.8, fresh_state(s)) for s in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
