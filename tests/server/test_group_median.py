"""Medians over random groups: their exact cost, and which fake clients they ignore."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.server.group_median import median_of_groups, noise_factor, random_groups
from fedhh.validation import InputError

ORACLE = make_pure_oracle(OracleSpec(name="oue", epsilon=2.0), 4)


def test_the_noise_factor_is_that_of_the_tables_and_of_many_groups():
    # Variances of medians of 3 and 5 normal variables: 1 - sqrt(3) / pi, and .28683 by integrals
    # computed independently.
    assert noise_factor(1) == pytest.approx(1, rel=1e-9)
    assert noise_factor(3) == pytest.approx(math.sqrt(3 * (1 - math.sqrt(3) / math.pi)), rel=1e-9)
    assert noise_factor(5) == pytest.approx(math.sqrt(5 * 0.28683), rel=1e-5)
    assert noise_factor(9_999) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-4)


def tallies(fakes: np.ndarray, n: int, rng: np.random.Generator, rounds: int) -> np.ndarray:
    """Return ``(g, rounds)`` votes of a value that no honest client holds, fakes of each group."""
    groups = len(fakes)
    honest = rng.binomial(n // groups - fakes[:, None], ORACLE.q, (groups, rounds))
    return honest + fakes[:, None]


def test_the_cost_is_measured_and_fakes_help_only_where_few_groups_have_them():
    groups, n, rounds, rng = 25, 25_000, 4_000, np.random.default_rng(3)
    reports = np.full(groups, n // groups)
    honest = tallies(np.zeros(groups, dtype=np.int64), n, rng, rounds)
    medians = median_of_groups(ORACLE, honest, reports)
    means = ORACLE.estimate(honest.sum(axis=0), n)
    # A deviation of 4,000 draws is known to 1.1 %, votes are whole numbers, and those of a group
    # are skewed.
    assert medians.std() / means.std() == pytest.approx(noise_factor(groups), rel=0.06)
    deviation = means.std()
    # 500 fakes among all clients in a random order: in every group about 20.
    spread = np.bincount(random_groups(n, groups, rng=rng)[:500], minlength=groups)
    assert spread.min() > 3
    hit = tallies(spread, n, rng, rounds)
    by_mean = ORACLE.estimate(hit.sum(axis=0), n).mean()
    by_median = median_of_groups(ORACLE, hit, reports).mean()
    assert by_median == pytest.approx(by_mean, rel=0.05)
    assert by_median > 5 * deviation
    # The same 500 in one group: the median hardly moves.
    one = np.eye(1, groups, dtype=np.int64)[0] * 500
    hit = tallies(one, n, rng, rounds)
    assert ORACLE.estimate(hit.sum(axis=0), n).mean() == pytest.approx(by_mean, rel=0.02)
    assert abs(median_of_groups(ORACLE, hit, reports).mean()) < 0.5 * deviation


def test_groups_are_balanced_and_even_numbers_of_them_refused():
    groups = random_groups(103, 5, rng=np.random.default_rng(0))
    assert sorted(np.bincount(groups).tolist()) == [20, 20, 21, 21, 21]
    with pytest.raises(InputError, match="odd num_groups"):
        noise_factor(4)
