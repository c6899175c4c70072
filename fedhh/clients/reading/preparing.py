"""Makes prepared populations from files of any size, in any order of users, by external sorting.

DuckDB sorts the rows by a keyed hash of their users, in memory of a bounded size and on disk beyond
it. Words are brought to their form, and rows are refused, by the rules of reading a file.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fedhh.clients.populations.prepared import Manifest
from fedhh.clients.populations.prepared_writer import PreparedWriter
from fedhh.clients.reading.columns import Layout, find_columns
from fedhh.clients.reading.rows import (
    Whole,
    count_rows,
    encoded_users,
    formed_rows,
    refuse_bytes,
    refuse_nulls,
    rows_with_a_word,
    word_rows,
)
from fedhh.clients.reading.sources import with_late_counts
from fedhh.clients.reading.tables import (
    column_pieces,
    has_known_extension,
    readable,
    require_known_extension,
)
from fedhh.clients.reading.tokens import tokenize_all
from fedhh.system.files import is_there, whole_directory
from fedhh.system.machine import memory_bytes
from fedhh.system.object_storage import (
    RemoteFile,
    as_address,
    place_of,
    remote_files,
    temporary_copy,
)
from fedhh.validation import InputError

if TYPE_CHECKING:
    import duckdb

_LARGEST_COUNT = 2**31 - 1
_ROWS_AT_ONCE = 2**20
_MOST_NAMED = 20
"""Sources that a manifest names."""
_SHARE_OF_MEMORY = 0.4
"""Of the machine's, what DuckDB takes before it goes on on disk."""

_SORTED = """
    SELECT k.high, k.low, w.id, sum(k.count)::BIGINT AS count
    FROM rows k LEFT JOIN words w USING (word)
    GROUP BY ALL ORDER BY k.high, k.low, w.id NULLS LAST
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """Some rows: whose, which word, how often.

    Attributes:
        users: ``(rows,)`` text.
        words: Distinct words.
        word_ids: ``(rows,)`` into ``words``; -1 for a user that may hold nothing.
        counts: ``(rows,)``, at least 1 where there is a word.
    """

    users: pa.Array
    words: list[str]
    word_ids: Whole
    counts: Whole


@dataclass(kw_only=True, eq=False)
class Texts:
    """What of texts is no word, collected while they are read."""

    texts: int = 0
    empty_texts: int = 0
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What was prepared.

    Attributes:
        manifest: Of the directory.
        texts: What of texts is no word; nothing of counted words.
    """

    manifest: Manifest
    texts: Texts


def prepare_files(
    sources: Sequence[str | Path],
    out: Path,
    layout: Layout,
    *,
    salt: str | None,
    memory: int | None,
) -> Prepared:
    """Prepare the clients of files, or of all files in directories, as one population.

    Users are compared as text: 7 and "7" are one. A CSV or JSON Lines file is read at once, a
    Parquet file in pieces.

    Args:
        sources: Files, and directories whose files have known extensions, others being ignored; of
            both also addresses in object storage, whose files are copied here one by one.
        out: Where the directory goes, and nothing stands.
        layout: How the files are laid out.
        salt: Key of the order of users; random, and not kept, if None.
        memory: Bytes that sorting takes in memory; None for a share of the machine's.

    Raises:
        InputError: As `fedhh.clients.reading.sources.read_population`, or nothing can be written.
    """
    files = [file for source in sources for file in _files_of(source)]
    texts = Texts()
    pieces = (piece for file in files for piece in file.pieces(out, layout, texts))
    addresses = [as_address(source) for source in sources]
    places = [
        str(source) if address is None else place_of(address)
        for source, address in zip(sources, addresses, strict=True)
    ]
    name = ", ".join(Path(place).name for place in places[:_MOST_NAMED])
    if left := len(places[_MOST_NAMED:]):
        name += f" and {left:,} more"
    manifest = prepare_pieces(
        pieces, out, name=name, language=layout.language, salt=salt, memory=memory,
        made={"from": places[:_MOST_NAMED], "files": len(files)},
    )  # fmt: skip
    return Prepared(manifest=manifest, texts=texts)


