"""Populations in files: where they are, reading and writing them.

A file has a row for each (user, word) with how often the user typed the word, or a row for each
text of a user. Formats: Parquet, CSV (also .gz), JSON Lines (.jsonl or .ndjson, also .gz).
"""

from __future__ import annotations

import codecs
import functools
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from fedhh.clients.clients import Clients
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.rows import Rows
from fedhh.clients.reading.tables import CSV, JSON, PARQUET, kind_of, literal
from fedhh.system.files import unwritable, whole_file
from fedhh.system.object_storage import as_address, place_of, temporary_copy
from fedhh.system.reading import opened
from fedhh.validation import InputError, reason_of

STANDARD_INPUT = "-"
"""The source that stands for what is written into the program."""
INPUT_NAME = "standard input"
"""What messages and titles call it."""

_LOOKED_AT = 2**12
"""Bytes of standard input by which it is a table of some kind."""


def read_file(source: str | Path, layout: Layout | None = None, *, unit: str = "user") -> Clients:
    """Return the clients in a file.

    Columns: ``user`` (or ``user_id``), ``word`` and ``count``, or ``user`` and ``text``. Without a
    count, every row counts once; rows of the same user and word are added up. Words are brought to
    Unicode form NFC, so that two spellings of the same symbols are one word; text is tokenized by
    the rule of `fedhh.clients.reading.tokens`. Users stand in the order of a hash of what they are
    called, 7 and "7" being one; words are sorted. A row with no word and the count 0 stands for a
    user that holds nothing. Rows in messages are counted from 1, without the header.

    Args:
        source: A file whose extension tells its format, or `STANDARD_INPUT`.
        layout: How the file is laid out, where that differs from the usual.
        unit: What one user of the file is: a user, a nick, a post.

    Raises:
        InputError: The file is missing, unreadable, malformed or empty, lacks a column, or has a
            row without a user or a word, or with a count that is not a whole number from 1.
    """
    layout = layout or Layout()
    with file_here(source) as path, closing(Rows(layout)) as rows:
        rows.add_file(path)
        return rows.clients(name_of(source), unit)


def name_of(source: str | Path) -> str:
    """Return what a report calls a source."""
    return INPUT_NAME if str(source) == STANDARD_INPUT else Path(source).name


@contextmanager
def file_here(source: str | Path, name: str = "", folder: Path | None = None) -> Iterator[Path]:
    """Yield the path of a file; of what is elsewhere, a copy, which messages name by its source.

    Args:
        source: A path, an address in object storage, or `STANDARD_INPUT`.
        name: Of the file below it, if it is a directory.
        folder: Where a copy of an address goes.
    """
    address, called = as_address(source), str(Path(source, name))
    here: AbstractContextManager[Path] = nullcontext(Path(called))
    if str(source) == STANDARD_INPUT:
        here, called = nullcontext(kept_input()), INPUT_NAME
    elif address is not None and folder is not None:
        called = f"{place_of(address)}/{name}".rstrip("/")
        here = temporary_copy(address, name, folder)
    with here as path:
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), called)) from None


@functools.cache
def kept_input() -> Path:
    """Return a file with standard input, which is read once and kept until the program ends."""
    if sys.stdin is None:
        raise InputError(f"Expected rows on {INPUT_NAME}, got a closed one.")
    copy = Path(_kept_folder().name, INPUT_NAME)
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with copy.open("rb") as file:
        ending = ".gz" if file.read(2) == b"\x1f\x8b" else ""
    copy, start = copy.rename(copy.with_name(INPUT_NAME + ending)), b""
    # What is damaged is refused where it is read.
    with suppress(OSError, EOFError, zlib.error), opened(copy) as packed:
        start = packed.read(_LOOKED_AT).removeprefix(codecs.BOM_UTF8)
    kind = ".jsonl" if start.lstrip().startswith(b"{") else ".csv"
    if start.startswith(b"PAR1"):
        kind = ".parquet"
    return copy.rename(copy.with_name(f"{INPUT_NAME}{kind}{ending}"))


@functools.cache
def _kept_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fedhh-input-")


def write_population(population: Clients, path: str | Path) -> None:
    """Write a population as rows user, word, count; the extension tells the format.

    Users are numbers. A client that holds nothing is a row with no word and the count 0. The file
    appears whole or not at all; the same population gives the same bytes.

    Args:
        population: The clients.
        path: Of the file.

    Raises:
        InputError: The extension is unknown, or the file cannot be written.
    """
    path = Path(path)
    kind = kind_of(path)
    if not path.parent.is_dir():
        raise unwritable(path, "No such file or directory")
    # The file is a temporary one already.
    options = [f"FORMAT {kind}", "USE_TMP_FILE false"]
    options += {PARQUET: ["COMPRESSION zstd"], CSV: ["HEADER"], JSON: []}[kind]
    options += ["COMPRESSION gzip"] if path.suffix.lower() == ".gz" else []
    rows = _rows_of(population)
    try:
        with whole_file(path) as temporary, closing(duckdb.connect()) as database:
            database.register("rows", rows)
            place = literal(str(temporary))
            database.execute(f"COPY rows TO {place} ({', '.join(options)})")
    except OSError as error:
        raise unwritable(path, str(error.strerror or error)) from None
    except duckdb.Error as error:
        # Newer versions of DuckDB give the number, older ones its text behind the temporary name.
        number = re.search(r'"errno":"(\d+)"', str(error))
        reason = reason_of(error).rpartition('": ')[2]
        raise unwritable(path, os.strerror(int(number[1])) if number else reason) from None


def _rows_of(population: Clients) -> pa.Table:
    items = population.items
    is_empty = np.diff(items.offsets) == 0
    clients = np.repeat(items.clients, np.diff(items.offsets))
    # Clients without a word get a row too, and are read back as clients.
    places = np.searchsorted(clients, items.clients[is_empty])
    word_ids = np.insert(items.word_ids, places, -1)
    words = pa.array(population.lexicon.words, type=pa.string())
    return pa.table(
        {
            "user": np.insert(clients, places, items.clients[is_empty]),
            "word": pa.DictionaryArray.from_arrays(pa.array(word_ids, mask=word_ids < 0), words),
            "count": np.insert(items.counts, places, 0),
        }
    )
