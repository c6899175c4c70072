"""Which of the vote kernels counts a call's reports: one law, the speed of the best."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.lanes import lane_states
from fedhh.kernels.votes import add_quick_votes, add_stamped_votes, move_counts, work_table

_Ints = npt.NDArray[np.int64]

_LARGEST_QUICK_SUBSET = 16


def add_subset_votes(
    values: _Ints,
    out: _Ints,
    *,
    subset_size: int,
    miss: np.uint64,
    rng: np.random.Generator,
    route: str | None = None,
) -> None:
    """Draw one Subset Selection report per value and add its members to ``out``.

    Args:
        values: ``(n,) int64`` in [0, s), contiguous, n below 2**32.
        out: ``(s,) int64``, contiguous, s below 2**32.
        subset_size: d, in [1, s).
        miss: Probability that a report lacks its client's value, times 2**64.
        rng: Source of the clients' coins.
        route: ``quick`` or ``stamped``; None chooses from s and d alone.
    """
    if len(values) == 0:
        return
    states = lane_states(rng)
    table = work_table(len(out))
    if (route or _best_route(len(out), subset_size)) == "quick":
        values = add_quick_votes(values, subset_size, miss, table, states)
    add_stamped_votes(values, subset_size, miss, table, states)
    move_counts(table, out)


def _best_route(domain_size: int, subset_size: int) -> str:
    # About d (d + 1) / (2 s) of the quick route's reports have to be drawn again.
    few_repeats = 4 * subset_size * (subset_size + 1) <= domain_size
    return "quick" if subset_size <= _LARGEST_QUICK_SUBSET and few_repeats else "stamped"
