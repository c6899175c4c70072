"""A mean over seeds as text: an interval where there is one, and never a NaN."""

from __future__ import annotations

import pandas as pd
import pytest

from fedhh.experiments.report.measures import points_with_interval, record_of, with_interval
from fedhh.experiments.sweep.intervals import summarize


def summary(*values: float) -> pd.Series:
    table = pd.DataFrame({"all": "all", "seed": range(len(values)), "coverage": values})
    return summarize(table, ["all"], "coverage").iloc[0]


@pytest.mark.parametrize(
    ("values", "text", "points"),
    [
        ([0.311], "31.1%", "+31.1"),
        ([0.3, 0.32], "31.0% [30.0%, 32.0%]", "+31.0 [+30.0, +32.0]"),
        # Half the t interval of three is 4.303 / sqrt(3) standard deviations.
        ([0.3, 0.31, 0.32], "31.0% [28.5%, 33.5%]", "+31.0 [+28.5, +33.5]"),
    ],
)
def test_one_seed_has_no_interval_and_more_have_theirs(values, text, points):
    row = summary(*values)
    assert with_interval(row) == text
    assert points_with_interval(row) == points


def test_plain_values_of_one_seed_are_a_mean_and_two_gaps():
    assert record_of("coverage", summary(0.311)) == {
        "coverage_mean": 0.311, "coverage_low": None, "coverage_high": None,
    }  # fmt: skip
