"""The clones of 2023 above every blanket of Subset Selection, and the closed form above both.

docs/accounting.md, sections 2 and 3, has the proofs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.accounting import (
    Blanket,
    Clones,
    Clones2023,
    NotApplicable,
    closed_form_epsilon,
    paper_subset_size,
    subset_selection_blanket,
)
from fedhh.accounting.bounds.clones import SelectionClones2023
from tests.every import every
from tests.thinned import thinned

LOCAL_EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
DOMAINS = (2, 3, 4, 7, 30, 1001, 10**6)


def blankets(local_epsilon: float, num_reports: int):
    for s in DOMAINS:
        for d in {1, 2, s // 2, s - 1, paper_subset_size(local_epsilon, s)}:
            if 1 <= d < s:
                yield subset_selection_blanket(
                    local_epsilon=local_epsilon,
                    num_reports=num_reports,
                    domain_size=s,
                    subset_size=d,
                )


def summands(bound: Blanket, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of the V_i of docs/accounting.md, section 1."""
    growth, x = math.exp(bound.local_epsilon), math.exp(epsilon)
    values = [growth - x, 1 - x * growth, growth * (1 - x), 1 - x]
    weights = [bound.one, bound.one, bound.both / growth, bound.neither]
    return np.array([*values, 0.0]), np.array([*weights, 1 - sum(weights)])


def of_2023(local_epsilon: float, num_reports: int) -> Blanket:
    """The pair of 2023 as the blanket that section 2 says it is."""
    one = 1 / (math.exp(local_epsilon) + 1)
    return Blanket(
        local_epsilon=local_epsilon, num_reports=num_reports, one=one, both=0.0, neither=0.0
    )


def enumerated_delta(bound: Blanket, epsilon: float) -> float:
    """(1 / n) E[(V_1 + ... + V_n)_+], all outcomes; for very few reports."""
    values, weights = summands(bound, epsilon)
    total = 0.0
    for outcome in itertools.product(range(values.size), repeat=bound.num_reports):
        gain = values[list(outcome)].sum()
        if gain > 0:
            total += gain * weights[list(outcome)].prod()
    return total / bound.num_reports


@pytest.mark.parametrize("local_epsilon", LOCAL_EPSILONS)
def test_every_blanket_is_below_the_pair_outcome_by_outcome(local_epsilon):
    for n, share in itertools.product((2, 3), (0.0, 0.1, 0.4, 0.9)):
        epsilon = share * local_epsilon
        above = enumerated_delta(of_2023(local_epsilon, n), epsilon)
        pair = Clones2023(local_epsilon=local_epsilon, num_reports=n)
        assert pair.delta(epsilon) == pytest.approx(above, rel=1e-7)
        for bound in blankets(local_epsilon, n):
            assert enumerated_delta(bound, epsilon) <= above * (1 + 1e-12)


def test_a_pair_with_a_few_more_clones_is_not_above_every_blanket():
    # The control: with r = 2.1 / (E + 1) the mean of V_i is kept, but domination is lost.
    local_epsilon, n = 1.0, 3
    generous = (2.1 / 2) / (math.exp(local_epsilon) + 1)
    binary = next(blankets(local_epsilon, n))

    def generous_delta(epsilon: float) -> float:
        # The pair's delta with more clones, by its definition: W and C as in bounds/clones.py.
        growth, x = math.exp(local_epsilon), math.exp(epsilon)
        total = 0.0
        for clones in range(n):
            chance = math.comb(n - 1, clones) * (2 * generous) ** clones
            chance *= (1 - 2 * generous) ** (n - 1 - clones)
            copies = clones + 1
            mean = sum(
                math.comb(copies, a)
                / 2**copies
                * max(0.0, (a * (growth - x) + (copies - a) * (1 - x * growth)) / copies)
                for a in range(copies + 1)
            )
            total += chance * 2 / (growth + 1) * mean
        return total

    assert any(
        generous_delta(epsilon) < enumerated_delta(binary, epsilon) * (1 - 1e-6)
        for epsilon in (0.1, 0.4, 0.7)
    )


