"""Rows with days, in the order in which a file has them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedhh.arrays import Ints
from fedhh.clients.reading.columns import DAY, Layout
from fedhh.clients.reading.rows import Rows
from fedhh.clients.reading.rules import NOUNS, Counts
from fedhh.validation import InputError, shown

_DATED = """
    SELECT dense_rank() OVER (ORDER BY first, high, low) - 1 AS users,
        coalesce(w.id, -1)::BIGINT AS word_ids, count AS counts, day AS days, called
    FROM (SELECT *, min(row) OVER (PARTITION BY high, low) AS first FROM rows)
    LEFT JOIN words w USING (word) ORDER BY row
"""
_FALLING = """
    SELECT row, day, lag(row) OVER users AS earlier, lag(day) OVER users AS before FROM rows
    WINDOW users AS (PARTITION BY high, low ORDER BY row) QUALIFY day < before ORDER BY row LIMIT 1
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class DatedRows:
    """What a file with days holds.

    Attributes:
        words: The distinct words, sorted.
        users: ``(rows,) int64``: whose, numbered in the order of their first rows.
        word_ids: ``(rows,) int64``; -1 for none.
        counts: ``(rows,) int64``.
        days: ``(rows,) int64``; dates count from 1970-01-01.
        are_dates: Whether days are dates.
        called: ``(rows,)``: what the file calls each row's user.
    """

    words: list[str]
    users: Ints
    word_ids: Ints
    counts: Ints
    days: Ints
    are_dates: bool
    called: pa.ChunkedArray


def read_dated(
    path: Path,
    names: Mapping[str, str],
    layout: Layout,
    *,
    nouns: Mapping[str, str] = NOUNS,
    counts: Counts = "all",
) -> DatedRows:
    """Return all rows of a file.

    Args:
        path: A file whose extension tells its kind.
        names: Its columns by their roles, a column of days among them.
        layout: How it is laid out.
        nouns: What messages call a user and a word.
        counts: Which rows have a count, if there is a column of counts.

    Raises:
        InputError: As `Rows.add_file`; or a row's day is before that of an earlier row of the same
            user.
    """
    with closing(Rows(layout, dated=True)) as rows:
        rows.add_file(path, names, nouns=nouns, counts=counts)

        def day_text(day: int) -> str:
            return str(np.datetime64(day, "D")) if rows.are_dates else f"day {day}"

        for fall in rows.table(_FALLING).to_pylist():
            raise InputError(
                f"Expected days that do not fall from row to row of a {nouns['user']}, got "
                f"{day_text(fall['day'])} in row {fall['row']} after {day_text(fall['before'])} in "
                f"row {fall['earlier']} of {path}: time goes backwards; sort the file by its "
                f"column {shown(names[DAY])}, or mend the day."
            )
        words, table = rows.words, rows.table(_DATED)
    numbers = {name: table[name].to_numpy() for name in ("users", "word_ids", "counts", "days")}
    return DatedRows(words=words, are_dates=rows.are_dates, called=table["called"], **numbers)
