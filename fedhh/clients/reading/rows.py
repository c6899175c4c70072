"""Rows of files and frames in one table of DuckDB: whose, which word, how often, on which day.

Users are a keyed hash of what they are called, as text: 7 and "7" are one. Texts are tokenized on
their way into the table. Once all rows are there, each distinct word has its form and its number.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from fedhh.arrays import Ints, SmallInts
from fedhh.clients.clients import Clients, Table, Texts
from fedhh.clients.reading.columns import Layout, find_columns
from fedhh.clients.reading.rules import LARGEST_COUNT, NOUNS, Counts, are_dates, formed
from fedhh.clients.reading.tables import (
    JSON,
    kind_of,
    lacks_room,
    literal,
    readable,
    rows_by_python,
    scan,
    scan_table,
)
from fedhh.clients.reading.tokens import Tokenizer, folded
from fedhh.system.machine import memory_bytes
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import nfc
from fedhh.words.lexicon import Lexicon

_TEXTS_AT_ONCE = 2**16
_ROWS_AT_ONCE = 2**20
_SHARE_OF_MEMORY = 0.4
"""Of the machine's, what DuckDB takes before it goes on on disk."""
_PLAIN = re.compile(r"[-+]?[0-9.]+|-?inf|nan|(true|false|NaN|[\[{\"][ -~]*)")
"""Values that a message shows as they are: numbers, and what JSON has."""
_LONGEST_SHOWN = 100

_INSERT = """
    INSERT INTO rows SELECT high, low, {words}, row, day, called FROM (
        SELECT *, md5_number_upper({salt} || user) AS high, md5_number_lower({salt} || user) AS low,
            {called} AS called FROM ({rows})
    )
"""
# Who wrote nothing but empty texts is a user, too.
_WORDS_OF_TEXT = """
    unnest(list_resize(word, greatest(len(word), 1))),
    unnest(list_resize([least(len(word), 1)], greatest(len(word), 1), 1))
"""
_CHECKED = """
    SELECT * REPLACE (CASE WHEN problem IS NULL THEN count ELSE error(problem) END AS count)
    FROM ({rows})
"""
_FIRST_PROBLEM = """
    SELECT problem, number FROM (SELECT problem, row_number() OVER () AS number FROM ({rows}))
    WHERE problem IS NOT NULL LIMIT 1
"""
_SORTED = """
    SELECT r.high, r.low, w.id, sum(r.count)::BIGINT AS count
    FROM rows r LEFT JOIN words w USING (word)
    GROUP BY ALL ORDER BY r.high, r.low, w.id NULLS LAST
"""


