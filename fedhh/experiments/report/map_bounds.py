"""Upper bounds next to a map of coverage over clients and epsilon, as maps of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.report.measures import CEILING
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.central_bound import central_bound
from fedhh.experiments.sweep.columns import Layout, has_numbers

_CLIENTS, _EPSILON = "population.clients", "privacy.local_epsilon"
_CENTRAL = "central_epsilon_user_before_run"


def bounds_of_map(
    grid: pd.DataFrame, description: dict[str, Any], layout: Layout
) -> list[tuple[str, pd.DataFrame]]:
    """Return the panels that `draw_map` shows beside a map of coverage by protocol.

    Args:
        grid: Results without cells outside the grid.
        description: What the results' file says of the sweep.
        layout: Of the map.

    Returns:
        None, one or both of: the known-dictionary upper bound, the mean over seeds of the
        protocols' largest; and what no central mechanism does better whose guarantee for a user is
        the weakest of the protocols', on the first seed's clients, as far as these can be had.
    """
    x, y = layout.x, layout.by[0]
    if {x, y} != {_CLIENTS, _EPSILON} or layout.facet != (PROTOCOL,):
        return []
    panels = []
    if has_numbers(grid, CEILING):
        largest = grid.groupby([x, y, "seed"])[CEILING].max().reset_index()
        panels.append(("known dictionary", largest.pivot_table(CEILING, y, x)))
    if has_numbers(grid, _CENTRAL):
        weakest = grid.pivot_table(_CENTRAL, _EPSILON, _CLIENTS, aggfunc="max")
        bound = weakest * np.nan
        for clients in weakest:
            epsilons = weakest[clients].dropna()
            rows = grid[grid[_CLIENTS] == clients]
            if found := central_bound(rows, description, epsilons.tolist()).coverage:
                bound.loc[epsilons.index, clients] = found
        if bound.notna().any(axis=None):
            panels.append(("no central mechanism does better", bound if y == _EPSILON else bound.T))
    return panels
