"""Privacy loss distributions: sums enumerated, and never below sums in long double."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from fedhh.accounting import Clones, Clones2023, Precision, Use, composed_epsilon
from fedhh.accounting.bounds.composition import FINE, QUICK
from fedhh.privacy_loss.convolution import convolve
from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.grid import common_divisor, common_gap
from fedhh.privacy_loss.search import smallest_epsilon
from fedhh.privacy_loss.sums import compose, epsilon_of_sum
from fedhh.validation import InputError
from tests.accounting.dp_accounting_bounds import curve
from tests.accounting.exact_losses import delta_of_responses
from tests.accounting.long_double import delta_of_sum, needs_long_double, rational_delta_of_sum
from tests.thinned import thinned

GAP = 0.3
SMALL = PrivacyLossDistribution(
    gap=GAP, lowest=-2, masses=np.array([0.05, 0.1, 0.2, 0.35, 0.28]), infinite=0.02
)
OTHER = PrivacyLossDistribution(gap=GAP, lowest=-1, masses=np.array([0.3, 0.0, 0.7]), infinite=0.0)


def exact(parts: list[tuple[PrivacyLossDistribution, int]], epsilon: float) -> float:
    """Delta of a sum in long double."""
    return delta_of_sum(
        [(each.lowest, each.masses, each.infinite, times) for each, times in parts],
        gap=parts[0][0].gap,
        epsilon=epsilon,
    )


def enumerated(each: list[PrivacyLossDistribution], index: int) -> float:
    """Return delta at so many gaps, of the sum of independent losses: all sums, one by one."""
    delta = 1 - math.prod(1 - one.infinite for one in each)
    for places in itertools.product(*(range(len(one.masses)) for one in each)):
        loss = sum(one.lowest + place for one, place in zip(each, places, strict=True))
        mass = math.prod(one.masses[place] for one, place in zip(each, places, strict=True))
        delta += mass * max(0.0, -math.expm1(GAP * (index - loss)))
    return delta


@pytest.mark.parametrize(
    ("parts", "each"),
    [
        ([(SMALL, 1)], [SMALL]),
        ([(SMALL, 2)], [SMALL] * 2),
        ([(SMALL, 5)], [SMALL] * 5),
        ([(SMALL, 2), (OTHER, 1)], [SMALL, SMALL, OTHER]),
    ],
)
def test_a_sum_of_losses_is_what_enumeration_finds(parts, each) -> None:
    composed = compose(parts)
    for index in range(-2 * len(each), 3 * len(each)):
        delta = enumerated(each, index)
        assert delta - 1e-15 <= composed.delta(index * GAP) <= delta + 1e-11
        assert composed.delta(index * GAP) - composed.surplus <= delta + 1e-12


@needs_long_double
@pytest.mark.parametrize("times", [2, 60, 600, 3_000])
def test_no_mass_of_a_sum_is_rounded_down(times: int) -> None:
    masses = np.array([0.05, 0.1, 0.2, 0.35, 0.28])
    one = PrivacyLossDistribution(gap=GAP, lowest=-2, masses=masses, infinite=0.0)
    found = compose([(one, times)])
    # Long double without transforms: by squaring.
    whole, power = np.ones(1, dtype=np.longdouble), masses.astype(np.longdouble)
    for bit in reversed(f"{times:b}"):
        whole = np.convolve(whole, power) if bit == "1" else whole
        power = np.convolve(power, power) if power.size < 4 * times else power
    assert found.lowest == -2 * times
    assert np.all(found.masses >= whole)
    assert float(np.sum(found.masses - whole)) <= found.surplus
    assert found.surplus < 1e-11 * times


@needs_long_double
def test_long_double_is_what_fractions_are() -> None:
    for parts in ([(SMALL, 6)], [(SMALL, 3), (OTHER, 4)], [(OTHER, 9)]):
        given = [(each.lowest, each.masses, each.infinite, times) for each, times in parts]
        for index in (0, 3, 5, 8):
            expected = rational_delta_of_sum(given, gap=GAP, index=index)
            assert exact(parts, index * GAP) == pytest.approx(expected, rel=1e-13)
    # Products of long double masses, without any transform.
    rare = np.array([0.9, 0.0999, 0.0001])
    whole, times = np.array([1.0], dtype=np.longdouble), 60
    for _ in range(times):
        whole = np.convolve(whole, rare.astype(np.longdouble))
    losses = GAP * np.arange(-times, times + 1)
    expected = float(np.sum(whole * np.maximum(-np.expm1(2.0 - losses), 0)))
    assert expected < 1e-70
    assert delta_of_sum([(-1, rare, 0.0, times)], gap=GAP, epsilon=2.0) == pytest.approx(expected)


USES = [60, 600, 3_000, 10_000, 36_500]
DELTAS = [1e-14, 2e-13, 1e-12, 1e-10, 1e-6]


def dominating(bound: Clones, gap: float, points: int) -> PrivacyLossDistribution:
    return PrivacyLossDistribution.dominating(bound.deltas(gap * np.arange(points + 1)), gap=gap)


@cache
def losses_of(local_epsilon: float, num_reports: int, points: int) -> PrivacyLossDistribution:
    """What the clones of a shuffle tell, on a grid that ends where delta is below 1e-22."""
    bound = Clones(local_epsilon=local_epsilon, num_reports=num_reports, tolerance=1e-2)
    top = smallest_epsilon(bound.delta, delta=1e-22, upper=local_epsilon)
    return dominating(bound, top / points, points)


def assert_one_sided(
    losses: PrivacyLossDistribution, times: int, delta: float, *, spent: float = 1e-7
) -> None:
    epsilon = epsilon_of_sum([(losses, times)], delta=delta)
    found = exact([(losses, times)], epsilon)
    assert found <= delta
    # Nothing but rounding is lost; near the largest sum, that of epsilon by 1e-12 shows.
    least = delta * (1 - spent - 1e-11 * times)
    assert (
        epsilon == 0
        or found >= least
        or exact([(losses, times)], epsilon - 4e-12 * epsilon) >= least
    )


CASES = [
    *((2.0, 500, times, delta) for times in USES for delta in DELTAS),
    *((8.0, 100_000, times, 2e-13) for times in USES),
    *((1.0, 1_000_000, times, 1e-14) for times in USES),
    *((12.0, 1_000_000, times, 1e-12) for times in USES),
    # The saddle-point approximation is off: tilted once more.
    (12.0, 1_000_000, 10, 1e-14),
    (8.0, 1_000, 10, 0.05),
]


@needs_long_double
@pytest.mark.parametrize(("local_epsilon", "num_reports", "times", "delta"), CASES)
def test_delta_at_the_epsilon_of_a_sum_is_at_most_what_was_asked_for(
    local_epsilon: float, num_reports: int, times: int, delta: float
) -> None:
    assert_one_sided(losses_of(local_epsilon, num_reports, 100), times, delta)


@needs_long_double
@pytest.mark.slow("::test_delta_at_the_epsilon_of_a_sum_is_at_most_what_was_asked_for")
@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("num_reports", [500, 100_000, 10_000_000])
def test_delta_is_on_the_safe_side_over_the_whole_range(
    local_epsilon: float, num_reports: int
) -> None:
    for (i, times), (j, delta) in itertools.product(enumerate([3, *USES]), enumerate(DELTAS)):
        points = 200 if (i + j) % 2 else 400
        # Where rare large losses leave gaps between likely sums, rounding is relative to these.
        spent = 3e-4 if times == 3 else 1e-5
        assert_one_sided(losses_of(local_epsilon, num_reports, points), times, delta, spent=spent)


@cache
def nearly_exact(kind: type[Clones], case: tuple[float, int, float], top: float):
    """What a bound's own delta says, on a grid several times finer than any that is composed."""
    bound = kind(local_epsilon=case[0], num_reports=case[1], tolerance=case[2])
    points = 500
    epsilons = np.arange(points + 1) * (top / points)
    positive = np.array([bound.delta(float(each)) for each in epsilons], dtype=np.longdouble)
    negative = -np.expm1(-epsilons) + np.exp(-epsilons) * positive
    deltas = np.minimum.accumulate(np.concatenate([negative[:0:-1], positive]))
    falls, gap = -np.diff(deltas), np.longdouble(top / points)
    below, above = falls / -np.expm1(-gap), falls / np.expm1(gap)
    masses = np.concatenate([[1 - deltas[0] - above[0]], below[:-1] - above[1:], below[-1:]])
    return -points, np.maximum(masses, 0), top / points


