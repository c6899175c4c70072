"""Populations in files: reading and writing them.

A file has a row for each (user, word) with how often the user typed the word, or a row for each
text of a user. Formats: Parquet, CSV (also .gz), JSON Lines (.jsonl or .ndjson, also .gz).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.reading.tables import (
    has_free_records,
    is_text,
    list_names,
    read_columns,
    read_header,
    readable,
    write_rows,
)
from fedhh.clients.reading.tokens import tokenize_all
from fedhh.validation import InputError, require_choice, shown
from fedhh.words.lexicon import Lexicon

_Ids = npt.NDArray[np.int64]

_NAMES = {
    "user": ("user", "user_id"),
    "word": ("word",),
    "count": ("count",),
    "text": ("text",),
}
_LARGEST_COUNT = 2**31 - 1
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.0*)?\s*")


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
    if "word" in names and has_free_records(path):
        # The first record tells the columns, but a later one may have the first count.
        names.setdefault("count", _NAMES["count"][0])
    table = read_columns(path, names)
    if not table.num_rows:
        raise InputError(f"Expected at least one row, got only a header in {path}.")
    users, num_clients = _user_numbers(table["user"], path)
    if "word" in names:
        words, word_ids = _words(table["word"], path)
        counts = (
            _counts(table["count"], path)
            if "count" in table.column_names
            else np.ones(len(users), dtype=np.int64)
        )
        holds = _rows_with_a_word(word_ids, counts, path)
        if not holds.all():
            users, word_ids, counts = users[holds], word_ids[holds], counts[holds]
    else:
        _refuse_nulls(table["text"], "text", path)
        _refuse_bytes(table["text"], "text", path)
        tokens = tokenize_all(table["text"])
        users, words, word_ids = users[tokens.texts], tokens.words, tokens.word_ids
        dropped = tokens.dropped
        counts = None
    population = StoredPopulation.from_rows(
        name=path.name,
        lexicon=Lexicon(words=words),
        clients=users,
        word_ids=word_ids,
        counts=counts,
        num_clients=num_clients,
        unit=unit,
    )
    return population, dropped


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
    """Return the file's columns for user, word and perhaps count, or for user and text.

    Args:
        found: The file's columns.
        columns: Names that the caller gave.
        path: For the message.

    Raises:
        InputError: A name is missing, or a key of ``columns`` is unknown.
    """
    for role in columns:
        require_choice(_NAMES, column=role)
    wanted = {role: (columns[role],) if role in columns else _NAMES[role] for role in _NAMES}
    names = {
        role: next(name for name in wanted[role] if name in found)
        for role in _NAMES
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
        names = {"user": names["user"], "text": names["text"]}
    return names


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as one array of codes into its distinct values."""
    if pa.types.is_dictionary(column.type):
        whole = column.unify_dictionaries().combine_chunks()
    else:
        # Joined first: Arrow encodes chunk by chunk, and unifying those takes long. Large strings,
        # because all rows together may pass 2 GB.
        whole = column.cast(pa.large_string()) if is_text(column.type) else column
        whole = whole.combine_chunks()
        whole = whole.dictionary_encode()
    # Of one chunk, some versions of Arrow make a chunked array, others an array.
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _user_numbers(column: pa.ChunkedArray, path: Path) -> tuple[_Ids, int]:
    """Return each row's user, numbered in the order of first rows, and how many there are."""
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        numbers = column.to_numpy()
        if (numbers[1:] >= numbers[:-1]).all():
            # Users in order of their numbers, as in files of our own, are already numbered.
            ranked: _Ids = np.cumsum(np.r_[False, numbers[1:] != numbers[:-1]], dtype=np.int64)
            return ranked, int(ranked[-1]) + 1
    encoded = _encoded(column)
    _refuse_nulls(encoded, "user", path)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    users = encoded.dictionary
    if is_text(users.type):
        _refuse_text(codes, users, "user", path)
        blank = np.asarray(pc.equal(users, "").to_numpy(zero_copy_only=False))
        _refuse_first(blank[codes], "Expected a user, got none", path)
    numbered, codes = _renumber_by_first_row(codes, len(users))
    return codes, numbered


