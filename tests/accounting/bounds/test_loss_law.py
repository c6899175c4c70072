"""Laws of privacy losses: sums enumerated, what is cut off counted, and dp-accounting's beside."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.accounting import Clones
from fedhh.accounting.bounds.loss_law import LossLaw

GAP = 0.3
SMALL = LossLaw(gap=GAP, lowest=-2, masses=np.array([0.05, 0.1, 0.2, 0.35, 0.28]), lost=0.02)
OTHER = LossLaw(gap=GAP, lowest=-1, masses=np.array([0.3, 0.0, 0.7]), lost=0.0)


def enumerated(laws: list[LossLaw], index: int) -> float:
    """Return delta at so many gaps, of the sum of independent losses: all sums, one by one."""
    finite = math.prod(1 - law.lost for law in laws)
    delta = 1 - finite
    for places in itertools.product(*(range(len(law.masses)) for law in laws)):
        loss = sum(law.lowest + place for law, place in zip(laws, places, strict=True))
        mass = math.prod(law.masses[place] for law, place in zip(laws, places, strict=True))
        delta += mass * max(0.0, -math.expm1(GAP * (index - loss)))
    return delta


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_sum_of_equal_losses_is_what_enumeration_finds(times: int) -> None:
    lost = 1e-9
    composed = SMALL.self_compose(times, lost=lost)
    for index in range(-2 * times, 3 * times):
        exact = enumerated([SMALL] * times, index)
        assert exact - 1e-15 <= composed.delta(index) <= exact + 2 * lost


def test_a_sum_of_different_losses_is_what_enumeration_finds() -> None:
    composed = SMALL.self_compose(2, lost=1e-12).compose(OTHER)
    for index in range(-4, 9):
        exact = enumerated([SMALL, SMALL, OTHER], index)
        assert composed.delta(index) == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize("lost", [1e-6, 1e-3, 0.3])
def test_sums_that_are_cut_off_never_lower_delta(lost: float) -> None:
    times = 400
    law = LossLaw(gap=0.02, lowest=-3, masses=np.array([0.4, 0, 0, 0, 0, 0.1, 0.5]), lost=0.0)
    whole = law
    for _ in range(times - 1):
        whole = whole.compose(law)
    cut = law.self_compose(times, lost=lost)
    assert len(cut.masses) < 0.6 * len(whole.masses)
    found = [cut.delta(index) for index in range(-1200, 1201, 7)]
    exact = [whole.delta(index) for index in range(-1200, 1201, 7)]
    assert all(a >= b - 1e-13 for a, b in zip(found, exact, strict=True))
    assert all(a <= b + 2 * lost for a, b in zip(found, exact, strict=True))
    # What lies outside is what makes it hold: without it, delta is too small somewhere.
    kept = whole.masses[cut.lowest - whole.lowest :][: len(cut.masses)]
    forgotten = LossLaw(gap=law.gap, lowest=cut.lowest, masses=kept, lost=0.0)
    assert any(
        forgotten.delta(index) < b - 1e-13
        for index, b in zip(range(-1200, 1201, 7), exact, strict=True)
    )


def test_a_dominating_law_has_the_deltas_it_was_given() -> None:
    bound = Clones(local_epsilon=2.0, num_reports=1000)
    epsilons = np.arange(-40, 41) * 0.02
    deltas = np.array([
        bound.delta(e) if e >= 0 else -math.expm1(e) + math.exp(e) * bound.delta(-e)
        for e in epsilons
    ])  # fmt: skip
    law = LossLaw.dominating(deltas, gap=0.02)
    assert float(law.masses.sum()) + law.lost == pytest.approx(1.0, abs=1e-9)
    found = np.array([law.delta(index) for index in range(-40, 41)])
    assert np.all(found >= deltas - 1e-15)
    np.testing.assert_allclose(found, deltas, atol=1e-9)


def test_bounds_that_are_not_convex_are_dominated_too() -> None:
    deltas = np.array([0.9, 0.8, 0.5, 0.5, 0.1, 0.1, 0.0])
    law = LossLaw.dominating(deltas, gap=0.5)
    assert all(law.delta(index) >= d - 1e-15 for index, d in zip(range(-3, 4), deltas, strict=True))


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


@pytest.mark.parametrize(("local_epsilon", "times", "target"), [(1, 7, 1e-6), (4, 60, 1e-8)])
def test_it_agrees_with_dp_accounting(local_epsilon: float, times: int, target: float) -> None:
    from dp_accounting.pld import pld_pmf

    bound = Clones(local_epsilon=local_epsilon, num_reports=10_000)
    gap = local_epsilon / 200
    epsilons = np.arange(201) * gap
    positive = np.minimum.accumulate([bound.delta(float(e)) for e in epsilons])
    negative = -np.expm1(-epsilons) + np.exp(-epsilons) * positive
    deltas = np.concatenate([negative[:0:-1], positive])
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(gap, -200, 200, deltas)
    theirs = theirs.self_compose(times, tail_mass_truncation=1e-3 * target)
    ours = LossLaw.dominating(deltas, gap=gap).self_compose(times, lost=1e-3 * target)
    assert ours.epsilon(target) == pytest.approx(theirs.get_epsilon_for_delta(target), rel=1e-6)


def test_losses_whose_exponential_is_no_double_are_not_lost() -> None:
    """400 answers of epsilon 12: 800 and more come with most of the probability."""
    truth = 1 / (1 + math.exp(-12))
    masses = np.zeros(3)
    masses[[0, 2]] = 1 - truth, truth
    law = LossLaw(gap=12.0, lowest=-1, masses=masses, lost=0.0).self_compose(400, lost=1e-13)
    found = law.epsilon(1e-10)
    assert sum(
        math.comb(400, k) * truth ** (400 - k) * (1 - truth) ** k
        * -math.expm1(min(0.0, found - 12 * (400 - 2 * k)))
        for k in range(401)
    ) <= 1e-10  # fmt: skip
    assert found == pytest.approx(4800, rel=1e-9)
