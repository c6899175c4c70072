"""Shuffle bounds against independently computed values, over their whole domain."""

from __future__ import annotations

import csv
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

from fedhh.accounting import (
    BOUNDS,
    Blanket,
    Clones,
    Clones2023,
    NotApplicable,
    Selection,
    closed_form_epsilon,
    dominating_blanket,
    paper_subset_size,
    shuffle_bound,
    shuffle_epsilon,
    subset_selection_blanket,
)
from fedhh.accounting.bounds.selection import worst_blankets
from fedhh.oracles import SubsetSelection
from fedhh.validation import InputError
from tests.accounting.blanket_attack import ShuffleLowerBound, subset_selection_lower_bound
from tests.every import every
from tests.thinned import thinned

GBOARD = {"local_epsilon": 10.0, "num_reports": 30_000_000, "delta": 1e-10}
GBOARD_DOMAIN = 1_000_001


def _reference():
    """Rows of numbers; None where the closed form does not apply."""
    text = Path(__file__).with_name("shuffle_reference.csv").read_text().splitlines()
    for row in csv.DictReader(line for line in text if not line.startswith("#")):
        values = [float(value) if value else None for value in row.values()]
        yield values[0], int(values[1]), *values[2:]


REFERENCE = list(_reference())


def blanket(local_epsilon: float, num_reports: int, s: int = GBOARD_DOMAIN, d: int | None = None):
    return subset_selection_blanket(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=s,
        subset_size=paper_subset_size(local_epsilon, s) if d is None else d,
    )


@pytest.mark.parametrize("row", thinned(REFERENCE, keep=17, single=True))
def test_clones_and_the_closed_form_are_those_of_an_independent_reference(row):
    local_epsilon, n, delta, closed, clones, clones_2023, *_ = row
    common = {"local_epsilon": local_epsilon, "num_reports": n}
    assert Clones(**common).epsilon(delta) == pytest.approx(clones, rel=1e-6)
    assert Clones2023(**common).epsilon(delta) == pytest.approx(clones_2023, rel=1e-6)
    found = closed_form_epsilon(**common, delta=delta)
    if closed is None:
        assert isinstance(found, NotApplicable)
    else:
        assert found == pytest.approx(closed, rel=1e-7)


@pytest.mark.parametrize("row", thinned(REFERENCE, keep=2, single=True))
def test_the_blanket_lies_between_independent_bounds_on_it(row):
    local_epsilon, n, delta, _, clones, clones_2023, above, below, _ = row
    found = blanket(local_epsilon, n).epsilon(delta)
    assert below <= found <= above * (1 + 1e-3)
    assert found <= clones_2023 <= clones
    if n > 1000:
        # With 1,000 reports the reference spends up to 2 % on its few nodes; see the exact sums.
        assert found == pytest.approx(above, rel=1e-3)


@pytest.mark.parametrize(
    "row",
    thinned([row for row in REFERENCE if row[0] >= 2 and row[2] == 1e-8], keep=3, single=True),
)
def test_lower_bounds_are_close_to_an_independent_reference_and_below_the_blanket(row):
    local_epsilon, n, delta, _, _, _, above, below, truth = row
    distribution = {
        "local_epsilon": local_epsilon,
        "num_reports": n,
        "domain_size": GBOARD_DOMAIN,
        "subset_size": paper_subset_size(local_epsilon, GBOARD_DOMAIN),
    }
    # Below the blanket bound itself: given T, all other reports enter by their mean.
    bound = blanket(local_epsilon, n)
    jensen = ShuffleLowerBound(
        local_epsilon=local_epsilon,
        num_reports=n,
        one=bound.one,
        echo=0.0,
        rest=bound.both + bound.neither,
    )
    assert jensen.epsilon(delta) == pytest.approx(below, rel=1e-4)
    lower = subset_selection_lower_bound(**distribution).epsilon(delta)
    assert truth * (1 - 1e-4) <= lower <= above
    assert lower == pytest.approx(truth, rel=0.035)


