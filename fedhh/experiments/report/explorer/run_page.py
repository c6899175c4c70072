"""What a page holds of a run, of a run and its baselines, or of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedhh.experiments.report.explorer import tables
from fedhh.experiments.report.explorer.chunks import columns_of
from fedhh.experiments.report.explorer.known_list import known_list
from fedhh.experiments.report.explorer.trie_chunks import has_validation, round_chunks
from fedhh.experiments.run import candidates as recording
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.sentences import below_zero
from fedhh.experiments.run.stored_result import read_record, read_result
from fedhh.experiments.study.page import PageData

_WORDS = (
    "word", "pass", "layer", "estimated_clients", "std_error", "z", "is_significant",
    "true_clients", "true_count", "clients_low", "clients_high", "is_truncated",
)  # fmt: skip

_NO_CANDIDATES = (
    "This run's directory does not say what became of its candidates: it was written by an older "
    "fedhh, or its protocol asks for no prefixes. Trie, votes and the search for a word need that."
)


def run_page(directories: Sequence[Path]) -> PageData:
    """Return the page of one finished run, with its baselines, or of two runs.

    Raises:
        InputError: A directory is damaged.
    """
    folders = output.runs_in(directories[0]) if len(directories) == 1 else list(directories)
    records = [read_record(folder) for folder in folders]
    stored = [read_result(folder) for folder in folders]
    names = _names([each.result for each in stored], directories)
    runs, chunks = [], {}
    for number, (name, record, each) in enumerate(zip(names, records, stored, strict=True)):
        data, pieces = run_data(f"r{number}", name, record, each.result)
        known, words = known_list(each.config.population.known)
        runs.append({**data, "known": known, "config": each.config.to_toml()})
        chunks.update(pieces | words)
    populations = [record["population"]["name"] for record in records]
    title = f"{' and '.join(names)} on {' and '.join(dict.fromkeys(populations))}"
    table = tables.measures(names, records, [each.result for each in stored])
    manifest = {
        "kind": "run",
        "overlays": len(directories) > 1,
        "title": title,
        "runs": runs,
        "measures": tables.plain_table(table),
        "sample": {
            "nearest": recording.NEAREST,
            "sampled": recording.SAMPLED,
            "missed": recording.MISSED,
        },
        "live": False,
    }
    return PageData(title=title, manifest=manifest, chunks=chunks)


def run_data(
    prefix: str, name: str, record: dict[str, Any], result: RunResult
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a page says of a run, and its further pieces, named after ``prefix``."""
    words = result.discoveries
    shown = words[[column for column in _WORDS if column in words]]
    chunks: dict[str, Any] = {f"{prefix}-words": columns_of(shown)}
    data: dict[str, Any] = {
        "name": name,
        "words": f"{prefix}-words",
        "missed": None,
        "rounds": [],
        "votes": {},
        "note": _NO_CANDIDATES,
        "layers": columns_of(result.layers),
        "privacy": {"claims": tables.claims(record), "notes": record["privacy"]["notes"]},
        "seed": record["seed"],
        "below_zero": below_zero(result, words),
        **facts_of(result),
    }
    recorded = result.candidates
    if recorded is not None:
        data["note"] = None
        data["missed"] = f"{prefix}-missed"
        data["votes"] = columns_of(recorded.votes)
        chunks[f"{prefix}-missed"] = columns_of(recorded.missed)
        for (number, layer), chunk in round_chunks(recorded.candidates).items():
            chunks[f"{prefix}-{number}-{layer}"] = chunk
            data["rounds"].append([number, layer, f"{prefix}-{number}-{layer}"])
    return data, chunks


def facts_of(result: RunResult) -> dict[str, Any]:
    """Return what explains a run's numbers."""
    protocol = result.protocol
    population = result.population
    return {
        "title": protocol.title,
        "population": population["name"],
        "clients": population["clients"],
        "alphabet": protocol.symbols.symbols,
        "depth": protocol.longest_word,
        "max_items": protocol.mechanism.max_items,
        "coverage": result.metrics.coverage,
        "discovered": result.metrics.discovered,
        "discovered_false": result.metrics.discovered_false,
        "validates": has_validation(protocol),
        "beside_lexicon": population["counted_clients"] != population["clients"],
    }


def _names(results: Sequence[RunResult], directories: Sequence[Path]) -> list[str]:
    """Return names that tell runs apart: the protocols' titles, else their directories'."""
    names = [result.protocol.title for result in results]
    if len(set(names)) == len(names):
        return names
    folders = [each.resolve().name for each in directories]
    if len(set(folders)) < len(folders):
        folders = ["A", "B"]
    return [f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)]
