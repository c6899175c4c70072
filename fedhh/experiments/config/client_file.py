"""Clients of a file or a DataFrame, how it is laid out, and their words without the known ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedhh.clients.known_words import load_known, remove_known
from fedhh.experiments.config.schema import PopulationConfig
from fedhh.system.object_storage import as_address, local_copy
from fedhh.validation import InputError, shown
from fedhh.words.known_words import list_name
from fedhh.words.languages import ENGLISH

_LOOKED_AT = 1_000_000
"""Clients of a prepared population that are described."""

_MADE_BY = {"LazyFrame": "collect", "DuckDBPyRelation": "to_arrow_table"}
"""What makes a table of what is none yet."""

if TYPE_CHECKING:
    from fedhh.clients.clients import Clients
    from fedhh.clients.reading.columns import Layout


def load_file(config: PopulationConfig) -> Clients:
    """Return all clients and words of a file.

    Of a prepared directory, its clients where they lie; of an address or of standard input, those
    of a copy here.
    """
    from fedhh.clients.prepared import is_prepared, open_prepared
    from fedhh.clients.reading.sources import read_file

    if config.columns.day is not None:
        raise InputError(
            f"population.columns.day = {shown(config.columns.day)}: expected no column of days, "
            "since a run takes the words of all days; remove the key, or use fedhh longitudinal "
            "run."
        )
    address = as_address(config.source)
    path = Path(config.source) if address is None else local_copy(address)
    if is_prepared(path):
        refuse_layout(config)
        return open_prepared(path, config.language, address=address)
    # Of a name that is too long, pathlib raises.
    if os.path.isdir(path):
        raise InputError(
            f"Expected a file of clients or a prepared directory, got the directory {path}; "
            f"prepare it with fedhh data prepare {path} OUT, and use OUT."
        )
    return read_file(path, layout_of(config))


def looked_at(population: Clients) -> Clients:
    """Return what can be looked at at once: of a prepared population that is verified, a sample.

    Raises:
        InputError: A file of a prepared directory is damaged.
    """
    from fedhh.clients.prepared import MappedTable, verify

    if not isinstance(population.table, MappedTable):
        return population
    verify(population.table.directory)
    size = min(population.num_clients, _LOOKED_AT)
    return population.sample_clients(size, rng=np.random.default_rng(0))


class KeptFile:
    """Reads files for `build_population`, and keeps the last one, for samples of its users too."""

    def __init__(self) -> None:
        self._key: PopulationConfig | None = None
        self._clients: Clients | None = None

    def read(self, config: PopulationConfig) -> Clients:
        """Return all clients and words of a file."""
        key = config.model_copy(update={"clients": None, "known": "none"})
        if self._clients is None or self._key != key:
            self._clients = None  # Two files at a time may be more than fits.
            self._clients, self._key = load_file(config), key
        return self._clients

    def drop(self) -> None:
        """Keep nothing."""
        self._clients = None


def layout_of(config: PopulationConfig) -> Layout:
    """Return how a file is laid out."""
    from fedhh.clients.reading.columns import Layout

    return Layout(
        columns=config.columns.named,
        separator=config.separator,
        fold_case=config.fold_case,
        language=config.language,
    )


def refuse_layout(config: PopulationConfig) -> None:
    """Raise InputError if a population that is no file's says how its file is laid out."""
    given: dict[str, Any] = {f"columns.{role}": name for role, name in config.columns}
    given |= {"separator": config.separator, "fold_case": config.fold_case or None}
    for key, value in given.items():
        if value is not None:
            raise InputError(
                f"population.{key} = {shown(value)}: expected a file as population.source, got "
                f"{shown(config.source)}; remove the key."
            )