class Rows:
    """The rows of any number of files and frames.

    Attributes:
        texts: What of them was no word.
        are_dates: Whether days, which they have if they are dated, are dates.
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
        self.are_dates = False
        self.texts = Texts()
        self._database = duckdb.connect(":memory:" if place is None else str(place / "rows.duckdb"))
        # Texts are read while their words are added.
        self._texts = self._database.cursor()
        most = memory or int(_SHARE_OF_MEMORY * memory_bytes())
        # Made where memory does not suffice, and removed at the end.
        spilled = place or Path(tempfile.gettempdir()) / f"fedhh-{secrets.token_hex(8)}"
        self._database.execute(
            f"SET memory_limit = '{most // 2**20}MiB'; SET enable_progress_bar = false;"
            f"SET temp_directory = {literal(str(spilled / 'spilled'))};"
            "CREATE TABLE rows (high UBIGINT, low UBIGINT, word VARCHAR, count BIGINT, row BIGINT, "
            "day BIGINT, called VARCHAR)"
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
        counts: Counts = "all",
    ) -> None:
        """Add the rows of a file.

        Args:
            path: A file whose extension tells its kind.
            names: Its columns by their roles; None to find them by the layout.
            nouns: What messages call a user and a word.
            counts: Which rows have a count, if there is a column of counts.

        Raises:
            InputError: As `fedhh.clients.reading.sources.read_file`.
        """
        names = dict(find_columns(path, self._layout) if names is None else names)
        if kind_of(path) == JSON and "word" in names and "count" not in names:
            # A record after the first may have a count.
            names["count"], counts = "count", "none"
        with readable(path):
            try:
                query = scan(path, names, self._layout.separator)
                self._add(query, path, nouns=nouns, counts=counts)
            except (duckdb.Error, OSError) as error:
                if lacks_room(error):
                    raise
                table = rows_by_python(path, names, self._layout.separator)
                if table is None:
                    raise
                self._add_view(table, names, path, nouns=nouns, counts=counts)

    def add_table(self, table: pa.Table, names: Mapping[str, str], called: str) -> None:
        """Add the rows of an Arrow table, whose columns have some names; refuses as `add_file`."""
        path = Path(called)
        with readable(path):
            self._add_view(table, names, path)

    def add_piece(self, users: pa.Array, words: pa.Array, counts: pa.Array) -> None:
        """Add rows that are right as they are: text, text or null, and counts."""
        columns = {"user": users, "word": words, "count": counts}
        self._insert("SELECT *, NULL AS row, NULL AS day FROM piece", pa.table(columns))

    def _insert(self, rows: str, piece: Any = None, words: str = "word, count") -> int:
        """Add the rows of a query, which may be one of ``piece``."""
        if piece is not None:
            self._database.register("piece", piece)
        called = "user" if self._dated else "NULL"
        query = _INSERT.format(salt=self._salt, called=called, rows=rows, words=words)
        return int(self._database.execute(query).fetchall()[0][0])

    def _add_view(
        self, table: pa.Table, names: Mapping[str, str], path: Path, **rules: Any
    ) -> None:
        # Before the types: an empty column of pandas may have none.
        if not table.num_rows:
            raise InputError(f"Expected at least one row, got none in {path}.")
        chosen = table.select(list(names.values()))
        # DuckDB trusts what Arrow says.
        chosen.validate(full=True)
        for connection in (self._database, self._texts):
            connection.register("frame", chosen)
        self._add(scan_table(chosen.schema, "frame", names, path), path, **rules)

    def _add(self, query: str, path: Path, **rules: Any) -> None:
        found = self._database.sql(query)
        types = {name: str(kind) for name, kind in zip(found.columns, found.types, strict=True)}
        first_day = None
        if self._dated:
            first = self._first_of(f"SELECT day::VARCHAR FROM ({query}) LIMIT 1")
            first_day = "" if first is None else first[0] or ""
            self.are_dates = are_dates(types, first_day)
        rows = formed(query, types, first_day=first_day, **rules)
        add = self._add_texts if "text" in types else self._insert
        self._database.begin()
        try:
            number = add(_CHECKED.format(rows=rows))
            self._database.commit()
        except BaseException as error:
            self._database.rollback()
            # As the latter, Arrow says what DuckDB did in the middle of texts.
            if isinstance(error, duckdb.InvalidInputException | OSError):
                self._refuse(rows, path)
            raise
        if not number:
            raise InputError(f"Expected at least one row, got only a header in {path}.")

    def _refuse(self, rows: str, path: Path) -> None:
        """Name the first row that is wrong, if one is."""
        problem, row = self._first_of(_FIRST_PROBLEM.format(rows=rows)) or ("", 0)
        if problem:
            message, has_value, value = problem.partition("\0")
            if has_value:
                is_plain = _PLAIN.fullmatch(value) and len(value) <= _LONGEST_SHOWN
                message += value if is_plain else shown(value)
            raise InputError(f"{message} in row {row} of {path}.")

    def _add_texts(self, query: str) -> int:
        texts = Texts()
        for batch in self._texts.sql(query).to_arrow_reader(_TEXTS_AT_ONCE):
            words = self._tokenizer.words(batch["word"], texts.dropped)
            sizes = words.value_lengths().to_numpy()
            texts.number += len(batch)
            texts.empty += int((sizes == 0).sum())
            texts.kept += int(sizes.sum())
            piece = pa.table({name: batch[name] for name in batch.schema.names} | {"word": words})
            self._insert("FROM piece", piece, words=_WORDS_OF_TEXT)
        self.texts.add(texts)
        return texts.number

    @cached_property
    def words(self) -> list[str]:
        """The distinct words, sorted, once there are all rows.

        Their form is Unicode's NFC, so that two spellings of the same symbols are one word, or that
        of texts, where the layout folds case; a word of which nothing would be left stays as it is.
        """
        query = "SELECT DISTINCT word FROM rows WHERE word IS NOT NULL ORDER BY word"
        found: list[str] = self.table(query)["word"].to_pylist()
        forms = [nfc(word) for word in found]
        if self._layout.fold_case:
            forms = [folded(word, self._layout.language) or word for word in forms]
        words, ids = found, np.arange(len(found), dtype=np.int32)
        if forms != found:
            words = sorted(set(forms))
            number = {word: i for i, word in enumerate(words)}
            ids = np.array([number[form] for form in forms], dtype=np.int32)
        table = pa.table({"word": pa.array(found, pa.large_string()), "id": ids})
        self._database.register("numbered", table)
        self._database.execute(
            "CREATE TABLE words AS SELECT word::VARCHAR AS word, id FROM numbered"
        )
        self._database.unregister("numbered")
        return words

    def clients(self, name: str, unit: str) -> Clients:
        """Return the users, in the order of their hash.

        Args:
            name: What a report calls them; also for messages.
            unit: What one of them is.

        Raises:
            InputError: As `pieces`.
        """
        lexicon = Lexicon(words=self.words)
        starts, word_ids, counts = map(np.concatenate, zip(*self.pieces(name), strict=True))
        clients = Clients(
            Table(lexicon, np.r_[starts, len(word_ids)], word_ids, counts),
            name=name,
            unit=unit,
            arrangement="random",
        )
        clients.texts = self.texts
        return clients

    def pieces(self, name: str) -> Iterator[tuple[Ints, SmallInts, SmallInts]]:
        """Yield what users hold, in the order of their hash; those are numbered by then.

        Args:
            name: Of the rows, for messages.

        Yields:
            For each user that begins in a piece, how many words all before it have; the ids of the
            piece's words, ascending within a user; and their counts.

        Raises:
            InputError: A user's counts of a word sum to 2^31 or more.
        """
        num_rows, last = 0, np.zeros((2, 0), dtype=np.uint64)
        for batch in self._database.sql(_SORTED).to_arrow_reader(_ROWS_AT_ONCE):
            users = np.stack([batch.column(i).to_numpy() for i in (0, 1)])
            counts = batch.column(3).to_numpy()
            if counts.max() > LARGEST_COUNT:
                raise InputError(
                    f"Expected a client's counts of a word to sum to at most {LARGEST_COUNT}, got "
                    f"{counts.max()} in {name}."
                )
            changes = (np.diff(users, prepend=last) != 0).any(axis=0)
            is_first = changes if last.size else np.r_[True, changes]
            has_word = batch.column(2).is_valid().to_numpy(zero_copy_only=False)
            before = num_rows + np.cumsum(has_word) - has_word
            ids = batch.column(2).fill_null(0).to_numpy()
            yield before[is_first], ids[has_word], counts[has_word].astype(np.int32)
            num_rows, last = num_rows + int(has_word.sum()), users[:, -1:]

    def table(self, query: str) -> pa.Table:
        """Return a query of the table ``rows``, and of ``words`` once they are numbered."""
        return self._database.sql(query).to_arrow_table()

    def _first_of(self, query: str) -> Any:
        """Return the only row of a query; None if it has none."""
        return next(iter(self._database.execute(query).fetchall()), None)
