"""Integer noise in shares: its exact distribution against others' code, and what is drawn of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedhh.questions.noise_shares import DiscreteLaplace, NoiseShares, Skellam, noise_of
from fedhh.testing.statistics import follows_distribution
from fedhh.validation import InputError
from tests.every import every

BOTH = [DiscreteLaplace(std=2.5), Skellam(std=2.5)]
PARTS = (1.0, 0.9, 0.5, 0.05)


def convolved(noise: NoiseShares, part: float) -> np.ndarray:
    """P(0), P(1), ... of the difference of two one-sided variables, by their convolution."""
    k = np.arange(4_000)
    if isinstance(noise, DiscreteLaplace):
        one_side = stats.nbinom.pmf(k, part, -math.expm1(-noise.decay))
    else:
        one_side = stats.poisson.pmf(k, part * noise.std**2 / 2)
    one_side = one_side[: np.flatnonzero(one_side > 0)[-1] + 1]
    return np.convolve(one_side, one_side[::-1])[len(one_side) - 1 :]


def law(noise: NoiseShares, part: float) -> dict[int, float]:
    masses = noise.distribution(part).masses
    return {sign * k: float(mass) for k, mass in enumerate(masses) for sign in (1, -1)}


@every("std", [0.3, 2.5, 40.0])
@every("name", ["discrete-laplace", "skellam"])
@every("part", PARTS)
def test_the_distribution_is_that_of_a_numeric_convolution(name, std, part):
    noise = noise_of(name, std)
    found = noise.distribution(part)
    expected = convolved(noise, part)
    size = min(found.last, len(expected) - 1)
    inside = expected[: size + 1] > 1e-15
    assert found.masses[: size + 1][inside] == pytest.approx(expected[: size + 1][inside], rel=1e-9)
    assert found.masses[0] + 2 * found.masses[1:].sum() == pytest.approx(1, abs=1e-14)
    k = np.arange(found.last + 1)
    assert 2 * (found.masses * k**2).sum() == pytest.approx(part * std**2, rel=1e-9)
    assert found.ratios == pytest.approx(found.masses[1:] / found.masses[:-1], rel=1e-12)


@pytest.mark.parametrize("noise", BOTH, ids=lambda each: each.name)
def test_shares_add_up_to_all_of_the_noise(noise):
    shares, whole = 5, noise.distribution().masses
    one = noise.distribution(1 / shares).masses
    two_sided = np.concatenate([one[:0:-1], one])
    summed = two_sided
    for _ in range(shares - 1):
        summed = np.convolve(summed, two_sided)
    middle = len(summed) // 2
    assert summed[middle : middle + 20] == pytest.approx(whole[:20], rel=1e-9)


def test_all_shares_are_the_named_distributions():
    laplace, skellam = (each.distribution().masses[:15] for each in BOTH)
    k = np.arange(15)
    assert laplace == pytest.approx(stats.dlaplace.pmf(k, BOTH[0].decay), rel=1e-9)
    assert skellam == pytest.approx(stats.skellam.pmf(k, 3.125, 3.125), rel=1e-9)


@pytest.mark.parametrize("noise", BOTH, ids=lambda each: each.name)
@pytest.mark.parametrize("parts", [(1.0,), (0.25, 0.25, 0.5), (0.02,) * 5])
def test_draws_of_several_blocks_follow_the_distribution_of_their_shares(noise, parts):
    rng = np.random.default_rng(0)
    drawn = sum(noise.draw(part, 40_000, rng=rng) for part in parts)
    part = math.fsum(parts)
    assert follows_distribution(drawn, law(noise, part))
    # Less noise is seen, and more.
    assert not follows_distribution(drawn, law(noise, 0.8 * part))
    assert not follows_distribution(drawn, law(noise_of(noise.name, 1.2 * noise.std), part))


def test_a_large_shape_is_drawn_as_it_is():
    rng = np.random.default_rng(1)
    # More than one cluster in each entry: the other way to draw.
    noise = DiscreteLaplace(std=12.0)
    assert -math.log(-math.expm1(-noise.decay)) > 1
    assert follows_distribution(noise.draw(1.0, 40_000, rng=rng), law(noise, 1.0))
    assert follows_distribution(noise.draw(0.3, 40_000, rng=rng), law(noise, 0.3))


@pytest.mark.parametrize("noise", BOTH, ids=lambda each: each.name)
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_tails_and_z_are_those_of_the_distribution(noise, part):
    exact = {"discrete-laplace": stats.dlaplace(BOTH[0].decay),
             "skellam": stats.skellam(3.125 * part, 3.125 * part)}  # fmt: skip
    sums = np.arange(-8, 9)
    if part == 1 or noise.name == "skellam":
        tail = exact[noise.name].sf(sums - 1)
    else:
        masses = convolved(noise, part)
        two_sided = np.concatenate([masses[:0:-1], masses])
        tail = np.cumsum(two_sided[::-1])[::-1][len(masses) - 1 + sums]
    assert noise.z(sums, part) == pytest.approx(stats.norm.isf(tail), rel=1e-6, abs=1e-6)
    for chance in (0.3, 1e-3, 1e-6):
        least = noise.least_sum(chance, part)
        tails = noise.distribution(part).tails
        assert tails[least] <= chance < tails[least - 1] or least == 1


@pytest.mark.parametrize("noise", BOTH, ids=lambda each: each.name)
def test_far_tails_are_bounded_and_z_rises(noise):
    for part in (1.0, 0.3):
        tails = noise.distribution(part).tails
        k = np.arange(1, noise.distribution(part).last)
        bounds = np.exp([noise.log_tail(int(each)) for each in k])
        assert (tails[k] <= bounds * (1 + 1e-9)).all()
    z = noise.z(np.array([5, 50, 500, 5_000, 500_000]))
    assert (np.diff(z) > 0).all()
    assert np.isfinite(z).all()
    least = noise.least_sum(1e-40)
    assert noise.log_tail(least) <= math.log(1e-40)
    assert noise.reach(math.log(1e-12)) < noise.reach(math.log(1e-13)) + 1


@pytest.mark.parametrize("std", [0.0, 0.01, 1e6, math.nan])
def test_noise_that_is_not_computed_with_is_refused(std):
    with pytest.raises(InputError, match=r"0\.05 <= noise_std <= 100,000"):
        noise_of("skellam", std)
