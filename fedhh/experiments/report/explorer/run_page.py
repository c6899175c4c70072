"""What a page holds of a run, of a run and its baselines, or of two runs."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.accounting.guarantees import UNITS
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.calendar import calendar_table
from fedhh.experiments.report.comparison import comparison_table, numbers_of
from fedhh.experiments.report.explorer.chunks import (
    columns_of,
    known_list,
    plain_table,
    round_chunks,
)
from fedhh.experiments.report.measures import SERVER_SECONDS
from fedhh.experiments.report.run_tables import estimated_of
from fedhh.experiments.run import candidates as recording
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.privacy import central_before_run, central_epsilon
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.sentences import below_zero
from fedhh.experiments.run.stored_result import read_record, read_result
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.protocol import DiscoveryProtocol

_WORDS = (
    "word", "pass", "layer", "estimated_clients", "std_error", "z", "is_significant",
    "true_clients", "true_count", "clients_low", "clients_high", "contributing_clients",
    "is_truncated",
)  # fmt: skip

_NO_CANDIDATES = (
    "This run has no outcomes of candidates, since its protocol asks for no prefixes. Trie, votes "
    "and the search for a word need them."
)


EMPTY_RUN: dict[str, Any] = {
    "coverage": None,
    "seed": None,
    "beside_lexicon": False,
    "known": None,
    "fakes": None,
    "below_zero": None,
    "words": None,
    "missed": None,
    "rounds": [],
    "votes": {},
    "layers": {},
    "note": None,
    "privacy": {"claims": [], "notes": []},
    "calendar": None,
    "config": "",
}
"""What a page says of a run before its first round."""


def run_page(directories: Sequence[Path]) -> PageData:
    """Return the page of one finished run, with its baselines, or of two runs."""
    folders = output.runs_in(directories[0]) if len(directories) == 1 else list(directories)
    records = [read_record(folder) for folder in folders]
    stored = [read_result(folder) for folder in folders]
    names = names_of([each.result for each in stored], folders)
    runs, chunks = [], {}
    for number, (name, record, each) in enumerate(zip(names, records, stored, strict=True)):
        data, pieces = run_data(f"r{number}", name, record, each.result)
        known, words = known_list(each.config.population.known)
        runs.append({**data, "known": known, "config": each.config.to_toml()})
        chunks.update(pieces | words)
    populations = [record["population"]["name"] for record in records]
    title = f"{' and '.join(names)} on {' and '.join(dict.fromkeys(populations))}"
    results = [each.result for each in stored]
    manifest = {
        "kind": "run",
        "overlays": len(directories) > 1,
        "title": title,
        "runs": runs,
        "comparison": plain_table(_comparison(names, results)) if len(results) > 1 else None,
        "measures": plain_table(_measures(names, records, results)),
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
    words, recorded = result.discoveries, result.candidates
    metrics, population = result.metrics, result.population
    chunks: dict[str, Any] = {
        f"{prefix}-words": columns_of(words[[column for column in _WORDS if column in words]])
    }
    data: dict[str, Any] = {
        **EMPTY_RUN,
        **facts_of(result.protocol),
        "name": name,
        "words": f"{prefix}-words",
        "rounds": [],
        "layers": columns_of(result.layers),
        "privacy": {"claims": _claims(record), "notes": record["privacy"]["notes"]},
        "calendar": _calendar(result),
        "seed": record["seed"],
        "fakes": None if result.adversary is None else result.adversary.sentence,
        "below_zero": below_zero(result, words),
        "population": population["name"],
        "clients": population["clients"],
        "beside_lexicon": population["counted_clients"] != population["clients"],
        "coverage": metrics.coverage,
        "discovered": metrics.discovered,
        "discovered_false": metrics.discovered_false,
    }
    if recorded is None:
        return {**data, "note": _NO_CANDIDATES}, chunks
    data |= {"missed": f"{prefix}-missed", "votes": columns_of(recorded.votes)}
    chunks[f"{prefix}-missed"] = columns_of(recorded.missed)
    for (number, layer), chunk in round_chunks(recorded.candidates).items():
        chunks[f"{prefix}-{number}-{layer}"] = chunk
        data["rounds"].append([number, layer, f"{prefix}-{number}-{layer}"])
    return data, chunks


def facts_of(protocol: DiscoveryProtocol) -> dict[str, Any]:
    """Return what a page says of a run's protocol."""
    return {
        "title": protocol.title,
        "alphabet": protocol.symbols.symbols,
        "depth": protocol.longest_word,
        "max_items": protocol.plan.max_items,
        "estimated": estimated_of(protocol.plan),
        "validates": float(getattr(protocol, "false_discovery_rate", 0.0)) > 0,
    }