@pytest.mark.slow("::test_no_delta_of_a_dominating_distribution_is_rounded_down")
@needs_long_double
@pytest.mark.parametrize(
    ("kind", "local_epsilon", "num_reports", "times", "delta", "precision", "top"),
    thinned(
        [
            # Without tilts, delta was 1.09, 1.58, 2.79, 1.51, 1.012 and 1.086 times what was asked.
            (Clones2023, 2.0, 500, 10_000, 1e-12, FINE, 1.5),
            (Clones, 2.0, 500, 10_000, 2e-13, FINE, 1.9),
            (Clones, 8.0, 100_000, 10_000, 2e-13, FINE, 3.2),
            (Clones, 8.0, 100_000, 10_000, 2e-13, QUICK, 3.2),
            (Clones2023, 2.0, 500, 600, 1e-13, FINE, 1.5),
            (Clones, 2.0, 500, 600, 1e-13, QUICK, 1.9),
        ]
    ),
)
def test_what_rounding_made_too_small_is_an_upper_bound(
    kind: type[Clones],
    local_epsilon: float,
    num_reports: int,
    times: int,
    delta: float,
    precision: Precision,
    top: float,
) -> None:
    bound = kind(local_epsilon=local_epsilon, num_reports=num_reports)
    epsilon = composed_epsilon([Use(bound=bound, times=times)], delta=delta, precision=precision)
    lowest, masses, gap = nearly_exact(kind, (local_epsilon, num_reports, precision.tolerance), top)

    def true(at: float) -> float:
        return delta_of_sum([(lowest, masses, 0.0, times)], gap=gap, epsilon=at)

    assert true(epsilon) <= delta
    assert true(epsilon * 0.998) > delta


