"""Table files: Parquet, CSV and JSON Lines, read into columns and written whole or not at all.

Text columns stay text: ``nan``, ``null``, ``NA``, ``true`` and ``007`` are words.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from fedhh.validation import InputError

_TEXT = pa.dictionary(pa.int32(), pa.string())
# Of bytes; the longest line that can be read.
_BLOCK_SIZE = 2**24
_ROWS_AT_ONCE = 2**18
_UNREADABLE = (OSError, EOFError, zlib.error, pa.ArrowInvalid)


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns; of JSON Lines, the keys of the first record.

    Raises:
        InputError: The file is missing, a directory, unreadable, empty or malformed, or its
            extension is unknown.
    """
    table_format = _format_of(path)
    if not path.exists():
        raise InputError(f"Expected an existing file, got {path}; check the path.")
    if path.is_dir():
        raise InputError(f"Expected a file, got the directory {path}; name a file in it.")
    with _readable(path):
        names = table_format.header(path)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"Expected distinct columns in {path}, got {repeated[0]!r} twice.")
    return names


def read_columns(path: Path, names: Mapping[str, str]) -> pa.Table:
    """Return the named columns of a file.

    Args:
        path: A file whose header `read_header` has returned.
        names: The file's column for each of ``user``, ``word`` or ``text``, and ``count``.
            Counts that no record of JSON Lines has are left out.

    Returns:
        A table with the keys of ``names`` as columns, as the file has them or as dictionaries of
        the same values. CSV has only text.

    Raises:
        InputError: The file is unreadable or malformed.
    """
    with _readable(path):
        return _format_of(path).read(path, names)


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write columns user, word (one dictionary array) and count in the extension's format.

    The file appears whole or not at all.

    Raises:
        InputError: The extension is unknown, or the file cannot be written.
    """
    table_format = _format_of(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with _opened(temporary, "wb", compressed=_is_gzip(path)) as file:
                table_format.write(file, rows)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Expected a file that can be written, got {path}: {reason}.") from None


def has_free_records(path: Path) -> bool:
    """Return whether records may differ in their columns, as in JSON Lines."""
    return _format_of(path) is _JSON


def require_known_extension(path: Path) -> None:
    """Raise InputError unless the path ends in a known extension."""
    _format_of(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"Expected a readable {path.name}, got {path}: {reason}.") from None


@contextmanager
def _opened(path: Path, mode: str, *, compressed: bool) -> Iterator[BinaryIO]:
    with path.open(mode) as raw:
        if not compressed:
            yield raw  # type: ignore[misc]  # A binary mode gives a binary file.
        else:
            # No time stamp and no name: the same rows give the same bytes.
            with gzip.GzipFile("", mode, compresslevel=6, fileobj=raw, mtime=0) as file:
                yield file  # type: ignore[misc]


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _parquet_header(path: Path) -> list[str]:
    names: list[str] = pa.parquet.read_schema(path).names
    return names


def _read_parquet(path: Path, names: Mapping[str, str]) -> pa.Table:
    texts = [names[role] for role in ("user", "word") if role in names]
    # Only string columns follow `read_dictionary`; others are left as they are.
    table = pa.parquet.read_table(path, columns=list(names.values()), read_dictionary=texts)
    return table.select(list(names.values())).rename_columns(list(names))


def _csv_header(path: Path) -> list[str]:
    first = next(filter(None, csv.reader(_text_lines(path))), None)
    if first is None:
        raise InputError(f"Expected a header line, got an empty file {path}.")
    return first


def _read_csv(path: Path, names: Mapping[str, str]) -> pa.Table:
    types = {name: pa.string() if role == "text" else _TEXT for role, name in names.items()}
    try:
        with _opened(path, "rb", compressed=_is_gzip(path)) as file:
            table = pa.csv.read_csv(
                file,
                read_options=pa.csv.ReadOptions(block_size=_BLOCK_SIZE),
                parse_options=pa.csv.ParseOptions(newlines_in_values="text" in names),
                convert_options=pa.csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(names.values()),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
    except pa.ArrowInvalid as error:
        _refuse_csv(path, error)
        raise
    return table.rename_columns(list(names))


def _refuse_csv(path: Path, error: pa.ArrowInvalid) -> None:
    """Name the line that Arrow could not read; its own message does not."""
    rows = csv.reader(_text_lines(path), strict=True)
    width = 0
    try:
        for row in filter(None, rows):
            width = width or len(row)
            if len(row) != width:
                raise InputError(
                    f"Expected {width} fields as in the header, got {len(row)} on line "
                    f"{rows.line_num} of {path}."
                )
    except csv.Error as problem:
        raise InputError(
            f"Expected valid CSV, got {problem} on line {rows.line_num} of {path}."
        ) from error


def _json_header(path: Path) -> list[str]:
    _, record = next(_json_records(path), (0, {}))
    if not record:
        raise InputError(f"Expected a JSON object on each line, got an empty file {path}.")
    return list(record)


def _read_json(path: Path, names: Mapping[str, str]) -> pa.Table:
    # Arrow wants one type for all users; the first record tells which.
    _, first = next(_json_records(path))
    whole_user = isinstance(first[names["user"]], int)
    kinds = {"user": pa.int64() if whole_user else pa.string(), "count": pa.float64()}
    schema = pa.schema([(name, kinds.get(role, pa.string())) for role, name in names.items()])
    try:
        with _opened(path, "rb", compressed=_is_gzip(path)) as file:
            table = pa.json.read_json(
                file,
                read_options=pa.json.ReadOptions(block_size=_BLOCK_SIZE),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        table.validate(full=True)
    except pa.ArrowInvalid:
        _refuse_json(path, names, int if whole_user else str)
        raise
    table = table.select(list(names.values())).rename_columns(list(names))
    if "count" in names and table["count"].null_count == table.num_rows:
        table = table.drop_columns(["count"])
    return table


def _refuse_json(path: Path, names: Mapping[str, str], user_type: type) -> None:
    """Name the line that Arrow could not read; it counts within its own blocks."""
    kinds: dict[str, tuple[type, ...]] = {"user": (user_type,), "count": (int, float)}
    words = {int: "an integer", str: "text", float: "a number"}
    for line, record in _json_records(path):
        for role, name in names.items():
            allowed = kinds.get(role, (str,))
            value = record.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, allowed)):
                raise InputError(
                    f"Expected {words[allowed[-1]]} in {name!r}, got {json.dumps(value)} on line "
                    f"{line} of {path}."
                )


def _json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers and objects."""
    for line, text in enumerate(_text_lines(path), start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(
                f"Expected valid JSON, got {error.msg} in column {error.colno} on line {line} of "
                f"{path}."
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"Expected a JSON object on each line, got line {line} of {path}.")
        yield line, record


def _text_lines(path: Path) -> Iterator[str]:
    """Yield the decoded lines of a text file, plain or gzip."""
    with _opened(path, "rb", compressed=_is_gzip(path)) as file:
        for number, line in enumerate(file, start=1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"Expected UTF-8 text, got other bytes on line {number} of {path}; save the "
                    "file as UTF-8."
                ) from None


def _write_parquet(file: BinaryIO, rows: pa.Table) -> None:
    pa.parquet.write_table(rows, file, compression="zstd")


def _write_csv(file: BinaryIO, rows: pa.Table) -> None:
    file.write(b"user,word,count\n")
    for batch in _encoded_rows(rows, _csv_cell, missing=""):
        lines = [f"{user},{word},{count}\n" for user, word, count in batch]
        file.write("".join(lines).encode())


def _csv_cell(word: str) -> str:
    cell = io.StringIO(newline="")
    csv.writer(cell, lineterminator="").writerow([word])
    return cell.getvalue()


def _write_json(file: BinaryIO, rows: pa.Table) -> None:
    for batch in _encoded_rows(rows, functools.partial(json.dumps, ensure_ascii=False), "null"):
        lines = [
            f'{{"user": {user}, "word": {word}, "count": {count}}}\n' for user, word, count in batch
        ]
        file.write("".join(lines).encode())


def _encoded_rows(
    rows: pa.Table, encode: Callable[[str], str], missing: str
) -> Iterator[Iterator[tuple[int, str, int]]]:
    """Yield rows in pieces, each distinct word encoded once."""
    column = rows["word"].chunk(0)
    # Of no word, the last entry stands in: the index -1.
    words = [encode(word) for word in column.dictionary.to_pylist()] + [missing]
    ids = column.indices.fill_null(-1).to_numpy()
    users, counts = rows["user"].to_numpy(), rows["count"].to_numpy()
    for first in range(0, len(ids), _ROWS_AT_ONCE):
        piece = slice(first, first + _ROWS_AT_ONCE)
        yield zip(
            users[piece].tolist(),
            [words[i] for i in ids[piece].tolist()],
            counts[piece].tolist(),
            strict=True,
        )


@dataclass(frozen=True, kw_only=True)
class _TableFormat:
    header: Callable[[Path], list[str]]
    read: Callable[[Path, Mapping[str, str]], pa.Table]
    write: Callable[[BinaryIO, pa.Table], None]


_PARQUET = _TableFormat(header=_parquet_header, read=_read_parquet, write=_write_parquet)
_CSV = _TableFormat(header=_csv_header, read=_read_csv, write=_write_csv)
_JSON = _TableFormat(header=_json_header, read=_read_json, write=_write_json)

_FORMATS = {
    ".parquet": _PARQUET,
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".jsonl": _JSON,
    ".jsonl.gz": _JSON,
    ".ndjson": _JSON,
    ".ndjson.gz": _JSON,
}


def _format_of(path: Path) -> _TableFormat:
    for extension, table_format in _FORMATS.items():
        if path.name.lower().endswith(extension):
            return table_format
    raise InputError(
        f"Unknown kind of file {path.name!r}; known extensions: {', '.join(_FORMATS)}."
    )
