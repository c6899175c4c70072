"""The directory of a repeated collection: one whole file for each period, and tables of all."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from fedhh.experiments.config.load import explain
from fedhh.experiments.config.population import is_synthetic
from fedhh.experiments.config.toml_file import read_toml
from fedhh.experiments.study import resume as resuming
from fedhh.experiments.study.csv_file import write_csv
from fedhh.experiments.study.directory import CONFIG, RESULT
from fedhh.experiments.study.json_values import plain
from fedhh.experiments.study.kinds import KIND
from fedhh.experiments.study.resume import file_hash
from fedhh.experiments.study.stored_files import Schema, read_json, read_table
from fedhh.longitudinal.repeated.config import SECTION, LongitudinalSection, RepeatedPlan
from fedhh.longitudinal.repeated.one_run import Record
from fedhh.system.files import whole_file, write_text
from fedhh.validation import InputError
from fedhh.version import __version__

NAME = "repeated-collection"
SCHEMA_VERSION = 1
WHAT = "repeated collection"
"""What a directory holds, in errors."""
PERIODS = "periods"
FIGURES = "figures"

_TABLES: dict[str, Schema] = {
    "periods": {
        "protocol": "text", "yearly_loss": "float", "first_day": "int", "devices": "int",
        "with_budget": "int", "asked": "int", "answers": "int", "status": "text", "reason": "text",
        "published": "int", "false": "int", "published_so_far": "int", "false_so_far": "int",
        "coverage": "float",
    },
    "classes": {
        "protocol": "text", "yearly_loss": "float", "is_new": "bool", "per_1000_at_least": "float",
        "words": "int", "found": "int", "median_days": "float", "median_days_low": "float",
        "median_days_high": "float",
    },
    "losses": {
        "protocol": "text", "run_epsilon": "float", "most_runs": "int", "year_runs": "int",
        "year_basic": "float", "year_pld": "float", "any_year_basic": "float", "delta": "float",
    },
}  # fmt: skip
"""Columns that a page and figures need, by table."""


@dataclass(frozen=True, kw_only=True)
class PeriodRecord:
    """What is kept of a period.

    Attributes:
        number: Which period, from 0.
        first_day: Its first day.
        devices: Devices that are there; 0 where none is.
        contributions: What they typed of new words, repetitions included.
        words: Words that enough devices hold to be in a class, ...
        clients: ... how many hold each, ...
        born_days: ... and when it was new; None for words that were there from the start.
        arms: For each arm its record.
    """

    number: int
    first_day: int
    devices: int
    contributions: int
    words: list[str]
    clients: list[int]
    born_days: list[float | None]
    arms: list[Record]


_PERIOD = TypeAdapter(PeriodRecord)


def _checked(period: PeriodRecord, number: int) -> PeriodRecord:
    """Return a period's record; ValueError where its parts do not go together."""
    if period.number != number or period.devices < 0:
        raise ValueError("another period's number, or fewer than no devices")
    groups: list[list[list[Any]]] = [[period.words, period.clients, period.born_days]]
    groups += [[arm["words"], arm["estimated_clients"], arm["true_clients"]] for arm in period.arms]
    if any(len({len(part) for part in group}) > 1 for group in groups):
        raise ValueError("lists of different lengths")
    if not period.devices and any(any(group) for group in groups):
        raise ValueError("words of no devices")
    return period


def open_directory(directory: Path, plan: RepeatedPlan, *, resume: bool) -> None:
    """Make a directory, or make sure that it is this plan's.

    Raises:
        InputError: The directory holds something else, or cannot be written.
    """
    resuming.open_directory(
        directory,
        _identity(plan),
        resume=resume,
        what=WHAT,
        write=lambda: write_text(directory / CONFIG, plan.to_toml()),
    )


def write_period(directory: Path, record: PeriodRecord) -> None:
    """Write a period's record, whole or not at all."""
    content = {"schema_version": SCHEMA_VERSION, **asdict(record)}
    write_text(_path(directory, record.number), json.dumps(plain(content)) + "\n")


def read_period(directory: Path, number: int) -> PeriodRecord | None:
    """Return a period's record, or None if it has none yet."""
    path = _path(directory, number)
    if not os.path.lexists(path):
        return None
    content = read_json(path)
    try:
        # A strict check takes no table for a dataclass, but a JSON text.
        found = _PERIOD.validate_json(json.dumps(content), strict=True)
        return _checked(found, number)
    except (TypeError, ValueError) as error:
        line = str(error).splitlines()[0]
        raise InputError(f"{path} is damaged ({line}); remove it, and resume.") from None


def write_table(directory: Path, name: str, table: pd.DataFrame) -> None:
    """Write a table as Parquet and as CSV."""
    with whole_file(directory / f"{name}.parquet") as temporary:
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), temporary)
    write_csv(table, directory / f"{name}.csv")


def write_result(directory: Path, content: dict[str, Any]) -> None:
    """Write what is said of the whole; last, since it says "done"."""
    record = {
        "schema_version": SCHEMA_VERSION,
        KIND: NAME,
        "fedhh_version": __version__,
        **content,
    }
    write_text(directory / RESULT, json.dumps(plain(record), indent=2) + "\n")


def read_result(directory: Path) -> dict[str, Any]:
    """Return the ``result.json`` of a finished repeated collection."""
    return read_json(directory / RESULT)


def read_tables(directory: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of a finished repeated collection that its page and figures need.

    Raises:
        InputError: One is missing or damaged.
    """
    return {
        name: read_table(directory / f"{name}.parquet", schema) for name, schema in _TABLES.items()
    }


def stored_section(directory: Path) -> LongitudinalSection:
    """Return `[longitudinal]` of the file in a directory; its protocols are not made.

    Raises:
        InputError: The file is missing or damaged.
    """
    path = directory / CONFIG
    try:
        return LongitudinalSection.model_validate(read_toml(path).get(SECTION, {}))
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error, LongitudinalSection, SECTION)}") from None


def _path(directory: Path, number: int) -> Path:
    return directory / PERIODS / f"{number:04d}.json"


def _identity(plan: RepeatedPlan) -> dict[str, Any]:
    source = plan.config.population
    return {
        "version": __version__,
        "configuration": plan.result_key,
        "file": "" if is_synthetic(source) else file_hash(Path(source.source)),
    }
