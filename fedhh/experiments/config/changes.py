"""Changes to a configuration's tables by path: ``section.key=value``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from fedhh.experiments.config.protocol_section import switch_protocol
from fedhh.experiments.config.toml_file import DEEPEST, TOO_DEEP, parse_toml
from fedhh.validation import InputError, shown

PROTOCOL, BASELINE = "protocol", "baseline"
"""The table of a protocol's settings, and the list of such tables."""

_DIGITS = 4


def apply_settings(table: dict[str, Any], settings: Sequence[str]) -> None:
    """Put ``section.key=value`` each into a table; the value is read as TOML, else as text."""
    put_settings(table, dict(_parse_setting(setting) for setting in settings))


def put_settings(table: dict[str, Any], values: dict[str, Any]) -> None:
    """Put values by path into a table; protocols' names first, see `switch_protocol`."""
    for path, value in sorted(values.items(), key=lambda item: not item[0].endswith(".name")):
        *parents, last = path.split(".")
        if len(parents) > DEEPEST:
            raise InputError(TOO_DEEP.format(origin=shown(path)))
        if parents[:1] == [BASELINE]:
            _put_baseline(table, parents[1:], last, value)
            continue
        inner = table
        for key in parents:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise InputError(f"Expected --set SECTION.KEY=VALUE, got {path} below a value.")
        if path == f"{PROTOCOL}.name":
            table[PROTOCOL] = switch_protocol(inner, value)
        else:
            inner[last] = value


def listed_baselines(given: Any) -> list[Any]:
    """Return a configuration's baselines as a list of tables; a name stands for its table."""
    if given == "none":
        return []
    several = given if isinstance(given, list | tuple) else [given]
    return [{"name": each} if isinstance(each, str) else each for each in several]


def _put_baseline(table: dict[str, Any], place: list[str], key: str, value: Any) -> None:
    """Change one of the baselines: by its number from 0, or the only one; a name alone, all."""
    listed = listed_baselines(table.get(BASELINE, "none"))
    if not place and key == "name":
        only = listed[0] if len(listed) == 1 and isinstance(listed[0], dict) else {}
        table[BASELINE] = [switch_protocol(only, value)]
        return
    number = 0
    if place and place[0].isdecimal() and len(place[0]) < _DIGITS:
        number = int(place[0])
    elif place or len(listed) > 1:
        raise InputError(
            f"Expected --set {BASELINE}.NUMBER.KEY=VALUE, NUMBER from 0 to {len(listed) - 1}, or "
            f"{BASELINE}.name for another one alone, got {'.'.join([BASELINE, *place, key])}."
        )
    if len(place) > 1 or number > len(listed):
        raise InputError(
            f"Expected a baseline from 0 to {len(listed)}, a key of it, got "
            f"{'.'.join([BASELINE, *place, key])}."
        )
    listed += [{}] if number == len(listed) else []
    if not isinstance(listed[number], dict):
        raise InputError(f"Expected a table as baseline {number}, got {shown(listed[number])}.")
    listed[number] = (
        switch_protocol(listed[number], value) if key == "name" else {**listed[number], key: value}
    )
    table[BASELINE] = listed


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