def test_gboards_case_has_the_known_values():
    assert shuffle_epsilon("clones", **GBOARD) == pytest.approx(0.3074662, rel=1e-6)
    assert shuffle_epsilon("clones-2023", **GBOARD) == pytest.approx(0.2138382, rel=1e-6)
    assert shuffle_epsilon("closed-form", **GBOARD) == pytest.approx(0.56544, abs=5e-6)
    tight = shuffle_epsilon("blanket", **GBOARD, domain_size=GBOARD_DOMAIN)
    assert paper_subset_size(10.0, GBOARD_DOMAIN) == 46
    assert 0.1492862 <= tight <= 0.14945


def exact_blanket_delta(bound: Blanket, epsilon: float) -> float:
    """The definition: (1 / n) E[(E a + b + E c + e - x (E b + a + E c + e))_+], term by term."""
    n, growth, x = bound.num_reports, math.exp(bound.local_epsilon), math.exp(epsilon)
    w11, w00, one = bound.both / growth, bound.neither, bound.one
    rest = 1 - 2 * one - w11 - w00
    c = np.arange(min(n, 60) + 1.0)[:, None]
    e = np.arange(n + 1.0)[None, :]
    total = 0.0
    for pairs in range(1, min(n, 45) + 1):
        left = n - pairs - c - e
        fits = left >= 0
        left = np.where(fits, left, 0)
        log_p = (
            gammaln(n + 1)
            - gammaln(pairs + 1)
            - gammaln(c + 1)
            - gammaln(e + 1)
            - gammaln(left + 1)
            + pairs * math.log(2 * one)
            + c * math.log(w11 or 1e-300)
            + e * math.log(w00)
            + left * math.log(rest)
        )
        p = np.where(fits, np.exp(log_p), 0.0)
        known = growth * c + e
        for a in range(pairs + 1):
            b = pairs - a
            gain = growth * a + b - x * (growth * b + a) - (x - 1) * known
            total += math.comb(pairs, a) / 2**pairs * float((p * np.maximum(gain, 0)).sum())
    return total / n


@pytest.mark.parametrize(
    ("local_epsilon", "n", "s", "d"),
    thinned(
        [
            (2.0, 20, 28, 4),
            (6.0, 1000, 1_000_001, 2473),
            (10.0, 1000, 1_000_001, 46),
            (3.0, 35, 9, 1),
            (1.0, 12, 6, 4),
            (16.0, 40, 3, 1),
        ],
    ),
)
@pytest.mark.parametrize("share", [0.0, 0.15, 0.35, 0.6])
def test_the_blanket_is_its_definition_rounded_up(local_epsilon, n, s, d, share):
    bound = blanket(local_epsilon, n, s, d)
    truth = exact_blanket_delta(bound, share * local_epsilon)
    if truth > 1e-25:
        assert truth * (1 - 1e-10) <= bound.delta(share * local_epsilon) <= truth * 1.01


@pytest.mark.slow("::test_even_a_few_huge_bins_stay_above_the_fine_sum")
def test_coarse_bins_give_larger_bounds():
    for fine in (Clones(local_epsilon=2.0, num_reports=10**6), blanket(5.0, 10**6)):
        coarse = replace(fine, tolerance=1e-2)
        assert fine.epsilon(1e-8) < coarse.epsilon(1e-8) < 1.05 * fine.epsilon(1e-8)


