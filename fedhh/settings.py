"""Settings as fields: a dataclass annotates each with its bounds, and all else follows from that.

A field's type says what it may hold: ``Annotated[int, Ge(1)]``, ``Literal["random", "greedy"]``,
``bool``, a tuple of such, or a union. `Settings` checks the values, a configuration's table is made
from the same annotations, and `described` reads what the docstring says of each field.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import operator
import re
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import BaseMetadata, Ge, Gt, Le, Lt

from fedhh.validation import LARGEST_EPSILON, SMALLEST_EPSILON, InputError, did_you_mean, shown

LARGEST_COUNT = 2**40
"""Of anything that is counted: clients, items, layers."""

MOST_ITEMS = 100_000
"""Contributions of one client; a device that types all day for a year holds fewer words."""

Count = Annotated[int, Ge(1), Le(LARGEST_COUNT)]
"""A number of things, at least one."""

Layers = Annotated[int, Ge(1), Le(1_000)]
"""Layers of a trie, or symbols of a word; a run plans every one of them before it starts."""

Passes = Annotated[int, Ge(1), Le(100)]
"""Tries that are built one after the other."""

Items = Annotated[int, Ge(1), Le(MOST_ITEMS)]
"""Contributions of one client."""

Positive = Annotated[float, Gt(0), Lt(math.inf)]
"""A finite number above 0."""

Seed = Annotated[int, Ge(0)]
"""Of public randomness, or of a run."""

Chance = Annotated[float, Ge(0), Le(1)]

Share = Annotated[float, Gt(0), Lt(1)]
"""A part of a whole: neither nothing nor all of it."""

ShareOrNone = Annotated[float, Ge(0), Lt(1)]
"""A part of a whole, which may be nothing."""

ShareOrAll = Annotated[float, Gt(0), Le(1)]
"""A part of a whole, which may be all of it."""

ReportEpsilon = Annotated[float, Ge(SMALLEST_EPSILON), Le(LARGEST_EPSILON)]
"""Local epsilon of a report that an oracle makes."""

PrivacyBudget = Annotated[float, Ge(SMALLEST_EPSILON), Lt(math.inf)]
"""A local epsilon that can be computed with, see `fedhh.validation.require_epsilon`."""

AUTO: Literal["auto"] = "auto"
"""The value of a setting that is decided when the population is known."""

CountOrAuto = Count | Literal["auto"]

_BOUNDS = {Ge: (">=", operator.ge), Gt: (">", operator.gt),
           Le: ("<=", operator.le), Lt: ("<", operator.lt)}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class FromConfig:
    """Marks a field that a configuration keeps elsewhere than in the protocol's own table.

    Attributes:
        path: Where, such as "privacy.local_epsilon".
    """

    path: str


@cache
def settings_of(kind: type[Any]) -> dict[str, Any]:
    """Return the annotations of a dataclass's fields by name."""
    # Reading annotations takes longer than checking values, which every change of a setting does.
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


def config_path(annotation: Any) -> str | None:
    """Return where a configuration keeps a field, None for the protocol's own table."""
    marks = getattr(annotation, "__metadata__", ())
    return next((mark.path for mark in marks if isinstance(mark, FromConfig)), None)


class Settings:
    """A dataclass of settings, each within what its annotation says.

    Fields are frozen and public. A subclass checks what they have to be together in its own
    ``__post_init__``, after this one's.

    Raises:
        InputError: One line, with the name, the value and the bound.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Mine(Settings):
    ...     share: Chance = 0.5
    >>> Mine(share=1.5)
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Expected 0 <= share <= 1, got share=1.5.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        passed = _passed(kind)
        for name, annotation in settings_of(kind).items():
            value = getattr(self, name)
            if passed.get(name, passed) is value:
                continue
            members = alternatives(annotation)
            if not any(fits(value, member) for member in members):
                raise InputError(_complaint(name, value, members))
            passed[name] = value


@cache
def _passed(kind: type[Any]) -> dict[str, Any]:
    """Return the value of each field that passed last, to be filled: mostly it is the next one."""
    return {}


def decided(value: int | Literal["auto"], name: str) -> int:
    """Return a number that is no longer "auto"; InputError says how to decide it."""
    if value == AUTO:
        raise InputError(
            f'Expected {name} as a number, got "auto"; call settle(num_clients=..., seed=...).'
        )
    return value


def described(kind: type[Any]) -> dict[str, str]:
    """Return what docstrings say of a class's fields, under "Attributes:", by name."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        _, _, section = inspect.cleandoc(each.__doc__ or "").partition("\nAttributes:\n")
        block = re.split(r"\n(?=\S)", section, maxsplit=1)[0]
        for name, text in re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", block, re.MULTILINE):
            texts[name] = " ".join(text.split())
    return texts


