"""Checks of arguments: one line that names the argument, its value, and the bound."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

SMALLEST_EPSILON = 1e-6
"""Of one report."""

LARGEST_EPSILON = 1e9
"""Of one report: its square, and sums over many reports, are finite."""

_LONGEST_SHOWN = 120

_MOST_NAMES = 32
"""Names that a message still lists beside the nearest one."""


class InputError(ValueError):
    r"""Input that a caller can mend; the command line prints its message and exits with 2.

    A message is one line, whatever is quoted in it: what cannot be printed is escaped.

    >>> print(InputError("Expected a file, got a\nb\x1b[2J."))
    Expected a file, got a\nb\x1b[2J.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class RunFailedError(RuntimeError):
    """What ended a run from outside; the command line prints its message and exits with 1.

    A message is one line with the cause and the cure.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """Return a text with what cannot be printed, line breaks included, escaped as `repr` does."""
    if text.isprintable():
        return text
    return "".join(s if s.isprintable() else s.encode("unicode_escape").decode() for s in text)


def shown(value: object) -> str:
    r"""Return a value for a message: as `repr` gives it, but never long.

    >>> shown("a\tb"), shown("ab" * 100)[-8:], shown(16**6000)
    ("'a\\tb'", 'ababa...', 'an integer of 24001 bits')
    """
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # Python writes no integer of more than 4,300 digits, and nothing nested too deeply.
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def reason_of(error: Exception) -> str:
    r"""Return the first line of another library's message, or the error's name, without a period.

    >>> reason_of(ValueError("No luck.\nMore.")), reason_of(KeyError())
    ('No luck', 'KeyError')
    """
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")


def require_positive(**values: float) -> None:
    """Raise InputError unless every keyword's value is a finite number above 0.

    >>> require_positive(epsilon=-1.0)
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Expected 0 < epsilon < inf, got epsilon=-1.0.
    """
    require_inside(0, math.inf, **values)


def require_epsilon(**values: float) -> None:
    """Raise InputError unless every keyword's value is a privacy budget that can be computed with.

    Reports with less than `SMALLEST_EPSILON` are coins that know nothing, and their estimates
    divide by a difference that floating point cannot tell from 0.
    """
    for name, value in values.items():
        if not SMALLEST_EPSILON <= value <= LARGEST_EPSILON:
            raise InputError(
                f"Expected {SMALLEST_EPSILON:g} <= {name} <= {LARGEST_EPSILON:g}, got "
                f"{name}={shown(value)}."
            )


def require_at_least(minimum: int, **values: int) -> None:
    """Raise InputError unless every keyword's value is an integer not below ``minimum``."""
    given: Mapping[str, Any] = values
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
            raise InputError(f"Expected an integer {name} >= {minimum}, got {name}={shown(value)}.")


def require_between(low: float, high: float, **values: float) -> None:
    """Raise InputError unless ``low <= value <= high`` for every keyword's value."""
    for name, value in values.items():
        if not low <= value <= high:
            raise InputError(f"Expected {low} <= {name} <= {high}, got {name}={shown(value)}.")


def require_inside(low: float, high: float, **values: float) -> None:
    """Raise InputError unless ``low < value < high`` for every keyword's value."""
    for name, value in values.items():
        if not low < value < high:
            raise InputError(f"Expected {low} < {name} < {high}, got {name}={shown(value)}.")


def require_choice(choices: Iterable[str], **values: str) -> None:
    """Raise InputError, naming the nearest choice, unless every value is one of ``choices``."""
    known = list(choices)
    for name, value in values.items():
        if value not in known:
            raise InputError(f"Unknown {name} {shown(value)}{did_you_mean(str(value), known)}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the tail of an error message: the nearest known word, and all words.

    Where they are many and one is near, their number stands for them.
    """
    names = sorted(known)
    # Nobody mistypes that much, and comparing takes a time that grows with the word.
    word = word[:_LONGEST_SHOWN]
    near = difflib.get_close_matches(word, names, n=1)
    if near and len(names) > _MOST_NAMES:
        return f"; did you mean {near[0]!r}? One of {len(names)} names."
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"{hint} Known: {', '.join(names)}."