@needs_long_double
def test_a_sum_of_different_losses_is_on_the_safe_side() -> None:
    first = losses_of(2.0, 500, 100)
    second = dominating(Clones(local_epsilon=1.0, num_reports=3000), first.gap, 100)
    for delta in (1e-12, 1e-3):
        parts = [(first, 700), (second, 3_000)]
        epsilon = epsilon_of_sum(parts, delta=delta)
        assert delta * (1 - 1e-6) <= exact(parts, epsilon) <= delta


@needs_long_double
@pytest.mark.parametrize("delta", [0.3, 0.8, 0.99, 0.999999])
def test_the_likely_end_of_a_sum_is_on_the_safe_side(delta: float) -> None:
    losses = losses_of(8.0, 100_000, 100)
    epsilon = epsilon_of_sum([(losses, 3_000)], delta=delta)
    assert delta * (1 - 1e-3) <= exact([(losses, 3_000)], epsilon) <= delta


def test_an_epsilon_below_all_likely_sums_is_not_forgotten() -> None:
    losses, times = losses_of(8.0, 100_000, 100), 3_000
    mean = float(np.sum(losses.masses * losses.losses))
    deviation = math.sqrt(float(np.sum(losses.masses * (losses.losses - mean) ** 2)) * times)
    found = epsilon_of_sum([(losses, times)], delta=1 - 1e-13)
    # Seven deviations below the mean, where normal tails have 1e-13.
    assert 0 < times * mean - 9 * deviation < found < times * mean - 5.9 * deviation


