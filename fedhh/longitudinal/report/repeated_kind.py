"""Repeated collection, as its finished directories show it: table, figures, page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.explorer.study_page import chart, study_page
from fedhh.experiments.study.directory import CONFIG, RESULT
from fedhh.experiments.study.kinds import Asked, Drawing, Drawn, Kind
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.resume import IDENTITY
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.repeated.directory import (
    FIGURES,
    read_result,
    read_tables,
    stored_section,
)
from fedhh.longitudinal.report.repeated_table import stated_table
from fedhh.system.files import is_there

_NAMES = {
    "yearly_loss": "loss allowed in a year",
    "coverage": "coverage of what was typed in the period",
    "first_day": "first day of the period",
    "with_budget": "devices with budget left",
    "asked": "devices asked",
    "answers": "devices that answered",
    "published": "words published",
    "false": "false words published",
    "published_so_far": "words published so far",
    "false_so_far": "false words published so far",
    "per_1000_at_least": "people in 1,000 who use the word, at least",
    "median_days": "days until found, median",
    "found_share": "share of the new words found",
}


class RepeatedKind(Kind):
    """A discovery that is repeated over months."""

    noun = "repeated collection"
    command = "longitudinal run"
    begun = IDENTITY
    width = 160

    def is_finished(self, directory: Path) -> bool:
        return is_there(directory / RESULT) and is_there(directory / IDENTITY)

    def table(self, directory: Path) -> TextTable:
        return stated_table(read_result(directory), directory)[0]

    def parts(self, directory: Path, asked: Asked) -> Iterator[Part]:
        table, skipped = stated_table(read_result(directory), directory)
        yield table
        for line in skipped:
            yield Line(line, is_whole=True)

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.longitudinal.report.repeated_figures import Collected, plot_repeated

        collected = Collected(section=stored_section(directory), tables=read_tables(directory))
        folder = drawing.out or directory / FIGURES
        return Drawn(paths=plot_repeated(collected, folder, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        return _page(directory)


def _page(directory: Path) -> PageData:
    record = read_result(directory)
    table, skipped = stated_table(record, directory)
    tables = read_tables(directory)
    periods, classes, losses = (tables[name] for name in ("periods", "classes", "losses"))
    new = classes[classes["is_new"] & (classes["words"] > 0)]
    new = new.assign(found_share=new["found"] / new["words"])
    loss = ["yearly_loss"] if periods["yearly_loss"].notna().any() else []
    timed = int(np.isfinite(new["median_days"]).sum()) > 1
    ways = ["median_days", "found_share"] if timed else ["found_share", "median_days"]
    charts = [
        chart(
            ("Period by period",
            "What devices were asked and what the dictionary knows, at the end of each period."),
            periods, ["first_day", "protocol", *loss],
            ["coverage", "published_so_far", "false_so_far", "devices", "with_budget", "asked"],
            _NAMES,
        ),
        chart(
            ("New words, found and not found",
            "By how many people use a word at its best. Classes of which fewer than half were "
            "found have no median; the share found says how many were."),
            new, ["per_1000_at_least", "protocol", *loss], [*ways, "words"],
            _NAMES, shares=("found_share",),
        ),
    ]  # fmt: skip
    least, most = losses["year_basic"].min(), losses["year_basic"].max()
    spent = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    cards = [
        ("local epsilon in a year", spent, "at most, of all that one device sends (sum)"),
        ("days", f"{record['days']:,}", f"{periods['first_day'].nunique():,} periods"),
        ("devices", f"{periods['devices'].max():,}", "in the largest period"),
        ("protocols", f"{losses['protocol'].nunique():,}", ""),
    ]
    return study_page(
        table.title, cards, [table, _loss_table(losses)], charts,
        notes=skipped, config=directory / CONFIG,
    )  # fmt: skip


def _loss_table(losses: pd.DataFrame) -> TextTable:
    rows = losses.to_dict("records")
    deltas = ", ".join(f"{delta:g}" for delta in sorted(losses["delta"].unique()))
    return TextTable(
        title="Privacy loss of a device",
        columns=(
            "protocol", "epsilon of a run", "runs in the first year", "first year, sum",
            "first year, optimal composition", "any 365 days, sum",
        ),
        rows=tuple(
            (
                row["protocol"], f"{row['run_epsilon']:g}", f"{row['year_runs']:,}",
                _epsilon(row["year_basic"]), _epsilon(row["year_pld"]),
                _epsilon(row["any_year_basic"]),
            )
            for row in rows
        ),
        note=(
            "Local epsilon of one device, all that it sends, whatever the server does; neighbors "
            f"differ in all words of one device. Optimal composition at delta {deltas}."
        ),
    )  # fmt: skip


def _epsilon(value: float) -> str:
    return "-" if np.isnan(value) else round_up(float(value))
