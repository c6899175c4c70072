"""JSON files that are read in one piece: bounded, and refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedhh.clients.reading.exports.messages import LARGEST_EXPORT
from fedhh.system.reading import opened
from fedhh.validation import InputError


def read_export(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if it ends in .gz.

    Raises:
        InputError: It is no regular file, or larger than `LARGEST_EXPORT`.
        OSError, EOFError, zlib.error: It cannot be read.
    """
    with opened(path) as file:
        content = file.read(LARGEST_EXPORT + 1)
    if len(content) > LARGEST_EXPORT:
        raise InputError(
            f"Expected an export of at most {LARGEST_EXPORT:,} bytes, got more in {path}; export "
            "fewer chats at once."
        )
    return content


def parse_json(content: bytes, path: Path) -> Any:
    """Return the value that a file's bytes are.

    Raises:
        InputError: They are no JSON.
    """
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(
            f"Expected UTF-8 text, got other bytes in {path}; save the file as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"Expected valid JSON, got {error.msg} in column {error.colno} on line {error.lineno} "
            f"of {path}; export it again."
        ) from None
    except (RecursionError, ValueError):
        # Python's limits for levels, and for digits of a number.
        raise InputError(
            f"Expected JSON of a few levels and numbers of at most 4,300 digits, got others in "
            f"{path}."
        ) from None


def records(value: Any) -> list[dict[str, Any]]:
    """Return the objects of what should be a list of them; nothing if it is none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_of(record: Any, *keys: str) -> str:
    """Return the first text that is not empty among some values of an object; else none."""
    if isinstance(record, dict):
        for key in keys:
            value = record.get(key)
            if isinstance(value, str) and value:
                return value
    return ""