@needs_long_double
def test_large_sums_that_are_cut_off_count() -> None:
    # Sums beyond the window have half of what is infinite here, as the exact delta says.
    rare = PrivacyLossDistribution(
        gap=0.02, lowest=-1, masses=np.array([0.5, 0.0, 0.4999995]), infinite=5e-7
    )
    for delta in (1e-3, 1e-9):
        parts = [(rare, 900)]
        found = epsilon_of_sum(parts, delta=delta)
        if delta < 4.5e-4:
            assert found == math.inf
        else:
            assert delta * (1 - 1e-7) <= exact(parts, float(found)) <= delta


@pytest.mark.parametrize("times", [2, 5, 9])
def test_a_rare_loss_far_from_the_others_is_added_up_tightly(times: int) -> None:
    # Nothing lies between what is likely and what is rare, so that no tilt makes both likely.
    masses = np.zeros(1_000)
    masses[[0, 12, 400, 999]] = 0.9, 0.1 - 2e-9, 1.9e-9, 1e-10
    apart = PrivacyLossDistribution(gap=0.04, lowest=-5, masses=masses, infinite=0.0)
    for delta in (1e-6, 3e-9, 1e-10):
        found = epsilon_of_sum([(apart, times)], delta=delta)
        assert exact([(apart, times)], found) <= delta
        assert exact([(apart, times)], 0.97 * found - 0.02) > delta


def test_more_sums_than_are_kept_are_infinite() -> None:
    assert epsilon_of_sum([(SMALL_GAPS, 10**9)], delta=1e-6) == math.inf


@needs_long_double
def test_very_many_losses_are_on_the_safe_side_and_looser() -> None:
    hardly = PrivacyLossDistribution(
        gap=1.0, lowest=0, masses=np.array([1 - 1e-12, 1e-12]), infinite=0.0
    )
    found = epsilon_of_sum([(hardly, 10**10)], delta=1e-6)
    # Without transforms: a binomial, nearly Poisson.
    assert float(stats.poisson(1e-2).sf(1)) > 1e-6 > float(stats.poisson(1e-2).sf(3))
    assert 1.9 < found < 3.1


SMALL_GAPS = PrivacyLossDistribution(
    gap=1e-3, lowest=-400, masses=np.r_[0.4, np.zeros(799), 0.6], infinite=0.0
)


def test_a_dominating_distribution_has_the_deltas_it_was_given() -> None:
    bound = Clones(local_epsilon=2.0, num_reports=1000)
    losses = dominating(bound, 0.02, 40)
    deltas = curve(bound, gap=0.02, points=40)
    assert float(losses.masses.sum()) + losses.infinite == pytest.approx(1.0, abs=1e-9)
    found = np.array([losses.delta(index * 0.02) for index in range(-40, 41)])
    assert np.all(found >= deltas - 1e-15)
    np.testing.assert_allclose(found, deltas, atol=1e-9)


@needs_long_double
@pytest.mark.parametrize("gap", [0.3, 1e-2, 1e-5])
def test_no_delta_of_a_dominating_distribution_is_rounded_down(gap: float) -> None:
    epsilons = np.arange(61) * gap
    # Randomized response is a straight line in e**epsilon: all inner masses are differences of 0.
    top = math.exp(60 * gap)
    given = np.maximum((top - np.exp(epsilons)) / (top + 1), 0) * (1 + 1e-11)
    found = PrivacyLossDistribution.dominating(given, gap=gap)
    at = np.arange(-60, 61) * np.longdouble(gap)
    gains = np.maximum(-np.expm1(at[:, None] - at[None, :]), 0)
    deltas = gains @ found.masses.astype(np.longdouble) + found.infinite
    truth = (np.exp(at[-1]) - np.exp(at)) / (np.exp(at[-1]) + 1)
    assert np.all(deltas >= truth)
    assert float((deltas - truth).max()) < 1e-10
    exact_delta = delta_of_responses({60 * gap: 3_000}, 20 * gap)
    assert exact([(found, 3_000)], 20 * gap) >= exact_delta * (1 - 1e-12)


