"""The columns of a file as numbers: each row's user, word and count; what is none is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.tables import is_text
from fedhh.clients.reading.tokens import folded
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import nfc

Ids = npt.NDArray[np.int64]
Whole = npt.NDArray[np.integer[Any]]

_LARGEST_COUNT = 2**31 - 1
# What is looked through in pieces stays in the cache, and needs no other memory.
_ROWS_AT_ONCE = 2**18
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.0*)?\s*")


def dictionary_encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class UserRows:
    """Whose the rows of a file are. Users are numbered in the order of their first rows.

    Attributes:
        num_clients: Number of users, those without a row included.
        offsets: ``(num_clients + 1,) int64``, where each user's rows follow each other in the
            order of users: user i's are ``offsets[i] : offsets[i + 1]``.
        numbers: ``(rows,) int64``, where they do not.
    """

    num_clients: int
    offsets: Ids | None = None
    numbers: Ids | None = None

    def of_rows(self) -> Ids:
        """Return ``(rows,) int64``: each row's user."""
        if self.numbers is not None:
            return self.numbers
        assert self.offsets is not None
        return np.repeat(np.arange(self.num_clients), np.diff(self.offsets))

    def where(self, kept: npt.NDArray[np.bool_]) -> UserRows:
        """Return the same users with some of the rows."""
        if self.offsets is None:
            return replace(self, numbers=self.of_rows()[kept])
        left_before = np.searchsorted(np.flatnonzero(~kept), self.offsets)
        return replace(self, offsets=self.offsets - left_before)

    def repeated(self, times: Ids) -> UserRows:
        """Return the same users with each row so many times."""
        return replace(self, offsets=None, numbers=np.repeat(self.of_rows(), times))


def user_rows(column: pa.ChunkedArray, path: Path) -> UserRows:
    """Return whose each row is; a row without a user is refused."""
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        # Users in order of their numbers, as in files of our own, are already numbered.
        offsets = _offsets(column.to_numpy())
        if offsets is not None:
            return UserRows(num_clients=len(offsets) - 1, offsets=offsets)
    codes, users = encoded_users(column, path)
    num_clients, numbers = _renumber_by_first_row(codes, len(users))
    return UserRows(num_clients=num_clients, numbers=numbers)


def encoded_users(column: pa.ChunkedArray, path: Path) -> tuple[Ids, pa.Array]:
    """Return whose each row is, as codes into what users are called; refuses as `user_rows`."""
    encoded = dictionary_encoded(column)
    refuse_nulls(encoded, "user", path)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    users = encoded.dictionary
    if is_text(users.type):
        _refuse_text(codes, users, "user", path)
        blank = np.asarray(pc.equal(users, "").to_numpy(zero_copy_only=False))
        refuse_first(blank[codes], "Expected a user, got none", path)
    return codes, users


def _offsets(numbers: npt.NDArray[np.integer[Any]]) -> Ids | None:
    """Return where ascending numbers change, with both ends; None if they do not ascend."""
    changes = [np.zeros(1, dtype=np.int64)]
    for first in range(0, len(numbers), _ROWS_AT_ONCE):
        piece = numbers[first : first + _ROWS_AT_ONCE + 1]
        if (piece[1:] < piece[:-1]).any():
            return None
        changes.append(np.flatnonzero(piece[1:] != piece[:-1]) + (first + 1))
    return np.concatenate([*changes, [len(numbers)]])


def words_ascend(offsets: Ids, word_ids: Whole) -> bool:
    """Return whether each user's words ascend, no word twice."""
    is_first = np.zeros(len(word_ids) + 1, dtype=bool)
    is_first[offsets] = True
    for first in range(0, len(word_ids), _ROWS_AT_ONCE):
        piece = word_ids[first : first + _ROWS_AT_ONCE + 1]
        falls = piece[1:] <= piece[:-1]
        if (falls & ~is_first[first + 1 : first + len(piece)]).any():
            return False
    return True


def _renumber_by_first_row(codes: Ids, size: int) -> tuple[int, Ids]:
    first_row = np.full(size, len(codes), dtype=np.int64)
    # Assigned from the back: what stays is the first row.
    first_row[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first_row, kind="stable")
    used = int((first_row < len(codes)).sum())
    number = np.empty(size, dtype=np.int64)
    number[order] = np.arange(size)
    return used, number[codes]


def word_rows(column: pa.ChunkedArray, path: Path) -> tuple[list[str], Whole]:
    """Return the sorted distinct words, and each row's word or -1 for none."""
    encoded = dictionary_encoded(column)
    texts = encoded.dictionary
    codes: Whole = encoded.indices.fill_null(len(texts)).to_numpy()
    _refuse_text(codes, texts, "word", path)
    used = np.zeros(len(texts) + 1, dtype=bool)
    used[codes] = True
    order = pc.sort_indices(texts).to_numpy().astype(np.int64)
    blank = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    kept = order[used[order] & ~blank[order].astype(bool)]
    words: list[str] = texts.take(pa.array(kept)).to_pylist()
    if not used[-1] and np.array_equal(kept, np.arange(len(texts))):
        return words, codes
    number = np.full(len(texts) + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))
    return words, number[codes]


