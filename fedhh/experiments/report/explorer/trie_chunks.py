"""Rounds of a trie as pieces of a page."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fedhh.experiments.report.explorer.chunks import columns_of
from fedhh.experiments.run.candidates import DROPPED, KEPT, WORD

_FATES = (DROPPED, KEPT, WORD)


def round_chunk(rows: pd.DataFrame) -> dict[str, Any]:
    """Return a round's candidates; what votes say stands once for each number of votes.

    Args:
        rows: Of one round, see `fedhh.experiments.run.candidates.CandidateRecord`.
    """
    # In order, prefixes repeat what stands before them, which compresses well.
    rows = rows.sort_values(["prefix", "is_word"], kind="stable")
    said = rows[["votes", "z", "estimate", "std_error"]].drop_duplicates("votes")
    fates = rows["fate"].astype(str).map(_FATES.index)
    return {
        "prefix": rows["prefix"].tolist(),
        "is_word": rows["is_word"].astype(int).tolist(),
        "votes": rows["votes"].tolist(),
        "true_clients": rows["true_clients"].tolist(),
        "fate": fates.tolist(),
        "stands_for": columns_of(rows[["stands_for"]], 4)["stands_for"],
        "said": columns_of(said.sort_values("votes"), 4),
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
