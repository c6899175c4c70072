"""Metrics of a run against the truth; each number says what it counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.truth import Truth
from fedhh.protocol import Discoveries

Metrics = dict[str, Any]


def discoveries_table(
    discoveries: Discoveries,
    truth: Truth,
    *,
    significance_z: float,
    truncated_at: int | None = None,
) -> pd.DataFrame:
    """Return one row per discovered word, the largest estimate first.

    A vote counts a client once per word, however often the client typed it, so estimates are about
    clients: ``estimated_clients`` scales the cohort's estimate to the population, and
    ``std_error`` covers both the randomizer's noise and the draw of the cohort. It does not cover
    what clients with more than B words left unsaid.

    Columns: word, pass and layer (from 1), estimated_clients, std_error, z (how far above the
    noise, see `protocol.Discoveries`), is_significant (z above ``significance_z``), true_count,
    true_clients, is_target (somebody holds the word). Where the protocol cut words
    ``truncated_at`` so many symbols, also is_truncated: nobody holds the word, but it is the
    beginning of one that somebody holds.
    """
    ids = truth.ids(discoveries)
    real = ids >= 0
    counts, clients = np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
    counts[real], clients[real] = truth.counts[ids[real]], truth.clients[ids[real]]

    cohort = discoveries.num_clients
    scale = truth.num_clients / np.maximum(cohort, 1)
    fraction = np.clip(discoveries.estimate / np.maximum(cohort, 1), 0, 1)
    drawn = cohort * fraction * (1 - fraction) * (1 - cohort / truth.num_clients)
    table = pd.DataFrame(
        {
            "word": list(discoveries.words),
            "pass": discoveries.pass_index + 1,
            "layer": discoveries.layer,
            "estimated_clients": discoveries.estimate * scale,
            "std_error": np.sqrt(discoveries.variance + drawn) * scale,
            "z": discoveries.z,
            "is_significant": discoveries.z > significance_z,
            "true_count": counts,
            "true_clients": clients,
            "is_target": real,
        }
    )
    if truncated_at is not None:
        cut = table["word"].isin(truth.beginnings(truncated_at))
        table["is_truncated"] = cut & ~table["is_target"]
    return table.sort_values(
        ["estimated_clients", "word"], ascending=[False, True], ignore_index=True
    )


def measure(
    table: pd.DataFrame, truth: Truth, *, top_k: Sequence[int], min_clients: int
) -> Metrics:
    """Return a run's metrics as a flat dictionary of plain numbers.

    * coverage: share of all contributions that fall on discovered words (the paper's figure).
    * precision: share of discoveries that somebody holds; None where nothing was discovered.
    * recall: share of the words held by at least ``min_clients`` clients that were discovered.
    * discovered_truncated: how many of the false discoveries are beginnings of longer held words.
    * ..._significant: the same over significant discoveries alone.
    * ..._top_K: the K largest estimates against the K words held by most clients; found_top_K:
      share of the latter among all discoveries.
    * target_words: held words of the lexicon; item_coverage: the share of them discovered.
    * count errors: of estimated clients, over discoveries that somebody holds. Among all of them,
      words that noise chose have far too large an estimate; the significant ones say more.
    """
    significant = table[table["is_significant"]]
    wanted = {truth.words[i] for i in np.flatnonzero(truth.clients >= min_clients).tolist()}
    num_words = int((truth.clients > 0).sum())
    metrics: Metrics = {
        "target_words": num_words,
        "target_contributions": truth.mass,
        "reachable_mass": truth.reachable_mass,
        "discovered": len(table),
        "discovered_real": int(table["is_target"].sum()),
        "discovered_false": int((~table["is_target"]).sum()),
        "discovered_truncated": int(table.get("is_truncated", pd.Series(dtype=bool)).sum()),
        "significant": len(significant),
        "min_clients": min_clients,
        "words_with_min_clients": len(wanted),
        "item_coverage": _ratio(int(table["is_target"].sum()), num_words),
    }
    for suffix, rows in (("", table), ("_significant", significant)):
        metrics[f"coverage{suffix}"] = _ratio(int(rows["true_count"].sum()), truth.mass)
        metrics[f"precision{suffix}"] = _precision(int(rows["is_target"].sum()), len(rows))
        found = int((rows["true_clients"] >= min_clients).sum())
        metrics[f"recall{suffix}"] = _ratio(found, len(wanted))
        precise, recalled = metrics[f"precision{suffix}"], metrics[f"recall{suffix}"]
        metrics[f"f1{suffix}"] = _f1(precise, recalled)
    order = np.lexsort((np.arange(len(truth.words)), -truth.clients))
    for k in top_k:
        if k > len(truth.words):
            continue
        best = {truth.words[i] for i in order[:k].tolist()}
        chosen = table["word"].head(k)
        hits = int(chosen.isin(best).sum())
        precise, recalled = _precision(hits, len(chosen)), _ratio(hits, k)
        metrics[f"precision_top_{k}"] = precise
        metrics[f"recall_top_{k}"] = recalled
        metrics[f"f1_top_{k}"] = _f1(precise, recalled)
        metrics[f"found_top_{k}"] = _ratio(int(table["word"].isin(best).sum()), k)
    for suffix, rows in (("", table), ("_significant", significant)):
        metrics.update(_count_errors(rows[rows["is_target"]], suffix))
    return metrics


def _count_errors(real: pd.DataFrame, suffix: str) -> Metrics:
    """Return how far estimates are off, and how often within two of their standard errors."""
    names = [f"{x}{suffix}" for x in ("count_error_mean", "count_error_relative", "within_two_std")]
    if real.empty:
        return dict.fromkeys(names)
    error = (real["estimated_clients"] - real["true_clients"]).abs()
    means = (error, error / real["true_clients"], error <= 2 * real["std_error"])
    return {name: float(values.mean()) for name, values in zip(names, means, strict=True)}


def _ratio(part: int, whole: int) -> float:
    """Return part / whole, and 0 where there is nothing to divide by."""
    return part / whole if whole else 0.0


def _precision(hits: int, chosen: int) -> float | None:
    """Return hits / chosen, and None where nothing was chosen, which is neither right nor wrong."""
    return hits / chosen if chosen else None


def _f1(precision: float | None, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0
