"""A run's directory: what it holds, written whole, and read again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedhh import plugins
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.privacy import MEASURED_ANONYMITY, central_before_run, central_epsilon
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.stated_protocol import statement_of
from fedhh.experiments.study.csv_file import write_csv
from fedhh.experiments.study.directory import CONFIG, RESULT
from fedhh.experiments.study.directory import new_directory as make_directory
from fedhh.experiments.study.json_values import plain
from fedhh.experiments.study.kinds import KIND
from fedhh.experiments.study.resume import stored_toml
from fedhh.simulation.log import LOG
from fedhh.system.files import is_there, whole_file, write_text
from fedhh.version import __version__

NAME = "run"
SCHEMA_VERSION = 1
CALENDAR = "calendar"
"""In `RESULT`, how long a run took with its devices; see `fedhh.experiments.run.calendar`."""
ADVERSARY = "adversary"
"""In `RESULT`, what fake clients did; see `fedhh.experiments.run.adversary`."""
STATEMENT = "stated_protocol"
"""In `RESULT`, what tables need of the protocol: see `stated_protocol.statement_of`."""

PARQUET_KEY = "fedhh"
"""Under which key a Parquet file's schema says how faithful the simulation was, as JSON."""

CANDIDATES, VOTES, MISSED = "candidates", "votes", "missed"
"""Stems of the files of `fedhh.experiments.run.candidates.CandidateRecord`."""

BASELINES = "baselines"
"""In the record of a run with baselines, theirs, in their order."""
_BASELINE = "baseline"


def new_directory(config: Config, out: Path | None, *, name: str) -> Path:
    """Make and return a run's directory, see `fedhh.experiments.study.directory.new_directory`."""
    return make_directory(out, config.output.directory, name=name, config=config.to_toml())


def resumed_config(directory: Path) -> Config:
    """Return the configuration of the run that a directory holds."""
    plugins.search(directory)
    return parse_config(stored_toml(directory, what=NAME), str(directory / CONFIG))


def is_finished(directory: Path) -> bool:
    """Return whether a run's result stands in its directory."""
    return is_there(directory / RESULT)


def baseline_folder(directory: Path, number: int) -> Path:
    """Return the directory of a run's baseline, a run of its own; ``number`` from 0."""
    return directory / (_BASELINE if number == 0 else f"{_BASELINE}-{number + 1}")


def runs_in(directory: Path) -> list[Path]:
    """Return the directory of a run, and below it those of its finished baselines, in order."""
    folders = [directory]
    while is_finished(following := baseline_folder(directory, len(folders) - 1)):
        folders.append(following)
    return folders


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


def drop_log(directory: Path, config: Config) -> None:
    """Remove what a resume would need, unless the configuration keeps it."""
    if not config.output.keep_log:
        shutil.rmtree(directory / LOG, ignore_errors=True)


def candidate_tables(result: RunResult) -> dict[str, pd.DataFrame]:
    """Return the tables of a run's candidates by the stem of their file; none without record."""
    recorded = result.candidates
    if recorded is None:
        return {}
    return {CANDIDATES: recorded.candidates, VOTES: recorded.votes, MISSED: recorded.missed}


def result_record(result: RunResult, config: Config, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``result.json``."""
    metrics = result.metrics.to_dict()
    record = {
        "schema_version": SCHEMA_VERSION,
        KIND: NAME,
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
        **({} if result.calendar is None else {CALENDAR: result.calendar.to_dict()}),
        **({} if result.adversary is None else {ADVERSARY: result.adversary.to_dict()}),
        "timings_seconds": result.timings,
    }
    cleaned: dict[str, Any] = plain(record)
    return cleaned


def _write_table(stem: Path, result: RunResult, table: pd.DataFrame, *, csv: bool) -> None:
    """Write a table, with how far off the run may be in the metadata of its Parquet schema."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    errors = ("counted_clients", "coverage_std_error_at_most")
    facts = {**result.simulation, **{key: result.population[key] for key in errors}}
    said = {PARQUET_KEY: json.dumps(plain(facts))}
    arrow = arrow.replace_schema_metadata({**arrow.schema.metadata, **said})
    with whole_file(stem.with_suffix(".parquet")) as temporary:
        pq.write_table(arrow, temporary)
    if csv:
        write_csv(table, stem.with_suffix(".csv"))
