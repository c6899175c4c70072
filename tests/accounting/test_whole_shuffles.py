"""No bound is ever below the truth: every shuffle of a small domain, enumerated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting import (
    Clones,
    Clones2023,
    subset_selection_blanket,
)
from fedhh.accounting.bounds.clones import SelectionClones2023
from tests.accounting.blanket_attack import subset_selection_lower_bound
from tests.accounting.brute_force import deltas_given, subset_selection_distribution, worst_deltas
from tests.every import every
from tests.thinned import thinned

# local_epsilon, domain size, subset size, reports
SHUFFLES = [
    (0.5, 4, 1, 8),
    (0.5, 4, 2, 5),
    (1.0, 5, 1, 6),
    (1.0, 2, 1, 8),
    (2.0, 4, 1, 8),
    (2.0, 4, 2, 5),
    (2.0, 5, 2, 3),
    (2.0, 4, 3, 6),
    (4.0, 5, 1, 6),
    (4.0, 3, 2, 7),
    (8.0, 4, 1, 5),
    (1.0, 4, 2, 2),
]


@pytest.fixture(scope="module")
def truths():
    def of(local_epsilon, s, d, n):
        epsilons = np.linspace(0.0, local_epsilon, 9)[:-1]
        distribution = subset_selection_distribution(local_epsilon, s, d)
        return epsilons, worst_deltas(distribution, n, epsilons)

    return {shuffle: of(*shuffle) for shuffle in SHUFFLES}


def blanket(local_epsilon, s, d, n):
    return subset_selection_blanket(
        local_epsilon=local_epsilon, num_reports=n, domain_size=s, subset_size=d
    )


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_no_bound_is_below_the_worst_shuffle(shuffle, truths):
    local_epsilon, _, _, n = shuffle
    epsilons, truth = truths[shuffle]
    common = {"local_epsilon": local_epsilon, "num_reports": n}
    for bound in (blanket(*shuffle), Clones(**common), SelectionClones2023(**common)):
        computed = np.array([bound.delta(float(epsilon)) for epsilon in epsilons])
        assert (computed >= truth * (1 - 1e-12)).all()


@pytest.mark.parametrize("shuffle", thinned(SHUFFLES, single=True))
def test_the_epsilon_for_a_delta_holds_in_the_worst_shuffle(shuffle):
    local_epsilon, s, d, n = shuffle
    distribution = subset_selection_distribution(local_epsilon, s, d)
    deltas = np.array([1e-4, 1e-2, 0.1])
    for bound in (blanket(*shuffle), Clones(local_epsilon=local_epsilon, num_reports=n)):
        epsilons = np.array([bound.epsilon(float(delta)) for delta in deltas])
        assert (epsilons <= local_epsilon).all()
        assert (worst_deltas(distribution, n, epsilons) <= deltas * (1 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize("seed", range(6))
def test_clones_hold_for_randomizers_without_any_symmetry(seed):
    # Those of 2023 too, by the remark in docs/accounting.md, section 2, though nothing rests on it.
    rng = np.random.default_rng(seed)
    distribution = rng.dirichlet(np.full(4, 0.7), size=3) + 1e-3
    distribution /= distribution.sum(axis=1, keepdims=True)
    local_epsilon = float(np.log((distribution.max(axis=0) / distribution.min(axis=0)).max()))
    n = 5
    epsilons = np.linspace(0.0, local_epsilon, 7)[:-1]
    bounds = [kind(local_epsilon=local_epsilon, num_reports=n) for kind in (Clones, Clones2023)]
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        truth = worst_deltas(distribution[list(order)], n, epsilons)
        for bound in bounds:
            computed = np.array([bound.delta(float(epsilon)) for epsilon in epsilons])
            assert (computed >= truth * (1 - 1e-12)).all()


@pytest.mark.parametrize("shuffle", [(2.0, 4, 1, 8), (2.0, 4, 2, 5), (4.0, 5, 1, 6)])
def test_a_bound_for_too_many_reports_is_detected(shuffle, truths):
    local_epsilon, s, d, n = shuffle
    epsilons, truth = truths[shuffle]
    for bound in (
        blanket(local_epsilon, s, d, 4 * n),
        Clones(local_epsilon=local_epsilon, num_reports=16 * n),
    ):
        computed = np.array([bound.delta(float(epsilon)) for epsilon in epsilons])
        assert (computed < truth).any()


@every("shuffle", [shuffle for shuffle in SHUFFLES if shuffle[1] > 2])
def test_the_lower_bound_is_below_the_shuffle_it_speaks_of(shuffle):
    local_epsilon, s, d, n = shuffle
    distribution = subset_selection_distribution(local_epsilon, s, d)
    epsilons = np.linspace(0.0, local_epsilon, 9)[:-1]
    truth = deltas_given(distribution, (2,) * (n - 1), epsilons)
    lower = subset_selection_lower_bound(
        local_epsilon=local_epsilon, num_reports=n, domain_size=s, subset_size=d
    )
    computed = np.array([lower.delta(float(epsilon)) for epsilon in epsilons])
    assert (computed <= truth * (1 + 1e-12)).all()
    if d < s - 1:
        assert computed[0] > truth[0] / 3


def test_randomized_response_is_its_own_worst_case_for_the_blanket():
    # Two values: the blanket is binary, and the 2023 clones are exactly that blanket.
    for local_epsilon, n in ((0.5, 7), (2.0, 100), (6.0, 5000)):
        bound = blanket(local_epsilon, 2, 1, n)
        clones = Clones2023(local_epsilon=local_epsilon, num_reports=n)
        for epsilon in (0.0, 0.3 * local_epsilon, 0.7 * local_epsilon):
            assert bound.delta(epsilon) == pytest.approx(clones.delta(epsilon), rel=1e-9)


def clone_pair_delta(local_epsilon: float, n: int, r: float, epsilon: float) -> float:
    """Theorem 3.1's pair, outcome by outcome: (A + D, C - A + 1 - D) against its mirror."""
    growth, x = math.exp(local_epsilon), math.exp(epsilon)
    own = growth / (growth + 1)
    delta = 0.0
    for c in range(n):
        p_c = math.comb(n - 1, c) * r**c * (1 - r) ** (n - 1 - c)
        fair = [math.comb(c, a) / 2**c if 0 <= a <= c else 0.0 for a in range(-1, c + 2)]
        for a in range(c + 2):
            likely = fair[a] * own + fair[a + 1] * (1 - own)
            unlikely = fair[a] * (1 - own) + fair[a + 1] * own
            delta += p_c * max(0.0, likely - x * unlikely)
    return delta


@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("n", [2, 3, 17, pytest.param(200, marks=pytest.mark.slow)])
def test_clones_are_the_theorems_pair_rounded_up(local_epsilon, n):
    for kind, r in (
        (Clones, math.exp(-local_epsilon)),
        (Clones2023, 2 / (math.exp(local_epsilon) + 1)),
    ):
        bound = kind(local_epsilon=local_epsilon, num_reports=n)
        for share in (0.0, 0.1, 0.5, 0.9):
            truth = clone_pair_delta(local_epsilon, n, r, share * local_epsilon)
            if truth > 1e-30:
                got = bound.delta(share * local_epsilon)
                assert truth * (1 - 1e-10) <= got <= truth * (1 + 1e-7) + 1e-17
