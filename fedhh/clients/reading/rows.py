"""Rows of files and frames in one table of DuckDB: whose, which word, how often, on which day.

Users are a keyed hash of what they are called, as text: 7 and "7" are one. Texts are tokenized on
their way into the table.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedhh.clients.reading.columns import Layout, choose_columns, find_columns
from fedhh.clients.reading.numbered_rows import NumberedRows, first_of
from fedhh.clients.reading.rules import NOUNS, Rules
from fedhh.clients.reading.tables import (
    JSON,
    NO_RECORD,
    kind_of,
    literal,
    readable,
    rows_by_python,
    scan,
    scan_table,
    unreadable,
)
from fedhh.clients.reading.tokens import Tokenizer
from fedhh.system.machine import memory_bytes
from fedhh.validation import InputError, shown

_TEXTS_AT_ONCE = 2**17
_SHARE_OF_MEMORY = 0.4
"""Of the machine's, what DuckDB takes before it goes on on disk."""
_PLAIN = re.compile(r"[-+]?[0-9.]+|-?inf|nan|(true|false|NaN|[\[{\"][ -~]*)")
"""Values that a message shows as they are: numbers, and what JSON has."""
_LONGEST_SHOWN = 100

_INSERT = """
    INSERT INTO rows
    SELECT md5_number_upper({salt} || user), md5_number_lower({salt} || user), word, count, problem,
        row, day, {called}
    FROM ({rows})
"""


@dataclass(kw_only=True, eq=False)
class Texts:
    """What of texts is no word, collected while they are read.

    Attributes:
        number: How many texts there were; 0 for counted words.
        empty: Texts without a word.
        dropped: How often what is no word was dropped, see `tokens.tokenize`.
    """

    number: int = 0
    empty: int = 0
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Texts) -> None:
        """Add what was collected elsewhere."""
        self.number += other.number
        self.empty += other.empty
        self.dropped.update(other.dropped)


