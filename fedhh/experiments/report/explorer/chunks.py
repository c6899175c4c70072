"""Data of a page, as JSON, compressed: tables by columns, rounds of a trie, known words.

Each piece is read only when it is asked for.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.run.candidates import BY_FAKES, DROPPED, FAKE_VOTES, KEPT, WORD
from fedhh.experiments.study.json_values import plain
from fedhh.experiments.study.text_table import TextTable
from fedhh.words.known_words import SCOWL70, named_list

Columns = dict[str, list[Any]]
"""A table: for each column its values, one entry per row."""

_FATES = (DROPPED, KEPT, WORD)
_SHIPPED = "scowl70"
_CHUNK = "known-scowl70"
_MOST_SHARED = 25


def packed(value: Any) -> str:
    """Return JSON, compressed, in letters that mean nothing to HTML."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        # Few pieces hold numbers that JSON has no words for.
        text = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    # Equal content makes an equal page, whenever it is written.
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


def unpacked(text: str) -> Any:
    """Return what was packed."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def columns_of(table: pd.DataFrame, digits: int = 6) -> Columns:
    """Return a table by columns; numbers with so many significant digits, missing ones as None."""
    return {str(name): values_of(table[name], digits) for name in table.columns}


def values_of(column: pd.Series[Any], digits: int = 6) -> list[Any]:
    """Return a column's values for JSON."""
    if pd.api.types.is_bool_dtype(column):
        return column.astype(int).tolist()
    if pd.api.types.is_float_dtype(column):
        return [_rounded(value, digits) for value in column.tolist()]
    if pd.api.types.is_integer_dtype(column):
        return column.tolist()
    return [_of_object(value, digits) for value in column.tolist()]


def _rounded(value: float, digits: int) -> float | int | None:
    if np.isnan(value):
        return None
    if not np.isfinite(value):
        return value
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _of_object(value: Any, digits: int) -> Any:
    if isinstance(value, np.ndarray | list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return _rounded(float(value), digits)
    if isinstance(value, np.integer):
        return int(value)
    return value if value is None or isinstance(value, int) else str(value)


def plain_table(table: TextTable) -> dict[str, Any]:
    """Return a table for a page."""
    return {
        "title": table.title,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "note": table.note,
        "labels": table.labels,
    }


def round_chunk(rows: pd.DataFrame) -> dict[str, Any]:
    """Return a round's rows of `CandidateRecord`; what votes say stands once for each number."""
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
    if FAKE_VOTES in rows:
        columns[FAKE_VOTES] = rows[FAKE_VOTES].to_numpy()
        columns[BY_FAKES] = rows[BY_FAKES].to_numpy().astype(int)
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


def known_list(name: str) -> tuple[dict[str, str | None] | None, dict[str, Any]]:
    """Return what a page says of `population.known`, and its piece of data.

    A file of the user's is named; its words are not read again.
    """
    if name == "none":
        return None, {}
    if name != _SHIPPED:
        return {"name": name, "chunk": None}, {}
    return {"name": name, "chunk": _CHUNK}, {_CHUNK: _shipped()}


@cache
def _shipped() -> str:
    return front_coded(named_list(SCOWL70).words)


def front_coded(words: Iterable[str]) -> str:
    """Return words without capital letters in order, each after what it shares with the last one.

    A capital letter begins a word, and says how many of the last word's first symbols it has: "A"
    for 0, "Z" for 25.

    >>> front_coded(["hello", "hell", "help"])
    'AhellEoDp'
    """
    pieces, before = [], ""
    for word in sorted(words):
        same = takewhile(bool, map(str.__eq__, before[:_MOST_SHARED], word))
        shared = sum(1 for _ in same)
        pieces.append(f"{chr(ord('A') + shared)}{word[shared:]}")
        before = word
    return "".join(pieces)
