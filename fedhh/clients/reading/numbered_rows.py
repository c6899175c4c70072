"""Rows of files once each distinct word has its form and number: by user, or in their own order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedhh.clients.population import Ids, Words
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.rules import LARGEST_COUNT
from fedhh.clients.reading.tokens import folded
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import nfc

_ROWS_AT_ONCE = 2**20

_SORTED = """
    SELECT r.high, r.low, w.id, sum(r.count)::BIGINT AS count
    FROM rows r LEFT JOIN words w USING (word)
    GROUP BY ALL ORDER BY r.high, r.low, w.id NULLS LAST
"""
_DATED = """
    SELECT dense_rank() OVER (ORDER BY first, high, low) - 1 AS user, coalesce(w.id, -1) AS word,
        count, day, called
    FROM (SELECT *, min(row) OVER (PARTITION BY high, low) AS first FROM rows)
    LEFT JOIN words w USING (word) ORDER BY row
"""
_FALLING = """
    SELECT row, day, lag(row) OVER users AS earlier, lag(day) OVER users AS before FROM rows
    WINDOW users AS (PARTITION BY high, low ORDER BY row) QUALIFY day < before ORDER BY row LIMIT 1
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class DatedRows:
    """Rows with days, in their order.

    Attributes:
        users: ``(rows,) int64``: whose, numbered in the order of their first rows.
        word_ids: ``(rows,) int64``; -1 for none.
        counts: ``(rows,) int64``.
        days: ``(rows,) int64``; dates count from 1970-01-01.
        are_dates: Whether days are dates.
        called: ``(rows,)``: what the file calls each row's user.
    """

    users: Ids
    word_ids: Ids
    counts: Ids
    days: Ids
    are_dates: bool
    called: pa.ChunkedArray


class NumberedRows:
    """Rows of whom, which word, how often, and on which day.

    Attributes:
        words: The distinct words, sorted. Their form is Unicode's NFC, so that two spellings of the
            same symbols are one word, or that of texts, where the layout folds case; a word of
            which nothing would be left stays as it is.
    """

    def __init__(
        self, database: duckdb.DuckDBPyConnection, layout: Layout, *, are_dates: bool
    ) -> None:
        """Number the words in a database's table of rows; ``are_dates``: whether days are dates."""
        self._database, self._are_dates = database, are_dates
        query = "SELECT DISTINCT word FROM rows WHERE word IS NOT NULL ORDER BY word"
        words: list[str] = database.sql(query).to_arrow_table()["word"].to_pylist()
        forms = [nfc(word) for word in words]
        if layout.fold_case:
            forms = [folded(word, layout.language) or word for word in forms]
        self.words, ids = words, np.arange(len(words), dtype=np.int32)
        if forms != words:
            self.words = sorted(set(forms))
            number = {word: i for i, word in enumerate(self.words)}
            ids = np.array([number[form] for form in forms], dtype=np.int32)
        table = pa.table({"word": pa.array(words, pa.large_string()), "id": ids})
        database.register("numbered", table)
        database.execute("CREATE TABLE words AS SELECT word::VARCHAR AS word, id FROM numbered")
        database.unregister("numbered")

    def clients(self, name: str) -> Iterator[tuple[Ids, Words, Words]]:
        """Yield users in the order of their hash, in pieces.

        Args:
            name: Of the rows, for messages.

        Yields:
            How many words each user has; their ids, ascending within a user; and their counts.

        Raises:
            InputError: A user's counts of a word sum to 2^31 or more.
        """
        waiting: list[npt.NDArray[Any]] = [np.zeros(0, dtype=np.int64)] * 4
        for batch in self._database.sql(_SORTED).to_arrow_reader(_ROWS_AT_ONCE):
            high, low = (batch.column(i).to_numpy().view(np.int64) for i in (0, 1))
            ids = batch.column(2).fill_null(-1).to_numpy().astype(np.int64)
            fresh = (high, low, ids, batch.column(3).to_numpy())
            rows = [np.concatenate(each) for each in zip(waiting, fresh, strict=True)]
            changes = np.flatnonzero((np.diff(rows[0]) != 0) | (np.diff(rows[1]) != 0)) + 1
            # What a piece's last user still gets comes with the next.
            last = int(changes[-1]) if len(changes) else 0
            if last:
                yield _users_of(rows[2][:last], rows[3][:last], changes[:-1], name)
            waiting = [each[last:] for each in rows]
        if len(waiting[0]):
            yield _users_of(waiting[2], waiting[3], np.zeros(0, dtype=np.int64), name)

    def dated(self, path: Path, column: str, who: str = "user") -> DatedRows:
        """Return all rows of a file in their order.

        Args:
            path: Of the file, for messages.
            column: Name of its column of days, for messages.
            who: What messages call a user.

        Raises:
            InputError: A row's day is before that of an earlier row of the same user.
        """
        fall = first_of(self._database, _FALLING)
        if fall is not None:
            row, day, earlier, before = fall
            raise InputError(
                f"Expected days that do not fall from row to row of a {who}, got "
                f"{self._shown_day(day)} in row {row} after {self._shown_day(before)} in row "
                f"{earlier} of {path}: time goes backwards; sort the file by its column "
                f"{shown(column)}, or mend the day."
            )
        table = self._database.sql(_DATED).to_arrow_table()
        users, word_ids, counts, days = (
            table[name].to_numpy().astype(np.int64) for name in ("user", "word", "count", "day")
        )
        return DatedRows(
            users=users,
            word_ids=word_ids,
            counts=counts,
            days=days,
            are_dates=self._are_dates,
            called=table["called"],
        )

    def _shown_day(self, day: int) -> str:
        return str(np.datetime64(day, "D")) if self._are_dates else f"day {day}"


def first_of(database: duckdb.DuckDBPyConnection, query: str) -> Any:
    """Return the only row of a query; None if it has none."""
    return next(iter(database.execute(query).fetchall()), None)


def _users_of(ids: Ids, counts: Ids, changes: Ids, name: str) -> tuple[Ids, Words, Words]:
    if counts.max() > LARGEST_COUNT:
        raise InputError(
            f"Expected a client's counts of a word to sum to at most {LARGEST_COUNT}, got "
            f"{counts.max()} in {name}."
        )
    has_word = ids >= 0
    sizes = np.add.reduceat(has_word.astype(np.int64), np.r_[0, changes])
    return sizes, ids[has_word].astype(np.int32), counts[has_word].astype(np.int32)
