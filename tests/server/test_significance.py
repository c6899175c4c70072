from __future__ import annotations

import numpy as np
from scipy.stats import binom

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.server.noise import Noise
from fedhh.server.pruning import above_noise

NOISE = Noise(oracle=make_pure_oracle(OracleSpec(name="oue", epsilon=1.0), 100), num_reports=400)


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
