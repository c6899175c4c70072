"""Table files: Parquet, CSV and JSON Lines, as queries of DuckDB.

Text columns stay text: ``nan``, ``null``, ``NA``, ``true`` and ``007`` are words. Users are text or
integers, words and texts are text, counts are numbers, days are integers or dates; a column of any
other type is refused. Nothing is guessed: every column is read as what it is said to be.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet

from fedhh.system.reading import LONGEST_LINE, opened, require_regular, text_lines
from fedhh.validation import InputError, reason_of, shown

COMMA = ","
"""What separates the columns of CSV, if nothing else is said."""

PARQUET, CSV, JSON = "parquet", "csv", "json"
"""Kinds of files."""

_EXTENSIONS = {
    ".parquet": PARQUET,
    ".csv": CSV,
    ".csv.gz": CSV,
    ".jsonl": JSON,
    ".jsonl.gz": JSON,
    ".ndjson": JSON,
    ".ndjson.gz": JSON,
}
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t"}
_LONGEST_LIST = 200
_UNREADABLE = (
    OSError,
    EOFError,
    MemoryError,
    OverflowError,
    UnicodeError,
    zlib.error,
    pa.ArrowException,
    duckdb.Error,
)
_NO_RECORD = "Expected a readable JSON object on each line, got "

_LINES = f"auto_detect=false, header=false, max_line_size={LONGEST_LINE}"
# A sign that JSON writes with an escape, so that a line is one column.
_NO_SEPARATOR = "delim='\x01', quote='', escape=''"


def kind_of(path: Path) -> str:
    """Return the kind of a file by its extension.

    Raises:
        InputError: It has none of the known ones.
    """
    for extension, kind in _EXTENSIONS.items():
        if path.name.lower().endswith(extension):
            return kind
    raise InputError(
        f"Unknown kind of file {shown(path.name)}; known extensions: {', '.join(_EXTENSIONS)}."
    )


def has_known_extension(path: Path) -> bool:
    """Return whether the path ends in a known extension."""
    return path.name.lower().endswith(tuple(_EXTENSIONS))


def read_header(path: Path, separator: str | None = None) -> list[str]:
    """Return the names of a file's columns; of JSON Lines, the keys of the first record.

    Args:
        path: A file whose extension tells its kind.
        separator: See `separator_of`; of CSV alone.

    Raises:
        InputError: The file is missing, a directory, unreadable, empty or malformed, its
            extension is unknown, or it has no separator.
    """
    kind = kind_of(path)
    require_regular(path)
    if separator is not None and kind != CSV:
        raise InputError(
            f"Expected a CSV file for the separator {shown(separator)}, got {path}; remove it."
        )
    character = separator_of(separator)
    with readable(path):
        if kind == PARQUET:
            return list(_parquet_schema(path).names)
        return _csv_header(path, character)[1] if kind == CSV else _json_keys(path)


def require_distinct(found: Sequence[str], needed: Collection[str], path: Path) -> None:
    """Raise InputError if a column that is needed stands twice among those of a file."""
    for name in needed:
        if found.count(name) > 1:
            raise InputError(f"Expected distinct columns in {path}, got {shown(name)} twice.")


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


def list_names(names: Sequence[str]) -> str:
    """Return the names of columns for a message, cut where they are too many to be read."""
    return _cut(", ".join(itertools.islice(names, _LONGEST_LIST)))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LIST else f"{text[:_LONGEST_LIST]}..."


def scan(path: Path, names: Mapping[str, str], separator: str | None = None) -> str:
    """Return the SQL of a file's rows, in order.

    Args:
        path: A file whose header `read_header` has returned.
        names: The file's column for some of ``user``, ``word`` or ``text``, ``count``, ``day``.
        separator: As for `read_header`.

    Returns:
        A query with the keys of ``names`` as columns, and ``wrong``: what is wrong with the types
        of a row of JSON Lines, or NULL. All of CSV and JSON is text.

    Raises:
        InputError: A column of Parquet has a wrong type.
    """
    kind = kind_of(path)
    # Of a path, DuckDB would take signs for patterns and folders like "user=7" for columns.
    place = literal("".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path)))
    if kind == PARQUET:
        require_types(_parquet_schema(path), names, path)
        return _columns(names, f"read_parquet({place}, hive_partitioning=false)")
    _refuse_endless(path)
    if kind == JSON:
        lines = f"read_csv({place}, {_LINES}, {_NO_SEPARATOR}, columns={{'line': 'VARCHAR'}})"
        return _json_rows(names, lines)
    character = separator_of(separator)
    skipped, found = _csv_header(path, character)
    cells = [f"c{number}" for number in range(len(found))]
    types = ", ".join(f"'{cell}': 'VARCHAR'" for cell in cells)
    table = (
        f"read_csv({place}, {_LINES}, skip={skipped}, delim={literal(character)}, quote='\"', "
        f"escape='\"', strict_mode=true, columns={{{types}}}, force_not_null={cells})"
    )
    return _columns({role: cells[found.index(name)] for role, name in names.items()}, table)


def _refuse_endless(path: Path) -> None:
    """Refuse a last line that is longer than DuckDB's buffer, which would leave it out."""
    with readable(path), opened(path) as file:
        if path.suffix.lower() != ".gz":
            file.seek(max(0, path.stat().st_size - LONGEST_LINE))
        while len(piece := file.read(LONGEST_LINE)) == LONGEST_LINE:
            if b"\n" not in piece:
                raise InputError(
                    f"Expected lines of at most {LONGEST_LINE:,} bytes, got a longer one in {path}."
                )


