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
from collections.abc import Callable, Sequence
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

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

ReportEpsilon = Annotated[float, Ge(SMALLEST_EPSILON), Le(LARGEST_EPSILON)]
"""Local epsilon of a report that an oracle makes."""

PrivacyBudget = Annotated[float, Ge(SMALLEST_EPSILON), Lt(math.inf)]
"""A local epsilon that can be computed with, see `fedhh.validation.require_epsilon`."""

AUTO: Literal["auto"] = "auto"
"""The value of a setting that is decided when the population is known."""

CountOrAuto = Count | Literal["auto"]

_SIGNS = {Ge: ("ge", "<=", operator.ge), Gt: ("gt", "<", operator.gt),
          Le: ("le", "<=", operator.le), Lt: ("lt", "<", operator.lt)}  # fmt: skip


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
    """A dataclass of settings: given by name, and each within what its annotation says.

    Fields are frozen and public. A subclass checks what they have to be together in its own
    ``__post_init__``, after this one's.

    Raises:
        InputError: One line, with the name, the value and the bound, or with the name that was
            meant.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Mine(Settings):
    ...     local_epsilon: Positive = 8.0
    >>> Mine(epsilon=4.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Mine has no setting 'epsilon'; ... Known: local_epsilon.
    >>> Mine(local_epsilon=0.0)
    Traceback (most recent call last):
    ...
    fedhh.validation.InputError: Expected 0 < local_epsilon < inf, got local_epsilon=0.0.
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

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, annotation in settings_of(kind).items():
            value = getattr(self, name)
            members = alternatives(annotation)
            if not any(fits(value, member) for member in members):
                raise InputError(_complaint(name, value, members))


@cache
def _parameters(initializer: Callable[..., None]) -> tuple[str, ...] | None:
    """Return what an initializer takes by name alone; None if it takes anything else, too."""
    parameters = list(inspect.signature(initializer).parameters.values())[1:]
    if any(each.kind is not each.KEYWORD_ONLY for each in parameters):
        return None
    return tuple(each.name for each in parameters)


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
        return all(_holds(value, bound) for bound in bounds_of(annotation))
    if get_origin(kind) is tuple:
        members = alternatives(get_args(kind)[0])
        return isinstance(value, tuple) and all(
            any(fits(each, member) for member in members) for each in value
        )
    return isinstance(value, kind) if isinstance(kind, type) else True


def expectation(annotation: Any) -> str:
    """Return what a union of a number and words may hold, as text for a message."""
    return " or ".join(_member_text(member) for member in alternatives(annotation))


@cache
def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _limit(bound: Any) -> tuple[Any, str, Any]:
    name, sign, compare = _SIGNS[type(bound)]
    return getattr(bound, name), sign, compare


def _holds(value: Any, bound: BaseMetadata) -> bool:
    limit, _, compare = _limit(bound)
    return bool(compare(value, limit))


def _complaint(name: str, value: Any, members: Sequence[Any]) -> str:
    first, *rest = members
    kind = _plain(first)
    if get_origin(kind) is Literal and not rest:
        return f"Unknown {name} {shown(value)}{did_you_mean(str(value), map(str, get_args(kind)))}"
    ends = "".join(f" or {_member_text(member)}" for member in rest)
    return f"Expected {_range(name, first, value)}{ends}, got {name}={shown(value)}."


def _range(name: str, annotation: Any, value: Any) -> str:
    """Return a name with its bounds, such as "an integer depth >= 1" or "0 < share < 1"."""
    limits = [(type(bound) in {Ge, Gt}, *_limit(bound)[:2]) for bound in bounds_of(annotation)]
    low = next(((limit, sign) for is_low, limit, sign in limits if is_low), None)
    high = next(((limit, sign) for is_low, limit, sign in limits if not is_low), None)
    kind = _plain(annotation)
    prefix = "an integer " if kind is int else ""
    if kind is int and low is not None and not (high and fits(value, Annotated[int, Gt(high[0])])):
        return f"{prefix}{name} {low[1].replace('<', '>')} {low[0]}"
    if kind not in {int, float}:
        return f"{name} as {_member_text(annotation)}"
    before = "" if low is None else f"{_digits(low[0])} {low[1]} "
    after = "" if high is None else f" {high[1]} {_digits(high[0])}"
    return f"{prefix}{before}{name}{after}"


def _digits(limit: float) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _member_text(annotation: Any) -> str:
    kind = _plain(annotation)
    if kind is NoneType:
        return "None"
    if get_origin(kind) is Literal:
        return " or ".join(json.dumps(each) for each in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a tuple, each {expectation(get_args(kind)[0])}"
    if kind is int:
        bounds = bounds_of(annotation)
        low = next((bound.ge for bound in bounds if isinstance(bound, Ge)), None)
        high = next((bound.le for bound in bounds if isinstance(bound, Le)), None)
        if low is None:
            return "an integer"
        return (
            f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
        )
    return {float: "a number", bool: "true or false", str: "text"}.get(kind, str(kind))
