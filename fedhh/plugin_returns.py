"""What a plug-in returns is of the type that fedhh's class states; else one line says where."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from fedhh.validation import InputError, shown

_OWN = "fedhh"
_ANY = "biufcmMOSUV"
_ARRAYS = {_ANY: "", "biu": " of integers", "biuf": " of numbers"}


class ChecksReturns:
    """A class whose methods and properties, where a plug-in overrides them, are held to its types.

    The types are the annotations of the fedhh class below which the plug-in stands. What a
    dataclass of fedhh holds is looked at, too; what is inside of that is not.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.partition(".")[0] == _OWN:
            return
        for name, member in list(vars(cls).items()):
            own = (each for each in cls.__mro__[1:] if each.__module__.partition(".")[0] == _OWN)
            base = next((each for each in own if name in vars(each)), None)
            if base is None or name.startswith("__"):
                continue
            if isinstance(member, types.FunctionType):
                setattr(cls, name, _checked(member, base, name))
            elif isinstance(member, property) and isinstance(member.fget, types.FunctionType):
                setattr(cls, name, property(_checked(member.fget, base, name), doc=member.__doc__))
            elif isinstance(member, cached_property) and isinstance(
                member.func, types.FunctionType
            ):
                member.func = _checked(member.func, base, name)


def _checked(function: types.FunctionType, base: Any, name: str) -> Callable[..., Any]:
    """Return a plug-in's function that raises InputError where it returns another type."""

    @functools.wraps(function)
    def call(self: Any, *arguments: Any, **more: Any) -> Any:
        returned = function(self, *arguments, **more)
        if wrong := _wrong(returned, _stated(base, name), base):
            code = function.__code__
            file, here = Path(code.co_filename), Path.cwd()
            place = file.relative_to(here) if file.is_relative_to(here) else file
            raise InputError(
                f"The plug-in failed in {place}, line {code.co_firstlineno}, in "
                f"{function.__qualname__}: {wrong}."
            )
        return returned

    return call


@functools.cache
def _stated(base: type[Any], name: str) -> Any:
    """Return the type that a class of fedhh states for a member; Any where it states none."""
    member = vars(base)[name]
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = member.func
    try:
        return get_type_hints(member).get("return", Any)
    except (NameError, TypeError):  # Imported for type checkers only, or no function.
        return Any


@functools.cache
def _fields(kind: type[Any]) -> dict[str, Any]:
    try:
        hints = get_type_hints(kind)
    except NameError:
        return {}
    return {each.name: hints[each.name] for each in fields(kind)}


def _wrong(value: Any, expected: Any, base: type[Any]) -> str:
    """Return what is wrong with a returned value; nothing if it is of a type."""
    if expected is type(None):
        return ""
    if not _fits(value, expected, base):
        return f"expected {_text(expected, base)} to be returned, got {_given(value)}"
    kind = type(value)
    if is_dataclass(kind) and kind.__module__.partition(".")[0] == _OWN:
        for name, stated in _fields(kind).items():
            if not _fits(held := getattr(value, name), stated, base):
                text = _text(stated, base)
                return f"expected {kind.__name__}.{name} as {text}, got {_given(held)}"
    return ""


def _fits(value: Any, expected: Any, base: type[Any]) -> bool:
    origin, parts = get_origin(expected), get_args(expected)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part, base) for part in parts)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(_fits(each, part, base) for each, part in zip(value, parts, strict=True))
        )
    if origin is np.ndarray:
        # A formula of numbers gives a number where one of arrays gives an array.
        kinds = _kinds(expected)
        if isinstance(value, float):
            return "f" in kinds
        return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in kinds
    expected = _as_class(expected, base)
    try:
        return expected is None or isinstance(value, expected)
    except TypeError:  # A protocol in the sense of typing.
        return True


def _as_class(expected: Any, base: type[Any]) -> Any:
    """Return the class that a value has to be of; None where any will do."""
    if isinstance(expected, TypeVar):
        expected = expected.__bound__
    if expected is Self:
        return base
    wider: dict[Any, Any] = {int: Integral, float: Real, bool: (bool, np.bool_)}
    found = get_origin(expected) or expected
    if found in wider:
        return wider[found]
    return found if isinstance(found, type) else None


def _kinds(expected: Any) -> str:
    """Return the kinds of numbers that an array may have, by the codes of numpy."""
    number = get_args(get_args(expected)[1])
    kind = get_origin(number[0]) or number[0] if number else Any
    if kind in (Any, np.integer):  # Reports may be of anything.
        return _ANY
    return "biu" if issubclass(kind, np.integer) else "biuf"


def _text(expected: Any, base: type[Any]) -> str:
    origin, parts = get_origin(expected), get_args(expected)
    if expected is type(None):
        return "None"
    if origin in (Union, types.UnionType):
        return " or ".join(_text(part, base) for part in parts)
    if origin is tuple and parts:
        return f"a tuple of {' and '.join(_text(part, base) for part in parts)}"
    if origin is np.ndarray:
        return f"an array{_ARRAYS[_kinds(expected)]}"
    if expected in (int, float):
        return "an integer" if expected is int else "a number"
    if isinstance(expected, TypeVar) or expected is Self:
        expected = _as_class(expected, base)
    name = getattr(get_origin(expected) or expected, "__name__", str(expected))
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _given(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if value is None:
        return "None"
    return f"{shown(value)} of the type {type(value).__name__}"
