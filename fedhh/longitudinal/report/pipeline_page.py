"""What a page holds of a pipeline: its table, and its days."""

from __future__ import annotations

from pathlib import Path

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.explorer.study_page import chart, study_page
from fedhh.experiments.study.directory import CONFIG
from fedhh.experiments.study.page import PageData
from fedhh.longitudinal.pipeline.directory import read_days, read_record
from fedhh.longitudinal.report.pipeline_table import pipeline_table

_NAMES = {
    "sent": "records sent",
    "waiting": "records waiting",
    "dropped": "records dropped",
    "error": "error of the estimated records, most frequent values",
    "loss_per_device": "local epsilon per device and day, sum",
}


def pipeline_page(directory: Path) -> PageData:
    """Return the page of a finished pipeline.

    Raises:
        InputError: The directory is damaged.
    """
    record = read_record(directory)
    table = pipeline_table(record)
    days = read_days(directory)
    uses = record["use_cases"]
    plain = [
        each["epsilon"]
        for each in record["ledger"]["before_run"]["together"]["guarantees"]
        if each["unit"] == "user" and each["method"] == "basic"
    ]
    cards = [
        ("devices", f"{record['devices']:,}", f"{record['devices_opted_in']:,} opted in"),
        ("days", f"{record['days']:,}", ""),
        ("records sent", f"{sum(each['sent'] for each in uses):,}", f"{len(uses)} use cases"),
        *(
            ("local epsilon of a device", round_up(float(each)), "in all days, what the caps allow")
            for each in plain
        ),
    ]
    charts = [
        chart(
            ("Day by day",
            "Each use case on each day: what was sent, what waits, and how well it is estimated."),
            days, ["day", "use_case"], ["sent", "error", "waiting", "dropped", "loss_per_device"],
            _NAMES, shares=("error",),
        )
    ]  # fmt: skip
    return study_page(table.title, cards, [table], charts, config=directory / CONFIG)
