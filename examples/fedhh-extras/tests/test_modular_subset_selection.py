"""Modular Subset Selection: distributions by enumeration, its equations by brute force."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from fedhh_extras.modular_subset_selection import ModularSubsetSelection
from fedhh_extras.residue_systems import (
    MOST_NOISE,
    CoprimeSystem,
    coprime_system,
    residue_system,
)
from scipy.linalg import toeplitz

from fedhh.oracles import ProjectiveGeometryResponse, SubsetSelection
from fedhh.oracles.attack import maximal_gain
from fedhh.testing import ORACLE_CASES, follows_distribution, oracle_checks
from fedhh.testing.oracle_distributions import aggregate_distribution, report_distribution
from fedhh.validation import InputError
from tests.every import every

# Moduli of a value more than others and not; 2 among them; one modulus alone; two and more.
TINY = [
    ModularSubsetSelection(epsilon=0.5, domain_size=2),
    ModularSubsetSelection(epsilon=4.0, domain_size=3),
    ModularSubsetSelection(epsilon=2.0, domain_size=5, placement_seed=3),
    ModularSubsetSelection(epsilon=0.3, domain_size=9, num_moduli=2),
    ModularSubsetSelection(epsilon=3.0, domain_size=11, num_moduli=3),
    ModularSubsetSelection(epsilon=0.2, domain_size=12),
]


ORACLES = [ModularSubsetSelection(epsilon=e, domain_size=s) for e, s in ORACLE_CASES]


@pytest.mark.slow("::test_equations_and_traces_are_those_of_the_whole_matrix")
@pytest.mark.parametrize(
    ("oracle", "check"), [(o, c) for o in ORACLES for c in oracle_checks(o)], ids=str
)
def test_modular_subset_selection(oracle, check):
    check(oracle)


def chances(oracle: ModularSubsetSelection) -> np.ndarray:
    """The probability of each report (column) of each value (row)."""
    space = oracle.report_space()
    return np.exp([oracle.log_prob(space, value) for value in range(oracle.domain_size)])


@pytest.mark.parametrize("oracle", TINY, ids=str)
def test_estimates_are_unbiased_with_the_stated_variance_by_enumeration(oracle):
    size, space = oracle.domain_size, oracle.report_space()
    by_value = chances(oracle)
    assert by_value.sum(axis=1) == pytest.approx(np.ones(size))
    assert np.log(by_value.max(axis=0) / by_value.min(axis=0)).max() == pytest.approx(
        oracle.epsilon, abs=1e-12
    )
    estimates = np.array(
        [oracle.estimate(oracle.support(reports=space[[i]]), 1) for i in range(len(space))]
    )
    means = by_value @ estimates
    assert means == pytest.approx(np.eye(size), abs=1e-9)
    variances = by_value @ estimates**2 - means**2
    held = np.trace(variances) / size
    other = (variances.sum() - np.trace(variances)) / (size * (size - 1))
    assert oracle.variance([0, 1, 3], 7) == pytest.approx(
        [7 * other, held + 6 * other, 3 * held + 4 * other], rel=1e-9
    )


def test_values_have_different_variances_that_only_the_placement_evens_out():
    oracle = TINY[4]
    space = oracle.report_space()
    estimates = np.array(
        [oracle.estimate(oracle.support(reports=space[[i]]), 1) for i in range(len(space))]
    )
    second = chances(oracle) @ estimates**2
    others = second[~np.eye(11, dtype=bool)]
    assert others.max() > 1.2 * others.min()


@pytest.mark.slow("::test_equations_and_traces_are_those_of_the_whole_matrix")
def test_drawn_and_sampled_aggregates_follow_the_distribution():
    oracle = TINY[1]
    rng = np.random.default_rng(0)
    for value in (0, 2):
        reports = oracle.privatize(np.full(50_000, value), rng=rng)
        assert follows_distribution(reports, report_distribution(oracle, value))
        assert not follows_distribution(reports, report_distribution(oracle, 1))
    values = np.array([0, 2, 2])
    expected = aggregate_distribution(oracle, [0, 2, 2])
    moved = aggregate_distribution(oracle, [0, 1, 2])
    made = np.array([oracle.aggregate(values=values, rng=rng) for _ in range(6_000)])
    sampled = np.array(
        [
            oracle.sample_aggregate(oracle.noise_free_counts(values, rng=rng), rng=rng)
            for _ in range(6_000)
        ]
    )
    for drawn in (made, sampled):
        assert follows_distribution(drawn, expected)
        assert not follows_distribution(drawn, moved)


@pytest.mark.parametrize(
    ("size", "largest_part"),
    [
        *((size, 512) for size in (2, 3, 31, 60)),
        *((size, 32) for size in (32, 33, 70)),
        *(pytest.param(size, 512, marks=pytest.mark.slow) for size in (512, 513, 1_030)),
    ],
)
def test_equations_and_traces_are_those_of_the_whole_matrix(monkeypatch, size, largest_part):
    monkeypatch.setattr("fedhh_extras.residue_systems.LARGEST_PART", largest_part)
    system = residue_system(size, 8)
    values = np.arange(size)
    blocks = [((values[:, None] - values) % each == 0).astype(float) for each in system.moduli]
    inverse = np.linalg.inv(sum(blocks))
    levels = inverse.sum(axis=0)
    vector = np.random.default_rng(1).normal(size=size)
    assert system.solve(vector) == pytest.approx(inverse @ vector, rel=1e-9, abs=1e-9)
    traces = system.traces
    assert traces.levels == pytest.approx((levels**2).sum())
    for j, block in enumerate(blocks):
        shares = block @ inverse
        assert traces.squares[j] == pytest.approx((inverse * shares).sum(), rel=1e-9)
        assert traces.pairs[j] == pytest.approx((shares**2).sum(), rel=1e-9)
        assert traces.own[j] == pytest.approx((np.diag(shares) ** 2).sum(), rel=1e-9)
        assert traces.level_pairs[j] == pytest.approx((shares * levels).sum(), rel=1e-9)
        assert traces.own_levels[j] == pytest.approx((np.diag(shares) * levels).sum(), rel=1e-9)


@pytest.mark.parametrize("moduli", [(5, 4), (7, 5, 3), (9, 8, 7, 5)])
def test_there_is_an_inverse_up_to_the_degree_of_the_recurrence_and_no_further(moduli):
    largest = sum(moduli) - len(moduli) + 1
    for size, full in ((largest, True), (largest + 1, False)):
        system = CoprimeSystem(size=size, moduli=moduli)
        assert system.has_inverse is full
        assert bool(np.linalg.matrix_rank(toeplitz(system.first_column)) == size) is full


@every("size", [2, 3, 6, 10, 31, 100, 257, 512])
def test_moduli_are_coprime_of_full_rank_and_little_noise(size):
    system = coprime_system(size, 8)
    moduli = system.moduli
    assert all(math.gcd(a, b) == 1 for a, b in itertools.combinations(moduli, 2))
    assert 2 <= min(moduli) <= max(moduli) <= size
    assert system.has_inverse
    assert system.noise == pytest.approx(len(moduli) * np.trace(system.inverse) / size)
    assert system.noise <= MOST_NOISE
    if size >= 100:
        assert len(moduli) == 8
        assert max(moduli) < 0.7 * size


# The paper's claim, of its experiments with as many values.
@every("epsilon", [0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
def test_noise_is_within_1_3_of_subset_selections_in_fewer_bits(epsilon):
    best = SubsetSelection(epsilon=epsilon, domain_size=1_024, subset_size="optimal")
    ours = ModularSubsetSelection(epsilon=epsilon, domain_size=1_024)
    assert 1.0 < float(ours.variance(0, 1) / best.variance(0, 1)) < 1.3
    assert float(ours.variance(1, 1) / best.variance(1, 1)) < 1.3
    assert ours.report_bits < 0.68 * best.report_bits


def test_where_values_are_fewer_than_e_to_the_epsilon_its_noise_is_larger():
    best = SubsetSelection(epsilon=8.0, domain_size=1_024, subset_size="optimal")
    ours = ModularSubsetSelection(epsilon=8.0, domain_size=1_024)
    assert float(ours.variance(0, 1) / best.variance(0, 1)) > 3


@pytest.mark.slow("::test_where_values_are_fewer_than_e_to_the_epsilon_its_noise_is_larger")
def test_it_fits_where_projective_geometry_does_not():
    with pytest.raises(InputError, match="485,210,757"):
        ProjectiveGeometryResponse(epsilon=10.0, domain_size=10**6)
    ours = ModularSubsetSelection(epsilon=10.0, domain_size=10**6)
    best = SubsetSelection(epsilon=10.0, domain_size=10**6, subset_size="optimal")
    assert float(ours.variance(0, 1) / best.variance(0, 1)) < 1.3
    rng = np.random.default_rng(5)
    values = rng.geometric(0.01, size=200_000)
    estimates = ours.estimate(ours.support(ours.aggregate(values=values, rng=rng)), len(values))
    errors = estimates - np.bincount(values, minlength=10**6)
    spread = math.sqrt(float(ours.variance(0, len(values))))
    # Means of 198,000 squares; values share residues, and so are not quite independent.
    assert (errors[2_000:] ** 2).mean() == pytest.approx(spread**2, rel=0.05)
    held = ours.variance(np.bincount(values, minlength=101)[1:101], len(values))
    assert (errors[1:101] ** 2 / held).mean() == pytest.approx(1, abs=0.6)


def test_an_estimate_takes_the_support_of_all_values():
    oracle = TINY[2]
    with pytest.raises(
        InputError, match=r"support of all 5 values, .* got a tally of shape \(2,\)"
    ):
        oracle.estimate(np.array([1, 2]), 4)
    with pytest.raises(InputError, match=r"12 counts, one per residue, got shape \(5,\)"):
        oracle.sample_aggregate(np.ones(5, dtype=np.int64), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_moduli": 0}, "num_moduli"),
        ({"num_moduli": 33}, "num_moduli"),
        ({"placement_seed": -1}, "placement_seed"),
        ({"domain_size": 2**24 + 1}, "domain_size=16777217; use pgr or olh"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        replace(TINY[0], **changes)


def test_the_placement_follows_its_seed():
    assert (TINY[2].places == replace(TINY[2]).places).all()
    assert (TINY[2].places != replace(TINY[2], placement_seed=4).places).any()
    assert sorted(TINY[2].places) == list(range(5))


@pytest.mark.parametrize("wanted", [[3], [0, 2], [1, 2, 5]])
def test_no_report_has_more_effect_than_the_crafted_ones(wanted):
    oracle, rng = TINY[4], np.random.default_rng(1)
    effects = [oracle.effect(report[None], np.array(wanted)) for report in oracle.report_space()]
    for sign, best in ((1, max(effects)), (-1, min(effects))):
        crafted = oracle.craft(wanted, sign=sign, count=9, rng=rng)
        assert oracle.effect(crafted, np.array(wanted)) == pytest.approx(best)
    assert maximal_gain(oracle, wanted, share=0.05) == pytest.approx(0.05 * max(effects))


def test_random_reports_are_uniform():
    space = TINY[4].report_space()
    drawn = TINY[4].craft([], sign=0, count=20_000, rng=np.random.default_rng(2))
    assert follows_distribution(drawn, {tuple(each): 1 / len(space) for each in space.tolist()})
