"""Votes of clients, each of whom has one for a value, however many of its reports support it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled

_Ints = npt.NDArray[np.int64]


@compiled
def add_distinct(supported: _Ints, out: _Ints) -> None:
    """Add one to each value of a row, once a row, whatever its repeats.

    Args:
        supported: ``(n, w) int64`` in [0, s): what all reports of a client support, a row each.
        out: ``(s,) int64``, changed in place.
    """
    last_row = np.full(len(out), -1, dtype=np.int64)
    for row in range(len(supported)):
        for value in supported[row]:
            if last_row[value] != row:
                last_row[value] = row
                out[value] += 1
