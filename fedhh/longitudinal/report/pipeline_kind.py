"""Pipelines, as their finished directories show them: table, figures, page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.explorer.study_page import chart, study_page
from fedhh.experiments.study.directory import CONFIG
from fedhh.experiments.study.kinds import Drawing, Drawn, Kind, LivePage
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.pipeline.config import changed_pipeline
from fedhh.longitudinal.pipeline.directory import (
    SUMS,
    read_days,
    read_record,
    result_record,
    sums_line,
)
from fedhh.longitudinal.pipeline.measures import PipelineResult

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    "use case", "by", "epsilon", "cap", "records", "error", "of a day", "published", "right",
    "found", "a day: allowed", "spent", "in all: allowed", "spent", "central",
)  # fmt: skip
_NAMES = {
    "sent": "records sent",
    "waiting": "records waiting",
    "dropped": "records dropped",
    "error": "error of the estimated records, most frequent values",
    "loss_per_device": "local epsilon per device and day, sum",
}


class PipelineKind(Kind):
    """Devices over days, an ingestor and an aggregator."""

    noun = "pipeline"
    command = "pipeline run"
    begun = SUMS
    width = brief_width = 165

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a pipeline's file with some changes; an option names the use cases to keep."""
        if request.data is not None:
            return super().changed(table, request, origin)
        return changed_pipeline(
            table, request.settings, request.options.get("use_cases", ()), origin
        )

    def study(self, source: Source, request: Request) -> Study:
        """Return its days and devices."""
        from fedhh.longitudinal.pipeline.study import PipelineStudy

        return PipelineStudy(source, request, _draw)

    def live(self, study: Study) -> LivePage:
        import pandas as pd

        from fedhh.experiments.report.explorer.live import live_study
        from fedhh.longitudinal.pipeline.study import PipelineStudy

        assert isinstance(study, PipelineStudy)
        days = study.config.pipeline
        title = f"{days.devices:,} devices over {days.days} days"
        return live_study(title, lambda rows: _charts(pd.DataFrame(list(rows))))

    def table(self, directory: Path) -> TextTable:
        return _table(read_record(directory))

    def closing_lines(self, directory: Path) -> Iterator[str]:
        if sums := sums_line(directory / SUMS):
            yield f"Kept by output.keep_log: {sums}"
        yield f"This table again: fedhh show {shlex.quote(str(directory))}"

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.longitudinal.report.pipeline_figures import plot_pipeline

        return Drawn(paths=plot_pipeline(directory, out=drawing.out, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        record, days = read_record(directory), read_days(directory)
        table, uses = _table(record), record["use_cases"]
        cards = [
            ("devices", f"{record['devices']:,}", f"{record['devices_opted_in']:,} opted in"),
            ("days", f"{record['days']:,}", ""),
            ("records sent", f"{sum(each['sent'] for each in uses):,}", f"{len(uses)} use cases"),
            *(
                ("local epsilon of a device", round_up(float(each["epsilon"])),
                 "in all days, what the caps allow")
                for each in record["ledger"]["before_run"]["together"]["guarantees"]
                if each["unit"] == "user" and each["method"] == "basic"
            ),
        ]  # fmt: skip
        return study_page(table.title, cards, [table], _charts(days), config=directory / CONFIG)


def _charts(days: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the chart of the rows of days."""
    return [
        chart(
            ("Day by day", "Each use case on each day: what was sent, what waits, and how well "
             "it is estimated."),
            days, ["day", "use_case"],
            ["sent", "error", "waiting", "dropped", "loss_per_device"],
            _NAMES, shares=("error",),
        )
    ]  # fmt: skip


def _table(record: dict[str, Any]) -> TextTable:
    """Return a row for each use case, and one for all together, of a ``result.json``."""
    days = record["days"]
    rows: list[tuple[str, ...]] = [
        (
            row["use_case"],
            row["by"],
            f"{row['epsilon']:g}",
            f"{row['records_per_day']} "
            + ("a day" if row["session_days"] == 1 else f"in {row['session_days']} d"),
            f"{row['sent']:,}",
            _percent(row["error"]),
            _percent(row["error_by_day"]),
            f"{row['published']:,}",
            _percent(row["precision"]),
            _percent(row["recall"]),
            f"{row['loss_per_day_allowed']:g}",
            f"{row['loss_of_life_mean'] / days:.1f}",
            f"{row['loss_of_life_allowed']:g}",
            f"{row['loss_of_life_mean']:.1f}",
            round_up(row["central_epsilon_day_largest"]),
        )
        for row in record["use_cases"]
    ]
    before, spent = record["ledger"]["before_run"], record["ledger"]["spent"]
    rows.append(
        (
            "all together",
            *[""] * 3,
            f"{sum(row['sent'] for row in record['use_cases']):,}",
            *[""] * 5,
            f"{_sum(before, 'day'):g}",
            f"{spent['day']['basic']['mean']:.1f}",
            f"{_sum(before, 'user'):g}",
            f"{spent['life']['basic']['mean']:.1f}",
            "",
        )
    )
    return TextTable(
        title=f"{record['devices']:,} devices over {days} days, "
        f"{record['devices_opted_in']:,} of them opted in",
        columns=_COLUMNS,
        rows=tuple(rows),
        note=(
            "records: sent by all devices. error: of the estimated numbers of records sent, mean "
            f"over the {record['top']} most frequent values, of all days together and of one day. "
            "published: values whose estimate exceeds the threshold; right: share of them of which "
            "more records than that were sent; found: share of such values that are published. "
            "a day, in all: loss of one device, local, the sum of its records' epsilons (basic "
            "composition): what the caps allow, and the mean of devices that opted in. central: "
            "epsilon of one record in the permuted batch of the worst day, at delta "
            f"{record['delta']:g} (Feldman, McMillan, Talwar 2021, Theorem 3.1)."
        ),
        records=tuple(record["use_cases"]),
    )


def _sum(report: dict[str, Any], unit: str) -> float:
    """Return the plain sum of epsilons of a unit, all use cases together."""
    found = [each for each in report["together"]["guarantees"] if each["unit"] == unit]
    plain = [each for each in found if each["method"] == "basic"] or found
    return float(plain[0]["epsilon"])


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _draw(directory: Path, result: PipelineResult) -> None:
    # Figures load matplotlib and pandas, which what is refused does without.
    import pandas as pd

    from fedhh.longitudinal.report.pipeline_figures import FOLDER, write_pipeline_figures

    days = pd.DataFrame(result.tables.days)
    write_pipeline_figures(days, result_record(result), directory / FOLDER)