def _renumber_by_first_row(codes: _Ids, size: int) -> tuple[int, _Ids]:
    first_row = np.full(size, len(codes), dtype=np.int64)
    # Assigned from the back: what stays is the first row.
    first_row[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first_row, kind="stable")
    used = int((first_row < len(codes)).sum())
    number = np.empty(size, dtype=np.int64)
    number[order] = np.arange(size)
    return used, number[codes]


def _words(column: pa.ChunkedArray, path: Path) -> tuple[list[str], _Ids]:
    """Return the sorted distinct words, and each row's word or -1 for none."""
    encoded = _encoded(column)
    texts = encoded.dictionary
    codes = encoded.indices.fill_null(len(texts)).to_numpy().astype(np.int64)
    _refuse_text(codes, texts, "word", path)
    used = np.zeros(len(texts) + 1, dtype=bool)
    used[codes] = True
    order = pc.sort_indices(texts).to_numpy().astype(np.int64)
    blank = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    kept = order[used[order] & ~blank[order].astype(bool)]
    number = np.full(len(texts) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    words: list[str] = texts.take(pa.array(kept)).to_pylist()
    return words, number[codes]


def _refuse_text(codes: _Ids, texts: Any, what: str, path: Path) -> None:
    """Refuse bytes that are not UTF-8, and line breaks, which an unclosed quote leaves behind."""
    _refuse_bytes(texts, what, path, codes)
    breaks = pc.match_substring_regex(texts, r"[\r\n]").to_numpy(zero_copy_only=False)
    _refuse_first(
        np.r_[breaks.astype(bool), False][codes],
        f"Expected a {what} without a line break (is a quote unclosed?), got one",
        path,
    )


def _refuse_bytes(texts: Any, what: str, path: Path, codes: _Ids | None = None) -> None:
    """Refuse bytes that are not UTF-8, in texts or in those that the codes of rows stand for."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        bad = np.array([not _is_utf8(value.as_buffer()) for value in texts])
        bad = bad if codes is None else np.r_[bad, False][codes]
        _refuse_first(bad, f"Expected a {what} in UTF-8", path)


def _is_utf8(value: Any) -> bool:
    try:
        value.to_pybytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def _counts(column: pa.ChunkedArray, path: Path) -> _Ids:
    """Return each row's count, ``int64`` from 0; the caller refuses 0 where there is a word."""
    if pa.types.is_dictionary(column.type) or is_text(column.type):
        encoded = _encoded(column)
        _refuse_nulls(encoded, "count", path)
        codes = encoded.indices.to_numpy()
        texts = [str(value) for value in encoded.dictionary.to_pylist()]
        whole = np.array([_WHOLE_NUMBER.fullmatch(text) is not None for text in texts])
        _refuse_counts(~whole[codes], lambda row: shown(texts[codes[row]]), path)
        values = np.array([float(text) for text in texts], dtype=np.float64)[codes]
    else:
        _refuse_nulls(column, "count", path)
        if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            whole_counts: _Ids = column.to_numpy().astype(np.int64)
            bad = (whole_counts < 0) | (whole_counts > _LARGEST_COUNT)
            _refuse_counts(bad, lambda row: f"{float(whole_counts[row]):.15g}", path)
            return whole_counts
        values = column.to_numpy().astype(np.float64)
    bad = ~((values >= 0) & (values <= _LARGEST_COUNT) & (values == np.floor(values)))
    _refuse_counts(bad, lambda row: f"{values[row]:.15g}", path)
    counts: _Ids = values.astype(np.int64)
    return counts


def _refuse_counts(bad: npt.NDArray[np.bool_], show: Any, path: Path) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Expected a whole count from 1 to {_LARGEST_COUNT}, got count={show(row)} in row "
            f"{row + 1} of {path}."
        )


def _rows_with_a_word(word_ids: _Ids, counts: _Ids, path: Path) -> npt.NDArray[np.bool_]:
    has_word = word_ids >= 0
    _refuse_counts(has_word & (counts == 0), lambda row: str(counts[row]), path)
    _refuse_first(~has_word & (counts > 0), "Expected a word, got none", path)
    return has_word


def _refuse_nulls(column: Any, what: str, path: Path) -> None:
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        _refuse_first(missing, f"Expected a {what}, got none", path)


def _refuse_first(bad: npt.NDArray[np.bool_], message: str, path: Path) -> None:
    if bad.any():
        raise InputError(f"{message} in row {int(bad.argmax()) + 1} of {path}.")
