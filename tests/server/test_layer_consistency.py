"""Two layers of a trie made consistent: what that costs, and which attacks it makes stronger."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.server.layer_consistency import (
    averaged,
    capped,
    expected_alarms,
    num_exceeding,
    shares_of,
)

# Two parents with three children each.
PARENT_OF = np.repeat([0, 1], 3)
CHILDREN = np.array([50.0, 30.0, 20.0, 5.0, 0.0, -5.0])
PARENTS = np.array([100.0, 0.0])


def test_averaging_is_the_least_squares_of_all_estimates():
    rng = np.random.default_rng(1)
    children, parents = CHILDREN + rng.normal(size=6), PARENTS + rng.normal(size=2)
    found, sums = averaged(children, parents, PARENT_OF, child_variance=2.0, parent_variance=0.5)
    # The same by the normal equations: children are free, parents are their sums.
    add = np.kron(np.eye(2), np.ones(3))
    design = np.vstack([np.eye(6) / math.sqrt(2.0), add / math.sqrt(0.5)])
    observed = np.concatenate([children / math.sqrt(2.0), parents / math.sqrt(0.5)])
    expected, *_ = np.linalg.lstsq(design, observed, rcond=None)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(sums, add @ expected)


def test_averaging_lifts_children_that_no_fake_vote_was_for():
    attacked = PARENTS + np.array([0.0, 90.0])
    equal = {"child_variance": 1.0, "parent_variance": 1.0}
    before, _ = averaged(CHILDREN, PARENTS, PARENT_OF, **equal)
    after, _ = averaged(CHILDREN, attacked, PARENT_OF, **equal)
    np.testing.assert_allclose(after - before, [0, 0, 0, 22.5, 22.5, 22.5])
    # Without the step, no child's estimate depends on the parent's; capped ones do not rise.
    assert (capped(CHILDREN, attacked, PARENT_OF) <= CHILDREN).all()


def test_an_attack_on_both_layers_passes_either_rule():
    attacked_children = CHILDREN + 90.0 * np.eye(6)[4]
    attacked_parents = PARENTS + np.array([0.0, 90.0])
    np.testing.assert_allclose(capped(attacked_children, attacked_parents, PARENT_OF)[4], 90.0)
    after, _ = averaged(
        attacked_children, attacked_parents, PARENT_OF, child_variance=1.0, parent_variance=1.0
    )
    assert after[4] == pytest.approx(90.0)
    # On the child alone, the cap takes it all away, and averaging a quarter.
    assert capped(attacked_children, PARENTS, PARENT_OF)[4] == 0.0
    after, _ = averaged(
        attacked_children, PARENTS, PARENT_OF, child_variance=1.0, parent_variance=1.0
    )
    assert after[4] == pytest.approx(67.5)


def test_the_cap_lowers_a_child_that_all_clients_of_its_parent_hold():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(2, 200_000)) * [[3.0], [4.0]]
    children = capped(noise[0], noise[1], np.arange(200_000))
    bias = -math.sqrt((9.0 + 16.0) / (2 * math.pi))
    assert children.mean() == pytest.approx(bias, abs=6 * 4 / math.sqrt(200_000))


def test_children_above_their_parents_by_more_than_chance_are_counted():
    children = shares_of(np.array([0.0, 99.0, 101.0, 500.0]), np.full(4, 200.0), 10)
    parents = shares_of(np.zeros(4), np.full(4, 200.0), 10)
    found = num_exceeding(children, parents)
    assert found == 2
    assert expected_alarms(1_000_000) == pytest.approx(0.2867, abs=1e-4)
