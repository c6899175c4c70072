"""Sizes of cohorts: exact sums at any scale, a floor, and the order of the weights."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from fedhh.server.adaptive.cohorts import cohort_sizes
from fedhh.validation import InputError
from tests.every import every

TOTALS = [1_000, 1_800_000, 10**9 + 7, 10**12, 10**12 + 3, 7 * 10**15 + 1, 10**18 + 1]


@every("front_loaded", [False, True])
@every("rounds", [1, 2, 9, 10, 11, 14, 40])
@every("total", TOTALS)
def test_sizes_sum_to_the_total_exactly_and_none_is_below_the_floor(total, rounds, front_loaded):
    for least in (1, total // (3 * rounds), total // rounds - 1, total // rounds):
        sizes = cohort_sizes(rounds, total, front_loaded=front_loaded, least=least)
        assert len(sizes) == rounds
        assert sum(sizes) == total
        assert min(sizes) >= least
        # Up to rounding, no layer asks more than an earlier one.
        assert all(later <= earlier + 1 for earlier, later in pairwise(sizes))
        if not front_loaded:
            assert max(sizes) - min(sizes) <= 1


def test_those_above_the_floor_keep_their_proportions():
    free = cohort_sizes(14, 10**12, front_loaded=True)
    assert [round(Fraction(20 * size, free[-1])) for size in free] == [
        *(160, 160, 160, 160, 120, 96, 80, 56, 40, 20, 20, 20, 20, 20)
    ]
    least = 5 * 10**10
    raised = cohort_sizes(14, 10**12, front_loaded=True, least=least)
    assert free[7] < least < free[6]
    assert raised[7:] == (least,) * 7
    for ours, theirs in zip(raised[:7], free[:7], strict=True):
        assert least < ours < theirs
        assert ours / raised[0] == pytest.approx(theirs / free[0], rel=1e-9)
    # Those that the floor's clients are taken from may fall to it too.
    high = cohort_sizes(14, 10**12, front_loaded=True, least=free[6] - 1)
    assert high[5] == high[6] == free[6] - 1 < free[5]


def test_too_large_a_floor_is_refused_with_the_largest_that_fits():
    with pytest.raises(InputError, match=r"at least 1,008 clients .* got 1,007; .* <= 71, or"):
        cohort_sizes(14, 1_007, front_loaded=True, least=72)
    with pytest.raises(InputError, match=r"at least 14 clients for 14 layers .* got 13"):
        cohort_sizes(14, 13, front_loaded=False)
