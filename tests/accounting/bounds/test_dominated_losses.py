"""Losses that a curve dominates: their delta lies below it at every epsilon, and near it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.accounting.dominated_losses import dominated_losses
from tests.every import every


def shift(epsilons: np.ndarray, distance: float) -> np.ndarray:
    """Delta of a Gaussian whose mean moves by so many deviations."""
    upper = stats.norm.sf(epsilons / distance - distance / 2)
    return upper - np.exp(epsilons) * stats.norm.sf(epsilons / distance + distance / 2)


def pair(epsilons: np.ndarray, seed: int) -> np.ndarray:
    """Delta of two random distributions of 12 values."""
    one, other = np.random.default_rng(seed).dirichlet(np.full(12, 0.5), 2)
    excess = one[:, None] - other[:, None] * np.exp(epsilons)
    return np.maximum(excess, 0.0).sum(axis=0)


def response(epsilons: np.ndarray, epsilon: float) -> np.ndarray:
    truth, lie = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    x = np.exp(epsilons)
    return np.maximum(truth - x * lie, 0) + np.maximum(lie - x * truth, 0)


def delta_of(masses: dict[int, float], epsilons: np.ndarray, grid: float) -> np.ndarray:
    losses, weights = np.array(list(masses)) * grid, np.array(list(masses.values()))
    return np.maximum(0.0, -np.expm1(epsilons[:, None] - losses)) @ weights


@every(
    ("curve", "parameter", "widest"),
    [(shift, 0.1, 0.6), (shift, 1.0, 7.0), (response, 2.0, 2.0), (response, 2.0, 3.0)]
    + [(pair, seed, 9.0) for seed in range(12)],
)
@every("dots", [5, 40, 300])
def test_their_delta_is_below_the_curve_everywhere(curve, parameter, widest, dots):
    gap = widest / dots
    deltas = curve(np.arange(-dots, dots + 1) * gap, parameter)
    grid = gap / 50
    masses = dominated_losses(np.minimum.accumulate(deltas), gap=gap, grid=grid)
    assert math.fsum(masses.values()) == pytest.approx(1.0, abs=1e-12)
    assert min(masses.values()) >= 0
    anywhere = np.linspace(-1.2 * widest, 1.2 * widest, 4_001)
    found, truth = delta_of(masses, anywhere, grid), curve(anywhere, parameter)
    assert np.all(found <= truth + 1e-15)
    if dots == 300 and curve is shift:
        # Near it, too: else nothing would ever be refuted.
        inside = truth > 1e-8
        assert np.all(found[inside] >= 0.97 * truth[inside])
