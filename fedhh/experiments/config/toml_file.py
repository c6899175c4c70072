"""TOML that a person may have written: read, checked, and quoted in messages."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from fedhh.system.reading import read_bytes
from fedhh.validation import InputError, shown

DEEPEST = 16
"""Levels of tables and lists."""

_LONGEST_VALUE = 200

TOO_DEEP = f"{{origin}}: expected at most {DEEPEST} levels of tables and lists, got more."


def read_toml(file: Path) -> dict[str, Any]:
    """Return a TOML file's content; InputError says what is wrong with it."""
    try:
        return parse_toml(read_bytes(file).decode(), str(file))
    except InputError as error:
        raise InputError(f"Cannot read the config: {error}") from None
    except OSError as error:
        raise InputError(f"Cannot read the config {file}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text at byte {error.start}.") from None


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the content of TOML text that a person may have written.

    Raises:
        InputError: It is no TOML, or nested more deeply than any configuration; ``origin`` names
            it.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{origin}: not valid TOML: {error}.") from None
    except ValueError:
        # Python's limit; the parser's own errors are named above.
        raise InputError(
            f"{origin}: expected integers of at most 4,300 digits, got a longer one."
        ) from None
    except RecursionError:
        raise InputError(TOO_DEEP.format(origin=origin)) from None
    _check_values(table, origin)
    return table


def _check_values(table: dict[str, Any], origin: str) -> None:
    """Refuse what exhausts the stack of whoever walks through it, and integers that TOML lacks."""
    level: list[Any] = [table]
    for _ in range(DEEPEST + 1):
        for value in level:
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise InputError(
                    f"{origin}: expected integers from -2^63 to 2^63 - 1, got {shown(value)}."
                )
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [
            value for part in inner for value in (part.values() if isinstance(part, dict) else part)
        ]
    if any(isinstance(part, dict | list) for part in level):
        raise InputError(TOO_DEEP.format(origin=origin))


def literal(value: Any) -> str:
    """Return a setting's value for a message, as TOML has it where that is like JSON.

    >>> literal("x"), literal(True), literal([1]), literal(16**6000)
    ('"x"', 'true', '[1]', 'an integer of 24001 bits')
    """
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return shown(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