def scan_table(schema: pa.Schema, view: str, names: Mapping[str, str], path: Path) -> str:
    """Return the SQL of the rows of an Arrow table that DuckDB knows as a view; see `scan`."""
    require_types(schema, names, path)
    return _columns(names, view)


def _columns(names: Mapping[str, str], table: str) -> str:
    chosen = ", ".join(f"{identifier(name)} AS {identifier(role)}" for role, name in names.items())
    return f"SELECT {chosen}, NULL::VARCHAR AS wrong FROM {table}"


def _json_rows(names: Mapping[str, str], lines: str) -> str:
    """Return the SQL of records, each key looked for where it is needed."""
    keys = [literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in names.values()]
    no_object = "coalesce(json_type(record) <> 'OBJECT', true)"
    value = f"|| chr(0) || left(line, {_LONGEST_LIST})"
    columns, wrong = [], [f"WHEN {no_object} THEN {literal(_NO_RECORD)} {value}"]
    for number, (role, name) in enumerate(names.items(), start=1):
        columns.append(f"cells[{number}] ->> '$' AS {identifier(role)}")
        wanted, _, accepted = _ACCEPTED[role]
        cell, text = f"cells[{number}]", literal(f"Expected {wanted} in {shown(name)}, got ")
        wrong.append(
            f"WHEN json_type({cell}) NOT IN {(*accepted, 'NULL')} "
            f"THEN {text} || chr(0) || left({cell}::VARCHAR, {_LONGEST_LIST})"
        )
    return (
        f"SELECT {', '.join(columns)}, CASE {' '.join(wrong)} END AS wrong FROM (SELECT record, "
        f"line, json_extract(record, [{', '.join(keys)}]) AS cells FROM (SELECT try(line::JSON) AS "
        f"record, line FROM {lines}) WHERE trim(line) <> '')"
    )


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return the name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def rows_by_python(path: Path, names: Mapping[str, str], separator: str | None) -> pa.Table | None:
    """Return what DuckDB could not read, or name the line for which it could not.

    Of CSV, its parser does not take line ends of two kinds; of other files, nothing is returned.

    Raises:
        InputError: A line is wrong.
    """
    kind = kind_of(path)
    if kind == JSON:
        for _ in text_lines(path):
            pass
    if kind != CSV:
        return None
    rows = list(_csv_rows(path, separator_of(separator)))
    found, *cells = filter(None, rows)
    columns = dict(zip(found, zip(*cells, strict=True), strict=True))
    return pa.table({name: pa.array(columns[name], pa.large_string()) for name in names.values()})


