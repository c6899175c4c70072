"""Two layers of a trie compared: which children exceed their parents by more than chance."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.server.layer_consistency import expected_alarms, num_exceeding, shares_of


def test_children_above_their_parents_by_more_than_chance_are_counted():
    children = shares_of(np.array([0.0, 99.0, 101.0, 500.0]), np.full(4, 200.0), 10)
    parents = shares_of(np.zeros(4), np.full(4, 200.0), 10)
    found = num_exceeding(children, parents)
    assert found == 2
    assert expected_alarms(1_000_000) == pytest.approx(0.2867, abs=1e-4)
