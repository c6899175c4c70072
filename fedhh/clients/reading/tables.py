"""Table files: Parquet, CSV and JSON Lines, read into columns and written whole or not at all.

Text columns stay text: ``nan``, ``null``, ``NA``, ``true`` and ``007`` are words. Users are text or
integers, words and texts are text, counts are numbers, days are integers or dates; a column of any
other type is refused.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import itertools
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from fedhh.clients.reading.json_lines import json_header, read_json
from fedhh.system.files import whole_file
from fedhh.system.reading import LONGEST_LINE, opened, require_regular, text_lines
from fedhh.validation import InputError, shown

COMMA = ","
"""What separates the columns of CSV, if nothing else is said."""

_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t"}
_TEXT = pa.dictionary(pa.int32(), pa.string())
# Of bytes; the longest line that can be read.
_BLOCK_SIZE = LONGEST_LINE
_ROWS_AT_ONCE = 2**18
_ROWS_OF_PIECE = 2**20
# Each has a dictionary of its words, as large as it gets.
_ROWS_PER_GROUP = 2**26
_LARGEST_DICTIONARY = 2**30
_LONGEST_LIST = 200
_UNREADABLE = (
    OSError,
    EOFError,
    MemoryError,
    OverflowError,
    RecursionError,
    UnicodeDecodeError,
    csv.Error,
    zlib.error,
    pa.ArrowException,
)


def read_header(path: Path, separator: str | None = None) -> list[str]:
    """Return the names of a file's columns; of JSON Lines, the keys of the first record.

    Args:
        path: A file whose extension tells its format.
        separator: See `separator_of`; of CSV alone.

    Raises:
        InputError: The file is missing, a directory, unreadable, empty or malformed, its
            extension is unknown, or it has no separator.
    """
    table_format = _format_of(path)
    require_regular(path)
    if separator is not None and not is_csv(path):
        raise InputError(
            f"Expected a CSV file for the separator {shown(separator)}, got {path}; remove it."
        )
    character = separator_of(separator)
    with readable(path):
        names = table_format.header(path, character)
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InputError(f"Expected distinct columns in {path}, got {shown(repeated[0])} twice.")
    return names


def separator_of(separator: str | None) -> str:
    r"""Return the character that separates columns: a sign of ASCII, or "tab".

    Raises:
        InputError: It is none.

    >>> separator_of(None), separator_of(";"), separator_of("tab")
    (',', ';', '\t')
    """
    character = _NAMED_SEPARATORS.get(separator or "", COMMA if separator is None else separator)
    is_sign = len(character) == 1 and character.isascii() and not character.isalnum()
    if not is_sign or character in '"\r\n' or not (character == "\t" or character.isprintable()):
        raise InputError(
            f"Expected one sign as separator, such as ';', '|' or tab, got {shown(separator)}."
        )
    return character


def separator_name(character: str) -> str:
    """Return a separator as it can be typed."""
    return "tab" if character == "\t" else character


def is_csv(path: Path) -> bool:
    """Return whether a file's extension says CSV."""
    return _format_of(path) is _CSV


def read_columns(path: Path, names: Mapping[str, str], separator: str | None = None) -> pa.Table:
    """Return the named columns of a file.

    Args:
        path: A file whose header `read_header` has returned.
        names: The file's column for each of ``user``, ``word`` or ``text``, ``count``, ``day``.
            Counts that no record of JSON Lines has are left out.
        separator: As for `read_header`.

    Returns:
        A table with the keys of ``names`` as columns, as the file has them or as dictionaries of
        the same values. CSV has only text.

    Raises:
        InputError: The file is unreadable or malformed.
    """
    with readable(path):
        return _format_of(path).read(path, names, separator_of(separator))


