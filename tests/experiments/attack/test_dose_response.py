"""The number of fake clients that achieves it half the time, from what some doses achieved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from fedhh.experiments.attack.dose_response import (
    Dose,
    DoseResponse,
    merged,
    next_doses,
)
from tests.thinned import thinned


@pytest.mark.parametrize(
    ("mu", "sigma", "repeats", "least"),
    thinned([(np.log(200), 0.2, 8, 6), (np.log(200), 0.2, 30, 21), (np.log(12), 0.6, 30, 21)]),
)
def test_intervals_hold_the_truth_about_as_often_as_they_say(mu, sigma, repeats, least):
    rng = np.random.default_rng(7)
    grid = np.unique(np.round(np.exp(mu + sigma * np.linspace(-3, 3, 12))).astype(int))
    truth = {chance: np.exp(mu + sigma * z) for chance, z in ((0.5, 0.0), (0.95, 1.6449))}
    hits = {0.5: 0, 0.95: 0}
    for _ in range(repeats):
        found = rng.binomial(12, ndtr((np.log(grid) - mu) / sigma))
        tried = zip(grid.tolist(), found.tolist(), strict=True)
        response = DoseResponse.of([Dose(clients, 12, hits_) for clients, hits_ in tried])
        for chance in hits:
            needed = response.needed(chance)
            assert needed.low <= needed.clients <= needed.high + 1
            hits[chance] += needed.low <= truth[chance] <= needed.high
    # 30 draws of .95: below 21 with probability 1e-5; 8: below 6 with one of 6e-3.
    assert min(hits.values()) >= least


def test_a_perfect_threshold_lies_between_its_doses():
    doses = [Dose(m, 10, 10 if m > 30 else 0) for m in (10, 20, 30, 40, 50)]
    response = DoseResponse.of(doses)
    assert 30 <= response.needed(0.5).low <= response.needed(0.5).high <= 41
    chances = response.chance([10, 35, 60])
    assert chances[0] < 0.05 < 0.3 < chances[1] < 0.7 < 0.95 < chances[2]


def test_more_targets_narrow_the_interval():
    few, many = (
        DoseResponse.of([Dose(50, n, 1 * n // 5), Dose(100, n, 4 * n // 5)]).needed(0.5)
        for n in (5, 100)
    )
    assert many.high - many.low < (few.high - few.low) / 2


def test_doses_of_one_number_are_merged_and_the_next_lie_between():
    doses = merged([Dose(8, 1, 1), Dose(2, 1, 0), Dose(8, 2, 1), Dose(4, 3, 0), Dose(16, 3, 3)])
    assert doses == (Dose(2, 1, 0), Dose(4, 3, 0), Dose(8, 3, 2), Dose(16, 3, 3))
    following = next_doses(doses, 5)
    assert following[0] == 4
    assert following[-1] == 16
    assert next_doses((Dose(1, 3, 0), Dose(2, 3, 0)), 4)[-1] == 2
    assert next_doses((Dose(1, 3, 3), Dose(2, 3, 3)), 4) == [1]