def load_population(
    path: str | Path,
    *,
    known: str | None = None,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
    fold_case: bool = False,
    language: str = ENGLISH,
) -> Clients:
    """Return the clients of a file with the words that a device would not know.

    Args:
        path: Parquet, CSV, CSV.gz or JSON Lines with columns (user, word, count) or (user, text).
        known: Known words: "scowl70", "none", the code of a language, or a file with a word per
            line; if left out, the language's list, which for "en" is "scowl70".
        columns: The file's names of columns, by "user", "word", "count" and "text", where they
            differ.
        separator: What separates the columns of CSV, or "tab"; None: a comma.
        fold_case: Bring counted words to the form that texts have: plain apostrophes, NFKC, lower
            case. The counts of words that become one are added up.
        language: Of the clients, by its code, such as "tr": whose rules of case hold.

    Raises:
        InputError: The file or the list cannot be read, or holds no client.
    """
    from fedhh.clients.reading.columns import Layout
    from fedhh.clients.reading.sources import read_file

    layout = Layout(
        columns=columns or {}, separator=separator, fold_case=fold_case, language=language
    )
    population = read_file(path, layout)
    return without_known(population, known or list_name(language), language)


def population_from(
    frame: Any,
    *,
    columns: Mapping[str, str] | None = None,
    known: str | None = None,
    fold_case: bool = False,
    language: str = ENGLISH,
    name: str = "dataframe",
) -> Clients:
    """Return the clients of a DataFrame with the words that a device would not know.

    Args:
        frame: Of pandas, polars or another library with Arrow's interface, or a table of Arrow's. A
            row for each (user, word, count), where the count may be left out, or for each
            (user, text); its index is not used. See `fedhh.clients.reading.sources`.
        columns: The frame's names of columns, by "user", "word", "count" and "text", where they
            differ.
        known: Known words: "scowl70", "none", the code of a language, or a file with a word per
            line; if left out, the language's list, which for "en" is "scowl70".
        fold_case: As for `load_population`.
        language: As for `load_population`.
        name: Of the population, in titles.

    Raises:
        InputError: A column is missing, of another type, or has a value that cannot be read.

    >>> import fedhh, pandas
    >>> frame = pandas.DataFrame({"who": ["ann", "bob"], "text": ["lol brb", "lol"]})
    >>> fedhh.population_from(frame, columns={"user": "who"}).num_clients
    2
    """
    import pyarrow as pa

    from fedhh.clients.reading.columns import Layout, choose_columns
    from fedhh.clients.reading.rows import Rows

    is_pandas = hasattr(frame, "iloc") and hasattr(frame, "columns")
    is_frame = is_pandas or (hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "select"))
    kind = type(frame)
    # DuckDB's relations select by other rules.
    if not is_frame or isinstance(frame, type) or kind.__name__ == "DuckDBPyRelation":
        cure = f"; use its {_MADE_BY[kind.__name__]}()" if kind.__name__ in _MADE_BY else ""
        raise InputError(
            "Expected a DataFrame of pandas or polars, or a table of Arrow, got a "
            f"{kind.__name__}{cure}."
        )
    # Arrow's tables have their columns themselves where others have their names.
    labels = [str(column) for column in getattr(frame, "column_names", frame.columns)]
    # Others may hold what Arrow cannot.
    names = choose_columns(labels, columns or {}, Path(name), is_file=False)
    needed = list(names.values())
    try:
        if is_pandas:
            places = [labels.index(column) for column in needed]
            cells = [pa.Array.from_pandas(frame.iloc[:, place]) for place in places]
            table = pa.table(cells, names=needed)
        else:
            table = pa.table(frame.select(needed))
    except OverflowError:
        raise InputError(
            f"Expected integers from -2^63 to 2^63 - 1 in {name}, got one beyond them."
        ) from None
    except UnicodeEncodeError as problem:
        raise InputError(f"Expected text that UTF-8 can hold in {name}, got {problem}.") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as problem:
        raise InputError(
            f"Expected columns of one type each in {name}, got {str(problem).splitlines()[0]}"
        ) from None
    with closing(Rows(Layout(fold_case=fold_case, language=language))) as rows:
        rows.add_table(table, names, name)
        population = rows.clients(name, "user")
    return without_known(population, known or list_name(language), language)


def without_known(population: Clients, known: str, language: str = ENGLISH) -> Clients:
    """Return the clients with the words that no list knows."""
    return remove_known(population, load_known(known, language))