@needs_long_double
def test_the_orders_of_two_hypotheses_mirror_each_other() -> None:
    # Under the second hypothesis a loss of -0.4 never happens, so that the orders differ.
    one = PrivacyLossDistribution(
        gap=0.2, lowest=-1, masses=np.array([0.5, 0.0, 0.0, 0.4]), infinite=0.1
    )
    losses, masses = one.losses, one.masses
    backwards = PrivacyLossDistribution.of_losses(
        np.array([1, -2]), (masses * np.exp(-losses))[[0, 3]], gap=0.2,
        infinite=1 - float(np.sum(masses * np.exp(-losses))),
    )  # fmt: skip
    epsilons = 0.2 * np.arange(3)
    deltas, other = (np.array([each.delta(e) for e in epsilons]) for each in (one, backwards))
    found = PrivacyLossDistribution.dominating(deltas, gap=0.2, other=other)
    assert found.lowest == -2
    np.testing.assert_allclose(found.masses, [0, 0.5, 0, 0, 0.4], atol=1e-13)
    assert found.infinite == pytest.approx(0.1, abs=1e-13)
    alike = PrivacyLossDistribution.dominating(deltas, gap=0.2)
    assert abs(alike.delta(-0.2) - one.delta(-0.2)) > 0.01


def test_bounds_that_are_not_convex_are_dominated_too() -> None:
    deltas = np.array([0.5, 0.5, 0.1, 0.1, 0.0])
    losses = PrivacyLossDistribution.dominating(deltas, gap=0.5)
    for index, delta in enumerate(deltas):
        assert losses.delta(index * 0.5) >= delta - 1e-15


def test_losses_rounded_up_to_a_lowest_one_have_no_less_delta() -> None:
    up = SMALL.from_loss(0)
    assert (up.lowest, up.infinite) == (0, SMALL.infinite)
    np.testing.assert_allclose(up.masses, [0.35, 0.35, 0.28])
    for at in (-1.5, -0.4):
        assert up.delta(at) > SMALL.delta(at)
    assert up.delta(0.3) == SMALL.delta(0.3)


def test_a_curve_that_rounding_makes_rise_is_what_was_before_it() -> None:
    # Randomized response beyond its epsilon, computed as a difference: 0 but for rounding.
    epsilons = np.arange(41) * 0.05
    smooth = np.maximum((math.e - np.exp(epsilons)) / (math.e + 1), 0.0)
    wiggling = smooth + np.random.default_rng(3).uniform(-2e-16, 2e-16, smooth.size)
    assert np.any(np.diff(wiggling) > 0)
    assert wiggling.min() < 0
    losses = PrivacyLossDistribution.dominating(wiggling, gap=0.05)
    assert np.all(losses.masses >= 0)
    expected = PrivacyLossDistribution.dominating(smooth, gap=0.05)
    for times in (1, 7):
        epsilon = epsilon_of_sum([(losses, times)], delta=1e-6)
        assert epsilon == pytest.approx(epsilon_of_sum([(expected, times)], delta=1e-6), rel=1e-6)


