"""The exact chance that a target survives the layers, by its fake clients."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from fedhh.experiments.attack.survival import LayerCut, survival
from fedhh.oracles.subset_selection import SubsetSelection

GBOARD = LayerCut(num_clients=500_000, max_items=60, q=4.548752e-05, threshold=1_451)
"""Standard deviation of votes 36.94, threshold 86 votes above the mean, computed independently."""


def test_gboards_layers_let_three_fake_devices_through():
    # A normal approximation gave .8217, .99455 and .99998.
    assert GBOARD.survival([2, 3, 4]) == pytest.approx([0.8217, 0.99455, 0.99998], abs=1.5e-3)
    assert GBOARD.survival(3) ** 15 == pytest.approx(0.921, abs=8e-3)
    assert GBOARD.survival(0) == pytest.approx(stats.norm.sf(86 / 36.94), abs=2e-3)


def test_fakes_at_random_positions_are_enumerated_exactly():
    cuts = [
        LayerCut(num_clients=3, max_items=1, q=0.2, threshold=2),
        LayerCut(num_clients=2, max_items=2, q=0.3, threshold=2),
    ]
    total, fakes = 7, 3
    chances = [
        float(
            cuts[0].survival(sum(place < 3 for place in places))
            * cuts[1].survival(sum(3 <= place < 5 for place in places))
        )
        for places in combinations(range(total), fakes)
    ]
    exact = survival(cuts, fakes=fakes, num_clients=total)
    assert exact == pytest.approx(np.mean(chances), rel=1e-12)
    assert survival(cuts, fakes=0, num_clients=total) < exact


@pytest.mark.slow("::test_gboards_layers_let_three_fake_devices_through")
def test_votes_of_crafted_and_honest_reports_survive_as_often():
    oracle = SubsetSelection(epsilon=2.0, domain_size=60)
    clients, items, fakes, target = 40, 3, 4, 7
    cut = LayerCut(num_clients=clients, max_items=items, q=oracle.q, threshold=25)
    expected = float(cut.survival(fakes))
    assert 0.2 < expected < 0.8
    rng = np.random.default_rng(2)
    honest = np.full((clients - fakes) * items, 11)
    survived = 0
    repeats = 1_500
    for _ in range(repeats):
        tally = oracle.aggregate(values=honest, rng=rng)
        crafted = oracle.craft([target], sign=1, count=fakes * items, rng=rng)
        oracle.aggregate(crafted, out=tally)
        survived += tally[target] >= cut.threshold
    assert stats.binomtest(survived, repeats, expected).pvalue > 1e-9
    # One fake client less, or more, is another law.
    for other in (fakes - 1, fakes + 1):
        assert stats.binomtest(survived, repeats, float(cut.survival(other))).pvalue < 1e-9
