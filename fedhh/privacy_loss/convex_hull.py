"""The largest convex function below some points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats


def lower_hull(x: Floats, y: Floats) -> npt.NDArray[np.intp]:
    """Return the places of the corners of the largest convex function below some points.

    Args:
        x: ``(n,) float64``, ascending; of equal ones the last counts.
        y: ``(n,) float64``.
    """
    across, heights = x.tolist(), y.tolist()
    corners: list[int] = []
    for place, (right, height) in enumerate(zip(across, heights, strict=True)):
        while corners:
            b = corners[-1]
            width, rise = right - across[b], height - heights[b]
            if width > 0 and len(corners) == 1:
                break
            if width > 0 and (heights[b] - heights[corners[-2]]) * width < rise * (
                across[b] - across[corners[-2]]
            ):
                break
            corners.pop()
        corners.append(place)
    return np.array(corners, dtype=np.intp)
