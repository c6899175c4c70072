"""What a conformance check is: a named property, and a failure that says what differs from what."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from fedhh.validation import InputError

Subject = TypeVar("Subject")


class ConformanceError(AssertionError):
    """A property does not hold; the message names the check, the subject, value and bound."""


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """One property of a class; call it on an object to find out whether it holds.

    Attributes:
        name: The property.
        body: Raises AssertionError if the property does not hold for an object and a seed.
        applies: Whether an object has to have the property.
    """

    name: str
    body: Callable[[Subject, int], None]
    applies: Callable[[Subject], bool]

    def __call__(self, subject: Subject, *, seed: int = 0) -> None:
        """Raise `ConformanceError` unless the property holds; the seed is of all randomness."""
        try:
            self.body(subject, seed)
        except AssertionError as failure:
            raise ConformanceError(f"{self.name}: {subject}: {failure}") from failure
        except Exception as error:
            kind = type(error).__name__
            raise ConformanceError(f"{self.name}: {subject}: raised {kind}: {error}") from error

    def __str__(self) -> str:
        return self.name


class Checks(list[Check[Subject]]):
    """Checks in their order, to which a module adds its functions."""

    def add(
        self, applies: Callable[[Subject], bool] = lambda _: True
    ) -> Callable[[Callable[[Subject, int], None]], Callable[[Subject, int], None]]:
        """Return a decorator that adds a function ``_name(subject, seed)`` as the check "name"."""

        def register(body: Callable[[Subject, int], None]) -> Callable[[Subject, int], None]:
            self.append(Check(body.__name__.lstrip("_"), body, applies))
            return body

        return register


def expect(holds: object, message: str) -> None:
    """Raise AssertionError with a message unless something holds; works under ``python -O``."""
    if not holds:
        raise AssertionError(message)


def expect_refusal(what: str, call: Callable[[], object], *, naming: str) -> None:
    """Raise AssertionError unless a call with a bad input raises an InputError that names it."""
    try:
        call()
    except InputError as error:
        expect(naming in str(error), f"the refusal of {what} does not name {naming}: {error}")
    except Exception as error:
        raise AssertionError(
            f"{what} raised {type(error).__name__} ({error}); expected an InputError that names "
            f"{naming}, from fedhh.validation"
        ) from error
    else:
        raise AssertionError(f"{what} was accepted; expected an InputError that names {naming}")


def expect_frozen(settings: Any) -> None:
    """Raise AssertionError unless an object is a dataclass whose fields cannot be assigned to."""
    expect(dataclasses.is_dataclass(settings), "the class is no dataclass")
    name = dataclasses.fields(settings)[0].name
    try:
        setattr(settings, name, getattr(settings, name))
    except dataclasses.FrozenInstanceError:
        return
    raise AssertionError(f"{name} can be assigned to; expected a frozen dataclass")


def expect_added(what: str, draw: Callable[..., Any], size: int) -> None:
    """Raise AssertionError unless ``draw(out=...)`` adds to an array what it returns alone.

    Args:
        what: What it is, for messages.
        draw: Returns the same ``(size,) int64`` at every call.
        size: How many numbers these are.
    """
    fresh = draw(out=None)
    out = np.full(size, 1_000)
    expect(draw(out=out) is out, f"{what} returns another array than out")
    expect(fresh.dtype == np.int64, f"{what} returns {fresh.dtype}, expected int64")
    expect(
        np.array_equal(out - 1_000, fresh),
        f"{what} added {out - 1_000} to out, but returns {fresh} without it",
    )


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
        # Equal sets may have another order.
        is_set = isinstance(first, frozenset | set)
        same = first == second if is_set else repr(first) == repr(second)
        return None if same else f"{path} is {first!r} and {second!r}"
    if parts.keys() != others.keys():
        return f"{path} holds {len(parts)} and {len(others)} values"
    found = (first_difference(parts[key], others[key], f"{path}{key}") for key in parts)
    return next((difference for difference in found if difference), None)


def expect_same(first: Any, second: Any, path: str, when: str) -> None:
    """Raise AssertionError, with the first difference, unless two values hold the same bits."""
    difference = first_difference(first, second, path)
    expect(difference is None, f"{when}: {difference}")


def expect_pure(call: Callable[..., Any], given: Mapping[str, Any], past: Any, when: str) -> None:
    """Raise AssertionError unless a call always returns what it did, and changes nothing given.

    Args:
        call: Takes what is given.
        given: By name.
        past: What it returned before.
        when: Which call it is, for messages.
    """
    kept = copy.deepcopy(given)
    expect_same(call(*given.values()), past, "it", f"{when}, called again, returned another value")
    expect_same(call(*given.values()), past, "it", f"{when}, called twice, returned another value")
    for name in given:
        expect_same(given[name], kept[name], name, f"{when} changed the {name}")


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
