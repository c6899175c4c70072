"""Means over seeds with their intervals; the numbers of tables and figures come from here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

LEVEL = 0.95
STATEMENT = "95 % t interval of the mean over seeds"


def summarize(table: pd.DataFrame, by: Sequence[str], metric: str) -> pd.DataFrame:
    """Return a metric's mean over seeds for each setting, with Student's t interval.

    The interval treats seeds as independent runs with a normal mean; with one seed there is none.

    Args:
        table: Results, one row per cell and seed.
        by: Columns of the settings; the order of their values in the table is kept.
        metric: A column of numbers; missing ones are left out.

    Returns:
        One row per setting with mean, low, high (NaN with one seed) and seeds.
    """
    present = table[table[metric].notna()]
    groups = present.groupby(list(by), sort=False, dropna=False)[metric]
    summary = groups.agg(["mean", "std", "count"]).reset_index()
    count = summary["count"].to_numpy()
    several = np.maximum(count, 2)
    half = stdtrit(several - 1, 0.5 + LEVEL / 2) * summary["std"].to_numpy() / np.sqrt(several)
    half = np.where(count > 1, half, np.nan)
    mean = summary["mean"].to_numpy()
    return summary[list(by)].assign(mean=mean, low=mean - half, high=mean + half, seeds=count)
