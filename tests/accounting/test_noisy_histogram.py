from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import ndtr
from scipy.stats import norm

from fedhh.accounting.gaussian_noise import gaussian_delta, gaussian_mu
from fedhh.accounting.noisy_histogram import HistogramRelease, histogram_release
from fedhh.accounting.truncated_geometric import TruncatedGeometric
from fedhh.validation import InputError
from tests.accounting.releases_enumerated import (
    laplace_cdf,
    largest_divergence,
    outcomes,
    swaps,
)
from tests.every import every


@pytest.mark.parametrize(
    ("epsilon", "delta", "max_items", "noise", "std", "threshold"),
    [
        # Google's rule, computed independently from its published formulas.
        (0.315, 1e-10, 1, "laplace", 8.98, 147.20),
        (0.315, 1e-10, 60, "gaussian", 199.6, 1429.5),
        (1.0987, 1e-8, 1, "laplace", 2.57, 34.53),
    ],
)
def test_the_published_rule(epsilon, delta, max_items, noise, std, threshold):
    release = histogram_release(epsilon=epsilon, delta=delta, max_items=max_items)
    assert release.noise == noise
    assert round(release.std, 2 if std < 100 else 1) == std
    assert round(release.threshold, 2 if std < 100 else 1) == threshold


def test_other_rules_have_other_thresholds():
    """It is the rule that charges 2 l0 words with delta, under replacement."""
    found = histogram_release(epsilon=0.315, delta=1e-10, max_items=1)
    # All of delta for one word that is unique: what a replacement of one word needs.
    one_item = 1 - found.scale * math.log(2e-10)
    assert round(one_item, 3) == 142.795
    # One client more or less.
    add_or_remove = 1 - math.log(2e-10) / 0.315
    assert round(add_or_remove, 2) == 71.90
    assert found.threshold > one_item > add_or_remove


@every("mu", [0.05, 0.5, 1.0, 3.0])
@every("epsilon", [0.0, 0.1, 1.0, 6.0])
def test_gaussian_delta_is_the_integral_of_what_exceeds(mu, epsilon):
    x = np.linspace(-12, 12 + mu, 400_001)
    excess = np.maximum(norm.pdf(x, loc=mu) - math.exp(epsilon) * norm.pdf(x), 0)
    assert gaussian_delta(mu, epsilon) == pytest.approx(trapezoid(excess, x), rel=1e-5, abs=1e-13)


def test_gaussian_noise_for_a_tiny_delta_is_neither_too_little_nor_wasted():
    for epsilon, delta in ((0.315, 5e-11), (1.0, 5e-6), (60.0, 1e-9), (400.0, 1e-12)):
        mu = gaussian_mu(epsilon=epsilon, delta=delta)
        assert gaussian_delta(mu, epsilon) <= delta < gaussian_delta(mu * (1 + 1e-6), epsilon)


SETTINGS = [
    {"epsilon": 1.0, "delta": 0.05, "max_items": 2},
    {"epsilon": 2.0, "delta": 0.01, "max_items": 1},
    {"epsilon": 0.3, "delta": 0.2, "max_items": 2},
]


def many(release: HistogramRelease) -> float:
    """Return a number of contributors with which a word is all but certain to be published."""
    if release.min_contributors:
        # One more makes it certain.
        return release.min_contributors + len(release.selection.chances) - 3.0
    return math.ceil(release.threshold + 6 * release.scale)


def word_outcomes(release: HistogramRelease, cells: int):
    """Return what is published of a word with some number of contributors."""
    start, far = release.threshold, many(release)
    if release.min_contributors:
        start = 1 - 12 * release.scale
    edges = np.linspace(start, far + 12 * release.scale, cells)
    # Laplace noise has its kinks at numbers of contributors; with them, its cells are exact.
    kinks = np.array([0.0, 1.0, 2.0, far, far + 1])
    edges = np.unique(np.concatenate([edges, kinks[kinks > start]]))

    def outcomes_of(count: float):
        return outcomes(
            count,
            cdf=(
                (lambda x: laplace_cdf(x, release.scale))
                if release.noise == "laplace"
                else (lambda x: ndtr(x / release.scale))
            ),
            edges=edges,
            threshold=release.threshold,
            selected=release.release_chance(round(count)) if release.min_contributors else 1.0,
        )

    return outcomes_of