@every("local_epsilon", LOCAL_EPSILONS)
def test_each_summand_is_less_spread_out_than_the_pairs(local_epsilon):
    # Convex order, which sums keep, so this covers every number of reports: the same mean, and
    # E[(V - t)_+] no larger for any t.
    for share in (0.0, 0.05, 0.3, 0.7, 1.0):
        values, weights = summands(of_2023(local_epsilon, 2), share * local_epsilon)
        levels = np.concatenate([np.linspace(values.min(), values.max(), 101), values])
        above = np.maximum(values - levels[:, None], 0.0) @ weights
        for bound in blankets(local_epsilon, 2):
            own, own_weights = summands(bound, share * local_epsilon)
            assert own @ own_weights == pytest.approx(values @ weights, rel=1e-9, abs=1e-9)
            below = np.maximum(own - levels[:, None], 0.0) @ own_weights
            assert (below <= above + 1e-9 * above.max()).all()


@pytest.mark.slow("::test_every_blanket_is_below_the_pair_outcome_by_outcome")
@pytest.mark.parametrize("local_epsilon", thinned([0.5, 2.0, 8.0]))
@pytest.mark.parametrize("num_reports", [20, 10**4, 10**7])
def test_computed_epsilons_keep_the_order(local_epsilon, num_reports):
    # Up to the width of the bins in which counts are summed.
    pair = SelectionClones2023(local_epsilon=local_epsilon, num_reports=num_reports)
    for delta in (1e-12, 1e-4):
        most = pair.epsilon(delta)
        for s in (2, 30, 10**6):
            bound = subset_selection_blanket(
                local_epsilon=local_epsilon,
                num_reports=num_reports,
                domain_size=s,
                subset_size=paper_subset_size(local_epsilon, s),
            )
            assert bound.epsilon(delta) <= most * (1 + 2e-5) + 2e-9


CLOSED = list(
    itertools.product(
        (0.1, 1.0, 3.0, 6.0, 10.0, 14.0), (200, 10**4, 10**6, 10**9), (1e-12, 1e-6, 0.1)
    )
)


@pytest.mark.slow("::test_at_the_edge_of_its_condition_the_closed_form_still_holds")
def test_the_closed_form_is_above_the_pair_wherever_it_applies():
    applied = 0
    for local_epsilon, n, delta in CLOSED:
        closed = closed_form_epsilon(local_epsilon=local_epsilon, num_reports=n, delta=delta)
        if not isinstance(closed, NotApplicable):
            applied += 1
            pair = Clones2023(local_epsilon=local_epsilon, num_reports=n)
            assert pair.delta(closed) <= delta
    assert applied > 30


def test_at_the_edge_of_its_condition_the_closed_form_still_holds():
    # Section 3 needs T / 2 to cover the spread of the clones, which is tightest there.
    for n, delta in itertools.product((300, 10**4, 10**7), (1e-12, 1e-3, 0.1)):
        edge = math.log(n / (8 * math.log(2 / delta)) - 1)
        if edge < 0.1:
            continue
        local_epsilon = min(16.0, edge * (1 - 1e-9))
        closed = closed_form_epsilon(local_epsilon=local_epsilon, num_reports=n, delta=delta)
        assert Clones2023(local_epsilon=local_epsilon, num_reports=n).delta(closed) <= delta


def test_a_sixth_of_the_closed_form_would_be_too_little():
    # The control of the two tests above.
    for local_epsilon, n, delta in ((1.0, 10**6, 1e-6), (6.0, 10**6, 1e-12)):
        closed = closed_form_epsilon(local_epsilon=local_epsilon, num_reports=n, delta=delta)
        assert Clones2023(local_epsilon=local_epsilon, num_reports=n).delta(closed / 6) > delta


# Sums over clones and their sides with 50 digits, at epsilon = 0.999 * 16.
@pytest.mark.parametrize(
    ("bound", "exact"), [(Clones, 5.7145218293383106e-5), (Clones2023, 2.0573585899488794e-7)]
)
@pytest.mark.parametrize("tolerance", [2e-6, 1e-3])
def test_clones_just_below_the_local_epsilon_are_rounded_up(bound, exact, tolerance):
    """One side only exceeds the threshold, by so little that the threshold's last digits count."""
    computed = bound(local_epsilon=16.0, num_reports=10**8, tolerance=tolerance)
    assert exact <= computed.delta(16.0 * 0.999) <= exact * (1 + 1e-5)
