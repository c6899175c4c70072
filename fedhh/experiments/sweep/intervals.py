"""Means over seeds with their intervals; the numbers of tables and figures come from here.

The rule: from three seeds on, an interval is Student's 95% t interval of the mean. That of two
would reach 12.7 standard errors to either side, so their own two values stand in its place. One
seed has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from fedhh.arrays import Bools
from fedhh.experiments.config.labels import is_share
from fedhh.validation import InputError

LEVEL = 0.95
STATEMENT = "95% t interval over seeds"
FEWEST_FOR_T = 3
SAMPLER = "protocol.sampler"
GAIN = "sampling_gain"


def summarize(table: pd.DataFrame, by: Sequence[str], metric: str) -> pd.DataFrame:
    """Return a metric's mean over seeds for each setting, with its interval.

    Student's t treats seeds as independent runs with a normal mean. A share's interval is cut at 0
    and 1. Of two seeds, low and high are the two values; of one, there are none.

    Args:
        table: Results, one row per cell and seed.
        by: Columns of the settings; the order of their values in the table is kept.
        metric: A column of numbers; missing ones are left out.

    Returns:
        One row per setting with mean, low, high (NaN with one seed) and seeds.
    """
    present = table[table[metric].notna()]
    groups = present.groupby(list(by), sort=False, dropna=False)[metric]
    summary = groups.agg(["mean", "std", "count", "min", "max"]).reset_index()
    count = summary["count"].to_numpy()
    several = np.maximum(count, 2)
    half = stdtrit(several - 1, 0.5 + LEVEL / 2) * summary["std"].to_numpy() / np.sqrt(several)
    half = np.where(count >= FEWEST_FOR_T, half, np.nan)
    mean = summary["mean"].to_numpy()
    low = np.where(count == FEWEST_FOR_T - 1, summary["min"].to_numpy(), mean - half)
    high = np.where(count == FEWEST_FOR_T - 1, summary["max"].to_numpy(), mean + half)
    if is_share(metric):
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    return summary[list(by)].assign(mean=mean, low=low, high=high, seeds=count)


def paired_gain(table: pd.DataFrame, later: Bools, earlier: Bools, metric: str) -> Any:
    """Return the mean over seeds of how much one setting is above another, with its interval.

    Both settings with one seed have the same clients, so that the difference of each seed is
    taken first; its t interval is narrower than that of two independent means.

    Args:
        table: Results, one row per cell and seed.
        later: Mask of the rows of one setting.
        earlier: Mask of the rows of the other.
        metric: A column of numbers.

    Returns:
        A row with mean, low, high and seeds, see `summarize`.

    Raises:
        InputError: A mask has several rows of one seed, so it is of several settings.
    """
    for name, mask in (("later", later), ("earlier", earlier)):
        seeds = table["seed"][mask]
        if seeds.duplicated().any():
            raise InputError(
                f"Expected one row per seed to pair, got {name}: {len(seeds)} rows of "
                f"{seeds.nunique()} seeds; choose the rows of one setting."
            )
    gain = table[later].set_index("seed")[metric] - table[earlier].set_index("seed")[metric]
    rows = gain.rename("gain").reset_index().assign(all="all")
    return summarize(rows, ["all"], "gain").iloc[0]


def seeds_text(counts: Iterable[int]) -> str:
    """Return how many seeds some means are over.

    >>> seeds_text([3, 3]), seeds_text([2, 1, 2])
    ('3', '1 to 2')
    """
    present = sorted({int(count) for count in counts if count > 0})
    if not present:
        return "0"
    return f"{present[0]}" if len(present) == 1 else f"{present[0]} to {present[-1]}"


def interval_text(counts: Iterable[int], *, mean: str = "mean and") -> str:
    """Return what the numbers over some seeds are; the rule is the module's.

    >>> interval_text([3, 3])
    'mean and 95% t interval over seeds (3)'
    >>> interval_text([2, 2])
    'mean and range of 2 seeds'
    >>> interval_text([2, 3], mean="mean ± half the")
    'mean ± half the 95% t interval over seeds (2 to 3; of 2, half their range)'
    >>> interval_text([1])
    'one seed, so no interval'
    """
    present = {int(count) for count in counts if count > 0}
    half = "half " if "half" in mean else ""
    if not present or max(present) == 1:
        return "one seed, so no interval"
    if max(present) < FEWEST_FOR_T:
        rest = "; of 1, none" if 1 in present else ""
        return f"{mean} range of 2 seeds{rest}"
    rest = f"; of 2, {half}their range" if FEWEST_FOR_T - 1 in present else ""
    return f"{mean} {STATEMENT} ({seeds_text(present)}{rest})"


def failed_text(failed: int) -> str:
    """Return how many cells are missing because they failed; empty if none did.

    >>> failed_text(0), failed_text(1), failed_text(2)
    ('', '1 cell failed and is left out', '2 cells failed and are left out')
    """
    if not failed:
        return ""
    return (
        "1 cell failed and is left out"
        if failed == 1
        else (f"{failed:,} cells failed and are left out")
    )


def sampling_gains(table: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """Return, for each setting and seed run with both samplers, by how much random is better.

    Args:
        table: Results, one row per cell and seed.
        axes: The sweep's axes.

    Returns:
        The other axes, seed, greedy and random (coverage), and gain, in percentage points; empty
        if no setting of the grid was run with both.
    """
    others = [path for path in axes if path in table and path != SAMPLER]
    columns = [*others, "seed", "greedy", "random", GAIN]
    keyed = table[~table["beside_grid"]]
    if SAMPLER not in keyed or not {"greedy", "random"} <= set(keyed[SAMPLER]):
        return pd.DataFrame(columns=columns)
    both = keyed.pivot_table(
        index=[*others, "seed"], columns=SAMPLER, values="coverage", sort=False, dropna=False
    )
    both = both.dropna().reset_index()
    return both.assign(**{GAIN: 100 * (both["random"] - both["greedy"])})[columns]
