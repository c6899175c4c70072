"""What a conformance check is: a named property, and a failure that says what differs from what."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
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


def expect_equal(found: Any, expected: Any, what: str, *, tolerance: float = 0.0) -> None:
    """Raise AssertionError, with both, unless numbers or arrays of them are equal."""
    same = np.shape(found) == np.shape(expected)
    expect(
        same and np.allclose(found, expected, rtol=0, atol=tolerance),
        f"{what} is {found}, expected {expected}",
    )


def expect_refusal(
    what: str, call: Callable[[], object], *, naming: str, kind: type[Exception] = InputError
) -> None:
    """Raise AssertionError unless a call with a bad input raises an error that names it."""
    try:
        call()
    except kind as error:
        expect(naming in str(error), f"the refusal of {what} does not name {naming}: {error}")
    except Exception as error:
        raise AssertionError(f"{what} raised {error!r}, expected {kind.__name__}") from error
    else:
        raise AssertionError(f"{what} was accepted, expected {kind.__name__}")


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
    expect_equal(out - 1_000, fresh, f"what {what} adds to out")


def first_difference(first: Any, second: Any, path: str) -> str | None:
    """Return where two values differ, and how; None if they hold the same bits.

    Args:
        first: A tree of dataclasses, sequences, mappings, arrays and plain values.
        second: Another.
        path: What to call them.
    """
    pairs = zip_longest(_leaves(first, path), _leaves(second, path), fillvalue=("nothing", b""))
    different = (f"{one} and {other}" for (one, bits), (other, others) in pairs
                 if (one, bits) != (other, others))  # fmt: skip
    return next(different, None)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield what stands where in a tree, as text, and the bits of an array."""
    parts = _parts(value)
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=8)
        yield f"{path} is {value.dtype} of shape {value.shape} {text}", value.tobytes()
    elif parts is None:
        # Equal sets may have another order.
        shown = sorted(map(repr, value)) if isinstance(value, frozenset | set) else repr(value)
        yield f"{path} is {shown}", b""
    else:
        yield f"{path} is a {type(value).__name__} of {len(parts)} values", b""
        for key, part in parts.items():
            yield from _leaves(part, f"{path}{key}")


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
    for times in ("again", "twice"):
        returned = call(*given.values())
        expect_same(returned, past, "it", f"{when}, called {times}, returned another value")
    expect_same(given, kept, "what it was given", f"{when} changed it")


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