@pytest.mark.parametrize(
    ("deltas", "problem"),
    [
        ([1.1, 0.1, 0.0], "from 0 to 1, got 1.1 at epsilon=0"),
        ([0.4, 0.1, -0.1], "from 0 to 1, got -0.1 at epsilon=1"),
        ([math.nan, 0.1, 0.0], "from 0 to 1, got nan at epsilon=0"),
    ],
)
def test_a_curve_that_is_none_is_refused(deltas: list[float], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        PrivacyLossDistribution.dominating(np.array(deltas), gap=0.5)


@pytest.mark.parametrize(("epsilon", "gap"), [(0.6, 0.3), (0.6, 0.25), (800.0, 800.0)])
def test_a_response_is_rounded_up_to_the_grid(epsilon: float, gap: float) -> None:
    found = PrivacyLossDistribution.of_response(epsilon, gap=gap)
    steps = -found.lowest
    assert steps == math.ceil(epsilon / gap - 1e-9)
    assert len(found.masses) == 2 * steps + 1
    truth = 1 / (1 + math.exp(-steps * gap))
    assert truth <= found.masses[-1] <= truth * (1 + 1e-14)
    assert 1 - truth < found.masses[0] <= (1 - truth) * (1 + 1e-12) + 1e-299
    assert np.count_nonzero(found.masses) == 2


@pytest.mark.parametrize(
    ("numbers", "gap"),
    [
        ([0.3], 0.3),
        ([2.0, 6.0], 2.0),
        ([0.5, 0.75], 0.25),
        ([0.11, 3.14], 0.01),
        ([1.0, math.log(3)], 0.0),
        ([1.0, 1 / 65], 1 / 65),
        ([65.0, 66.0], 0.0),
    ],
)
def test_a_common_divisor_is_found_and_rounded_up(numbers: list[float], gap: float) -> None:
    found = common_divisor(np.array(numbers))
    assert found == pytest.approx(gap, rel=1e-11)
    assert found >= gap
    wide, narrow = (
        common_gap(np.array(numbers), span=sum(numbers), most=most) for most in (10**6, 1)
    )
    assert wide == (found or pytest.approx(min(numbers) / 1000))
    assert narrow >= min(sum(numbers), found or math.inf)


@pytest.mark.parametrize("target", [0.025, 0.1, 0.4])
def test_the_epsilon_of_a_delta_is_the_smallest(target: float) -> None:
    epsilon = SMALL.epsilon(target)

    def delta(at: float) -> float:
        losses = (np.arange(5) - 2) * GAP
        return 0.02 + float(SMALL.masses @ np.maximum(0.0, -np.expm1(at - losses)))

    assert delta(epsilon) <= target
    assert epsilon == 0 or delta(epsilon * (1 - 1e-9)) > target


def test_the_ends_of_epsilon() -> None:
    assert SMALL.epsilon(0.019) == math.inf
    assert SMALL.epsilon(0.99) == 0.0
    assert epsilon_of_sum([(SMALL, 3)], delta=0.0199) == math.inf
    assert epsilon_of_sum([(SMALL, 2)], delta=0.9999) == 0.0


@pytest.mark.parametrize(("local_epsilon", "times", "target"), [(1, 7, 1e-6), (4, 60, 1e-8)])
def test_it_agrees_with_dp_accounting(local_epsilon: float, times: int, target: float) -> None:
    from dp_accounting.pld import pld_pmf

    bound = Clones(local_epsilon=local_epsilon, num_reports=10_000)
    gap = local_epsilon / 200
    deltas = curve(bound, gap=gap, points=200)
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(gap, -200, 200, deltas)
    theirs = theirs.self_compose(times, tail_mass_truncation=1e-6 * target)
    ours = epsilon_of_sum([(dominating(bound, gap, 200), times)], delta=target)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(target), rel=1e-6)


def test_losses_whose_exponential_is_no_double_are_not_lost() -> None:
    """400 answers of epsilon 12: 800 and more come with most of the probability."""
    truth = 1 / (1 + math.exp(-12))
    masses = np.zeros(3)
    masses[[0, 2]] = 1 - truth, truth
    one = PrivacyLossDistribution(gap=12.0, lowest=-1, masses=masses, infinite=0.0)
    found = epsilon_of_sum([(one, 400)], delta=1e-10)
    assert delta_of_responses({12.0: 400}, found) <= 1e-10
    assert found == pytest.approx(4800, rel=1e-9)


@pytest.mark.parametrize("sizes", [(3, 5), (40, 500), (300, 700)])
def test_convolved_probabilities_are_rounded_up(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    first, second = (rng.dirichlet(np.full(size, 0.1)) for size in sizes)
    long = np.convolve(first.astype(np.longdouble), second.astype(np.longdouble))
    found = convolve(first, second)
    assert np.all(found >= long)
    assert np.all(found <= long * (1 + 1e-13) + 1e-13)


@pytest.mark.slow("::test_no_delta_of_a_dominating_distribution_is_rounded_down")
def test_dominating_distributions_of_more_reports_are_smaller() -> None:
    few, many = (
        composed_epsilon([Use(bound=replace(bound, num_reports=n), times=600)], delta=1e-12)
        for n in (1_000, 2_000)
        for bound in [Clones(local_epsilon=2.0, num_reports=2)]
    )
    assert many < few
