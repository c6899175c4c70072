"""Changes to a configuration's tables by path: ``section.key=value``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from fedhh.experiments.config.protocol_section import switch_protocol
from fedhh.experiments.config.toml_file import DEEPEST, TOO_DEEP, parse_toml
from fedhh.validation import InputError, shown

PROTOCOL_TABLES = ("protocol", "baseline")
"""Tables that hold the settings of a protocol."""


def apply_settings(table: dict[str, Any], settings: Sequence[str]) -> None:
    """Put ``section.key=value`` each into a table; the value is read as TOML, else as text."""
    put_settings(table, dict(_parse_setting(setting) for setting in settings))


def put_settings(table: dict[str, Any], values: dict[str, Any]) -> None:
    """Put values by path into a table; protocols' names first, see `switch_protocol`."""
    names = {f"{protocol}.name" for protocol in PROTOCOL_TABLES}
    for path, value in sorted(values.items(), key=lambda item: item[0] not in names):
        *parents, last = path.split(".")
        if len(parents) > DEEPEST:
            raise InputError(TOO_DEEP.format(origin=shown(path)))
        inner = table
        for key in parents:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise InputError(f"Expected --set SECTION.KEY=VALUE, got {path} below a value.")
        if path in names:
            table[parents[0]] = switch_protocol(inner, value)
        else:
            inner[last] = value


def _parse_setting(setting: str) -> tuple[str, Any]:
    path, separator, text = setting.partition("=")
    path = path.strip()
    if not separator or not all(path.split(".")):
        raise InputError(f"Expected --set SECTION.KEY=VALUE, got {shown(setting)}.")
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return path, text
    except (ValueError, RecursionError):
        pass  # Refused below, with the setting's name.
    return path, parse_toml(f"value = {text}", path)["value"]