def _csv_rows(path: Path, separator: str) -> Generator[list[str], None, None]:
    """Yield all rows of CSV, blank lines as empty ones, none of which is longer than another."""
    with closing(text_lines(path)) as lines:
        rows = csv.reader(lines, delimiter=separator, strict=True)
        width, start = 0, 1
        try:
            for row in rows:
                width = width or len(row)
                if row and len(row) != width:
                    raise InputError(
                        f"Expected {width} fields as in the header, got {len(row)} on line "
                        f"{rows.line_num} of {path}."
                    )
                yield row
                start = rows.line_num + 1
                # The header's cells are short; of others, DuckDB has no limit.
                csv.field_size_limit(LONGEST_LINE)
        except csv.Error as problem:
            raise _no_csv(problem, start, rows.line_num, path) from None
        finally:
            csv.field_size_limit(_LONGEST_CELL)


_LONGEST_CELL = csv.field_size_limit()


def _csv_header(path: Path, separator: str) -> tuple[int, list[str]]:
    """Return how many rows there are to the header, blank ones and itself, and its cells."""
    with closing(_csv_rows(path, separator)) as rows:
        for number, row in enumerate(rows, start=1):
            if row:
                return number, row
    raise InputError(f"Expected a header line, got an empty file {path}.")


def _no_csv(problem: csv.Error, start: int, line: int, path: Path) -> InputError:
    if "new-line character" in str(problem):
        return InputError(
            f"Expected lines that end in a line feed, got a carriage return alone on line {line} "
            f"of {path}; save the file with the line ends of Unix or Windows."
        )
    if "unexpected end" in str(problem):
        return InputError(
            f"Expected a quote to be closed, got one that opens on line {start} and has no end in "
            f"{path}."
        )
    return InputError(f"Expected valid CSV, got {problem} on line {line} of {path}.")


def _json_keys(path: Path) -> list[str]:
    with closing(text_lines(path)) as lines:
        first = next((line.strip() for line in lines if line.strip()), None)
    if first is None:
        raise InputError(f"{_NO_RECORD}an empty file {path}.")
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError(f"{_NO_RECORD}{shown(first)} in row 1 of {path}.")
    return list(record)


def _parquet_schema(path: Path) -> pa.Schema:
    with opened(path) as raw:
        return pa.parquet.read_schema(raw)


def _is_text(column_type: Any) -> bool:
    return str(column_type) in ("string", "large_string", "string_view")


_WHOLE = ("BIGINT", "UBIGINT")
_ACCEPTED: dict[str, tuple[str, Sequence[Callable[[Any], bool]], Sequence[str]]] = {
    "user": (
        "users as text or integers", (_is_text, pa.types.is_integer), ("VARCHAR", *_WHOLE)
    ),
    "word": ("words as text", (_is_text,), ("VARCHAR",)),
    "text": ("texts as text", (_is_text,), ("VARCHAR",)),
    "count": (
        "counts as whole numbers",
        (_is_text, pa.types.is_integer, pa.types.is_floating),
        ("DOUBLE", *_WHOLE),
    ),
    "day": (
        "days as integers or dates",
        (_is_text, pa.types.is_integer, pa.types.is_date),
        ("VARCHAR", *_WHOLE),
    ),
}  # fmt: skip
"""What a message says, what a column of Parquet may hold, plain or as a dictionary, and of JSON."""


def require_types(schema: pa.Schema, names: Mapping[str, str], path: Path) -> None:
    """Refuse a column whose values would have to be guessed at."""
    for role, name in names.items():
        found = schema.field(name).type
        value_type = found.value_type if pa.types.is_dictionary(found) else found
        words, accepted, _ = _ACCEPTED[role]
        if not any(is_type(value_type) for is_type in accepted):
            raise InputError(
                f"Expected {words} in the column {shown(name)}, got {_cut(str(found))} in {path}; "
                "convert the column."
            )


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever damaged or hostile content raises into an InputError of one line.

    The want of memory or disk is none of the file's faults.
    """
    try:
        yield
    except _UNREADABLE as error:
        if lacks_room(error):
            raise
        # DuckDB's own begin with their kind.
        reason = re.sub(r"^[A-Z][A-Za-z ]+ Error: ", "", reason_of(error))
        raise InputError(f"Expected a readable {path.name}, got {path}: {reason}.") from None


def lacks_room(error: Exception) -> bool:
    """Return whether DuckDB says that there is too little memory or disk, whatever a file holds."""
    is_full = isinstance(error, duckdb.Error) and "No space left" in str(error)
    return is_full or isinstance(error, duckdb.OutOfMemoryException)
