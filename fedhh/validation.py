"""Checks of arguments: one line that names the argument, its value, and the bound."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable


class InputError(ValueError):
    """Input that a caller can mend; the command line prints its message and exits with 2."""


def require_positive(**values: float) -> None:
    """Raise InputError unless every keyword's value is a finite number above 0.

    >>> require_positive(epsilon=-1.0)
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Expected 0 < epsilon < inf, got epsilon=-1.0.
    """
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"Expected 0 < {name} < inf, got {name}={value!r}.")


def require_at_least(minimum: int, **values: int) -> None:
    """Raise InputError unless every keyword's value is an integer not below ``minimum``."""
    for name, value in values.items():
        if isinstance(value, bool) or value != int(value) or value < minimum:
            raise InputError(f"Expected an integer {name} >= {minimum}, got {name}={value!r}.")


def require_between(low: float, high: float, **values: float) -> None:
    """Raise InputError unless ``low <= value <= high`` for every keyword's value."""
    for name, value in values.items():
        if not low <= value <= high:
            raise InputError(f"Expected {low} <= {name} <= {high}, got {name}={value!r}.")


def require_inside(low: float, high: float, **values: float) -> None:
    """Raise InputError unless ``low < value < high`` for every keyword's value."""
    for name, value in values.items():
        if not low < value < high:
            raise InputError(f"Expected {low} < {name} < {high}, got {name}={value!r}.")


def require_choice(choices: Iterable[str], **values: str) -> None:
    """Raise InputError, naming the nearest choice, unless every value is one of ``choices``."""
    known = list(choices)
    for name, value in values.items():
        if value not in known:
            raise InputError(f"Unknown {name} {value!r}{did_you_mean(str(value), known)}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the tail of an error message: the nearest known word, and all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"{hint} Known: {', '.join(names)}."
