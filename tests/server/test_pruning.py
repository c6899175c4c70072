from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhh.server.pruning import top_eta
from fedhh.validation import InputError

votes_lists = st.lists(st.integers(0, 8), min_size=1, max_size=40)


@given(votes_lists, st.integers(1, 45))
def test_strict_keeps_exactly_eta_and_never_a_smaller_vote(votes: list[int], eta: int):
    kept, threshold = top_eta(np.array(votes), eta, ties="strict")
    left = set(range(len(votes))) - set(kept.tolist())
    assert len(kept) == min(eta, len(votes))
    assert threshold == sorted(votes, reverse=True)[len(kept) - 1]
    assert all(votes[i] <= threshold for i in left)
    assert kept.tolist() == sorted(kept.tolist())


@given(votes_lists, st.integers(1, 45))
def test_paper_keeps_every_candidate_at_the_threshold(votes: list[int], eta: int):
    kept, threshold = top_eta(np.array(votes), eta, ties="paper")
    assert threshold == sorted(votes, reverse=True)[min(eta, len(votes)) - 1]
    everything = len(votes) <= eta
    expected = [i for i, v in enumerate(votes) if everything or (v >= threshold and v > 0)]
    assert kept.tolist() == expected


def test_a_tie_of_candidates_without_votes_does_not_keep_them_all():
    votes = np.zeros(1_000, dtype=np.int64)
    votes[[3, 7]] = 5
    assert top_eta(votes, 10, ties="paper")[0].tolist() == [3, 7]
    assert len(top_eta(votes, 10, ties="strict")[0]) == 10


def test_strict_ties_favor_no_end_of_the_alphabet():
    kept, _ = top_eta(np.zeros(10_000, dtype=np.int64), 1_000, ties="strict")
    # Mean of 1,000 of 10,000 numbers: 4,999.5 with a standard deviation of 87.
    assert abs(kept.mean() - 4_999.5) < 6 * 87


def test_an_eta_of_zero_and_an_unknown_tie_rule_are_refused():
    with pytest.raises(InputError, match="eta_max=0"):
        top_eta(np.array([1]), 0, ties="paper")
    with pytest.raises(InputError, match="did you mean 'paper'"):
        top_eta(np.array([1]), 1, ties="papper")
