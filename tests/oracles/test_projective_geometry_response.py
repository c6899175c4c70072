"""Projective geometry response: geometry by brute force, distributions, two ways to add up."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.oracles import ProjectiveGeometryResponse, SubsetSelection
from fedhh.testing import follows_distribution
from fedhh.validation import InputError
from tests.every import every

# Fields of 3 and 2 elements, with dimensions beyond the two that the suite's cases have: they pass
# its checks, too (tests/conformance).
PLANE = ProjectiveGeometryResponse(epsilon=0.7, domain_size=11)
SPACE = ProjectiveGeometryResponse(epsilon=0.3, domain_size=13)


def test_the_cases_are_a_plane_over_three_elements_and_a_space_over_two():
    assert (PLANE.field_size, PLANE.num_coordinates, PLANE.aggregate_size) == (3, 3, 13)
    assert (SPACE.field_size, SPACE.num_coordinates, SPACE.aggregate_size) == (2, 4, 15)


# Feldman et al. (2022), by the field's table of them: epsilon, s, r, t, p, q, V0.
@pytest.mark.parametrize(
    ("epsilon", "domain_size", "r", "t", "p", "q", "v0"),
    [
        (2, 10**4, 7, 6, 0.5519, 0.1428, 0.7318),
        (4, 10**4, 53, 4, None, None, 0.07605),
        (5, 10**4, 149, 3, None, None, 0.02723),
        (1, 10**4, 3, 10, None, None, 3.770),
    ],
)
def test_fields_and_noise_are_those_of_the_table(epsilon, domain_size, r, t, p, q, v0):
    oracle = ProjectiveGeometryResponse(epsilon=epsilon, domain_size=domain_size)
    assert (oracle.field_size, oracle.num_coordinates) == (r, t)
    assert p is None or (f"{oracle.p:.4f}", f"{oracle.q:.4f}") == (f"{p:.4f}", f"{q:.4f}")
    assert f"{float(oracle.variance(0, 1)):.3e}" == f"{v0:.3e}"


def vectors(oracle: ProjectiveGeometryResponse) -> list[tuple[int, ...]]:
    """All points, as vectors whose first coordinate that is not 0 is 1, in numerical order."""
    every = itertools.product(range(oracle.field_size), repeat=oracle.num_coordinates)
    return [v for v in every if next((x for x in v if x), 0) == 1]


@pytest.mark.parametrize("oracle", [PLANE, SPACE])
def test_numbers_of_points_are_their_places_in_numerical_order(oracle):
    points = oracle._coordinates(np.arange(oracle.aggregate_size))
    assert points.T.tolist() == [list(vector) for vector in vectors(oracle)]


@pytest.mark.parametrize(
    ("epsilon", "domain_size"), [(0.7, 30), (1.4, 100), (1.4, 700), (1.8, 57), (2.4, 133)]
)
@pytest.mark.parametrize("transforms", [False, True])
def test_both_ways_to_add_up_find_the_orthogonal_points(
    epsilon, domain_size, transforms, monkeypatch
):
    monkeypatch.setattr(ProjectiveGeometryResponse, "transforms", lambda *_: transforms)
    oracle = ProjectiveGeometryResponse(epsilon=epsilon, domain_size=domain_size)
    points = np.array(vectors(oracle))
    assert len(points) == oracle.aggregate_size
    counts = np.random.default_rng(0).integers(0, 10**9, size=len(points))
    orthogonal = points @ points.T % oracle.field_size == 0
    candidates = np.array([domain_size - 1, 0, 3, 0, domain_size // 2])
    expected = orthogonal.astype(np.int64) @ counts
    assert oracle.support(counts, candidates).tolist() == expected[candidates].tolist()
    assert oracle.support(counts).tolist() == expected[:domain_size].tolist()


def test_reports_of_a_larger_space_have_their_distribution():
    oracle = ProjectiveGeometryResponse(epsilon=1.4, domain_size=150)
    assert (oracle.field_size, oracle.num_coordinates) == (5, 4)
    rng = np.random.default_rng(1)
    for value in (0, 1, 7, 40, 149):
        reports = oracle.privatize(np.full(60_000, value), rng=rng).tolist()
        distribution = np.exp(oracle.log_prob(oracle.report_space(), value))
        assert follows_distribution(reports, dict(enumerate(distribution.tolist())))
        moved = np.exp(oracle.log_prob(oracle.report_space(), value - 1 if value else 1))
        assert not follows_distribution(reports, dict(enumerate(moved.tolist())))


@every("epsilon", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
def test_noise_is_that_of_subset_selection_within_five_percent(epsilon):
    best = SubsetSelection(epsilon=epsilon, domain_size=10**5, subset_size="optimal")
    ours = ProjectiveGeometryResponse(epsilon=epsilon, domain_size=10**5)
    assert 0.9999 < float(ours.variance(0, 1) / best.variance(0, 1)) < 1.05


def test_spaces_that_do_not_fit_are_refused():
    assert ProjectiveGeometryResponse(epsilon=10.0, domain_size=22_028).aggregate_size == 22_028
    with pytest.raises(InputError, match=r"got 485,210,757 over the field of 22,027"):
        ProjectiveGeometryResponse(epsilon=10.0, domain_size=10**6)
    with pytest.raises(InputError, match=r"epsilon <= 18.02 for pgr, got epsilon=25"):
        ProjectiveGeometryResponse(epsilon=25, domain_size=4)


def test_only_primes_are_fields():
    near = {0.01: 2, math.log(6.6): 7, math.log(8.0): 7, math.log(9.0): 11, math.log(11.0): 11}
    for epsilon, prime in near.items():
        assert ProjectiveGeometryResponse(epsilon=epsilon, domain_size=5).field_size == prime
