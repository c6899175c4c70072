from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.server.blending import Shares, client_shares, opt_in_shares, with_floor

CLIENTS, SHARE = 5, 0.3


def votes_distribution(p: float, q: float, items: int) -> np.ndarray:
    """Distribution of a word's votes: clients hold it independently, and send one item."""
    held = np.array([1 - p, p])
    other = np.array([1 - q, q])
    with_it, without = held, other
    for _ in range(items - 1):
        with_it, without = np.convolve(with_it, other), np.convolve(without, other)
    one = SHARE * with_it + (1 - SHARE) * without
    distribution = np.ones(1)
    for _ in range(CLIENTS):
        distribution = np.convolve(distribution, one)
    return distribution


@pytest.mark.parametrize(("name", "items"), [*itertools.product(["grr", "oue"], [1, 3])])
def test_client_shares_and_their_variances_are_unbiased(name, items):
    oracle = make_pure_oracle(OracleSpec(name=name, epsilon=1.5), 4)
    distribution = votes_distribution(oracle.p, oracle.q, items)
    got = client_shares(
        np.arange(len(distribution)), oracle, num_clients=CLIENTS, num_reports=CLIENTS * items
    )
    mean = distribution @ got.share
    assert math.isclose(mean, SHARE)
    true_variance = distribution @ (got.share - mean) ** 2
    assert math.isclose(distribution @ got.variance, true_variance)
    # One client more in the denominator is a bias.
    assert not math.isclose(distribution @ got.variance * (CLIENTS - 1) / CLIENTS, true_variance)


def test_opt_in_shares_and_their_variances_are_unbiased():
    scale = 0.7
    counts = np.arange(CLIENTS + 1)
    chances = np.array(
        [math.comb(CLIENTS, c) * SHARE**c * (1 - SHARE) ** (CLIENTS - c) for c in counts]
    )
    # The estimates are quadratic, so noise of two values with the same moments will do.
    noisy = np.concatenate([counts - math.sqrt(2) * scale, counts + math.sqrt(2) * scale])
    distribution = np.tile(chances, 2) / 2
    got = opt_in_shares(noisy, num_clients=CLIENTS, scale=scale)
    mean = distribution @ got.share
    assert math.isclose(mean, SHARE)
    assert math.isclose(distribution @ got.variance, distribution @ (got.share - mean) ** 2)
    without = opt_in_shares(noisy, num_clients=CLIENTS, scale=0.0)
    assert distribution @ without.variance < distribution @ (got.share - mean) ** 2


def test_the_blend_has_the_least_variance_of_all_means():
    one = Shares(share=np.array([0.2, 0.5]), variance=np.array([0.04, 0.01]))
    other = Shares(share=np.array([0.3, 0.1]), variance=np.array([0.01, 0.01]))
    blend = one.blend(other)
    weights = np.linspace(0, 1, 1001)[:, None]
    variances = weights**2 * one.variance + (1 - weights) ** 2 * other.variance
    assert np.allclose(blend.variance, variances.min(axis=0), rtol=1e-5)
    best = weights[variances.argmin(axis=0), 0]
    assert np.allclose(blend.share, best * one.share + (1 - best) * other.share, atol=1e-3)
    assert np.allclose(blend.share, [0.28, 0.3])
    swapped = other.blend(one)
    assert np.allclose(swapped.share, blend.share)


def test_variances_have_a_floor():
    shares = Shares(share=np.array([-0.1, 0.2]), variance=np.array([-0.01, 0.3]))
    assert with_floor(shares, 0.05).variance.tolist() == [0.05, 0.3]
