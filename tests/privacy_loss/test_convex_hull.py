"""Corners of convex hulls."""

import numpy as np
import pytest

from fedhh.privacy_loss.convex_hull import lower_hull


def test_corners_are_the_points_that_no_chord_is_below():
    x, y = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([4.0, 3.0, 1.0, 0.9, 0.0])
    assert lower_hull(x, y).tolist() == [0, 2, 4]
    assert lower_hull(x[:1], y[:1]).tolist() == [0]
    assert lower_hull(np.array([0.0, 0.0, 1.0, 1.0]), np.array([2.0, 1.0, 0.5, 0.0])).tolist() == [
        1, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_least_of_all_points_is_a_corner_in_every_direction(seed):
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.uniform(size=60)), np.sort(rng.uniform(size=60))[::-1]
    corners = lower_hull(x, y)
    for slope in np.geomspace(1e-3, 1e3, 200):
        assert (y + slope * x).min() == pytest.approx((y + slope * x)[corners].min(), rel=1e-12)
    assert (np.diff(np.diff(y[corners]) / np.diff(x[corners])) > 0).all()