@cache
def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; one for any other annotation."""
    kind = _plain(annotation)
    return get_args(kind) if get_origin(kind) in {Union, UnionType} else (annotation,)


@cache
def bounds_of(annotation: Any) -> tuple[BaseMetadata, ...]:
    """Return the bounds that an annotation states."""
    marks = getattr(annotation, "__metadata__", ())
    return tuple(mark for mark in marks if isinstance(mark, Ge | Gt | Le | Lt))


def fits(value: Any, annotation: Any) -> bool:
    """Return whether a value is of a type, which is no union, and within its bounds."""
    kind = _plain(annotation)
    if get_origin(kind) is Literal:
        return any(value == each and type(value) is type(each) for each in get_args(kind))
    if kind in {int, float}:
        if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
            return False
        return all(_BOUNDS[type(bound)][1](value, _limit(bound)) for bound in bounds_of(annotation))
    if get_origin(kind) is tuple:
        each, *more = get_args(kind)
        kinds = alternatives(each)
        return (
            isinstance(value, tuple)
            and (more == [...] or len(value) == len(get_args(kind)))
            and all(any(fits(part, member) for member in kinds) for part in value)
        )
    return isinstance(value, kind) if isinstance(kind, type) else True


def expectation(annotation: Any, name: str = "", value: Any = None) -> str:
    """Return what a value is expected to be, as text for a message.

    Args:
        annotation: Of what holds it.
        name: What it is called.
        value: The value: of an integer, only the bound is stated that it misses.
    """
    kind = _plain(annotation)
    bounds = [(*_BOUNDS[type(each)], _limit(each)) for each in bounds_of(annotation)]
    if kind is int:
        missed = [f"{sign} {limit}" for sign, holds, limit in bounds
                  if not isinstance(value, Integral) or not holds(value, limit)]  # fmt: skip
        return " ".join(filter(None, ("an integer", name, " and ".join(missed))))
    if kind is float and name:
        low = [f"{limit:g} {sign.replace('>', '<')} " for sign, _, limit in bounds if ">" in sign]
        high = [f" {sign} {limit:g}" for sign, _, limit in bounds if "<" in sign]
        return "".join((*low, name, *high))
    if get_origin(kind) in {Union, UnionType}:
        text = " or ".join(map(expectation, get_args(kind)))
    elif get_origin(kind) is Literal:
        text = " or ".join(json.dumps(each) for each in get_args(kind))
    elif get_origin(kind) is tuple:
        *parts, last = map(expectation, get_args(kind))
        text = (
            f"a tuple, each {parts[0]}" if last == "Ellipsis" else f"({', '.join([*parts, last])})"
        )
    else:
        texts = {NoneType: "None", float: "a number", bool: "true or false", str: "text"}
        text = texts.get(kind, str(kind))
    return f"{name} as {text}" if name else text


@cache
def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _limit(bound: Any) -> Any:
    return getattr(bound, type(bound).__name__.lower())


def _complaint(name: str, value: Any, members: tuple[Any, ...]) -> str:
    first, *rest = members
    kind = _plain(first)
    if get_origin(kind) is Literal and not rest:
        return f"Unknown {name} {shown(value)}{did_you_mean(str(value), map(str, get_args(kind)))}"
    ends = "".join(f" or {expectation(member)}" for member in rest)
    return f"Expected {expectation(first, name, value)}{ends}, got {name}={shown(value)}."
