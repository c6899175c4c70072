"""Populations in files: reading and writing them.

A file has a row for each (user, word) with how often the user typed the word, or a row for each
text of a user. Formats: Parquet, CSV (also .gz), JSON Lines (.jsonl or .ndjson, also .gz).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedhh.clients.clients import Clients
from fedhh.clients.reading.columns import Layout, find_columns
from fedhh.clients.reading.rows import Rows, Texts
from fedhh.clients.reading.tables import kind_of
from fedhh.clients.reading.writing import write_rows
from fedhh.validation import InputError
from fedhh.words.languages import ENGLISH
from fedhh.words.lexicon import Lexicon


@dataclass(frozen=True, kw_only=True, eq=False)
class FileContent:
    """What a file holds.

    Attributes:
        population: Its users and their words.
        texts: What of its texts is no word; nothing of counted words.
    """

    population: Clients
    texts: Texts = field(default_factory=Texts)


def read_population(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
    fold_case: bool = False,
    language: str = ENGLISH,
    unit: str = "user",
) -> Clients:
    """Return the population in a file.

    Columns: ``user`` (or ``user_id``), ``word`` and ``count``, or ``user`` and ``text``. Without a
    count, every row counts once; rows of the same user and word are added up. Words are brought to
    Unicode form NFC, so that two spellings of the same symbols are one word; text is tokenized by
    the rule of `fedhh.clients.reading.tokens`. Users stand in the order of a hash of what they are
    called, 7 and "7" being one; words are sorted. A row with no word and the count 0 stands for a
    user that holds nothing. Rows in messages are counted from 1, without the header.

    Args:
        path: A file whose extension tells its format.
        columns: The file's names for ``user``, ``word``, ``count`` or ``text``, where they differ.
        separator: What separates the columns of CSV, or "tab"; None: a comma.
        fold_case: Bring counted words to the form that texts have, see `tokens.folded`; the counts
            of words that become one are added up.
        language: Of the words, by its code: whose rules of case hold.
        unit: What one user of the file is: a user, a nick, a post.

    Raises:
        InputError: The file is missing, unreadable, malformed or empty, lacks a column, or has a
            row without a user or a word, or with a count that is not a whole number from 1.
    """
    layout = Layout(
        columns=columns or {}, separator=separator, fold_case=fold_case, language=language
    )
    return read_file(path, layout, unit=unit).population


def read_file(
    path: str | Path, layout: Layout, *, unit: str = "user", name: str | None = None
) -> FileContent:
    """Return the population in a file, and what of its texts is no word.

    Args:
        path: As for `read_population`.
        layout: How the file is laid out.
        unit: What one user of the file is.
        name: What a report calls the population; None for the file's name.

    Raises:
        InputError: As `read_population`.
    """
    path = Path(path)
    with closing(Rows(layout)) as rows:
        rows.add_file(path)
        return FileContent(population=_population(rows, name or path.name, unit), texts=rows.texts)


def _population(rows: Rows, name: str, unit: str = "user") -> Clients:
    numbered = rows.numbered()
    sizes, word_ids, counts = zip(*numbered.clients(name), strict=True)
    return Clients(
        name=name,
        lexicon=Lexicon(words=numbered.words),
        offsets=np.r_[0, np.cumsum(np.concatenate(sizes))],
        word_ids=np.concatenate(word_ids),
        counts=np.concatenate(counts),
        unit=unit,
        arrangement="random",
    )


def population_of_table(
    rows: pa.Table,
    *,
    columns: Mapping[str, str] | None = None,
    fold_case: bool = False,
    language: str = ENGLISH,
    name: str = "table",
) -> Clients:
    """Return the population in an Arrow table, by the rules of `read_population`.

    Args:
        rows: Columns as a file has them.
        columns: The table's names of columns, see `read_population`.
        fold_case: As for `read_population`.
        language: As for `read_population`.
        name: Of the table, for messages and titles.

    Raises:
        InputError: As `read_population`.
    """
    layout = Layout(columns=columns or {}, fold_case=fold_case, language=language)
    with closing(Rows(layout)) as found:
        found.add_table(rows, name)
        return _population(found, name)


def read_texts(path: str | Path, layout: Layout) -> FileContent:
    """Return the population in a file of texts, and what of them is no word.

    Raises:
        InputError: As `read_population`, or the file holds counted words.
    """
    path = Path(path)
    if "text" not in find_columns(path, layout):
        raise InputError(f"Expected a column 'text', got counted words already in {path}.")
    return read_file(path, layout)


def write_population(population: Clients, path: str | Path) -> None:
    """Write a population as rows user, word, count; the extension tells the format.

    A client that holds nothing is a row with no word and the count 0. The file appears whole or not
    at all.

    Args:
        population: The clients.
        path: Of the file.

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


def prepare_text(
    in_path: str | Path,
    out_path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
    language: str = ENGLISH,
) -> FileContent:
    """Count the words of each user's texts, write them as user, word, count, and return them.

    Users are numbers, so that names do not go on.

    Args:
        in_path: A file with a row for each text, as in `read_population`.
        out_path: Where to write, as in `write_population`.
        columns: The file's names for ``user`` and ``text``, where they differ.
        separator: What separates the columns of CSV, or "tab"; None: a comma.
        language: As for `read_population`.

    Raises:
        InputError: As `read_population` and `write_population` do.
    """
    kind_of(Path(out_path))
    layout = Layout(columns=columns or {}, separator=separator, language=language)
    content = read_texts(in_path, layout)
    write_population(content.population, out_path)
    return content
