"""Hash functions that are assigned to devices: what crafted reports can still gain."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedhh.oracles import BinaryLocalHashing, OptimizedLocalHashing
from fedhh.testing import ALPHA
from fedhh.validation import InputError

KINDS = [BinaryLocalHashing, OptimizedLocalHashing]
OLH = OptimizedLocalHashing(epsilon=1.0, domain_size=2**40, public_hash=True)


def splitmix(seed: int, place: int) -> int:
    """SplitMix64 in Python's integers: its output at a place of the stream of a mixed seed."""

    def mixed(word: int) -> int:
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    return mixed((mixed(seed) + place * 0x9E3779B97F4A7C15) % 2**64)


def crafted(functions: np.ndarray, targets: np.ndarray, oracle: OptimizedLocalHashing):
    """Return one report under each function, of the cell that most targets are in."""
    reports = np.empty((len(functions), 4), dtype=np.int64)
    reports.view(np.uint64)[:, :3] = functions
    loads = np.zeros((len(functions), oracle.num_cells), dtype=np.int64)
    for target in targets:
        cells = oracle._cells(functions, np.full(len(functions), target))
        loads[np.arange(len(functions)), cells] += 1
    reports[:, 3] = loads.argmax(axis=1)
    return reports


def test_functions_follow_from_the_seed_and_the_reports_number_alone():
    functions = OLH.assigned_functions(np.array([0, 7, 2**40]), seed=12)
    expected = [[splitmix(12, 3 * number + k) for k in (1, 2, 3)] for number in (0, 7, 2**40)]
    assert functions.tolist() == expected
    assert not (functions == OLH.assigned_functions(np.array([0, 7, 2**40]), seed=13)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_honest_reports_support_with_p_and_q_under_assigned_functions(kind):
    oracle = kind(epsilon=1.5, domain_size=1_000, public_hash=True)
    n = 40_000
    rng = np.random.default_rng(2)
    functions = oracle.assigned_functions(np.arange(n), seed=99)
    reports = oracle.privatize(np.full(n, 5), rng=rng, functions=functions)
    assert oracle.has_functions(reports, functions).all()
    held, other = oracle.support(reports=reports, candidates=np.array([5, 17]))
    assert stats.binomtest(int(held), n, oracle.p).pvalue > ALPHA
    assert stats.binomtest(int(other), n, oracle.q).pvalue > ALPHA
    assert stats.binomtest(int(held), n, oracle.q).pvalue < ALPHA
    assert stats.binomtest(int(other), n, oracle.p).pvalue < ALPHA


def test_without_assigned_functions_the_bits_are_those_of_chosen_ones():
    chosen = OptimizedLocalHashing(epsilon=1.0, domain_size=50)
    public = OptimizedLocalHashing(epsilon=1.0, domain_size=50, public_hash=True)
    values = np.arange(50)
    np.testing.assert_array_equal(
        chosen.privatize(values, rng=np.random.default_rng(1)),
        public.privatize(values, rng=np.random.default_rng(1)),
    )
    assert (chosen.p, chosen.q) == (public.p, public.q)
    # The function need not be sent.
    assert (chosen.report_bits, public.report_bits) == (128 + 2, 2)


def test_a_report_under_a_function_of_its_own_choice_is_told():
    functions = OLH.assigned_functions(np.arange(3), seed=1)
    reports = OLH.privatize(np.arange(3), rng=np.random.default_rng(0), functions=functions)
    reports[1, 0] ^= 1
    assert OLH.has_functions(reports, functions).tolist() == [True, False, True]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_largest_load_is_that_of_all_ways_to_fill_the_cells(epsilon):
    oracle = OptimizedLocalHashing(epsilon=epsilon, domain_size=9)
    cells = oracle.num_cells
    for targets in (1, 2, 5):
        loads = [
            max(places.count(cell) for cell in set(places))
            for places in itertools.product(range(cells), repeat=targets)
        ]
        assert oracle.largest_load(targets) == pytest.approx(sum(loads) / len(loads), rel=1e-12)
    assert oracle.largest_load(1) == pytest.approx(1)


def test_for_one_target_the_gain_stays_and_for_many_it_falls():
    # Ideal local hashing, all targets in one cell: beta (r - r q) / (p - q).
    def chosen(targets: int) -> float:
        return 0.05 * targets * (1 - OLH.q) / (OLH.p - OLH.q)

    assert OLH.public_hash_gain(0.05, 1) == pytest.approx(chosen(1), rel=1e-12)
    assert OLH.public_hash_gain(0.05, 10) < 0.3 * chosen(10)
    sharp = OptimizedLocalHashing(epsilon=8.0, domain_size=100)
    one = sharp.public_hash_gain(0.05, 1)
    assert one == pytest.approx(0.1, rel=1e-3)
    assert sharp.public_hash_gain(0.05, 10) == pytest.approx(one, rel=0.02)
    assert sharp.public_hash_gain(0.05, 10, frequency=0.2) == pytest.approx(
        sharp.public_hash_gain(0.05, 10) - 0.01
    )


@pytest.mark.parametrize("num_targets", [1, 10])
def test_crafted_reports_gain_what_the_closed_form_says(num_targets):
    rng = np.random.default_rng(4)
    targets = rng.integers(0, 2**40, num_targets)
    n, fakes = 200_000, 10_000
    functions = OLH.assigned_functions(np.arange(n), seed=5)
    reports = crafted(functions[:fakes], targets, OLH)
    assert OLH.has_functions(reports, functions[:fakes]).all()
    # Honest clients hold none of the targets: each has q of their support.
    support = OLH.support(reports=reports, candidates=targets) + (n - fakes) * OLH.q
    gain = float(OLH.estimate(support, n).sum()) / n
    closed = OLH.public_hash_gain(fakes / n, num_targets)
    # A fake report supports 1 to r targets, so that its deviation is at most (r - 1) / 2.
    spread = (num_targets - 1) / 2 / math.sqrt(fakes) * fakes / n / (OLH.p - OLH.q)
    assert gain == pytest.approx(closed, abs=stats.norm.isf(ALPHA / 2) * spread + 1e-12)
    if num_targets > 1:
        best_of_chosen = fakes / n * num_targets * (1 - OLH.q) / (OLH.p - OLH.q)
        assert gain < best_of_chosen / 2


def test_so_many_targets_that_no_load_is_computed_are_refused():
    with pytest.raises(InputError, match="num_targets"):
        OLH.largest_load(1_001)
