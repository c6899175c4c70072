"""Cells and titles of a repeated collection."""

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedhh.longitudinal.repeated.config import load_plan
from fedhh.longitudinal.repeated.directory import PeriodRecord
from fedhh.longitudinal.repeated.run import Outcome
from fedhh.longitudinal.report.repeated_figures import Collected, draw_days, draw_periods
from fedhh.longitudinal.report.repeated_kind import longitudinal_table

INF = math.inf
CLASSES = (2.0, 5.0, 10.0, 20.0)


def outcome_of(*losses: float) -> Outcome:
    plan = load_plan(
        "weekly-small",
        settings=["longitudinal.days=84", f"longitudinal.yearly_loss={list(losses)}"],
    )
    period = PeriodRecord(
        number=0, first_day=0, devices=20_000, contributions=0, words=[], clients=[],
        born_days=[], arms=[],
    )  # fmt: skip
    return Outcome(plan=plan, every_days=7, periods=(period,) * 12, arrivals=np.zeros(0), asked=())


def tables_of(outcome: Outcome) -> dict[str, pd.DataFrame]:
    medians = (
        (14, 35.0, 21.0, INF),
        (14, 9.0, 7.0, 14.0),
        (4, INF, INF, INF),
        (0, *[math.nan] * 3),
    )
    found = (6, 12, 1, 0)
    classes, losses, periods = [], [], []
    for arm in outcome.plan.arms:
        mine = {"protocol": arm.label, "yearly_loss": arm.asked_loss}
        for is_new in (True, False):
            for bound, (words, median, low, high), some in zip(
                CLASSES, medians, found, strict=True
            ):
                classes.append(
                    {
                        **mine, "is_new": is_new, "per_1000_at_least": bound, "words": words,
                        "found": some, "median_days": median, "median_days_low": low,
                        "median_days_high": high,
                    }
                )  # fmt: skip
        losses.append({**mine, "year_basic": 208.0, "year_runs": 26, "most_runs": 12})
        periods += [
            {
                **mine, "first_day": 7 * number, "devices": 20_000, "asked": 5, "status": "run",
                "published_so_far": 1, "false_so_far": 0, "coverage": 0.5,
            }
            for number in range(12)
        ]  # fmt: skip
    return {
        "classes": pd.DataFrame(classes),
        "losses": pd.DataFrame(losses),
        "periods": pd.DataFrame(periods),
    }


def test_a_cell_says_the_median_its_interval_and_how_many_were_never_found():
    outcome = outcome_of(208)
    table = longitudinal_table(outcome, tables_of(outcome))
    assert table.rows[0][-4:] == (
        "35 (from 21); 8 of 14 never", "9 (7 to 14); 2 of 14 never", "no median; 3 of 4 never", "",
    )  # fmt: skip
    assert table.columns[-4] == "days until found: used by 2 to 5 in 1,000"
    assert table.columns[-1] == "days until found: used by 20 or more in 1,000"
    assert "never found" in table.note


def overhang(figure: Figure) -> float:
    """Return by how much a figure's title and note are wider than the figure, in pixels."""
    figure.canvas.draw()
    assert figure.get_suptitle() in [text.get_text() for text in figure.texts]
    boxes = [text.get_window_extent() for text in figure.texts]
    return max(max(-box.x0, box.x1 - figure.bbox.width) for box in boxes)


@pytest.mark.parametrize("losses", [(208,), (104, 208)])
def test_titles_are_as_wide_as_their_figures_at_most(losses):
    outcome = outcome_of(*losses)
    collected = Collected(section=outcome.plan.section, tables=tables_of(outcome))
    assert overhang(draw_days(collected)) < 0
    assert overhang(draw_periods(collected)) < 0