def worst(release: HistogramRelease, *, items: int, cells: int = 12, epsilon: float | None = None):
    """Return the largest divergence of tiny data: words of nobody else, of few, and of many."""
    ones = [1.0] * items
    others = [0.0, max(release.min_contributors - 1.0, 1.0), many(release)]
    word = word_outcomes(release, cells)
    return largest_divergence(
        swaps(word, ones, ones, others), release.epsilon if epsilon is None else epsilon
    )


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("min_contributors", [0, 3])
def test_every_swap_of_tiny_data_is_within_epsilon_and_delta(settings, noise, min_contributors):
    release = histogram_release(**settings, noise=noise, min_contributors=min_contributors)
    items = settings["max_items"]
    cells = 12 if items == 2 else 60
    found = worst(release, items=items, cells=cells)
    assert found <= release.proven_delta * (1 + 1e-9) <= release.delta * (1 + 1e-9)
    # It is no idle bound: the words of one side alone need half or a quarter of it.
    assert found > release.delta / 5
    if not min_contributors:
        assert release.proven_delta < release.delta
        if noise == "laplace":
            assert found == pytest.approx(release.proven_delta, rel=1e-6)


@every(
    "settings",
    [
        {"epsilon": 1.0, "delta": 1e-3, "max_items": 2},
        {"epsilon": 2.0, "delta": 1e-3, "max_items": 1},
    ],
)
@every("noise", ["laplace", "gaussian"])
@every("min_contributors", [0, 3])
def test_half_the_noise_is_refuted(settings, noise, min_contributors):
    release = histogram_release(**settings, noise=noise, min_contributors=min_contributors)
    half = replace(release, scale=release.scale / 2)
    items = settings["max_items"]
    if min_contributors:
        # The noise is for half of epsilon: what is left for it is the other half.
        epsilon, delta = release.epsilon / 2, release.delta
        word = word_outcomes(half, 12 if items == 2 else 60)
        pairs = swaps(word, [1.0] * items, [1.0] * items, [many(release)])
        assert largest_divergence(pairs, epsilon) > delta / 2
        return
    assert worst(half, items=items, cells=12 if items == 2 else 60) > release.delta


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_lower_threshold_is_refuted(noise):
    release = histogram_release(epsilon=1.0, delta=0.05, max_items=1, noise=noise)
    lower = replace(release, threshold=release.threshold - 1.5 * release.scale)
    assert worst(lower, items=1, cells=60) > release.delta


def test_a_swap_takes_both_sides_of_a_selection():
    """A word may be new, another one certain: what holds for one contributor is not a
    replacement's."""
    epsilon, delta = 0.5, 0.05
    chances = TruncatedGeometric(epsilon=epsilon, delta=delta).chances
    bits = [np.array([1 - chance, chance]) for chance in chances]
    pairs = [
        ([bits[lost], bits[kept - 1]], [bits[lost - 1], bits[kept]])
        for lost in range(1, len(bits))
        for kept in range(1, len(bits))
    ]
    assert largest_divergence(pairs, epsilon) > 1.5 * delta
    both = largest_divergence(pairs, 2 * epsilon)
    assert delta < both <= 1 - (1 - delta) ** 2 + 1e-12


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("min_contributors", [0, 3])
def test_one_replaced_item_of_several_costs_what_is_stated(noise, min_contributors):
    release = histogram_release(
        epsilon=2.0, delta=0.05, max_items=4, noise=noise, min_contributors=min_contributors
    )
    stated = release.epsilon_of_replacement(1)
    assert stated < release.epsilon
    if noise == "laplace":
        assert stated == pytest.approx(release.epsilon / 4)
    found = worst(release, items=1, cells=120, epsilon=stated)
    assert found <= release.delta * (1 + 1e-9)
    assert worst(release, items=1, cells=120, epsilon=0.7 * stated) >= found
    # All items at once are the user's.
    assert release.epsilon_of_replacement(4) == 2.0
    assert stated <= release.epsilon_of_replacement(2) <= 2.0


def test_a_word_with_fewer_contributors_than_the_minimum_is_never_published():
    release = histogram_release(epsilon=4.0, delta=1e-3, max_items=1, min_contributors=20)
    assert [release.release_chance(n) for n in (0, 1, 19)] == [0, 0, 0]
    assert release.release_chance(20) == pytest.approx(release.selection.delta)
    assert release.release_chance(60) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"max_items": 0}, "max_items"),
        ({"noise": "cauchy"}, "Unknown noise 'cauchy'"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(InputError, match=message):
        histogram_release(**({"epsilon": 1.0, "delta": 1e-5, "max_items": 1} | change))
