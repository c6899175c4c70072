from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting.truncated_geometric import TruncatedGeometric
from fedhh.validation import InputError


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        # Unit tests of Google's differential-privacy library have these.
        (math.log(2), 0.1, [0, 0.1, 0.3, 0.7, 0.9, 1.0]),
        (math.log(1.5), 0.1, [0, 0.1, 0.25, 0.475, 0.7166667, 0.8777778, 0.9851852, 1.0]),
    ],
)
def test_published_values(epsilon, delta, expected):
    assert TruncatedGeometric(epsilon=epsilon, delta=delta).chances == pytest.approx(expected)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.315, 1e-10), (1.0, 1e-5), (0.05, 1e-3), (3.0, 0.2), (1e-9, 0.01)]
)
def test_the_recurrence_holds_for_1_to_200_contributors(epsilon, delta):
    selection = TruncatedGeometric(epsilon=epsilon, delta=delta)
    last = 0.0
    for contributors in range(1, 201):
        grown = math.exp(epsilon) * last + delta
        kept = 1 - math.exp(-epsilon) * (1 - last - delta)
        last = min(grown, kept, 1.0)
        assert selection.chance(contributors) == pytest.approx(last, rel=1e-12)
    assert selection.chance(0) == 0


def test_half_and_certain_at_gboards_older_point():
    selection = TruncatedGeometric(epsilon=0.315, delta=1e-10)
    assert np.searchsorted(selection.chances, [0.5, 1.0]).tolist() == [68, 136]
    # A replacement of one word is one contributor less and one more: half of both for each.
    half = TruncatedGeometric(epsilon=0.315 / 2, delta=0.5e-10)
    assert np.searchsorted(half.chances, 0.5) == 135


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (math.log(2), 0.1)])
def test_one_contributor_more_costs_exactly_epsilon_and_delta(epsilon, delta):
    chances = TruncatedGeometric(epsilon=epsilon, delta=delta).chances
    chances = np.concatenate([chances, [1.0, 1.0]])
    published, dropped = chances, 1 - chances
    losses = []
    for fewer, more in ((slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1))):
        excess = np.maximum(published[more] - math.exp(epsilon) * published[fewer], 0)
        excess += np.maximum(dropped[more] - math.exp(epsilon) * dropped[fewer], 0)
        losses.append(excess.max())
    assert max(losses) == pytest.approx(delta, rel=1e-9)
    # No mechanism may do more: any larger chance at some number breaks one of the inequalities.
    for contributors in range(1, len(chances) - 3):
        larger = chances[contributors] + 1e-6
        last = chances[contributors - 1]
        assert (
            larger > math.exp(epsilon) * last + delta
            or 1 - last > math.exp(epsilon) * (1 - larger) + delta
        )


def test_what_would_need_more_contributors_than_there_are_is_refused():
    with pytest.raises(InputError, match=r"larger epsilon or delta of one contributor.*about"):
        TruncatedGeometric(epsilon=1e-9, delta=1e-9)