def _calendar(result: RunResult) -> dict[str, Any] | None:
    """Return when rounds took place, and the totals; None of a run whose devices always answer."""
    calendar = result.calendar
    if calendar is None:
        return None
    return {
        "days": calendar.days,
        "share_served": calendar.share_served,
        "missed": calendar.missed_text or None,
        "rounds": plain_table(calendar_table([result])),
    }


def names_of(results: Sequence[RunResult], directories: Sequence[Path]) -> list[str]:
    """Return names that tell runs apart: protocols' titles, else with directories or letters."""
    names = [result.protocol.title for result in results]
    if len(set(names)) == len(names):
        return names
    folders = [each.resolve().name for each in directories]
    if len(set(folders)) < len(folders):
        folders = list(string.ascii_uppercase[: len(names)])
    return [f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)]


def _comparison(names: Sequence[str], runs: Sequence[RunResult]) -> TextTable:
    """Return the few numbers of each run that a reader wants first, a row for each."""
    heads = (PROTOCOL, "coverage", "precision", "words found")
    times = {"before the run": central_before_run, "for this run": central_epsilon}
    rows = []
    for name, run in zip(names, runs, strict=True):
        found = map(_share, (run.metrics.coverage, run.metrics.precision))
        claimed = (round_up(of(run.privacy, unit)) for unit in UNITS for of in times.values())
        rows.append((name, *found, f"{run.metrics.discovered:,}", *claimed))
    return TextTable(
        title="Comparison",
        columns=(*heads, *(f"{unit} epsilon {time}" for unit in UNITS for time in times)),
        rows=tuple(rows),
        note="Epsilons are central: against readers of the results.",
    )


def _share(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.1%}"


def _measures(
    names: Sequence[str], records: Sequence[dict[str, Any]], runs: Sequence[RunResult]
) -> TextTable:
    rows = []
    for name, record, run in zip(names, records, runs, strict=True):
        guarantees = record["privacy"]["guarantees"]
        delta = max(g["delta"] for g in guarantees if g["trust"] == "central")
        rows.append(
            {
                PROTOCOL: name,
                "seed": record["seed"],
                **numbers_of(flat_result(run, delta=delta)),
                SERVER_SECONDS: record["timings_seconds"]["server"],
            }
        )
    return comparison_table(pd.DataFrame(rows), {"title": "Measures", "axes": [PROTOCOL]})


def _claims(record: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for each in record["privacy"]["guarantees"]:
        known = each["epsilon"] is not None
        rows.append(
            {
                "unit": each["unit"],
                "against": "server" if each["trust"] == "local" else "readers of results",
                "bound": each["method"],
                "value": round_up(float(each["epsilon"])) if known else "none",
                "delta": f"{each['delta']:g}",
                "theorem": each["theorem"],
                "assumptions": each["assumptions"] if known else each["reason"],
                "best": each["best"],
                "realised": bool(each.get("realised")),
            }
        )
    for each in record["privacy"]["anonymity"]:
        if each["layer"] is not None:
            continue
        known = each["k"] is not None
        rows.append(
            {
                "unit": "item",
                "against": "readers of results",
                "bound": f"approximate k-anonymity, {each['variant']}, alpha {each['alpha']:g}",
                "value": f"k = {each['k']:,}" if known else "none",
                "delta": "",
                "theorem": each["theorem"],
                "assumptions": (not known and each["reason"]) or each["assumptions"],
                "best": False,
                "realised": False,
            }
        )
    return rows