def column_pieces(
    path: Path, names: Mapping[str, str], separator: str | None = None
) -> Iterator[pa.Table]:
    """Yield what `read_columns` returns in pieces, so that a Parquet file need not fit in memory.

    A file of another format is one piece.
    """
    if _format_of(path) is not _PARQUET:
        yield read_columns(path, names, separator)
        return
    with readable(path), opened(path) as raw, pa.parquet.ParquetFile(raw) as file:
        _require_types(file.schema_arrow, names, path)
        for batch in file.iter_batches(_ROWS_OF_PIECE, columns=list(names.values())):
            piece = pa.Table.from_batches([batch])
            yield piece.select(list(names.values())).rename_columns(list(names))


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write columns user, word (one dictionary array) and count in the extension's format.

    The file appears whole or not at all.

    Raises:
        InputError: The extension is unknown, or the file cannot be written.
    """
    table_format = _format_of(path)
    if not path.parent.is_dir():
        raise InputError(
            f"Expected a file that can be written, got {path}: No such file or directory."
        )
    try:
        with (
            whole_file(path) as temporary,
            _written(temporary, compressed=path.suffix.lower() == ".gz") as file,
        ):
            table_format.write(file, rows)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Expected a file that can be written, got {path}: {reason}.") from None


def has_free_records(path: Path) -> bool:
    """Return whether records may differ in their columns, as in JSON Lines."""
    return _format_of(path) is _JSON


def has_known_extension(path: Path) -> bool:
    """Return whether the path ends in a known extension."""
    return path.name.lower().endswith(tuple(_FORMATS))


def require_known_extension(path: Path) -> None:
    """Raise InputError unless the path ends in a known extension."""
    _format_of(path)


def is_text(column_type: Any) -> bool:
    """Return whether a type of Arrow's is text, in any of its layouts."""
    return str(column_type) in ("string", "large_string", "string_view")


