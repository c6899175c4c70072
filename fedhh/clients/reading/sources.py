"""Populations in files: reading and writing them.

A file has a row for each (user, word) with how often the user typed the word, or a row for each
text of a user. Formats: Parquet, CSV (also .gz), JSON Lines (.jsonl or .ndjson, also .gz).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.reading.rows import (
    Whole,
    count_rows,
    refuse_bytes,
    refuse_nulls,
    rows_with_a_word,
    user_rows,
    word_rows,
    words_ascend,
)
from fedhh.clients.reading.tables import (
    has_free_records,
    list_names,
    read_columns,
    read_header,
    readable,
    write_rows,
)
from fedhh.clients.reading.tokens import tokenize_all
from fedhh.validation import InputError, require_choice
from fedhh.words.lexicon import Lexicon

_NAMES = {
    "user": ("user", "user_id"),
    "word": ("word",),
    "count": ("count",),
    "text": ("text",),
}
DAY = "day"
"""The usual name of a column of days, and its role; no other reader asks for it."""


def read_population(
    path: str | Path, *, columns: Mapping[str, str] | None = None, unit: str = "user"
) -> StoredPopulation:
    """Return the population in a file.

    Columns: ``user`` (or ``user_id``), ``word`` and ``count``, or ``user`` and ``text``. Without a
    count, every row counts once; rows of the same user and word are added up. Words stay as they
    are; text is tokenized by the rule of `fedhh.clients.reading.tokens`. Users are numbered in the
    order of their first row, words are sorted. A row with no word and the count 0 stands for a user
    that holds nothing. Rows in messages are counted from 1, without the header.

    Args:
        path: A file whose extension tells its format.
        columns: The file's names for ``user``, ``word``, ``count`` or ``text``, where they differ.
        unit: What one user of the file is: a user, a nick, a post.

    Raises:
        InputError: The file is missing, unreadable, malformed or empty, lacks a column, or has a
            row without a user or a word, or with a count that is not a whole number from 1.
    """
    path = Path(path)
    names = choose_columns(read_header(path), columns or {}, path)
    with readable(path):
        return _read(path, names, unit)[0]


def read_texts(
    path: str | Path, *, columns: Mapping[str, str] | None = None
) -> tuple[StoredPopulation, Counter[tuple[str, str]]]:
    """Return the population in a file of texts, and what `tokens.tokenize` dropped of them.

    Raises:
        InputError: As `read_population`, or the file holds counted words.
    """
    path = Path(path)
    names = choose_columns(read_header(path), columns or {}, path)
    if "text" not in names:
        raise InputError(f"Expected a column 'text', got counted words already in {path}.")
    with readable(path):
        return _read(path, names, "user")


def _read(
    path: Path, names: dict[str, str], unit: str
) -> tuple[StoredPopulation, Counter[tuple[str, str]]]:
    dropped: Counter[tuple[str, str]] = Counter()
    table = read_columns(path, with_late_counts(names, path))
    if not table.num_rows:
        raise InputError(f"Expected at least one row, got only a header in {path}.")
    users = user_rows(table["user"], path)
    counts: Whole | None
    if "word" in names:
        words, word_ids = word_rows(table["word"], path)
        counts = (
            count_rows(table["count"], path)
            if "count" in table.column_names
            else np.ones(len(word_ids), dtype=np.int32)
        )
        holds = rows_with_a_word(word_ids, counts, path)
        if holds is not None:
            users, word_ids, counts = users.where(holds), word_ids[holds], counts[holds]
        if users.offsets is not None and words_ascend(users.offsets, word_ids):
            # As in files of our own: that is how a population is held.
            return StoredPopulation(
                name=path.name,
                lexicon=Lexicon(words=words),
                offsets=users.offsets,
                word_ids=word_ids.astype(np.int32, copy=False),
                counts=counts.astype(np.int32, copy=False),
                unit=unit,
            ), dropped
    else:
        refuse_nulls(table["text"], "text", path)
        refuse_bytes(table["text"], "text", path)
        tokens = tokenize_all(table["text"])
        users, words, word_ids = users.repeated(tokens.sizes), tokens.words, tokens.word_ids
        dropped = tokens.dropped
        counts = None
    population = StoredPopulation.from_rows(
        name=path.name,
        lexicon=Lexicon(words=words),
        clients=users.of_rows(),
        word_ids=word_ids.astype(np.int64, copy=False),
        counts=None if counts is None else counts.astype(np.int64, copy=False),
        num_clients=users.num_clients,
        unit=unit,
    )
    return population, dropped


def with_late_counts(names: dict[str, str], path: Path) -> dict[str, str]:
    """Return the columns with that of counts, which a record after the first may have."""
    if "word" in names and has_free_records(path):
        return {**names, "count": names.get("count", _NAMES["count"][0])}
    return names


def write_population(population: StoredPopulation, path: str | Path) -> None:
    """Write a population as rows user, word, count; the extension tells the format.

    Users are their numbers. A client that holds nothing is a row with no word and the count 0. The
    file appears whole or not at all.

    Raises:
        InputError: The extension is unknown, or the file cannot be written.
    """
    items = population.items
    sizes = np.diff(items.offsets)
    # Clients without a word get a row too, and are read back as clients.
    rows_per_client = np.maximum(sizes, 1)
    first_rows = np.cumsum(rows_per_client) - rows_per_client
    is_empty = np.zeros(int(rows_per_client.sum()), dtype=bool)
    is_empty[first_rows[sizes == 0]] = True
    word_ids = np.zeros(len(is_empty), dtype=np.int32)
    counts = np.zeros(len(is_empty), dtype=np.int32)
    word_ids[~is_empty] = items.word_ids
    counts[~is_empty] = items.counts
    words = pa.array(population.lexicon.words, type=pa.string())
    rows = pa.table(
        {
            "user": pa.array(np.repeat(items.clients, rows_per_client)),
            "word": pa.DictionaryArray.from_arrays(pa.array(word_ids, mask=is_empty), words),
            "count": pa.array(counts),
        }
    )
    write_rows(Path(path), rows)


def choose_columns(found: list[str], columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the file's columns for user, word and perhaps count, or user and text, or a day too.

    Args:
        found: The file's columns.
        columns: Names that the caller gave; a column of days only if it is among them.
        path: For the message.

    Raises:
        InputError: A name is missing, or a key of ``columns`` is unknown.
    """
    roles = _NAMES | ({DAY: (columns[DAY],)} if DAY in columns else {})
    for role in columns:
        require_choice(roles, column=role)
    wanted = {role: (columns[role],) if role in columns else roles[role] for role in roles}
    names = {
        role: next(name for name in wanted[role] if name in found)
        for role in roles
        if any(name in found for name in wanted[role])
    }
    missing = [role for role in columns if role not in names]
    if "user" not in names:
        missing.append("user")
    if "word" not in names and "text" not in names:
        missing.append("word")
    if missing:
        alternatives = " or ".join(repr(name) for name in wanted[missing[0]])
        raise InputError(
            f"Expected a column {alternatives} for the {missing[0]}, got the columns "
            f"{list_names(found)} in {path}; name the right one."
        )
    if "word" in names and "text" not in columns:
        names.pop("text", None)
    else:
        names = {role: names[role] for role in ("user", "text", DAY) if role in names}
    return names
