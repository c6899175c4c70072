"""Planning backwards: what is returned is allowed, and the next step is not."""

from __future__ import annotations

import math

import pytest

from fedhh.accounting import (
    BOUNDS,
    NotApplicable,
    Selection,
    largest_local_epsilon,
    paper_subset_size,
    shuffle_epsilon,
    smallest_num_reports,
)
from fedhh.oracles import SubsetSelection
from fedhh.validation import InputError

TARGET = {"epsilon": 0.5, "delta": 1e-8}


def central(bound: str, local_epsilon: float, num_reports: int, domain_size: int):
    found = shuffle_epsilon(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        delta=TARGET["delta"],
        domain_size=domain_size,
    )
    return math.inf if isinstance(found, NotApplicable) else found


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("num_reports", "domain_size"), [(10**5, 1001), (20_000, 5), (3000, 28)])
def test_the_largest_local_epsilon_is_allowed_and_a_larger_one_is_not(
    bound, num_reports, domain_size
):
    found = largest_local_epsilon(bound, **TARGET, num_reports=num_reports, domain_size=domain_size)
    slack = TARGET["epsilon"] * (1 + 1e-6)
    assert central(bound, found, num_reports, domain_size) <= slack
    for factor in (1 + 1e-4, 1.02, 1.3):
        assert central(bound, found * factor, num_reports, domain_size) > slack


def test_the_jumps_of_the_subset_size_are_used():
    # Right after d falls from 2 to 1 the bound is smaller than right before.
    s, n = 101, 10**5
    jump = math.log(s - 1)
    assert paper_subset_size(jump - 1e-6, s) == 2
    assert paper_subset_size(jump, s) == 1
    before, after = (central("blanket", e, n, s) for e in (jump - 1e-6, jump))
    assert after < before
    epsilon = (before + after) / 2
    found = largest_local_epsilon(
        "blanket", epsilon=epsilon, delta=TARGET["delta"], num_reports=n, domain_size=s
    )
    assert found > jump


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("local_epsilon", "domain_size"), [(4.0, 30), (8.0, 27_001)])
def test_the_smallest_number_of_reports_is_allowed_and_one_less_is_not(
    bound, local_epsilon, domain_size
):
    found = smallest_num_reports(
        bound, **TARGET, local_epsilon=local_epsilon, domain_size=domain_size
    )
    assert central(bound, local_epsilon, found, domain_size) <= TARGET["epsilon"] * (1 + 1e-8)
    assert central(bound, local_epsilon, found - 1, domain_size) > TARGET["epsilon"] * (1 - 1e-8)


def test_impossible_and_trivial_targets_are_typed():
    hard = {"epsilon": 1e-6, "delta": 1e-14}
    for bound in BOUNDS:
        nothing = largest_local_epsilon(bound, **hard, num_reports=100, domain_size=10)
        assert isinstance(nothing, NotApplicable)
        assert "local_epsilon = 0.1" in nothing.reason
        nothing = smallest_num_reports(bound, **hard, local_epsilon=16.0, domain_size=10**6)
        assert isinstance(nothing, NotApplicable)
        assert "num_reports = 1000000000" in nothing.reason
    easy = {"epsilon": 16.0, "delta": 1e-10}
    assert largest_local_epsilon("clones", **easy, num_reports=2) == 16.0
    assert largest_local_epsilon("blanket", **easy, num_reports=2, domain_size=10**6) == 16.0
    assert smallest_num_reports("clones", **easy, local_epsilon=3.0) == 2


def test_wrong_targets_are_named():
    with pytest.raises(InputError, match="epsilon=-1"):
        largest_local_epsilon("clones", epsilon=-1, delta=1e-6, num_reports=10)
    with pytest.raises(InputError, match="Expected domain_size for bound='blanket'"):
        largest_local_epsilon("blanket", epsilon=1, delta=1e-6, num_reports=10)
    with pytest.raises(InputError, match="local_epsilon=20"):
        smallest_num_reports("clones", epsilon=1, delta=1e-6, local_epsilon=20)


@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, math.log(3), 4.0, math.log(100), 10.0, 16.0])
@pytest.mark.parametrize("domain_size", [2, 4, 28, 101, 1351, 1_000_001])
def test_the_law_of_subset_selection_is_the_oracles(local_epsilon, domain_size):
    oracle = SubsetSelection(epsilon=local_epsilon, domain_size=domain_size)
    law = Selection(
        local_epsilon=local_epsilon,
        domain_size=domain_size,
        subset_size=paper_subset_size(local_epsilon, domain_size),
    )
    assert law.subset_size == oracle.d
    assert law.p == pytest.approx(oracle.p, rel=1e-12)
    assert law.q == pytest.approx(oracle.q, rel=1e-12)
    assert law.blanket == pytest.approx(oracle.blanket_probability, rel=1e-12)
