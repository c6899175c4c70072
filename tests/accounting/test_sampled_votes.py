"""The bound on one round, against all neighbors of a few clients and all holders of one prefix."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import hypergeom

from fedhh.accounting.sampled_votes import SampledVotes
from tests.accounting.sampled_votes_enumerated import one_prefix_delta, worst_delta
from tests.thinned import thinned

TWO, THREE = ("a", "b", ""), ("a", "b", "c", "")
ENUMERATED = [
    (TWO, 20, 4, 4),
    (TWO, 20, 4, 3),
    (TWO, 16, 6, 4),
    (TWO, 30, 5, 4),
    (TWO, 15, 9, 2),
    (THREE, 10, 5, 3),
    (THREE, 12, 3, 2),
    (THREE, 9, 2, 2),
    (THREE, 9, 8, 1),
]


def bound(num_clients: int, sample_size: int, threshold: int, epsilon: float) -> float:
    votes = SampledVotes(num_clients=num_clients, sample_size=sample_size, threshold=threshold)
    return float(votes.deltas(np.array([epsilon]))[0])


@pytest.mark.parametrize(("kinds", "n", "m", "threshold"), thinned(ENUMERATED))
def test_no_swap_of_a_few_clients_exceeds_the_bound(kinds, n, m, threshold):
    absence = -math.log1p(-m / n)
    for epsilon in (absence, 1.5 * absence, absence + 1, absence + 4):
        exact = worst_delta(
            kinds, num_clients=n, sample_size=m, threshold=threshold, rounds=1, epsilon=epsilon
        )
        assert 0 < exact <= Fraction(bound(n, m, threshold, epsilon))


@pytest.mark.parametrize(
    ("n", "m", "threshold"), thinned([(20, 4, 4), (30, 5, 4), (40, 4, 4)], keep=2)
)
def test_the_bound_is_tight_where_all_but_a_few_clients_decide(n, m, threshold):
    exact = worst_delta(
        TWO, num_clients=n, sample_size=m, threshold=threshold, rounds=1, epsilon=3.0
    )
    # The event of swaps: m - theta + 1 clients without the prefix are all sampled.
    lacking = m - threshold + 1
    assert exact == Fraction(math.comb(m, lacking), math.comb(n, lacking))
    assert exact <= bound(n, m, threshold, 3.0) <= 1.01 * exact


@pytest.mark.parametrize(
    ("n", "m", "threshold"),
    thinned([(1_000, 17, 14), (225, 15, 14), (400, 160, 9), (600, 90, 12)], keep=2),
)
def test_no_number_of_holders_exceeds_the_bound(n, m, threshold):
    absence = -math.log1p(-m / n)
    for epsilon in (absence, 2 * absence, absence + 0.5, absence + 1.5):
        exact = one_prefix_delta(n, m, threshold, epsilon)
        assert exact <= Fraction(bound(n, m, threshold, epsilon))


def test_the_bound_is_within_the_epsilon_of_absence_of_the_worst_number_of_holders():
    n, m, threshold = 20_000, 2_000, 12
    holders = np.arange(1, 6 * threshold * n // m)
    after = hypergeom.sf(threshold - 1, n, holders, m)
    before = hypergeom.sf(threshold - 1, n, holders - 1, m)
    absence = -math.log1p(-m / n)
    for epsilon in (2 * absence, 0.4, 0.8, 1.6):
        exact, shifted = (
            max(
                float((after - math.exp(each) * before).max()),
                float((1 - before - math.exp(each) * (1 - after)).max()),
            )
            for each in (epsilon, epsilon - absence)
        )
        assert exact <= bound(n, m, threshold, epsilon) <= 1.02 * shifted


@pytest.mark.parametrize("prefixes", [3, 8, 20])
def test_no_tie_of_several_prefixes_exceeds_the_bound(prefixes):
    # All others hold prefixes of equal size, and m - 1 of them may tie at one vote too few: then
    # nothing is kept with the client's vote for no prefix, and never with another vote.
    holders, threshold = 30, 4
    n, m = prefixes * holders + 1, prefixes * (threshold - 1) + 1
    ties = math.comb(holders, threshold - 1) ** prefixes
    exact = Fraction(m, n) * Fraction(ties, math.comb(n - 1, m - 1))
    got = bound(n, m, threshold, 40.0)
    assert exact <= Fraction(got)
    # The kept prefix alone, C(m, theta) / C(n, theta), is far below for few prefixes.
    assert prefixes > 3 or got > 100 * math.comb(m, threshold) / math.comb(n, threshold)


def test_bounds_fall_in_epsilon_and_hold_at_a_billion_clients():
    votes = SampledVotes(num_clients=10**9, sample_size=10**8, threshold=15)
    epsilons = np.linspace(votes.absence_epsilon, 3, 50)
    deltas = votes.deltas(epsilons)
    assert (np.diff(deltas) <= 0).all()
    assert (deltas > 0).all()
    fewer = SampledVotes(num_clients=10**6, sample_size=10**5, threshold=15).deltas(epsilons)
    # Sampling with and without replacement are nearly the same here.
    assert deltas[10:] == pytest.approx(fewer[10:], rel=0.02)
