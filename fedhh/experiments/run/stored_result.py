"""Reads a finished run's result again from its directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedhh import plugins
from fedhh.accounting.guarantees import PrivacyReport
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.adversary import AdversaryOutcome
from fedhh.experiments.run.calendar import Calendar
from fedhh.experiments.run.candidates import BY_FAKES, FAKE_VOTES, OF_FAKES, CandidateRecord
from fedhh.experiments.run.directory import (
    ADVERSARY,
    CALENDAR,
    CANDIDATES,
    MISSED,
    STATEMENT,
    VOTES,
    is_finished,
    resumed_config,
)
from fedhh.experiments.run.equal_privacy import with_chosen_epsilons
from fedhh.experiments.run.metrics import Metrics
from fedhh.experiments.run.result import MetricSettings, RunResult
from fedhh.experiments.run.stated_protocol import StatedProtocol
from fedhh.experiments.study.directory import RESULT
from fedhh.experiments.study.kinds import KIND
from fedhh.experiments.study.stored_files import (
    Schema,
    frame_of,
    read_arrow,
    read_json,
    read_table,
    reading,
)
from fedhh.protocol import DiscoveryProtocol
from fedhh.validation import InputError

_NOT_SIMULATION = {
    "schema_version", KIND, "fedhh_version", "seed", "population", "protocol", "privacy", "metrics",
    "cost", CALENDAR, ADVERSARY, "timings_seconds", STATEMENT,
}  # fmt: skip

DISCOVERIES: Schema = {
    "word": "text", "pass": "int", "layer": "int", "estimated_clients": "float",
    "std_error": "float", "z": "float", "is_significant": "bool", "true_count": "int",
    "true_clients": "int", "is_target": "bool",
}  # fmt: skip
LAYERS: Schema = {
    "pass": "int", "layer": "int", "num_prefixes": "int", "num_candidates": "int",
    "num_clients": "int", "num_reports": "int", "threshold": "int", "threshold_z": "float",
    "num_kept": "int", "kept_by": "text", "decides": "bool", "coverage": "float",
    "missed_mass": "float",
}  # fmt: skip
CANDIDATE_ROWS: Schema = {
    "pass": "int", "layer": "int", "prefix": "text", "is_word": "bool", "votes": "int",
    "threshold": "int", "z": "float", "estimate": "float", "std_error": "float",
    "posterior": "float", "true_clients": "int", "fate": "text", "stands_for": "float",
}  # fmt: skip
VOTE_RANGES: Schema = {
    "pass": "int", "layer": "int", "votes_from": "int", "votes_to": "int", "kept_real": "int",
    "kept_noise": "int", "dropped_real": "int", "dropped_noise": "int",
}  # fmt: skip
MISSED_WORDS: Schema = {
    "word": "text", "true_clients": "int", "true_count": "int", "why": "text", "pass": "int",
    "layer": "int", "votes": "int", "threshold": "int", "posterior": "float",
}  # fmt: skip
_OF_FAKES: Schema = {FAKE_VOTES: "int", BY_FAKES: "bool", **dict.fromkeys(OF_FAKES, "int")}
"""Columns that tables of candidates have in runs with fake clients."""


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
    """Return the content of a finished run's ``result.json``."""
    return read_json(directory / RESULT)


def read_protocol(directory: Path) -> tuple[Config, DiscoveryProtocol]:
    """Return the configuration of a finished run, and its protocol with nothing left to decide."""
    if not is_finished(directory):
        raise InputError(f"Expected the directory of a finished run, got {directory}.")
    with reading(directory):
        config = resumed_config(directory)
        return config, _protocol(config, read_record(directory))


def read_result(directory: Path) -> StoredResult:
    """Return a finished run as it was when it ended."""
    with reading(directory):
        return _read_result(directory)


def _read_result(directory: Path) -> StoredResult:
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
            discoveries=read_table(directory / "discoveries.parquet", DISCOVERIES),
            layers=read_table(directory / "layers.parquet", LAYERS),
            metrics=Metrics.from_dict(record["metrics"]),
            privacy=PrivacyReport.from_dict(record["privacy"]),
            cost=record["cost"],
            timings=record["timings_seconds"],
            candidates=_candidates(directory),
            calendar=Calendar.from_dict(record[CALENDAR]) if CALENDAR in record else None,
            adversary=AdversaryOutcome.from_dict(record[ADVERSARY])
            if ADVERSARY in record
            else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{directory / RESULT} is damaged, or of another version ({error!r})."
        ) from None
    return StoredResult(config=config, result=result, known_words=known_words)


def _candidates(directory: Path) -> CandidateRecord | None:
    """Return the record of candidates; None of a run that has none."""
    paths = [directory / f"{name}.parquet" for name in (CANDIDATES, VOTES, MISSED)]
    if not all(path.exists() for path in paths):
        return None
    schemas = (CANDIDATE_ROWS, VOTE_RANGES, MISSED_WORDS)
    tables = [read_arrow(path) for path in paths]
    candidates, votes, missed = (
        frame_of(
            table,
            {**schema, **{k: kind for k, kind in _OF_FAKES.items() if k in table.schema.names}},
            path,
        )
        for table, schema, path in zip(tables, schemas, paths, strict=True)
    )
    return CandidateRecord(candidates=candidates, votes=votes, missed=missed)


def _protocol(config: Config, record: dict[str, Any]) -> DiscoveryProtocol:
    """Return a run's protocol: settled if all of it is fedhh's own, else by what the run states."""
    with plugins.disabled():
        try:
            clients = record["population"]["clients"]
            protocol = settle(with_chosen_epsilons(config, clients), clients)[1]
            # The first use of the oracle, which may be somebody else's.
            protocol.plan  # noqa: B018
        except plugins.DisabledError:
            protocol = None
    if protocol is not None:
        return protocol
    return StatedProtocol.of(record[STATEMENT])