def prepare_pieces(
    pieces: Iterable[Piece],
    out: Path,
    *,
    name: str,
    language: str,
    made: dict[str, Any],
    unit: str = "user",
    salt: str | None = None,
    memory: int | None = None,
) -> Manifest:
    """Write a prepared population from rows in any order; rows of one user and word are added up.

    The directory appears whole or not at all.

    Args:
        pieces: The rows.
        out: Where the directory goes, and nothing stands.
        name: What a report calls the population.
        language: By whose rules the words were brought to their form.
        made: How it was made, for the manifest.
        unit: What one client stands for.
        salt: As for `prepare_files`, and so is ``memory``.
        memory: Bytes.

    Raises:
        InputError: There is no row, counts of a word sum to 2^31 or more, or it cannot be written.
    """
    if is_there(out):
        raise InputError(f"Expected a path where nothing stands, got {out}; name another one.")
    # Of a name that is too long, pathlib raises.
    if not os.path.isdir(out.parent):
        raise _unwritable(out, "No such file or directory")
    try:
        with whole_directory(out) as place:
            sorting = place / "sorting"
            sorting.mkdir()
            with _named(out), closing(_database(sorting, memory)) as database:
                _collect(database, pieces, salt or secrets.token_hex(16))
                with closing(PreparedWriter(place, _words(database))) as writer:
                    _write_sorted(database, writer, out)
                    manifest = writer.finish(name=name, unit=unit, language=language, made=made)
            shutil.rmtree(sorting)
    except OSError as error:
        raise _unwritable(out, error.strerror or str(error)) from None
    return manifest


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file to read: here, or below an address."""

    path: Path
    address: str = ""
    remote: RemoteFile | None = None

    def pieces(self, out: Path, layout: Layout, texts: Texts) -> Iterator[Piece]:
        if self.remote is None:
            yield from _pieces_of(self.path, layout, texts)
            return
        with temporary_copy(self.address, self.remote, out.parent) as copy:
            try:
                yield from _pieces_of(copy, layout, texts)
            except InputError as error:
                # What is wrong is where the user can find it.
                there = f"{place_of(self.address)}/{self.remote.name}".rstrip("/")
                raise InputError(str(error).replace(str(copy), there)) from None


def _files_of(source: str | Path) -> list[_File]:
    address = as_address(source)
    if address is not None:
        remote = remote_files(address)
        listed = [_File(path=Path(f.path), address=address, remote=f) for f in remote]
        is_whole = len(remote) == 1 and not remote[0].name
    else:
        is_whole = not os.path.isdir(source)
        paths = [Path(source)] if is_whole else sorted(Path(source).rglob("*"))
        listed = [_File(path=path) for path in paths if is_whole or path.is_file()]
    if is_whole:
        require_known_extension(listed[0].path)
        return listed
    # What begins with a sign is no part of a data set by Spark's and Hive's rules.
    found = [
        file
        for file in listed
        if has_known_extension(file.path) and not file.path.name.startswith((".", "_"))
    ]
    if not found:
        raise InputError(
            f"Expected Parquet, CSV or JSON Lines files in {source}, found none; name a directory "
            "that has some."
        )
    return found


def _pieces_of(path: Path, layout: Layout, texts: Texts) -> Iterator[Piece]:
    names = with_late_counts(find_columns(path, layout), path)
    with readable(path):
        empty = True
        for table in column_pieces(path, names, layout.separator):
            if table.num_rows:
                empty = False
                yield _piece_of(table, path, layout, texts)
        if empty:
            raise InputError(f"Expected at least one row, got only a header in {path}.")


def _piece_of(table: pa.Table, path: Path, layout: Layout, texts: Texts) -> Piece:
    codes, called = encoded_users(table["user"], path)
    called = called.cast(pa.string())
    if "word" in table.column_names:
        words, word_ids = formed_rows(*word_rows(table["word"], path), layout)
        counts: Whole = np.ones(len(word_ids), dtype=np.int64)
        if "count" in table.column_names:
            counts = count_rows(table["count"], path)
        rows_with_a_word(word_ids, counts, path)
        return Piece(users=called.take(codes), words=words, word_ids=word_ids, counts=counts)
    refuse_nulls(table["text"], "text", path)
    refuse_bytes(table["text"], "text", path)
    tokens = tokenize_all(table["text"], layout.language)
    is_empty = tokens.sizes == 0
    texts.texts += len(tokens.sizes)
    texts.empty_texts += int(is_empty.sum())
    texts.dropped.update(tokens.dropped)
    # Who wrote nothing but empty texts is a user, too.
    users = np.concatenate([np.repeat(codes, tokens.sizes), codes[is_empty]])
    nothing = np.full(int(is_empty.sum()), -1)
    counts = np.ones(len(users), dtype=np.int64)
    counts[len(tokens.word_ids) :] = 0
    return Piece(
        users=called.take(users),
        words=tokens.words,
        word_ids=np.concatenate([tokens.word_ids, nothing]),
        counts=counts,
    )


def _database(place: Path, memory: int | None) -> duckdb.DuckDBPyConnection:
    import duckdb

    database = duckdb.connect(str(place / "rows.duckdb"))
    most = memory or int(_SHARE_OF_MEMORY * memory_bytes())
    database.execute(f"SET memory_limit = '{most // 2**20}MiB'")
    database.execute("SET preserve_insertion_order = false")
    database.execute("SET enable_progress_bar = false")
    database.execute("SET temp_directory = ?", [str(place / "spilled")])
    return database


def _collect(database: duckdb.DuckDBPyConnection, pieces: Iterable[Piece], salt: str) -> None:
    database.execute("CREATE TABLE rows (high UBIGINT, low UBIGINT, word VARCHAR, count BIGINT)")
    for piece in pieces:
        ids = pa.array(piece.word_ids.astype(np.int32), mask=piece.word_ids < 0)
        words = pa.DictionaryArray.from_arrays(ids, pa.array(piece.words, type=pa.string()))
        counts = pa.array(piece.counts.astype(np.int64))
        table = pa.table({"called": piece.users, "word": words, "n": counts})
        database.register("piece", table)
        database.execute(
            "INSERT INTO rows SELECT md5_number_upper(? || called), "
            "md5_number_lower(? || called), word, n FROM piece",
            [salt, salt],
        )
        database.unregister("piece")


def _words(database: duckdb.DuckDBPyConnection) -> list[str]:
    """Number the distinct words in their order, and return them."""
    query = "SELECT DISTINCT word FROM rows WHERE word IS NOT NULL ORDER BY word"
    words: list[str] = database.sql(query).to_arrow_table()["word"].to_pylist()
    # Arrow's text may be larger than one array holds.
    table = pa.table({"word": words, "id": np.arange(len(words), dtype=np.int32)})
    database.register("numbered", table)
    database.execute("CREATE TABLE words AS SELECT * FROM numbered")
    database.unregister("numbered")
    return words


def _write_sorted(database: duckdb.DuckDBPyConnection, writer: PreparedWriter, out: Path) -> None:
    """Hand the rows over user by user; what a piece's last user still gets waits for the next."""
    waiting: list[np.ndarray[Any, Any]] = [np.zeros(0, dtype=np.int64)] * 4
    batches = database.sql(_SORTED).to_arrow_reader(_ROWS_AT_ONCE)
    for batch in batches:
        high, low = (batch.column(i).to_numpy().view(np.int64) for i in (0, 1))
        ids = batch.column(2).fill_null(-1).to_numpy().astype(np.int64)
        fresh = (high, low, ids, batch.column(3).to_numpy())
        rows = [np.concatenate(each) for each in zip(waiting, fresh, strict=True)]
        changes = np.flatnonzero((np.diff(rows[0]) != 0) | (np.diff(rows[1]) != 0)) + 1
        last = int(changes[-1]) if len(changes) else 0
        _add(writer, [each[:last] for each in rows], changes[:-1], out)
        waiting = [each[last:] for each in rows]
    if not len(waiting[0]):
        raise InputError(f"Expected at least one row, got none for {out}.")
    _add(writer, waiting, np.zeros(0, dtype=np.int64), out)


def _add(writer: PreparedWriter, rows: list[np.ndarray[Any, Any]], changes: Any, out: Path) -> None:
    _, _, ids, counts = rows
    if not len(ids):
        return
    if counts.max() > _LARGEST_COUNT:
        raise InputError(
            f"Expected a client's counts of a word to sum to at most {_LARGEST_COUNT}, got "
            f"{counts.max()} for {out}."
        )
    has_word = ids >= 0
    sizes = np.add.reduceat(has_word.astype(np.int64), np.r_[0, changes])
    writer.add(sizes, ids[has_word].astype(np.int32), counts[has_word].astype(np.int32))


@contextmanager
def _named(out: Path) -> Iterator[None]:
    """Turn what DuckDB cannot do, for want of memory or disk, into one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise _unwritable(out, reason.rstrip(".")) from None


def _unwritable(out: Path, reason: str) -> InputError:
    return InputError(f"Expected a directory that can be written, got {out}: {reason}.")