@pytest.mark.parametrize("tolerance", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(
    ("local_epsilon", "n", "s", "d"),
    [(0.5, 200, 50, 19), (1.0, 200, 50, 14), (3.0, 2000, 50, 3), (5.0, 500, 9, 1)],
)
def test_even_a_few_huge_bins_stay_above_the_fine_sum(local_epsilon, n, s, d, tolerance):
    fine = blanket(local_epsilon, n, s, d)
    coarse = replace(fine, tolerance=tolerance)
    for share in (0.02, 0.1, 0.3, 0.6):
        assert coarse.delta(share * local_epsilon) >= fine.delta(share * local_epsilon)


def test_with_two_reports_and_a_huge_local_epsilon_nothing_is_gained():
    assert Clones(local_epsilon=16.0, num_reports=2).epsilon(1e-14) == pytest.approx(16.0)
    assert blanket(16.0, 2).epsilon(1e-14) == pytest.approx(16.0)


def test_epsilon_is_0_where_the_total_variation_is_already_below_delta():
    assert Clones(local_epsilon=0.1, num_reports=10**9).epsilon(0.1) == 0.0
    assert blanket(0.1, 10**6).epsilon(0.01) == 0.0


@pytest.mark.slow("::test_clones_and_the_closed_form_are_those_of_an_independent_reference")
def test_more_reports_and_smaller_local_epsilons_never_hurt():
    for make in (lambda e, n: Clones(local_epsilon=e, num_reports=n), blanket):
        by_reports = [make(6.0, n).epsilon(1e-8) for n in (10, 10**5, 10**9)]
        assert by_reports == sorted(by_reports, reverse=True)
        by_local = [make(e, 10**5).epsilon(1e-8) for e in (0.1, 7.0, 16.0)]
        assert by_local == sorted(by_local)


def test_a_dominating_blanket_is_above_each_of_several():
    layers = [
        blanket(8.0, n, s)
        for n, s in ((5000, 2), (5000, 28), (5000, 730), (7000, 9001), (5000, 27001), (6000, 10**6))
    ]
    worst = dominating_blanket(layers)
    assert worst.num_reports == 5000
    # At a small local epsilon, where reports with both values matter, and for odd subset sizes.
    odd = [blanket(0.5, 60, 9, d) for d in range(1, 9)]
    both_ways = dominating_blanket(odd)
    assert (
        math.exp(0.5) + 1
    ) * both_ways.one + both_ways.both + both_ways.neither == pytest.approx(1)
    for epsilon in (0.02, 0.1, 0.2):
        assert both_ways.delta(epsilon) >= max(each.delta(epsilon) for each in odd) * (1 - 1e-9)
    assert (math.exp(8.0) + 1) * worst.one + worst.both + worst.neither == pytest.approx(1)
    for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
        assert worst.delta(epsilon) >= max(each.delta(epsilon) for each in layers) * (1 - 1e-9)
    # Leaving out what is dominated changes no maximum.
    kept = worst_blankets(layers)
    assert 1 <= len(kept) < len(layers)
    for epsilon in (0.0, 0.5, 2.0):
        assert max(each.delta(epsilon) for each in kept) == max(
            each.delta(epsilon) for each in layers
        )


def test_the_closed_form_refuses_outside_its_condition():
    limit = math.log(10**6 / (8 * math.log(2 / 1e-8)) - 1)
    inside = closed_form_epsilon(local_epsilon=limit - 1e-9, num_reports=10**6, delta=1e-8)
    outside = closed_form_epsilon(local_epsilon=limit + 1e-9, num_reports=10**6, delta=1e-8)
    assert isinstance(inside, float)
    assert isinstance(outside, NotApplicable)
    assert f"local_epsilon <= {limit:.4g}" in str(outside)


@every(
    ("change", "message"),
    [
        ({"local_epsilon": 0.09}, "Expected 0.1 <= local_epsilon <= 16.0, got local_epsilon=0.09"),
        ({"local_epsilon": math.nan}, "local_epsilon=nan"),
        ({"num_reports": 1}, "Expected 2 <= num_reports <= 1000000000, got num_reports=1"),
        ({"num_reports": 2.5}, "Expected an integer num_reports >= 2, got num_reports=2.5"),
        ({"num_reports": math.nan}, "num_reports=nan"),
        ({"num_reports": 10**9 + 1}, "num_reports=1000000001"),
        ({"delta": 0.0}, "Expected 1e-14 <= delta <= 0.1, got delta=0.0"),
        ({"delta": math.nan}, "delta=nan"),
    ],
)
@every("bound", BOUNDS)
def test_values_outside_the_domain_are_named(bound, change, message):
    arguments = {"local_epsilon": 2.0, "num_reports": 1000, "delta": 1e-6, "domain_size": 30}
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        shuffle_epsilon(bound, **{**arguments, **change})


def test_other_wrong_input_is_named():
    with pytest.raises(InputError, match=r"Unknown bound 'clone'; did you mean 'clones'\?"):
        shuffle_epsilon("clone", **GBOARD)
    with pytest.raises(InputError, match="closed-form"):
        shuffle_bound("closed-form", local_epsilon=1.0, num_reports=10)
    with pytest.raises(InputError, match="Expected domain_size for bound='blanket'"):
        shuffle_epsilon("blanket", **GBOARD)
    with pytest.raises(InputError, match="Expected subset_size < domain_size=4"):
        blanket(1.0, 10, 4, 4)
    with pytest.raises(InputError, match="domain_size=1"):
        shuffle_epsilon("blanket", **GBOARD, domain_size=1)
    for wrong in (-0.1, math.nan, math.inf):
        with pytest.raises(InputError, match="Expected 0 <= epsilon < inf"):
            Clones(local_epsilon=1.0, num_reports=10).delta(wrong)


@pytest.mark.slow("::test_a_dominating_blanket_is_above_each_of_several")
def test_fewer_reports_are_never_dropped_for_more_of_them():
    # The same randomizer: the layer with fewer reports is the worse one, and dominates the other.
    few, many = (
        subset_selection_blanket(local_epsilon=4.0, num_reports=n, domain_size=500, subset_size=9)
        for n in (1_000, 100_000)
    )
    assert few.epsilon(1e-6) > many.epsilon(1e-6)
    assert worst_blankets([few, many]) == worst_blankets([many, few]) == [few]
    # Nor is a weaker randomizer with more reports a reason to drop one with fewer.
    for n, s in itertools.product((1_000, 100_000), (460, 500, 540)):
        other = subset_selection_blanket(
            local_epsilon=4.0, num_reports=n, domain_size=s, subset_size=9
        )
        for pair in ([few, other], [many, other]):
            kept = worst_blankets(pair)
            for epsilon in (0.02, 0.2, 1.0):
                worst = max(each.delta(epsilon) for each in pair)
                assert max(each.delta(epsilon) for each in kept) == worst


def test_of_equally_many_reports_only_the_worse_blanket_is_kept():
    worse = subset_selection_blanket(
        local_epsilon=4.0, num_reports=1_000, domain_size=500, subset_size=9
    )
    moved = worse.one / 2
    better = replace(worse, one=moved, neither=worse.neither + (math.exp(4.0) + 1) * moved)
    assert better.epsilon(1e-6) < worse.epsilon(1e-6)
    assert worst_blankets([worse, better]) == worst_blankets([better, worse]) == [worse]
    assert worst_blankets([worse, worse]) == [worse]
    # What tells less by single reports, but is less often neither value, is not dominated.
    rest = worse.neither / 2
    both = worse.both + (math.exp(4.0) + 1) * moved + rest
    other = replace(worse, one=moved, both=both, neither=rest)
    assert worst_blankets([other, worse]) == [worse, other]


@every("local_epsilon", [0.1, 1.0, math.log(3), 4.0, math.log(100), 10.0, 16.0])
@every("domain_size", [2, 4, 28, 101, 1351, 1_000_001])
def test_the_distribution_of_subset_selection_is_the_oracles(local_epsilon, domain_size):
    oracle = SubsetSelection(epsilon=local_epsilon, domain_size=domain_size)
    distribution = Selection(
        local_epsilon=local_epsilon,
        domain_size=domain_size,
        subset_size=paper_subset_size(local_epsilon, domain_size),
    )
    assert distribution.subset_size == oracle.d
    assert distribution.p == pytest.approx(oracle.p, rel=1e-12)
    assert distribution.q == pytest.approx(oracle.q, rel=1e-12)
    assert distribution.blanket == pytest.approx(
        (1 - oracle.p) * domain_size / (domain_size - oracle.d), rel=1e-12
    )


def test_a_worse_blanket_of_more_reports_does_not_replace_one_of_fewer():
    worse, better = (
        subset_selection_blanket(local_epsilon=4.0, num_reports=n, domain_size=s, subset_size=1)
        for n, s in ((10**6, 3), (1_000, 300))
    )
    assert worse.one > better.one
    assert worse.one + worse.both > better.one + better.both
    assert sorted(each.num_reports for each in worst_blankets([worse, better])) == [1_000, 10**6]
