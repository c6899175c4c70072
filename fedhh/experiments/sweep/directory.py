"""A sweep's directory: one whole file per finished cell, and the tables made of them.

`results.parquet` and `results.csv` have one row per cell and seed and hold nothing that differs
between two runs of a sweep: times stand in `timings.csv` alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedhh import plugins
from fedhh.clients.prepared import MANIFEST, is_prepared
from fedhh.experiments.config.load import parse_config, put_settings
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.experiments.study import resume as resuming
from fedhh.experiments.study.csv_file import write_csv
from fedhh.experiments.study.kinds import KIND
from fedhh.experiments.study.resume import file_hash
from fedhh.experiments.study.stored_files import (
    Schema,
    described,
    frame_of,
    is_flat,
    read_arrow,
    read_csv,
    read_json,
    reading,
)
from fedhh.experiments.sweep.axes import SWEEP, Settings
from fedhh.experiments.sweep.columns import EXTRA, with_extras
from fedhh.experiments.sweep.plan import Cell, Sweep
from fedhh.server.registry import protocol_class
from fedhh.system.files import is_there, whole_file, write_text
from fedhh.validation import InputError, shown
from fedhh.version import __version__

NAME = "sweep"
SCHEMA_VERSION = 1
SWEEP_FILE = "sweep.toml"
CELLS = "cells"
RESULTS = "results.parquet"
TIMINGS = "timings.csv"
DONE, FAILED = "done", "failed"

Record = dict[str, Any]
"""What a cell's file holds: status, error, result (flat), timings."""

DESCRIPTION = "fedhh"
"""In the ``attrs`` of a table of results: what `description_of` says of the sweep."""

_METADATA = DESCRIPTION.encode()

_DESCRIPTION = {"title": str, "axes": list, "best": str, "sweep": str}
_SCHEMA: Schema = {"beside_grid": "bool", "seed": "int", "status": "text"}
_TIMINGS: Schema = {"cell": "text", "seed": "int", "server": "float"}


class AnyCell(Protocol):
    """What a row of results needs of a cell, whatever it was made from."""

    @property
    def id(self) -> str:
        """Hash of what makes the result."""

    @property
    def varied(self) -> Settings:
        """The values that differ between cells, by path."""

    @property
    def beside_grid(self) -> bool:
        """Whether it stands outside the grid."""

    @property
    def seed(self) -> int:
        """The run's seed."""


def open_directory(directory: Path, sweep: Sweep, *, resume: bool) -> None:
    """Make a sweep's directory, or make sure that it is this sweep's."""

    def write() -> None:
        write_text(directory / SWEEP_FILE, sweep.to_toml())
        write_csv(_grid(sweep), directory / "grid.csv")

    resuming.open_directory(directory, _identity(sweep), resume=resume, what=NAME, write=write)


def write_record(directory: Path, cell: Cell, record: Record) -> None:
    """Write a cell's record, whole or not at all, and what was chosen for a central epsilon."""
    if cell.target:
        write_text(_cell_path(directory, cell).with_suffix(".toml"), cell.config.to_toml())
    content = {"schema_version": SCHEMA_VERSION, "cell": cell.id, **record}
    write_text(_cell_path(directory, cell), json.dumps(content, indent=1) + "\n")


def read_record(directory: Path, cell: Cell) -> Record | None:
    """Return a cell's record, or None if it has none yet."""
    path = _cell_path(directory, cell)
    if not os.path.lexists(path):
        return None
    record = read_json(path)
    parts = (record.get("result"), record.get("timings"), record.get("versions"))
    is_whole = all(isinstance(part, dict) and is_flat(part.values()) for part in parts)
    if (
        not is_whole
        or record.get("status") not in {DONE, FAILED}
        or not is_flat([record.get("error")])
    ):
        raise InputError(f"{path} is damaged: expected a cell's record; remove it, and resume.")
    return record


def write_tables(directory: Path, sweep: Sweep) -> pd.DataFrame:
    """Write the tables of all recorded cells, and return the results."""
    rows: list[dict[str, Any]] = []
    timings: list[dict[str, Any]] = []
    for cell in sweep.to_run:
        record = read_record(directory, cell)
        if record is None:
            continue
        rows.append(result_row(cell, record))
        timings.append({"cell": cell.id, "seed": cell.config.seed, **record["timings"]})
    table = pd.DataFrame(rows)
    try:
        arrow = pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{directory / CELLS} holds records that do not go together ({shown(str(error))}); "
            "remove the damaged one, and resume."
        ) from None
    with whole_file(directory / RESULTS) as temporary:
        metadata = {
            **(arrow.schema.metadata or {}),
            _METADATA: json.dumps(description_of(sweep)).encode(),
        }
        pq.write_table(arrow.replace_schema_metadata(metadata), temporary)
    write_csv(table, directory / "results.csv")
    write_csv(pd.DataFrame(timings), directory / TIMINGS)
    return table


def description_of(sweep: Sweep) -> dict[str, Any]:
    """Return what a sweep's results say of it: in the file's schema, in the table's ``attrs``."""
    return {
        "schema_version": SCHEMA_VERSION,
        KIND: NAME,
        "title": sweep.title,
        "axes": list(sweep.axes),
        "best": sweep.best,
        "clients": sweep.clients_line,
        "protocol_title": _base_title(sweep),
        "sweep": sweep.to_result_toml(),
    }