class Rows:
    """The rows of any number of files and frames.

    Attributes:
        texts: What of them was no word.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        salt: str = "",
        place: Path | None = None,
        memory: int | None = None,
        dated: bool = False,
    ) -> None:
        """Begin without a row.

        Args:
            layout: How files are laid out.
            salt: Key of the order of users.
            place: Where rows are, and what does not fit in memory; None to have them in memory.
            memory: Bytes that DuckDB takes; None for a share of the machine's.
            dated: Whether rows keep their days, their order, and what their users are called.
        """
        self._layout, self._salt, self._dated = layout, literal(salt), dated
        self._tokenizer = Tokenizer(layout.language)
        self._are_dates = False
        self.texts = Texts()
        self._database = duckdb.connect(":memory:" if place is None else str(place / "rows.duckdb"))
        # Texts are read while their words are added.
        self._texts = self._database.cursor()
        most = memory or int(_SHARE_OF_MEMORY * memory_bytes())
        self._database.execute(f"SET memory_limit = '{most // 2**20}MiB'")
        self._database.execute("SET enable_progress_bar = false")
        # Made where memory does not suffice, and removed at the end.
        spilled = place or Path(tempfile.gettempdir()) / f"fedhh-{secrets.token_hex(8)}"
        self._database.execute("SET temp_directory = ?", [str(spilled / "spilled")])
        self._database.execute(
            "CREATE TABLE rows (high UBIGINT, low UBIGINT, word VARCHAR, count BIGINT, "
            "problem VARCHAR, row BIGINT, day BIGINT, called VARCHAR)"
        )

    def close(self) -> None:
        """Drop all rows."""
        self._texts.close()
        self._database.close()

    def add_file(
        self,
        path: Path,
        names: Mapping[str, str] | None = None,
        *,
        nouns: Mapping[str, str] = NOUNS,
        fills_counts: bool = False,
    ) -> None:
        """Add the rows of a file.

        Args:
            path: A file whose extension tells its kind.
            names: Its columns by their roles; None to find them by the layout.
            nouns: What messages call a user and a word.
            fills_counts: Whether a record of JSON Lines without a count counts once.

        Raises:
            InputError: As `fedhh.clients.reading.sources.read_population`.
        """
        names = dict(find_columns(path, self._layout) if names is None else names)
        # A record after the first may have a count.
        is_late = kind_of(path) == JSON and "word" in names and "count" not in names
        if is_late:
            names["count"] = "count"
        rules = {"nouns": nouns, "fills_counts": fills_counts, "counts_are_late": is_late}
        with _reading(path):
            try:
                self._add(scan(path, names, self._layout.separator), path, rules)
            except duckdb.Error:
                table = rows_by_python(path, names, self._layout.separator)
                if table is None:
                    raise
                self._add_view(table, names, path, rules)

    def add_table(self, rows: pa.Table, name: str) -> None:
        """Add the rows of an Arrow table; refuses as `add_file`."""
        path = Path(name)
        names = choose_columns(rows.column_names, self._layout.columns, path, is_file=False)
        with _reading(path):
            self._add_view(rows, names, path, {"nouns": NOUNS})

    def add_piece(
        self, users: pa.Array, words: pa.Array, counts: pa.Array, row: Any = None, day: Any = None
    ) -> None:
        """Add rows that are right as they are: text, text or null, and counts."""
        nothing = pa.nulls(len(users), pa.int64())
        row, day = (nothing if each is None else each for each in (row, day))
        piece = {"user": users, "word": words, "count": counts, "row": row, "day": day}
        self._database.register("piece", pa.table(piece))
        self._insert("SELECT *, NULL AS problem FROM piece")
        self._database.unregister("piece")

    def numbered(self) -> NumberedRows:
        """Return all rows, once there are all; none can be added then."""
        return NumberedRows(self._database, self._layout, are_dates=self._are_dates)

    def _insert(self, rows: str) -> None:
        called = "user" if self._dated else "NULL"
        self._database.execute(_INSERT.format(salt=self._salt, called=called, rows=rows))

    def _add_view(
        self, table: pa.Table, names: Mapping[str, str], path: Path, rules: Mapping[str, Any]
    ) -> None:
        # Before the types: an empty column of pandas may have none.
        if not table.num_rows:
            raise InputError(f"Expected at least one row, got none in {path}.")
        chosen = table.select(list(names.values()))
        # DuckDB trusts what Arrow says.
        chosen.validate(full=True)
        for connection in (self._database, self._texts):
            connection.register("frame", chosen)
        self._add(scan_table(chosen.schema, "frame", names, path), path, rules)

    def _add(self, query: str, path: Path, rules: Mapping[str, Any]) -> None:
        found = self._database.sql(query)
        types = {name: str(kind) for name, kind in zip(found.columns, found.types, strict=True)}
        first_day = None
        if self._dated:
            first = first_of(self._database, f"SELECT day::VARCHAR FROM ({query}) LIMIT 1")
            first_day = "" if first is None else first[0] or ""
        checked = Rules(types=types, first_day=first_day, **rules)
        self._are_dates = checked.days_are_dates
        rows = checked.query(query)
        if "text" in types:
            self._database.begin()
            try:
                self._add_texts(rows, path)
                self._database.commit()
            except BaseException:
                self._database.rollback()
                raise
            return
        before = self._num_rows()
        self._insert(rows)
        if self._num_rows() == before:
            raise _no_row(path)
        first = first_of(
            self._database,
            "SELECT problem, rowid FROM rows WHERE problem IS NOT NULL ORDER BY rowid LIMIT 1",
        )
        if first is not None:
            raise _refused(first[0], first[1] - before + 1, path)

    def _num_rows(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM rows").fetchall()[0][0])

    def _add_texts(self, query: str, path: Path) -> None:
        seen, texts = 0, Texts()
        for batch in self._texts.sql(query).to_arrow_reader(_TEXTS_AT_ONCE):
            problems = batch["problem"]
            if problems.null_count < len(problems):
                row = int(pc.index(problems.is_valid(), True).as_py())
                raise _refused(problems[row].as_py(), seen + row + 1, path)
            self._add_tokens(batch, seen, texts)
            seen += len(batch)
        if not seen:
            raise _no_row(path)
        self.texts.add(texts)

    def _add_tokens(self, batch: pa.RecordBatch, seen: int, texts: Texts) -> None:
        tokens = self._tokenizer.rows(pa.chunked_array([batch["word"]]))
        is_empty = tokens.sizes == 0
        texts.add(Texts(number=len(batch), empty=int(is_empty.sum()), dropped=tokens.dropped))
        # Who wrote nothing but empty texts is a user, too.
        times = np.maximum(tokens.sizes, 1)
        ids = np.full(int(times.sum()), -1, dtype=np.int32)
        has_word = np.repeat(~is_empty, times)
        ids[has_word] = tokens.word_ids
        of_text = np.repeat(np.arange(len(batch)), times)
        self.add_piece(
            batch["user"].take(pa.array(of_text)),
            pa.DictionaryArray.from_arrays(
                pa.array(ids, mask=~has_word), pa.array(tokens.words, pa.string())
            ),
            pa.array(has_word.astype(np.int64)),
            row=pa.array(of_text + (seen + 1)),
            day=batch["day"].take(pa.array(of_text)),
        )


def _refused(problem: str, row: int, path: Path) -> Exception:
    if problem == NO_RECORD:
        return duckdb.InvalidInputException(f"no object of JSON in row {row}")
    message, has_value, value = problem.partition("\0")
    if has_value:
        is_plain = _PLAIN.fullmatch(value) and len(value) <= _LONGEST_SHOWN
        message += value if is_plain else shown(value)
    return InputError(f"{message} in row {row} of {path}.")


def _no_row(path: Path) -> InputError:
    return InputError(f"Expected at least one row, got only a header in {path}.")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what a file holds and nobody can read into one line; not the want of memory or disk."""
    try:
        with readable(path):
            yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise
        raise unreadable(path, error) from None
