"""What holds before a run: one blanket above those of every domain size that a layer may have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting.bounds.selection import reachable_blanket, subset_selection_blanket
from tests.every import every
from tests.thinned import thinned

EPSILONS = (0.05, 0.3, 1.0, 2.0)


def sizes_of_reports(local_epsilon: float, domain_size: int) -> set[int]:
    best = domain_size / (math.exp(local_epsilon) + 1)
    return {min(max(d, 1), domain_size - 1) for d in (math.floor(best), math.ceil(best))}


@pytest.mark.parametrize("local_epsilon", thinned([1.0, 3.0, 6.0]))
@pytest.mark.parametrize(("smallest", "largest"), thinned([(2, 9), (2, 24), (30, 44), (400, 412)]))
def test_it_is_above_every_domain_and_touches_the_worst(local_epsilon, smallest, largest):
    whole = reachable_blanket(
        local_epsilon=local_epsilon,
        num_reports=200,
        smallest_domain=smallest,
        largest_domain=largest,
    )
    each = [
        subset_selection_blanket(
            local_epsilon=local_epsilon, num_reports=200, domain_size=s, subset_size=d
        )
        for s in range(smallest, largest + 1)
        for d in sizes_of_reports(local_epsilon, s)
    ]
    assert whole.one == pytest.approx(max(b.one for b in each), rel=1e-9)
    for epsilon in EPSILONS:
        worst = max(b.delta(epsilon) for b in each)
        # Bins are wide in far tails; no delta below 1e-14 is ever asked for.
        assert worst <= whole.delta(epsilon) * (1 + 1e-6) + 1e-16
        if worst > 1e-10:
            assert whole.delta(epsilon) < 2 * worst


def test_of_a_single_domain_it_is_the_worse_of_both_sizes():
    alone = reachable_blanket(
        local_epsilon=4.0, num_reports=5_000, smallest_domain=500, largest_domain=500
    )
    both = [
        subset_selection_blanket(
            local_epsilon=4.0, num_reports=5_000, domain_size=500, subset_size=d
        )
        for d in sizes_of_reports(4.0, 500)
    ]
    assert max(b.epsilon(1e-6) for b in both) <= alone.epsilon(1e-6) * (1 + 1e-6)


def test_a_range_too_wide_to_look_through_gives_the_pair_above_all():
    wide = reachable_blanket(
        local_epsilon=4.0, num_reports=5_000, smallest_domain=2, largest_domain=10**9
    )
    assert wide.one == pytest.approx(1 / (math.exp(4.0) + 1))
    assert wide.both == pytest.approx(0.0, abs=1e-12)
    assert wide.neither == pytest.approx(0.0, abs=1e-12)


@every("local_epsilon", [0.1, 1.0, 2.5, 4.0, 6.5, 8.0])
@every(
    ("smallest", "largest"),
    [(2, 30_000), (29, 9_000), (777, 20_011), (8_950, 8_960), (4_000, 61_000)],
)
def test_the_sizes_that_tell_are_as_good_as_all(local_epsilon, smallest, largest):
    growth = math.exp(local_epsilon)
    sizes = np.arange(smallest, largest + 1, dtype=np.float64)
    ones, sums = [], []
    for members in (np.floor(sizes / (growth + 1)), np.ceil(sizes / (growth + 1))):
        d = np.clip(members, 1, sizes - 1)
        weight = d / ((d * growth + sizes - d) * (sizes - 1))
        ones.append(weight * (sizes - d))
        sums.append((growth + 1) * ones[-1] + growth * weight * (d - 1))
    found = reachable_blanket(
        local_epsilon=local_epsilon,
        num_reports=200,
        smallest_domain=smallest,
        largest_domain=largest,
    )
    one, one_or_both = np.max(ones) * (1 + 1e-12), min(1.0, np.max(sums) * (1 + 1e-12))
    assert found.one == one
    assert found.neither == max(0.0, 1 - one_or_both)
