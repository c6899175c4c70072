"""Rounds of a trie as pieces of a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.report.explorer.chunks import columns_of, values_of
from fedhh.experiments.run.candidates import DROPPED, KEPT, WORD
from fedhh.protocol import AnyProtocol

_FATES = (DROPPED, KEPT, WORD)


def has_validation(protocol: AnyProtocol) -> bool:
    """Return whether a last round says which of the candidates are discovered."""
    return float(getattr(protocol, "false_discovery_rate", 0.0)) > 0


def round_chunk(rows: pd.DataFrame) -> dict[str, Any]:
    """Return a round's candidates; what votes say stands once for each number of votes.

    Args:
        rows: Of one round, see `fedhh.experiments.run.candidates.CandidateRecord`.
    """
    # In order, prefixes repeat what stands before them, which compresses well.
    prefixes, is_word = rows["prefix"].tolist(), rows["is_word"].tolist()
    order = sorted(range(len(rows)), key=lambda i: (prefixes[i], is_word[i]))
    votes = rows["votes"].to_numpy()
    _, first = np.unique(votes, return_index=True)
    fates = np.array([_FATES.index(name) for name in rows["fate"].cat.categories])
    columns = {
        "votes": votes,
        "is_word": rows["is_word"].to_numpy().astype(int),
        "true_clients": rows["true_clients"].to_numpy(),
        "fate": fates[rows["fate"].cat.codes.to_numpy()],
    }
    posterior = {}
    if "posterior" in rows and rows["posterior"].notna().any():
        posterior["posterior"] = values_of(rows["posterior"].iloc[order], 3)
    return {
        "prefix": [prefixes[i] for i in order],
        **{name: values[order].tolist() for name, values in columns.items()},
        **posterior,
        "stands_for": values_of(rows["stands_for"].iloc[order], 4),
        "said": columns_of(rows[["votes", "z", "estimate", "std_error"]].iloc[first], 4),
    }


def round_chunks(candidates: pd.DataFrame) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the pieces of all rounds, by pass and layer."""
    if candidates.empty:
        return {}
    rounds = candidates[["pass", "layer"]].drop_duplicates().itertuples(index=False, name=None)
    groups = candidates.groupby(["pass", "layer"])
    return {
        (int(number), int(layer)): round_chunk(groups.get_group((number, layer)))
        for number, layer in rounds
    }
