"""A run's directory: what it holds, written whole, and read again."""

from __future__ import annotations

import datetime
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedhh import doors
from fedhh.experiments.config.schema import Config, parse_config
from fedhh.experiments.config.toml_file import read_toml
from fedhh.experiments.run.csv_file import write_csv
from fedhh.experiments.run.privacy import (
    MEASURED_ANONYMITY,
    central_before_run,
    central_epsilon,
)
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.stated_protocol import statement_of
from fedhh.system.files import is_there, whole_file, write_text
from fedhh.validation import InputError
from fedhh.version import __version__

SCHEMA_VERSION = 1
CONFIG = "config.toml"
RESULT = "result.json"
STATEMENT = "stated_protocol"
"""In `RESULT`, what tables need of the protocol: see `stated_protocol.statement_of`."""

PARQUET_KEY = "fedhh"
"""Under which key a Parquet file's schema says how faithful the simulation was, as JSON."""

CANDIDATES, VOTES, MISSED = "candidates", "votes", "missed"
"""Stems of the files of `fedhh.experiments.run.candidates.CandidateRecord`."""

CHECKPOINT_FOLDER = "checkpoint"
BASELINE_FOLDER = "baseline"
"""A run of its own, below the run that it stands beside."""


def check_directory(out: Path) -> None:
    """Raise InputError if a new run cannot have this directory; looks only.

    A directory that is missing or empty is fine.
    """
    try:
        if not out.exists():
            return
        if not out.is_dir():
            raise InputError(f"{out} is a file; give another --out.")
        is_used = any(out.iterdir())
    except OSError as error:
        # A name that is too long, or a directory that may not be read.
        raise InputError(f"{out}: {error.strerror}; give another --out.") from None
    if is_used:
        holds = "another run" if (out / CONFIG).exists() else "other files"
        raise InputError(
            f"{out} holds {holds}; give another --out, or --resume to go on with a run."
        )


def new_directory(config: Config, out: Path | None, *, name: str) -> Path:
    """Make and return a run's directory, with its config inside, and the modules it names.

    Args:
        config: The resolved configuration.
        out: The directory that the user asks for; a new one below ``output.directory`` if None.
        name: Short name of what runs, for a directory that fedhh names.

    Raises:
        InputError: The directory holds something already, or cannot be written.
    """
    directory = out if out is not None else unused_directory(Path(config.output.directory), name)
    check_directory(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        doors.save_sources(directory)
        write_text(directory / CONFIG, config.to_toml())
    except OSError as error:
        raise InputError(f"Cannot write to {directory}: {error.strerror}.") from None
    return directory


def resumed_config(directory: Path) -> Config:
    """Return the configuration of the run that a directory holds."""
    path = directory / CONFIG
    doors.offer_folder(directory, is_result=True)
    if not is_there(path):
        raise InputError(f"{directory} holds no run to resume: {path} is missing.")
    return parse_config(read_toml(path), str(path))


def is_finished(directory: Path) -> bool:
    """Return whether a run's result stands in its directory."""
    return is_there(directory / RESULT)


def write_result(
    directory: Path, result: RunResult, config: Config, facts: Mapping[str, Any]
) -> None:
    """Write a finished run's tables and its result; the result last, since it says "done"."""
    _write_table(directory / "discoveries", result, result.discoveries, csv=True)
    _write_table(directory / "layers", result, result.layers, csv=False)
    for name, table in candidate_tables(result).items():
        _write_table(directory / name, result, table, csv=False)
    write_text(
        directory / RESULT, json.dumps(result_record(result, config, facts), indent=2) + "\n"
    )
    if not config.output.keep_checkpoint:
        shutil.rmtree(directory / CHECKPOINT_FOLDER, ignore_errors=True)


def candidate_tables(result: RunResult) -> dict[str, pd.DataFrame]:
    """Return the tables of a run's candidates by the stem of their file; none without record."""
    recorded = result.candidates
    if recorded is None:
        return {}
    return {CANDIDATES: recorded.candidates, VOTES: recorded.votes, MISSED: recorded.missed}


def simulation_facts(result: RunResult) -> dict[str, Any]:
    """Return how faithfully a run's clients were simulated, and how far off its numbers may be."""
    errors = ("counted_clients", "coverage_std_error_at_most")
    return {**result.simulation, **{key: result.population[key] for key in errors}}


def result_record(result: RunResult, config: Config, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``result.json``.

    Args:
        result: The finished run.
        config: Its configuration.
        facts: What the removal of known words took away.
    """
    metrics = result.metrics.to_dict()
    record = {
        "schema_version": SCHEMA_VERSION,
        "fedhh_version": __version__,
        "seed": result.seed,
        **result.simulation,
        "population": {**result.population, "known_words": dict(facts)},
        "protocol": config.protocol.model_dump(mode="json"),
        "privacy": {
            **result.privacy.to_dict(),
            "central_epsilon": {
                unit: {
                    "before_run": central_before_run(result.privacy, unit),
                    "after_run": central_epsilon(result.privacy, unit),
                }
                for unit in ("item", "user")
            },
            "measured_anonymity": {key: metrics[key] for key in MEASURED_ANONYMITY},
        },
        "metrics": metrics,
        STATEMENT: statement_of(result.protocol),
        "cost": result.cost,
        "timings_seconds": result.timings,
    }
    cleaned: dict[str, Any] = plain(record)
    return cleaned


def unused_directory(parent: Path, name: str) -> Path:
    """Return a directory that is not there yet, named by the time and what ran."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    directory = parent / f"{stamp}_{name}"
    number = 2
    while directory.exists():
        directory = parent / f"{stamp}_{name}_{number}"
        number += 1
    return directory


def _write_table(stem: Path, result: RunResult, table: pd.DataFrame, *, csv: bool) -> None:
    """Write a table, with the run's fidelity in the metadata of its Parquet schema."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    facts = json.dumps(plain(simulation_facts(result)))
    arrow = arrow.replace_schema_metadata({**arrow.schema.metadata, PARQUET_KEY: facts})
    with whole_file(stem.with_suffix(".parquet")) as temporary:
        pq.write_table(arrow, temporary)
    if csv:
        write_csv(table, stem.with_suffix(".csv"))


def plain(value: Any) -> Any:
    """Return JSON values: no infinite or missing numbers, which JSON has no words for."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
