from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.questions.noise import Noise
from fedhh.server.pruning import above_noise, top_eta
from fedhh.validation import InputError

NOISE = Noise(oracle=make_pure_oracle(OracleSpec(name="oue", epsilon=1.0), 100), num_reports=400)

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


def test_candidates_are_kept_by_the_least_votes_that_noise_reaches_rarely_enough():
    # One candidate for each number of votes: which are kept says where the threshold is.
    votes = np.arange(401)
    kept = above_noise(NOISE, votes, noise_kept=3.0, most=1_000)
    least = int(votes[kept].min())
    chance = binom.sf(least - 1, 400, NOISE.oracle.q)
    assert 401 * chance <= 3.0
    # A threshold one vote lower would let more than three of noise through.
    assert 401 * binom.sf(least - 2, 400, NOISE.oracle.q) > 3.0
    assert kept.tolist() == list(range(400, least - 1, -1))


def test_the_most_votes_come_first_and_no_more_are_kept_than_asked_for():
    votes = np.array([300, 10, 350, 300])
    assert above_noise(NOISE, votes, noise_kept=0.01, most=9).tolist() == [2, 0, 3]
    assert above_noise(NOISE, votes, noise_kept=0.01, most=2).tolist() == [2, 0]
    assert above_noise(NOISE, votes, noise_kept=4.0, most=9).tolist() == [2, 0, 3, 1]
    assert len(above_noise(NOISE, votes[:0], noise_kept=1.0, most=9)) == 0