def formed_rows(words: list[str], word_ids: Whole, layout: Layout) -> tuple[list[str], Whole]:
    """Return the sorted words in Unicode form NFC or that of texts, and each row's one.

    A word of which nothing would be left stays as it is.

    Args:
        words: Distinct words.
        word_ids: ``(rows,)``: each row's word, or -1.
        layout: Whether the form is that of texts, and of which language.
    """
    forms = [nfc(word) for word in words]
    if layout.fold_case:
        forms = [folded(word, layout.language) or word for word in forms]
    elif forms == words:
        return words, word_ids
    distinct = sorted(set(forms))
    place = {word: i for i, word in enumerate(distinct)}
    # The last one is for -1.
    number = np.array([*(place[form] for form in forms), -1], dtype=np.int32)
    return distinct, number[word_ids]


def _refuse_text(codes: Whole, texts: Any, what: str, path: Path) -> None:
    """Refuse bytes that are not UTF-8, and line breaks, which an unclosed quote leaves behind."""
    refuse_bytes(texts, what, path, codes)
    breaks = pc.match_substring_regex(texts, r"[\r\n]").to_numpy(zero_copy_only=False)
    if breaks.any():
        refuse_first(
            np.r_[breaks.astype(bool), False][codes],
            f"Expected a {what} without a line break (is a quote unclosed?), got one",
            path,
        )


def refuse_bytes(texts: Any, what: str, path: Path, codes: Whole | None = None) -> None:
    """Refuse bytes that are not UTF-8, in texts or in those that the codes of rows stand for."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        bad = np.array([not _is_utf8(value.as_buffer()) for value in texts])
        bad = bad if codes is None else np.r_[bad, False][codes]
        refuse_first(bad, f"Expected a {what} in UTF-8", path)


def _is_utf8(value: Any) -> bool:
    try:
        value.to_pybytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def count_rows(column: pa.ChunkedArray, path: Path) -> Whole:
    """Return each row's count, at most 2^31 - 1; the caller refuses 0 where there is a word."""
    if pa.types.is_dictionary(column.type) or is_text(column.type):
        encoded = dictionary_encoded(column)
        refuse_nulls(encoded, "count", path)
        codes = encoded.indices.to_numpy()
        texts = [str(value) for value in encoded.dictionary.to_pylist()]
        whole = np.array([_WHOLE_NUMBER.fullmatch(text) is not None for text in texts])
        _refuse_counts(~whole[codes], lambda row: shown(texts[codes[row]]), path)
        values = np.array([float(text) for text in texts], dtype=np.float64)[codes]
    else:
        refuse_nulls(column, "count", path)
        if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            whole_counts: Whole = column.to_numpy()
            if (
                len(whole_counts)
                and not 0 <= whole_counts.min() <= whole_counts.max() <= _LARGEST_COUNT
            ):
                bad = (whole_counts < 0) | (whole_counts > _LARGEST_COUNT)
                _refuse_counts(bad, lambda row: f"{float(whole_counts[row]):.15g}", path)
            return whole_counts
        values = column.to_numpy().astype(np.float64)
    bad = ~((values >= 0) & (values <= _LARGEST_COUNT) & (values == np.floor(values)))
    _refuse_counts(bad, lambda row: f"{values[row]:.15g}", path)
    counts: Ids = values.astype(np.int64)
    return counts


def _refuse_counts(bad: npt.NDArray[np.bool_], show: Any, path: Path) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Expected a whole count from 1 to {_LARGEST_COUNT}, got count={show(row)} in row "
            f"{row + 1} of {path}."
        )


def rows_with_a_word(word_ids: Whole, counts: Whole, path: Path) -> npt.NDArray[np.bool_] | None:
    """Return which rows have a word, None if all have one."""
    if word_ids.min() >= 0 and counts.min() > 0:
        return None
    has_word = word_ids >= 0
    _refuse_counts(has_word & (counts == 0), lambda row: str(counts[row]), path)
    refuse_first(~has_word & (counts > 0), "Expected a word, got none", path)
    return has_word


def refuse_nulls(column: Any, what: str, path: Path) -> None:
    """Refuse a column where a row has no value."""
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        refuse_first(missing, f"Expected a {what}, got none", path)


def refuse_first(bad: npt.NDArray[np.bool_], message: str, path: Path) -> None:
    """Refuse the first row of which something is bad."""
    if bad.any():
        raise InputError(f"{message} in row {int(bad.argmax()) + 1} of {path}.")
