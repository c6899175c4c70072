"""Plug-ins: classes found by name among our own, in installed packages, in a file.

A name is a key of the built-in classes, an entry point of the group ``fedhh.<kind>``, or
``module:Class``. To import a module is to run it: one that is not imported yet is imported only
after `trust`. The folder of a configuration is then searched, too, after all that is installed.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from fedhh.system.files import write_text
from fedhh.validation import InputError, did_you_mean

Kind = Literal["protocols", "oracles", "populations"]
"""What plug-ins may be; entry points are in the group ``fedhh.<kind>``."""


class DisabledError(InputError):
    """A name leads to code, and what is read now must not run any."""


@dataclass(kw_only=True)
class State:
    """What this process has been told of plug-ins.

    Attributes:
        trusts: Whether modules are imported that are named.
        folders: Next to the configurations that were read with trust; they are searched.
        texts: Modules that another process had from such folders, by path.
        num_disabling: How many readers want nothing to be imported.
    """

    trusts: bool = False
    folders: list[Path] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    num_disabling: int = 0


_state = State()


def find(kind: Kind, name: str, builtin: Mapping[str, str]) -> type[Any]:
    """Return the class of a name.

    Args:
        kind: What is looked for.
        name: A built-in name, an entry point's, or "module:Class".
        builtin: "module:Class" of our own classes by name.

    Raises:
        InputError: Nothing has the name, or nobody trusts what has it.
        DisabledError: The name is none of our own, within `disabled`.
    """
    if name in builtin:
        return _class_at(builtin[name], kind)
    if _state.num_disabling:
        raise DisabledError(f"{name!r} names code, and reading a directory imports none.")
    if ":" in name:
        module = name.partition(":")[0]
        if not _state.trusts and module not in sys.modules:
            raise InputError(
                f"{name!r} names code: the module {module!r} would be imported; read it, and give "
                "--trust if it may run."
            )
        return _class_at(name, kind)
    points = _entry_points(kind)
    if name not in points:
        raise InputError(f"Unknown {kind[:-1]} {name!r}{did_you_mean(name, names(kind, builtin))}")
    return _class_at(points[name].value, kind)


def names(kind: Kind, builtin: Mapping[str, str]) -> list[str]:
    """Return all names known without a file: the built-in ones, then those of entry points."""
    return [*builtin, *(name for name in sorted(_entry_points(kind)) if name not in builtin)]


def search(folder: Path) -> None:
    """Find modules in the folder of a configuration, too, if they are trusted."""
    folder = folder.resolve()
    if _state.trusts and folder not in _state.folders:
        _state.folders.append(folder)
        sys.path.append(str(folder))


def trust(everything: bool) -> None:
    """Say whether modules are imported that are named, by a configuration or in Python."""
    _state.trusts = everything


@contextmanager
def disabled() -> Iterator[None]:
    """Import nothing by name but fedhh's own classes, for as long as a directory is read."""
    _state.num_disabling += 1
    try:
        yield
    finally:
        _state.num_disabling -= 1


@contextmanager
def without_exit() -> Iterator[None]:
    """Turn an exit that a plug-in asks for into an error: nothing is done yet."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"code that was called wanted to exit with {error.code!r}") from error


def sources() -> dict[str, str]:
    """Return the texts of the modules that came from folders, by path such as "mine.py"."""
    own = {path: file.read_text(encoding="utf-8") for path, file in _own_files().items()}
    return {**_state.texts, **own}


def install(texts: Mapping[str, str], trusts: bool) -> None:
    """Make modules importable from what `sources` returned in another process, trusted as there."""
    _state.trusts |= trusts
    own = {path.split("/")[0] for path in _own_files()}
    theirs = {path: text for path, text in texts.items() if path.split("/")[0] not in own}
    if theirs == _state.texts:
        return
    folder = Path(tempfile.mkdtemp(prefix="fedhh-plugins-"))
    for path, text in theirs.items():
        write_text(folder / path, text)
        # A module of that name may have changed since.
        sys.modules.pop(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."), None)
    _state.texts = theirs
    sys.path.insert(0, str(folder))


def _own_files() -> dict[str, Path]:
    """Return the files of the modules that came from folders, by path below these."""
    files: dict[str, Path] = {}
    for name, module in list(sys.modules.items()) if _state.folders else []:
        file = Path(getattr(module, "__file__", None) or "")
        is_package = file.name == "__init__.py"
        home = file.parent.parent if is_package else file.parent
        if "." not in name and name != "fedhh" and home in _state.folders:
            for each in sorted(file.parent.rglob("*.py")) if is_package else [file]:
                files[each.relative_to(home).as_posix()] = each
    return files


class Carried:
    """A value on its way to another process, with the modules from folders that it may need.

    What comes out of unpickling is the value itself; the modules are there before it is read. As
    text, since cloudpickle cannot take a class with a cached property by value in Python 3.11.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return itemgetter(1), ((_Modules(), self._value),)


class _Modules:
    """Pickled, the sources of this process; unpickled, they are installed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return install, (sources(), _state.trusts)


def _class_at(place: str, kind: Kind) -> type[Any]:
    name, _, own = place.partition(":")
    missing = f"{place!r} names no {kind[:-1]}: the module {name!r} is neither installed here nor "
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{missing}can it be.")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError(f"{missing}next to the configuration.") from error
    found = getattr(module, own, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise InputError(
            f"{place!r} names no {kind[:-1]}: {name} has no class {own!r}"
            f"{did_you_mean(own, classes)}"
        )
    return found


@cache
def _entry_points(kind: Kind) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"fedhh.{kind}")}
