"""The directory of a discovery over months: one whole file for each period, and tables of all."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from fedhh import doors
from fedhh.experiments.config.population import is_synthetic
from fedhh.experiments.config.toml_file import read_toml
from fedhh.experiments.longitudinal.config import Plan, parse_plan
from fedhh.experiments.longitudinal.one_run import Record
from fedhh.experiments.run import identity
from fedhh.experiments.run.csv_file import write_csv
from fedhh.experiments.run.directory import plain
from fedhh.experiments.run.stored_files import read_json
from fedhh.system.files import is_there, whole_file, write_text
from fedhh.validation import InputError
from fedhh.version import __version__

SCHEMA_VERSION = 1
CONFIG = "config.toml"
PERIODS = "periods"
RESULT = "result.json"


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
        arms: For each arm its record, see `one_run.run_job`, with ``with_budget``, ``wanted``,
            ``asked`` and ``coverage`` of all words published so far.
    """

    number: int
    first_day: int
    devices: int
    contributions: int
    words: list[str]
    clients: list[int]
    born_days: list[float | None]
    arms: list[Record]


class _Arm(TypedDict):
    """What tables need of an arm's record."""

    __pydantic_config__ = ConfigDict(extra="allow", allow_inf_nan=False)  # type: ignore[misc]

    status: str
    reason: str
    words: list[str]
    estimated_clients: list[float]
    true_clients: list[int]
    answers: int
    with_budget: int
    wanted: int
    asked: int
    coverage: float


class _Period(TypedDict):
    """A period's file."""

    number: int
    first_day: int
    devices: int
    contributions: int
    words: list[str]
    clients: list[int]
    born_days: list[float | None]
    arms: list[_Arm]


_PERIOD = TypeAdapter(_Period)


def _checked(period: _Period, number: int) -> PeriodRecord:
    """Return a period's record; ValueError where its parts do not go together."""
    if period["number"] != number or period["devices"] < 0:
        raise ValueError("another period's number, or fewer than no devices")
    groups: list[list[list[Any]]] = [[period["words"], period["clients"], period["born_days"]]]
    groups += [
        [arm["words"], arm["estimated_clients"], arm["true_clients"]] for arm in period["arms"]
    ]
    if any(len({len(part) for part in group}) > 1 for group in groups):
        raise ValueError("lists of different lengths")
    if not period["devices"] and any(any(group) for group in groups):
        raise ValueError("words of no devices")
    fields: dict[str, Any] = {**period}
    return PeriodRecord(**fields)


def open_directory(directory: Path, plan: Plan, *, resume: bool) -> None:
    """Make a directory, or make sure that it is this plan's.

    Raises:
        InputError: The directory holds something else, or cannot be written.
    """
    identity.open_directory(
        directory,
        _identity(plan),
        resume=resume,
        what="discovery over months",
        write=lambda: write_text(directory / CONFIG, plan.to_toml()),
    )


def stored_plan(directory: Path) -> Plan:
    """Return the plan of the discovery that a directory holds."""
    path = directory / CONFIG
    doors.offer_folder(directory, is_result=True)
    if not is_there(path) or not is_there(directory / identity.IDENTITY):
        raise InputError(
            f"{directory} holds no discovery over months to resume: {path} is missing."
        )
    return parse_plan(read_toml(path), str(path))


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
    content.pop("schema_version", None)
    try:
        return _checked(_PERIOD.validate_python(content, strict=True), number)
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
    record = {"schema_version": SCHEMA_VERSION, "fedhh_version": __version__, **content}
    write_text(directory / RESULT, json.dumps(plain(record), indent=2) + "\n")


def is_longitudinal(directory: Path) -> bool:
    """Return whether a directory holds a finished discovery over months."""
    return is_there(directory / RESULT) and is_there(directory / identity.IDENTITY)


def read_result(directory: Path) -> dict[str, Any]:
    """Return the ``result.json`` of a finished discovery over months."""
    return read_json(directory / RESULT)


def _path(directory: Path, number: int) -> Path:
    return directory / PERIODS / f"{number:04d}.json"


def _identity(plan: Plan) -> dict[str, Any]:
    source = plan.config.population
    return {
        "version": __version__,
        "configuration": plan.result_key,
        "file": "" if is_synthetic(source) else identity.file_hash(Path(source.source)),
    }
