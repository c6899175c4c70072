"""What is read back from a directory: bounded regular files, checked, and no code of theirs."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedhh import plugins
from fedhh.system.reading import read_bytes, require_regular
from fedhh.validation import InputError, shown

LARGEST_TABLE = 2**31
"""Bytes of a Parquet file, and of what it says that it unpacks to."""

MOST_CELLS = 2**28
"""Rows times columns of a table."""

Kind = Literal["text", "int", "float", "bool"]
"""Of a column; "float" holds integers too."""

Schema = Mapping[str, Kind]
"""The columns that a table must have, with their kinds; it may have others."""

_KINDS: dict[Kind, tuple[Any, ...]] = {
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary),
    "int": (pa.types.is_integer,),
    "float": (pa.types.is_floating, pa.types.is_integer),
    "bool": (pa.types.is_boolean,),
}

_DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    AssertionError, pa.ArrowException,
)  # fmt: skip
"""What damaged values raise where they are used, and errors in what uses them."""


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """Read a directory, and print or draw what it holds, without importing what it names.

    Raises:
        InputError: What it holds is damaged, or fedhh has an error, which nothing tells apart
            here; the environment's FEDHH_TRACEBACK raises the cause.
    """
    with plugins.disabled():
        try:
            yield
        except InputError:
            raise
        except _DAMAGE as error:
            if os.environ.get("FEDHH_TRACEBACK"):
                raise
            raise InputError(
                f"fedhh failed on {directory} ({type(error).__name__}: {shown(str(error))}): an "
                "error of its own, or files that were changed or are of another version; "
                "FEDHH_TRACEBACK=1 shows where."
            ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the table that a JSON file of a directory holds."""
    try:
        content = json.loads(_content(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged ({shown(str(error))}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: expected a table.")
    return content


def read_text(path: Path) -> str:
    """Return a text file of a directory; what is no UTF-8 is replaced."""
    return _content(path).decode("utf-8", errors="replace")


def read_table(path: Path, schema: Schema) -> pd.DataFrame:
    """Return a Parquet file of a directory."""
    return frame_of(read_arrow(path), schema, path)


def read_arrow(path: Path) -> pa.Table:
    """Return a Parquet file of a directory with the metadata of its schema, unchecked."""
    require_there(path)
    try:
        if path.stat().st_size > LARGEST_TABLE:
            raise InputError(f"Expected at most {LARGEST_TABLE:,} bytes, got more in {path}.")
        with path.open("rb") as file, pq.ParquetFile(file) as parquet:
            facts = parquet.metadata
            unpacked = sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
            names = parquet.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"{path} is damaged (two columns have one name).")
            if facts.num_rows * facts.num_columns > MOST_CELLS or unpacked > LARGEST_TABLE:
                raise InputError(f"Expected at most {MOST_CELLS:,} cells, got more in {path}.")
            return parquet.read()
    except InputError:
        raise
    except (OSError, *_DAMAGE) as error:
        raise InputError(f"{path} is missing or damaged ({shown(str(error))}).") from None


def frame_of(table: pa.Table, schema: Schema, path: Path) -> pd.DataFrame:
    """Return a table that was read, its columns checked; one without any column is empty."""
    if table.num_columns:
        for name, kind in schema.items():
            _check(table, name, kind, path)
    try:
        frame: pd.DataFrame = table.to_pandas()
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged ({shown(str(error))}).") from None
    return frame


def read_csv(path: Path, schema: Schema) -> pd.DataFrame:
    """Return the columns of a CSV file of a directory that a schema names."""
    dtypes: dict[str, Any] = {"text": str, "int": "int64", "float": "float64", "bool": bool}
    content = io.BytesIO(_content(path))
    try:
        with warnings.catch_warnings():
            # Of a float that is no integer.
            warnings.simplefilter("error", RuntimeWarning)
            return pd.read_csv(
                content,
                usecols=list(schema),
                dtype={name: dtypes[kind] for name, kind in schema.items()},
            )
    except (RuntimeWarning, *_DAMAGE) as error:
        raise InputError(f"{path} is damaged ({shown(str(error))}).") from None


def is_flat(values: Iterable[Any]) -> bool:
    """Return whether values are those of a row: numbers of 64 bits, texts, or none."""
    return all(
        value is None
        or isinstance(value, str | float)
        or (isinstance(value, int) and -(2**63) <= value < 2**63)
        for value in values
    )


def described(content: Any, kinds: Mapping[str, type[Any]]) -> dict[str, Any]:
    """Return a table of JSON, its values checked.

    Raises:
        KeyError, TypeError: A key is missing, its value is of another type, or a list holds
            anything but texts.
    """
    for key, kind in kinds.items():
        value = content[key]
        texts = not isinstance(value, list) or all(isinstance(part, str) for part in value)
        if not (isinstance(value, kind) and texts):
            raise TypeError(f"{key} is no {kind.__name__}")
    checked: dict[str, Any] = content
    return checked


def require_there(path: Path) -> None:
    """Raise InputError unless a regular file stands at a path."""
    try:
        require_regular(path)
    except InputError as error:
        raise InputError(f"{path} is missing or damaged: {error}") from None


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None


def _check(table: pa.Table, name: str, kind: Kind, path: Path) -> None:
    """Raise InputError unless a table has a column once, of a kind, with a value in each row."""
    if table.column_names.count(name) != 1:
        raise InputError(f"{path} is damaged: expected one column {name!r}.")
    column = table.column(name)
    if not table.num_rows:
        return
    found = column.type
    if not any(is_kind(found) for is_kind in _KINDS[kind]):
        raise InputError(f"{path} is damaged: expected {kind} in column {name!r}, got {found}.")
    if column.null_count and kind != "float":
        raise InputError(f"{path} is damaged: expected a value in each row of column {name!r}.")
