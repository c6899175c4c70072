from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from fedhh.accounting.gaussian_noise import gaussian_delta
from fedhh.accounting.weighted_gaussian import WeightRelease, weight_releases
from fedhh.validation import InputError
from tests.accounting.releases_enumerated import divergence, largest_divergence, outcomes, swaps


@pytest.mark.parametrize(("max_items", "threshold"), [(1, 18.157), (60, 20.455), (100, 20.790)])
def test_the_published_mechanism_for_one_client_more_or_less(max_items, threshold):
    """arXiv 2603.14016, Theorem 3.2, computed independently."""
    (release,) = weight_releases(
        epsilon=1.0, delta=1e-5, max_items=max_items, neighbors="add or remove"
    )
    assert round(release.sigma, 5) == 3.88414
    assert round(release.threshold, 3) == threshold


@pytest.mark.parametrize(
    ("epsilon", "needed"), [(1.0, (39.6, 130, 328)), (0.315, (118.9, 393, 998))]
)
def test_holders_needed_where_each_has_as_many_items(epsilon, needed):
    found = [
        weight_releases(epsilon=epsilon, delta=1e-10, max_items=b, neighbors="add or remove")[0]
        for b in (1, 10, 60)
    ]
    at_half = [each.threshold * math.sqrt(b) for each, b in zip(found, (1, 10, 60), strict=True)]
    assert at_half == pytest.approx(needed, abs=0.5)
    assert round(at_half[0], 1) == needed[0]


def test_swaps_cost_a_root_of_two_in_noise():
    one, swap = (
        weight_releases(epsilon=1.0, delta=1e-5, max_items=10, neighbors=neighbors)[0]
        for neighbors in ("add or remove", "replace-one")
    )
    assert swap.sigma == pytest.approx(math.sqrt(2) * one.sigma)
    assert swap.threshold > one.threshold


def test_rounds_share_the_budget_by_their_gaussians():
    epsilon, delta = 1.0, 1e-6
    releases = weight_releases(epsilon=epsilon, delta=delta, max_items=4, rounds=3)
    mus = [math.sqrt(2) / each.sigma for each in releases]
    assert mus[0] / mus[1] == pytest.approx(0.3)
    assert mus[1] / mus[2] == pytest.approx(0.3)
    together = math.sqrt(sum(mu**2 for mu in mus))
    assert delta / 2 * (1 - 1e-6) <= gaussian_delta(together, epsilon) <= delta / 2
    assert round(mus[2] / together, 3) == 0.954
    # What a unique client's words may show, over all rounds and numbers of words.
    shown = [
        max(1 - (1 - each.release_chance(1 / math.sqrt(k))) ** k for k in range(1, 5))
        for each in releases
    ]
    assert sum(shown) == pytest.approx(delta / 2)
    assert shown[0] / shown[1] == pytest.approx(0.3)


SETTINGS = [{"epsilon": 1.0, "delta": 0.05}, {"epsilon": 0.4, "delta": 0.1}]
CELLS = 12


def words_of(release: WeightRelease):
    edges = release.threshold + np.linspace(0, 8 * release.sigma + 2, CELLS)

    def outcomes_of(weight: float):
        return outcomes(
            weight, cdf=lambda x: ndtr(x / release.sigma), edges=edges, threshold=release.threshold
        )

    return outcomes_of


def one_round(release: WeightRelease, epsilon: float) -> float:
    """Return the largest divergence of all swaps of up to two words for up to two others."""
    far = math.ceil(release.threshold + 3 * release.sigma)
    word, others = words_of(release), [0.0, 1.0, float(far)]
    weight = {1: 1.0, 2: math.sqrt(0.5)}
    found = 0.0
    for before, after in itertools.product((1, 2), repeat=2):
        pairs = swaps(word, [weight[before]] * before, [weight[after]] * after, others)
        found = max(found, largest_divergence(pairs, epsilon))
    # A word that stays, next to one that goes: it weighs more afterwards.
    for rest in others:
        kept = word(rest + weight[2]), word(rest + 1)
        pairs = [([word(each + weight[2]), kept[0]], [word(each), kept[1]]) for each in others]
        found = max(found, largest_divergence(pairs, epsilon))
    return found


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_swap_of_tiny_data_is_within_epsilon_and_delta(settings):
    (release,) = weight_releases(**settings, max_items=2)
    found = one_round(release, settings["epsilon"])
    assert settings["delta"] / 4 < found <= settings["delta"]


@pytest.mark.parametrize("settings", SETTINGS)
def test_half_the_noise_and_the_noise_of_other_neighbors_are_refuted(settings):
    (release,) = weight_releases(**settings, max_items=2)
    half = WeightRelease(sigma=release.sigma / 2, threshold=release.threshold)
    assert one_round(half, settings["epsilon"]) > settings["delta"]
    (other,) = weight_releases(**settings, max_items=2, neighbors="add or remove")
    assert one_round(other, settings["epsilon"]) > settings["delta"]


def two_rounds(releases: tuple[WeightRelease, ...], epsilon: float, rest: tuple[int, ...]) -> float:
    """Return the divergence of {a, b} against {c}, where round two leaves out what round one found.

    Args:
        releases: Of both rounds.
        epsilon: Where.
        rest: Clients with one word who hold a, b and c.
    """
    first, second = (words_of(each) for each in releases)

    def weights(holds: tuple[bool, ...], left: tuple[bool, ...]) -> list[float]:
        own = [held and kept for held, kept in zip(holds, left, strict=True)]
        share = 1 / math.sqrt(max(sum(own), 1))
        return [
            (others + share * given) if kept else 0.0
            for others, given, kept in zip(rest, own, left, strict=True)
        ]

    sides = ((True, True, False), (False, False, True))
    everything = (True, True, True)
    started = [[first(w) for w in weights(side, everything)] for side in sides]
    total = 0.0
    # By what round one publishes; given its noisy numbers, round two has the same distribution.
    for published in itertools.product((False, True), repeat=3):
        shown = [
            [p[1:] if seen else p[:1] for p, seen in zip(side, published, strict=True)]
            for side in started
        ]
        left = tuple(not seen for seen in published)
        continued = [[second(w) for w in weights(side, left)] for side in sides]
        total += divergence([*shown[0], *continued[0]], [*shown[1], *continued[1]], epsilon)
    return total


@pytest.mark.parametrize("settings", SETTINGS)
def test_two_rounds_that_remove_what_was_found_are_within_epsilon_and_delta(settings, monkeypatch):
    releases = weight_releases(**settings, max_items=2, rounds=2)
    monkeypatch.setattr("tests.accounting.test_weighted_gaussian.CELLS", 6)
    far = math.ceil(releases[1].threshold + 2 * releases[1].sigma)
    cases = [(0, 0, 0), (far, far, far), (0, far, far), (far, far, 0), (0, 0, far)]
    found = [two_rounds(releases, settings["epsilon"], rest) for rest in cases]
    assert settings["delta"] / 5 < max(found) <= settings["delta"]
    half = tuple(WeightRelease(sigma=each.sigma / 2, threshold=each.threshold) for each in releases)
    refuted = [two_rounds(half, settings["epsilon"], rest) for rest in cases]
    assert max(refuted) > settings["delta"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"rounds": 0}, "rounds"),
        ({"neighbors": "swaps"}, "neighbors"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(InputError, match=message):
        weight_releases(**({"epsilon": 1.0, "delta": 1e-5, "max_items": 1} | change))
