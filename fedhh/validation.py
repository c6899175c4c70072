"""Checks of arguments: one line that names the argument, its value, and the bound."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from numbers import Integral
from typing import Any, Self

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


class TakesSettingsByName:
    """A dataclass of settings that refuses others in one line, with the name that was meant.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Mine(TakesSettingsByName):
    ...     local_epsilon: float = 8.0
    >>> Mine(epsilon=4.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Mine has no setting 'epsilon'; ... Known: local_epsilon.
    """

    __slots__ = ()

    def __new__(cls, *values: object, **settings: object) -> Self:
        """Check the names, before a dataclass's own initializer knows only that they are wrong."""
        accepted = _parameters(cls.__init__)
        if accepted is not None:
            if values:
                # The first one of which the value may be meant.
                alike = [x for x in accepted if type(getattr(cls, x, None)) is type(values[0])]
                name = next(iter([*alike, *accepted]), "name")
                raise InputError(
                    f"Expected the settings of {cls.__name__} by name, such as "
                    f"{cls.__name__}({name}={shown(values[0])}), got {len(values)} without a name."
                )
            for name in settings:
                if name not in accepted:
                    tail = did_you_mean(name, accepted)
                    raise InputError(f"{cls.__name__} has no setting {name!r}{tail}")
        return super().__new__(cls)


@cache
def _parameters(initializer: Callable[..., None]) -> tuple[str, ...] | None:
    """Return what an initializer takes by name alone; None if it takes anything else, too."""
    parameters = list(inspect.signature(initializer).parameters.values())[1:]
    if any(each.kind is not each.KEYWORD_ONLY for each in parameters):
        return None
    return tuple(each.name for each in parameters)


def require_positive(**values: float) -> None:
    """Raise InputError unless every keyword's value is a finite number above 0.

    >>> require_positive(epsilon=-1.0)
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Expected 0 < epsilon < inf, got epsilon=-1.0.
    """
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"Expected 0 < {name} < inf, got {name}={shown(value)}.")


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
