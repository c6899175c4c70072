"""A sweep's directory: one whole file per finished cell, and the tables made of them.

`results.parquet` and `results.csv` have one row per cell and seed and hold nothing that differs
between two runs of a sweep: times stand in `timings.csv` alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import fedhh
from fedhh.experiments.config import Config
from fedhh.experiments.output import check_directory, result_record
from fedhh.experiments.privacy import central_epsilon, claimed_k, local_epsilon
from fedhh.experiments.regime import regime_of_run
from fedhh.experiments.run_result import RunResult
from fedhh.experiments.sweep_config import Cell, Sweep
from fedhh.experiments.sweep_settings import EXTRA, with_extras
from fedhh.simulation.files import whole_file, write_text
from fedhh.validation import InputError

SCHEMA_VERSION = 1
SWEEP_FILE = "sweep.toml"
IDENTITY = "identity.json"
CELLS = "cells"
RESULTS = "results.parquet"
TIMINGS = "timings.csv"
DONE, FAILED = "done", "failed"

Record = dict[str, Any]
"""What a cell's file holds: status, error, result (flat), timings."""

_METADATA = b"fedhh"


def open_directory(directory: Path, sweep: Sweep, *, resume: bool) -> None:
    """Make a sweep's directory, or make sure that it is this sweep's.

    Raises:
        InputError: The directory holds something else, or cannot be written.
    """
    identity = _identity(sweep)
    if not resume:
        check_directory(directory)
        try:
            write_text(directory / SWEEP_FILE, sweep.to_toml())
            _grid(sweep).to_csv(directory / "grid.csv", index=False)
            write_text(directory / IDENTITY, json.dumps(identity, indent=2) + "\n")
        except OSError as error:
            raise InputError(f"Cannot write to {directory}: {error.strerror}.") from None
        return
    stored = _read_json(directory / IDENTITY)
    if stored != identity:
        changed = [key for key in identity if stored.get(key) != identity[key]]
        raise InputError(
            f"{directory} holds another sweep (differs in: {', '.join(changed)}), and cells of two "
            "must not be mixed; resume it without changes, or give another --out."
        )


def stored_sweep_table(directory: Path) -> dict[str, Any]:
    """Return the file of the sweep that a directory holds."""
    path = directory / SWEEP_FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{directory} holds no sweep to resume: {path} is missing.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}.") from None


def write_record(directory: Path, cell: Cell, record: Record) -> None:
    """Write a cell's record, whole or not at all."""
    content = {"schema_version": SCHEMA_VERSION, "cell": cell.id, **record}
    write_text(_cell_path(directory, cell), json.dumps(content, indent=1) + "\n")


def read_record(directory: Path, cell: Cell) -> Record | None:
    """Return a cell's record, or None if it has none yet."""
    path = _cell_path(directory, cell)
    return _read_json(path) if path.exists() else None


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
    description = {
        "schema_version": SCHEMA_VERSION,
        "title": sweep.title,
        "axes": list(sweep.axes),
        "best": sweep.best,
        "sweep": sweep.to_result_toml(),
    }
    with whole_file(directory / RESULTS) as temporary:
        arrow = pa.Table.from_pandas(table, preserve_index=False)
        metadata = {**(arrow.schema.metadata or {}), _METADATA: json.dumps(description).encode()}
        pq.write_table(arrow.replace_schema_metadata(metadata), temporary)
    with whole_file(directory / "results.csv") as temporary:
        table.to_csv(temporary, index=False)
    with whole_file(directory / TIMINGS) as temporary:
        pd.DataFrame(timings).to_csv(temporary, index=False)
    return table


def result_row(cell: Cell, record: Record) -> dict[str, Any]:
    """Return a cell's row of the results: what varies, then what came out."""
    return {
        "cell": cell.id,
        **cell.varied,
        "beside_grid": cell.beside_grid,
        "seed": cell.config.seed,
        "status": record["status"],
        "error": record["error"],
        **{name: _number(value) for name, value in record["result"].items()},
        **record["versions"],
    }


def read_results(directory: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the results of a sweep's directory, and title, axes and file of the sweep.

    Failed cells are left out; the description's "failed" says how many there are.

    Raises:
        InputError: There are no results, or the file is damaged.
    """
    table, description = read_labeled_results(directory)
    return table.drop(columns=EXTRA), description


def read_labeled_results(directory: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what `read_results` does, with a column more: `EXTRA`, what an extra cell sets.

    Raises:
        InputError: There are no results, or the file is damaged.
    """
    path = directory / RESULTS
    if not path.exists():
        raise InputError(
            f"{directory} holds no results: {path} is missing; make them with fedhh sweep."
        )
    try:
        table = pq.read_table(path)
        description = json.loads(table.schema.metadata[_METADATA])
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is no results file of fedhh ({error}).") from None
    frame = with_extras(table.to_pandas(), description["sweep"])
    description["failed"] = int((frame["status"] == FAILED).sum())
    done = frame[frame["status"] == DONE].reset_index(drop=True)
    if done.empty:
        raise InputError(f"{path} holds no finished cell.")
    return done, description


def with_server_seconds(table: pd.DataFrame, directory: Path) -> pd.DataFrame:
    """Return results with a column "server", its seconds, if the directory has the times."""
    path = directory / TIMINGS
    if not path.exists():
        return table
    timings = pd.read_csv(path)
    if "server" not in timings:
        return table
    return table.merge(timings[["cell", "seed", "server"]], on=["cell", "seed"], how="left")


def versions() -> dict[str, str]:
    """Return the versions that a record states: those whose change may change numbers."""
    return {
        "fedhh_version": fedhh.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
    }


def flat_result(run: RunResult, config: Config, facts: dict[str, Any]) -> dict[str, Any]:
    """Return metrics, privacy and cost of a run without nesting, as JSON values.

    ``local_epsilon`` and ``central_epsilon`` are of one contribution, ``..._user`` of a client,
    over all rounds that a client takes part in: the smallest that hold for the run.
    """
    record = result_record(run, config, facts)
    report = run.privacy
    regime = regime_of_run(run.layers)
    privacy = {
        "local_epsilon": local_epsilon(report, "item"),
        "local_epsilon_user": local_epsilon(report, "user"),
        "central_epsilon": central_epsilon(report, "item"),
        "central_epsilon_user": central_epsilon(report, "user"),
    }
    return {
        **record["metrics"],
        "limited_by": None if regime is None else regime.limit,
        "noise_share": None if regime is None else regime.noise_share,
        **{name: "inf" if value == math.inf else value for name, value in privacy.items()},
        "delta": config.privacy.delta,
        "claimed_k": claimed_k(report),
        **record["cost"],
        "population": record["population"]["name"],
        "population_clients": record["population"]["clients"],
        "fidelity": record["fidelity"],
    }


def _identity(sweep: Sweep) -> dict[str, Any]:
    """Return what makes a sweep this one: its cells, and the content of files that they read."""
    files = set()
    for cell in sweep.to_run:
        files |= {cell.config.population.source, cell.config.population.known}
    hashes = {name: _file_hash(Path(name)) for name in sorted(files) if Path(name).is_file()}
    return {"schema_version": SCHEMA_VERSION, "configuration": sweep.key, "files": hashes}


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} holds no sweep to resume: {path.name} is missing."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is damaged ({error}); delete it.") from None
    return content


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
