"""JSON Lines, read into columns by Arrow; what it cannot read, Python finds and names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from fedhh.system.reading import LONGEST_LINE, opened, text_lines
from fedhh.validation import InputError, shown

_LONGEST_VALUE = 200


def json_header(path: Path) -> list[str]:
    """Return the keys of the first record."""
    _, record = next(_json_records(path), (0, {}))
    if not record:
        raise InputError(f"Expected a JSON object on each line, got an empty file {path}.")
    return list(record)


def read_json(path: Path, names: Mapping[str, str]) -> pa.Table:
    """Return the named columns, see `fedhh.clients.reading.tables.read_columns`."""
    # Arrow wants one type for all users; the first record tells which.
    _, first = next(_json_records(path))
    whole = {role: isinstance(first.get(names.get(role, "")), int) for role in ("user", "day")}
    kinds = {role: pa.int64() if whole[role] else pa.string() for role in whole}
    kinds["count"] = pa.float64()
    schema = pa.schema([(name, kinds.get(role, pa.string())) for role, name in names.items()])
    try:
        with opened(path) as file:
            table = pa.json.read_json(
                file,
                read_options=pa.json.ReadOptions(block_size=LONGEST_LINE),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        table.validate(full=True)
    except pa.ArrowInvalid:
        _refuse_json(path, names, {role: int if whole[role] else str for role in whole})
        raise
    table = table.select(list(names.values())).rename_columns(list(names))
    if "count" in names and table["count"].null_count == table.num_rows:
        table = table.drop_columns(["count"])
    return table


def _refuse_json(path: Path, names: Mapping[str, str], types: Mapping[str, type]) -> None:
    """Name the line that Arrow could not read; it counts within its own blocks."""
    kinds: dict[str, tuple[type, ...]] = {role: (kind,) for role, kind in types.items()}
    kinds["count"] = (int, float)
    words = {int: "an integer", str: "text", float: "a number"}
    for line, record in _json_records(path):
        for role, name in names.items():
            allowed = kinds.get(role, (str,))
            value = record.get(name)
            fits = isinstance(value, allowed) and not isinstance(value, bool)
            if value is not None and not (fits and _fits_64_bits(value)):
                size = " of 64 bits" if fits else ""
                raise InputError(
                    f"Expected {words[allowed[-1]]}{size} in {shown(name)}, got "
                    f"{_json_text(value)} on line {line} of {path}."
                )


def _fits_64_bits(value: Any) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _json_text(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(text_lines(path), start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except RecursionError:
            raise InputError(
                f"Expected JSON of a few levels, got deeper nesting on line {line} of {path}."
            ) from None
        except json.JSONDecodeError as error:
            raise InputError(
                f"Expected valid JSON, got {error.msg} in column {error.colno} on line {line} of "
                f"{path}."
            ) from None
        except ValueError:
            # Python's limit; the decoder's own errors are named above.
            raise InputError(
                f"Expected numbers of at most 4,300 digits, got a longer one on line {line} of "
                f"{path}."
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"Expected a JSON object on each line, got line {line} of {path}.")
        yield line, record