def list_names(names: Sequence[str]) -> str:
    """Return the names of columns for a message, cut where they are too many to be read."""
    text = ", ".join(itertools.islice(names, _LONGEST_LIST))
    return text if len(text) <= _LONGEST_LIST else f"{text[:_LONGEST_LIST]}..."


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever damaged or hostile content raises into an InputError of one line."""
    try:
        yield
    except InputError:
        raise
    except _UNREADABLE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise InputError(f"Expected a readable {path.name}, got {path}: {reason}.") from None


@contextmanager
def _written(path: Path, *, compressed: bool) -> Iterator[BinaryIO]:
    with path.open("wb") as raw:
        if not compressed:
            yield raw
        else:
            # No time stamp and no name: the same rows give the same bytes.
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as file:
                yield file  # type: ignore[misc]  # A binary mode gives a binary file.


def _parquet_header(path: Path, _: str) -> list[str]:
    names: list[str] = pa.parquet.read_schema(path).names
    return names


def _read_parquet(path: Path, names: Mapping[str, str], _: str) -> pa.Table:
    texts = [names[role] for role in ("user", "word") if role in names]
    # Only string columns follow `read_dictionary`; others are left as they are. Of a path, Arrow
    # would take folders like "user=7" for columns, so it gets a file.
    with opened(path) as raw:
        _require_types(pa.parquet.read_schema(raw), names, path)
        raw.seek(0)
        with pa.parquet.ParquetFile(raw, read_dictionary=texts) as file:
            table = file.read(columns=list(names.values()))
    return table.select(list(names.values())).rename_columns(list(names))


def _require_types(schema: pa.Schema, names: Mapping[str, str], path: Path) -> None:
    for role, name in names.items():
        require_type(role, name, schema.field(name).type, path)


def require_type(role: str, name: str, column_type: Any, path: Path) -> None:
    """Refuse a Parquet column whose values would have to be guessed at."""
    is_dictionary = pa.types.is_dictionary(column_type)
    value_type = column_type.value_type if is_dictionary else column_type
    accepted, words = _ACCEPTED[role]
    if not any(is_type(value_type) for is_type in accepted):
        text = str(column_type)
        raise InputError(
            f"Expected {words} in the column {shown(name)}, got "
            f"{text if len(text) <= _LONGEST_LIST else text[:_LONGEST_LIST] + '...'} in {path}; "
            "convert the column."
        )


def _csv_header(path: Path, separator: str) -> list[str]:
    with closing(text_lines(path)) as lines:
        rows = csv.reader(lines, delimiter=separator, strict=True)
        try:
            first = next(filter(None, rows), None)
        except csv.Error as problem:
            raise _no_csv(problem, rows.line_num, path) from None
    if first is None:
        raise InputError(f"Expected a header line, got an empty file {path}.")
    return first


def _read_csv(path: Path, names: Mapping[str, str], separator: str) -> pa.Table:
    types = {name: pa.string() if role == "text" else _TEXT for role, name in names.items()}
    try:
        with opened(path) as file:
            table = pa.csv.read_csv(
                file,
                read_options=pa.csv.ReadOptions(block_size=_BLOCK_SIZE),
                parse_options=pa.csv.ParseOptions(
                    delimiter=separator, newlines_in_values="text" in names
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(names.values()),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
    except pa.ArrowInvalid as error:
        _refuse_csv(path, separator, error)
        raise
    return table.rename_columns(list(names))


def _refuse_csv(path: Path, separator: str, error: pa.ArrowInvalid) -> None:
    """Name the line that Arrow could not read; its own message does not."""
    lines = text_lines(path)
    rows = csv.reader(lines, delimiter=separator, strict=True)
    width = 0
    # Arrow has no limit for a cell, so that Python's would name a line that is not at fault.
    limit = csv.field_size_limit(LONGEST_LINE)
    try:
        for row in filter(None, rows):
            width = width or len(row)
            if len(row) != width:
                raise InputError(
                    f"Expected {width} fields as in the header, got {len(row)} on line "
                    f"{rows.line_num} of {path}."
                )
    except csv.Error as problem:
        raise _no_csv(problem, rows.line_num, path) from error
    finally:
        csv.field_size_limit(limit)
        lines.close()


def _no_csv(problem: csv.Error, line: int, path: Path) -> InputError:
    if "new-line character" in str(problem):
        return InputError(
            f"Expected lines that end in a line feed, got a carriage return alone on line {line} "
            f"of {path}; save the file with the line ends of Unix or Windows."
        )
    return InputError(f"Expected valid CSV, got {problem} on line {line} of {path}.")


def _write_parquet(file: BinaryIO, rows: pa.Table) -> None:
    # Numbers of words and steps between users: that leaves little to a compression, and is read in
    # the form in which clients are held.
    pa.parquet.write_table(
        rows,
        file,
        compression={"user": "none", "word": "none", "count": "zstd"},
        use_dictionary=["word", "count"],
        column_encoding={"user": "DELTA_BINARY_PACKED"},
        row_group_size=_ROWS_PER_GROUP,
        dictionary_pagesize_limit=_LARGEST_DICTIONARY,
    )


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
    header: Callable[[Path, str], list[str]]
    read: Callable[[Path, Mapping[str, str], str], pa.Table]
    write: Callable[[BinaryIO, pa.Table], None]


_PARQUET = _TableFormat(header=_parquet_header, read=_read_parquet, write=_write_parquet)
_CSV = _TableFormat(header=_csv_header, read=_read_csv, write=_write_csv)
_JSON = _TableFormat(
    header=lambda path, _: json_header(path),
    read=lambda path, names, _: read_json(path, names),
    write=_write_json,
)

_ACCEPTED = {
    "user": ((is_text, pa.types.is_integer), "users as text or integers"),
    "word": ((is_text,), "words as text"),
    "text": ((is_text,), "texts as text"),
    "count": ((is_text, pa.types.is_integer, pa.types.is_floating), "counts as whole numbers"),
    "day": ((is_text, pa.types.is_integer, pa.types.is_date), "days as integers or dates"),
}
"""What a column of Parquet may hold, plain or as a dictionary, and how a message says it."""

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
        f"Unknown kind of file {shown(path.name)}; known extensions: {', '.join(_FORMATS)}."
    )
