"""Chords bound what is convex from above."""

import math

import numpy as np
import pytest

from fedhh.accounting.bounds import pair_lattice
from fedhh.accounting.bounds.pair_lattice import PairLattice, chords
from fedhh.privacy_loss.binomial import lattice
from tests.every import every


@every(("trials", "p"), [(0, 0.3), (1, 0.5), (12, 0.0), (12, 0.2), (60, 0.7), (300, 0.05)])
@every("slope", [1e-4, 0.5])
def test_chords_bound_convex_falling_functions_from_above(trials, p, slope):
    counts = np.arange(trials + 1.0)
    distribution = np.array(
        [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    )
    nodes, weights = chords(np.array([float(trials)]), p, slope=slope)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights >= 0).all()
    for function in (
        lambda x: np.exp(-slope * x),
        lambda x: np.maximum(trials * p - x, 0),
        lambda x: np.maximum(trials * p - 3 - x, 0) ** 2,
        lambda x: -x,
    ):
        truth = float(distribution @ function(counts))
        bound = float(weights[0] @ function(nodes[0]))
        assert bound >= truth - 1e-9 * (1 + abs(truth))
    tilted = float(weights[0] @ np.exp(-slope * nodes[0]))
    assert tilted <= float(distribution @ np.exp(-slope * counts)) * 1.02


def test_chords_serve_many_numbers_of_trials_at_once():
    trials = np.array([0.0, 5.0, 400.0, 10_000.0])
    nodes, weights = chords(trials, 0.3, slope=0.01)
    means = (nodes * weights).sum(axis=1)
    # The mean is kept except for what lies right of the last node.
    assert (means <= trials * 0.3 + 1e-9).all()
    assert np.allclose(means, trials * 0.3, rtol=1e-3)


def test_rows_without_successes_weigh_zero_alone():
    nodes, weights = chords(np.array([0.0, 50.0, 50.0]), np.array([0.0, 0.0, 0.3]), slope=0.01)
    assert (weights[:2].sum(axis=1) == 1).all()
    assert not (nodes * weights)[:2].any()
    assert (nodes * weights)[2].sum() == pytest.approx(15, rel=1e-3)


@pytest.mark.parametrize("trials", [30, 20_000])
def test_kept_excesses_change_no_mean(trials, monkeypatch):
    pairs = lattice(trials, 0.05, tolerance=1e-3)
    others = np.array([0.0, 1.5, 40.0, 1e3, 3e4]) * np.ones((pairs.first.size + 1, 1))
    asked = {"others": others, "weights": np.full(others.shape, 0.2)}
    kept = PairLattice.of(pairs, trials, **asked)
    monkeypatch.setattr(pair_lattice, "_LARGEST_TABLE", 0)
    direct = PairLattice.of(pairs, trials, **asked)
    asked = {
        "above_half": np.array([0.0, 0.0, 0.11, 0.5]),
        "per_other": np.array([0.0, 1e-3, 0.02, 0.1]),
    }
    means, expected = kept.mean_excesses(**asked), direct.mean_excesses(**asked)
    assert means == pytest.approx(expected, rel=4e-9, abs=1e-60)
    assert (means >= expected * (1 - 4e-9)).all()
