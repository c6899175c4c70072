"""Where two values differ, and what a value holds: for settings, states and queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np


def first_difference(first: Any, second: Any, path: str) -> str | None:
    """Return where two values differ, and how; None if they hold the same bits.

    Args:
        first: A tree of dataclasses, sequences, mappings, arrays and plain values.
        second: Another.
        path: What to call them.
    """
    if type(first) is not type(second):
        return f"{path} is a {type(first).__name__} and a {type(second).__name__}"
    if isinstance(first, np.ndarray):
        same = first.dtype == second.dtype and first.shape == second.shape
        if same and first.tobytes() == second.tobytes():
            return None
        return f"{path} is {_short(first)} and {_short(second)}"
    parts, others = _parts(first), _parts(second)
    if parts is None or others is None:
        return None if repr(first) == repr(second) else f"{path} is {first!r} and {second!r}"
    if parts.keys() != others.keys():
        return f"{path} holds {len(parts)} and {len(others)} values"
    found = (first_difference(parts[key], others[key], f"{path}{key}") for key in parts)
    return next((difference for difference in found if difference), None)


def holdings(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every value inside a tree, with where it is; an object's attributes are inside it."""
    seen: set[int] = set()
    pending = [(path, value)]
    while pending:
        where, each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield where, each
        parts = _parts(each)
        if parts is None:
            parts = {f".{name}": part for name, part in getattr(each, "__dict__", {}).items()}
        pending += [(f"{where}{key}", part) for key, part in parts.items()]


def _parts(value: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f".{each.name}": getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return {f"[{index}]": part for index, part in enumerate(value)}
    if isinstance(value, dict):
        return {f"[{key!r}]": part for key, part in value.items()}
    return None


def _short(array: Any) -> str:
    return f"{array.dtype} of shape {array.shape} {np.array2string(array, threshold=8)}"
