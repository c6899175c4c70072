"""A run's directory: what it holds, written whole, and read again."""

from __future__ import annotations

import datetime
import json
import math
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import fedhh
from fedhh.experiments.config import Config, parse_config
from fedhh.experiments.privacy import MEASURED_ANONYMITY
from fedhh.simulation.files import whole_file, write_text
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.experiments.run_result import RunResult

SCHEMA_VERSION = 1
CONFIG = "config.toml"
RESULT = "result.json"
PARQUET_KEY = "fedhh"
"""Under which key a Parquet file's schema says how faithful the simulation was, as JSON."""

CHECKPOINT_FOLDER = "checkpoint"
BASELINE_FOLDER = "baseline"
"""A run of its own, below the run that it stands beside."""


def check_directory(out: Path) -> None:
    """Raise InputError if a new run cannot have this directory; looks only.

    A directory that is missing or empty is fine.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is a file; give another --out.")
    if any(out.iterdir()):
        holds = "another run" if (out / CONFIG).exists() else "other files"
        raise InputError(
            f"{out} holds {holds}; give another --out, or --resume to go on with a run."
        )


def new_directory(config: Config, out: Path | None, *, name: str) -> Path:
    """Make and return a run's directory, with its config inside.

    Args:
        config: The resolved configuration.
        out: The directory that the user asks for; a new one below ``output.directory`` if None.
        name: Short name of what runs, for a directory that fedhh names.

    Raises:
        InputError: The directory holds something already, or cannot be written.
    """
    directory = out if out is not None else _unused(Path(config.output.directory), name)
    check_directory(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / CONFIG, config.to_toml())
    except OSError as error:
        raise InputError(f"Cannot write to {directory}: {error.strerror}.") from None
    return directory


def resumed_config(directory: Path) -> Config:
    """Return the configuration of the run that a directory holds."""
    path = directory / CONFIG
    try:
        return parse_config(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except FileNotFoundError:
        raise InputError(f"{directory} holds no run to resume: {path} is missing.") from None


def is_finished(directory: Path) -> bool:
    """Return whether a run's result stands in its directory."""
    return (directory / RESULT).exists()


def write_result(directory: Path, result: RunResult, config: Config, facts: dict[str, Any]) -> None:
    """Write everything a finished run leaves; the result file last, since it says "done"."""
    _write_table(directory / "discoveries", result, result.discoveries, csv=True)
    _write_table(directory / "layers", result, result.layers, csv=False)
    _write_figures(directory, result)
    write_text(
        directory / RESULT, json.dumps(result_record(result, config, facts), indent=2) + "\n"
    )
    if not config.output.keep_checkpoint:
        shutil.rmtree(directory / CHECKPOINT_FOLDER, ignore_errors=True)


def simulation_facts(result: RunResult) -> dict[str, Any]:
    """Return how faithfully a run's clients were simulated, and how far off its numbers may be."""
    errors = ("counted_clients", "coverage_std_error_at_most")
    return {**result.simulation, **{key: result.population[key] for key in errors}}


def result_record(result: RunResult, config: Config, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``result.json``.

    Args:
        result: The finished run.
        config: Its configuration.
        facts: What the removal of known words took away.
    """
    record = {
        "schema_version": SCHEMA_VERSION,
        "fedhh_version": fedhh.__version__,
        "seed": result.seed,
        **result.simulation,
        "population": {**result.population, "known_words": facts},
        "protocol": config.protocol.model_dump(mode="json"),
        "privacy": {
            **result.privacy.to_dict(),
            "measured_anonymity": {key: result.metrics[key] for key in MEASURED_ANONYMITY},
        },
        "metrics": result.metrics,
        "cost": result.cost,
        "timings_seconds": result.timings,
    }
    cleaned: dict[str, Any] = _plain(record)
    return cleaned


def _unused(parent: Path, name: str) -> Path:
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
    facts = json.dumps(_plain(simulation_facts(result)))
    arrow = arrow.replace_schema_metadata({**arrow.schema.metadata, PARQUET_KEY: facts})
    with whole_file(stem.with_suffix(".parquet")) as temporary:
        pq.write_table(arrow, temporary)
    if csv:
        with whole_file(stem.with_suffix(".csv")) as temporary:
            table.to_csv(temporary, index=False)


def _write_figures(directory: Path, result: RunResult) -> None:
    from fedhh.experiments.plots import figures

    for name, figure in figures(result).items():
        with whole_file(directory / f"{name}.png") as temporary:
            figure.savefig(temporary, dpi=160)


def _plain(value: Any) -> Any:
    """Return JSON values: no infinite or missing numbers, which JSON has no words for."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
