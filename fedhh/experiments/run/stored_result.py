"""Reads a finished run's result again from its directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from fedhh.accounting import PrivacyReport
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.candidates import CandidateRecord
from fedhh.experiments.run.directory import (
    CANDIDATES,
    MISSED,
    RESULT,
    VOTES,
    is_finished,
    resumed_config,
)
from fedhh.experiments.run.metrics import Metrics
from fedhh.experiments.run.result import MetricSettings, RunResult
from fedhh.protocol import AnyProtocol
from fedhh.validation import InputError

_NOT_SIMULATION = {
    "schema_version", "fedhh_version", "seed", "population", "protocol", "privacy", "metrics",
    "cost", "timings_seconds",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredResult:
    """What a run's directory holds.

    Attributes:
        config: The resolved configuration.
        result: The result.
        known_words: What the removal of known words took away.
    """

    config: Config
    result: RunResult
    known_words: dict[str, Any]


def read_record(directory: Path) -> dict[str, Any]:
    """Return the content of a finished run's ``result.json``.

    Raises:
        InputError: It is missing or damaged.
    """
    path = directory / RESULT
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}).") from None
    return record


def read_protocol(directory: Path) -> tuple[Config, AnyProtocol]:
    """Return the configuration of a finished run, and its protocol with nothing left to decide.

    Raises:
        InputError: The directory holds no finished run, or a file of it is damaged.
    """
    if not is_finished(directory):
        raise InputError(f"Expected the directory of a finished run, got {directory}.")
    record = read_record(directory)
    config = resumed_config(directory)
    try:
        return config, _protocol(config, record)
    except (KeyError, TypeError) as error:
        raise _damaged(directory, error) from None


def read_result(directory: Path) -> StoredResult:
    """Return a finished run as it was when it ended.

    Raises:
        InputError: A file is missing or damaged.
    """
    record = read_record(directory)
    config = resumed_config(directory)
    try:
        population = dict(record["population"])
        known_words = population.pop("known_words")
        result = RunResult(
            protocol=_protocol(config, record),
            population=population,
            seed=record["seed"],
            simulation={key: record[key] for key in record if key not in _NOT_SIMULATION},
            settings=MetricSettings(**config.metrics.model_dump()),
            discoveries=_table(directory / "discoveries.parquet"),
            layers=_table(directory / "layers.parquet"),
            metrics=Metrics.from_dict(record["metrics"]),
            privacy=PrivacyReport.from_dict(record["privacy"]),
            cost=record["cost"],
            timings=record["timings_seconds"],
            candidates=_candidates(directory),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(directory, error) from None
    return StoredResult(config=config, result=result, known_words=known_words)


def _protocol(config: Config, record: dict[str, Any]) -> AnyProtocol:
    return settle(config, record["population"]["clients"])[1]


def _damaged(directory: Path, error: Exception) -> InputError:
    return InputError(f"{directory / RESULT} is damaged, or of another version ({error!r}).")


def _candidates(directory: Path) -> CandidateRecord | None:
    """Return the record of candidates; None of a run that has none, or of an older fedhh's."""
    paths = [directory / f"{name}.parquet" for name in (CANDIDATES, VOTES, MISSED)]
    if not all(path.exists() for path in paths):
        return None
    candidates, votes, missed = map(_table, paths)
    return CandidateRecord(candidates=candidates, votes=votes, missed=missed)


def _table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is missing or damaged ({error}).") from None
