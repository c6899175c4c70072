"""A pipeline's directory: what it holds, written whole, and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedhh import plugins
from fedhh.experiments.study.csv_file import write_csv
from fedhh.experiments.study.directory import CONFIG, RESULT, new_directory
from fedhh.experiments.study.json_values import plain
from fedhh.experiments.study.kinds import KIND
from fedhh.experiments.study.resume import stored_toml
from fedhh.experiments.study.stored_files import Schema, read_json, read_table
from fedhh.longitudinal.pipeline.config import PipelineConfig, parse_pipeline
from fedhh.longitudinal.pipeline.measures import PUBLISHED, PipelineResult
from fedhh.system.files import is_there, whole_file, write_text
from fedhh.validation import InputError
from fedhh.version import __version__

NAME = "pipeline"
SUMS = "pipeline.arrays"
"""What a pipeline goes on from that was stopped."""
SCHEMA_VERSION = 1
TABLES = ("days", "values", "published", "publications", "devices")
"""Stems of the tables, each as Parquet and as CSV."""

_DAYS: Schema = {
    "use_case": "text", "day": "int", "sent": "int", "waiting": "int", "dropped": "int",
    "error": "float", "loss_per_device": "float",
}  # fmt: skip

_COLUMNS = {"published": PUBLISHED}
"""Of a table that may have no row."""

UNIT = (
    "epsilons of one record are local, pure and of an item; losses of a day and in all are sums "
    "of them (basic composition), of all that a device sends in that time, given how many records "
    "it sends when"
)
CENTRAL = (
    "central epsilons are of one day's batch of one use case, which the ingestor permutes: item "
    "level, replace-one neighbors, Feldman, McMillan, Talwar (2021), Theorem 3.1, at the delta "
    "above, for readers of what is computed from the batch; over several days they compose"
)


def make_directory(config: PipelineConfig, out: Path | None, *, name: str) -> Path:
    """Make and return a new pipeline's directory, with its configuration and own modules inside.

    Raises:
        InputError: The directory holds something already, or cannot be written.
    """
    return new_directory(out, config.output.directory, name=name, config=config.to_toml())


def stored_config(directory: Path) -> PipelineConfig:
    """Return the configuration of the pipeline that a directory holds."""
    plugins.search(directory)
    return parse_pipeline(stored_toml(directory, what=NAME), str(directory / CONFIG))


def write_pipeline(directory: Path, result: PipelineResult) -> None:
    """Write a finished pipeline's tables and its result; the result last, since it says "done"."""
    tables = {**vars(result.tables), "devices": device_rows(result)}
    for name in TABLES:
        frame = pd.DataFrame(tables[name], columns=_COLUMNS.get(name))
        with whole_file(directory / f"{name}.parquet") as temporary:
            frame.to_parquet(temporary, index=False)
        write_csv(frame, directory / f"{name}.csv")
    text = json.dumps(result_record(result), indent=2)
    write_text(directory / RESULT, f"{text}\n")
    if not result.config.output.keep_log:
        (directory / SUMS).unlink(missing_ok=True)


def device_rows(result: PipelineResult) -> list[dict[str, Any]]:
    """Return how many devices sent how many records of each use case over their histories.

    Columns:
        use_case: The use case.
        records: Records sent by a device in all.
        devices: Devices that opted in and sent so many.
        loss: The sum of these records' epsilons.
    """
    rows = []
    for row, records in zip(result.use_cases, result.spent.records, strict=True):
        counts = np.bincount(records)
        rows += [
            {
                "use_case": row["use_case"],
                "records": number,
                "devices": devices,
                "loss": number * row["epsilon"],
            }
            for number, devices in enumerate(counts.tolist())
            if devices
        ]
    return rows


def result_record(result: PipelineResult) -> dict[str, Any]:
    """Return the content of ``result.json``."""
    days = result.config.pipeline
    record = {
        "schema_version": SCHEMA_VERSION,
        KIND: NAME,
        "fedhh_version": __version__,
        "seed": result.config.seed,
        "days": days.days,
        "devices": days.devices,
        "devices_opted_in": result.num_opted_in,
        "top": days.top,
        "delta": days.delta,
        "losses_are": UNIT,
        "central_epsilons_are": CENTRAL,
        "use_cases": result.use_cases,
        "ledger": {"before_run": result.before.to_dict(), "spent": result.spent.to_dict()},
        "timings_seconds": result.seconds,
    }
    cleaned: dict[str, Any] = plain(record)
    return cleaned


def read_days(directory: Path) -> pd.DataFrame:
    """Return a finished pipeline's table of days.

    Raises:
        InputError: It is missing or damaged.
    """
    return read_table(directory / "days.parquet", _DAYS)


def read_record(directory: Path) -> dict[str, Any]:
    """Return the ``result.json`` of a finished pipeline.

    Raises:
        InputError: There is none, or it is damaged or of something else.
    """
    path = directory / RESULT
    if not is_there(path):
        raise InputError(
            f"{directory} holds no finished pipeline; go on with fedhh pipeline run --resume "
            "--out, if it was stopped."
        )
    record = read_json(path)
    if record.get(KIND) != NAME:
        raise InputError(f"{directory} holds no pipeline; see fedhh show.")
    return record


def sums_line(sums: Path) -> str:
    """Return where the servers' sums are and how large; empty if there are none."""
    try:
        size = sums.stat().st_size
    except OSError:
        return ""
    return f"the servers' sums, {size / 1e6:,.1f} MB in {sums}"