def _base_title(sweep: Sweep) -> str:
    """Return what tables call the protocol of all cells; empty where several are listed."""
    names = {cell.config.protocol.name for cell in sweep.to_run}
    return protocol_class(names.pop()).title if len(names) == 1 else ""


def result_row(cell: AnyCell, record: Record) -> dict[str, Any]:
    """Return a cell's row of the results: what varies, then what came out.

    Columns:
        cell: Identifies the cell: a hash of its configuration.
        beside_grid: Whether it is one of ``sweep.extra``.
        seed: The run's seed.
        status: "done" or "failed".
        error: What went wrong, if it failed.
        fedhh_version: Version of fedhh, as of the next two: their change may change numbers.
        numpy_version: Version of NumPy.
        python_version: Version of Python.
    """
    return {
        "cell": cell.id,
        **cell.varied,
        "beside_grid": cell.beside_grid,
        "seed": cell.seed,
        "status": record["status"],
        "error": record["error"],
        **{name: _number(value) for name, value in record["result"].items()},
        **record["versions"],
    }


def read_results(directory: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the results of a sweep's directory, and title, axes and file of the sweep.

    Failed cells are left out; the description's "failed" says how many there are.
    """
    table, description = read_labeled_results(directory)
    return table.drop(columns=EXTRA), description


def read_labeled_results(directory: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what `read_results` does, with a column more: `EXTRA`, what an extra cell sets."""
    frame, description = read_all_results(directory)
    with reading(directory):
        return label_results(frame, description, str(directory / RESULTS))


def read_timed_results(directory: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what `read_labeled_results` does, with the seconds of `with_server_seconds`."""
    table, description = read_labeled_results(directory)
    return with_server_seconds(table, directory), description


def read_all_results(directory: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows of all cells, failed ones too, and what the file says of the sweep."""
    path = directory / RESULTS
    if not is_there(path):
        raise InputError(
            f"{directory} holds no results: {path} is missing; make them with fedhh sweep."
        )
    table = read_arrow(path)
    try:
        description = described(json.loads(table.schema.metadata[_METADATA]), _DESCRIPTION)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no results file of fedhh ({error}).") from None
    return frame_of(table, _SCHEMA, path), description


def label_results(
    table: pd.DataFrame, description: dict[str, Any], origin: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the finished cells with the column `EXTRA`, and a description with "failed".

    Args:
        table: Results, one row per cell and seed, failed ones included.
        description: See `description_of`.
        origin: Names the results in errors.
    """
    frame = with_extras(table, description["sweep"])
    done = frame[frame["status"] == DONE].reset_index(drop=True)
    if done.empty:
        raise InputError(f"{origin} holds no finished cell.")
    return done, {**description, "failed": int((frame["status"] == FAILED).sum())}


def base_config(
    description: dict[str, Any], settings: Mapping[str, Any] = MappingProxyType({})
) -> Config | None:
    """Return the configuration besides `[sweep]`, from what `read_results` says of a sweep.

    None for results whose file says nothing, or nothing that this version understands.

    Args:
        description: What the results' file says.
        settings: Values by path that stand in place of the file's own.
    """
    if not description["sweep"]:
        return None
    try:
        with plugins.disabled():
            table = parse_toml(description["sweep"], SWEEP_FILE)
            table.pop(SWEEP, None)
            put_settings(table, dict(settings))
            return parse_config(table, SWEEP_FILE)
    except InputError:
        return None


def with_server_seconds(table: pd.DataFrame, directory: Path) -> pd.DataFrame:
    """Return results with a column "server", its seconds, if the directory has the times."""
    path = directory / TIMINGS
    if not path.exists():
        return table
    timings = read_csv(path, _TIMINGS)
    if timings.duplicated(["cell", "seed"]).any():
        raise InputError(f"{path} is damaged: expected a row for each cell and seed.")
    return table.merge(timings, on=["cell", "seed"], how="left")


def versions() -> dict[str, str]:
    """Return the versions that a record states: those whose change may change numbers."""
    return {
        "fedhh_version": __version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
    }


def _identity(sweep: Sweep) -> dict[str, Any]:
    """Return what makes a sweep this one: its cells, the files that they read, their modules."""
    files = set()
    for cell in sweep.to_run:
        files |= {cell.config.population.source, cell.config.population.known}
    # Of a prepared population, its manifest says what is in the others.
    paths = {
        name: Path(name) / MANIFEST if is_prepared(Path(name)) else Path(name) for name in files
    }
    hashes = {name: file_hash(paths[name]) for name in sorted(paths) if paths[name].is_file()}
    made = {"schema_version": SCHEMA_VERSION, "configuration": sweep.key, "files": hashes}
    modules = {
        path: hashlib.sha256(text.encode()).hexdigest() for path, text in plugins.sources().items()
    }
    return {**made, "modules": modules} if modules else made


def _grid(sweep: Sweep) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "cell": cell.id,
                **cell.varied,
                "seed": cell.config.seed,
                "skipped_by": cell.skipped,
                "why": cell.why,
            }
            for cell in sweep.cells
        ]
    )


def _cell_path(directory: Path, cell: Cell) -> Path:
    return directory / CELLS / f"{cell.id}.json"


def _number(value: Any) -> Any:
    """Return a value of a record, infinities as numbers again."""
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if value is not None else None


def missing_cells(directory: Path, sweep: Sweep) -> Sequence[Cell]:
    """Return the cells that have no result yet; failed ones are tried again."""
    missing = []
    for cell in sweep.to_run:
        record = read_record(directory, cell)
        if record is None or record["status"] != DONE:
            missing.append(cell)
    return missing
