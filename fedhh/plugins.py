"""Plug-ins: classes found by name among our own, in installed packages, in a file.

A name is a key of the built-in classes, an entry point of the group ``fedhh.<kind>``, or
``module:Class``. Such a module is looked for in the folders given to `add_folder`, newest first,
and then among what is installed. Modules from folders travel to other processes as text: see
`Carried`.

To import a module is to run it. A folder next to a configuration (`offered`) is opened only when
the configuration names a module in it, and only if `trust` was called or the module is the user's
own; see *Security* in the documentation. Within `disabled` nothing is imported by name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal, get_args

from fedhh.system.files import write_text
from fedhh.validation import InputError, did_you_mean

Kind = Literal["protocols", "oracles", "populations"]
"""What plug-ins may be; entry points are in the group ``fedhh.<kind>``."""


RESULT_FILES = (
    "result.json",
    "identity.json",
    "results.parquet",
    "log/0.npz",
    "pipeline.npz",
)
"""What a folder holds that fedhh has written: one of them at least."""


class DisabledError(InputError):
    """A name leads to code, and what is read now must not run any."""


def find(kind: Kind, name: str, builtin: Mapping[str, str]) -> type[Any]:
    """Return the class of a name.

    Args:
        kind: What is looked for.
        name: A built-in name, an entry point's, or "module:Class".
        builtin: "module:Class" of our own classes by name.

    Raises:
        InputError: Nothing has the name, what has it cannot be imported, or nobody trusts it.
        DisabledError: The name is none of our own, within `disabled`.
    """
    if name in builtin:
        # No folder can have it, so none is searched.
        module, _, own = builtin[name].partition(":")
        found: type[Any] = getattr(import_module(module), own)
        return found
    if _finder.num_disabling:
        raise DisabledError(f"{name!r} names code, and reading a directory imports none.")
    if ":" in name:
        return _plugin_at(name, kind)
    points = _entry_points(kind)
    if name not in points:
        raise InputError(f"Unknown {kind[:-1]} {name!r}{did_you_mean(name, names(kind, builtin))}")
    return _plugin_at(points[name].value, kind)


def is_plugin(module: str) -> bool:
    """Return whether a module is a plug-in's code, found by a name or imported by such code."""
    top = module.partition(".")[0]
    return top in _finder.named or top in _finder.loaded


def names(kind: Kind, builtin: Mapping[str, str]) -> list[str]:
    """Return all names known without a file: the built-in ones, then those of entry points."""
    return [*builtin, *(name for name in sorted(_entry_points(kind)) if name not in builtin)]


def add_folder(path: Path) -> None:
    """Look for modules in a folder from now on, before any added earlier."""
    folder = path.resolve()
    _finder.folders = [folder, *(each for each in _finder.folders if each != folder)]
    _use_finder()


@contextmanager
def offered(path: Path, *, is_result: bool = False) -> Iterator[None]:
    """Look in a folder for modules that a configuration names, for as long as it is read.

    Meanwhile no module is imported that nobody trusts. What has been imported stays.

    Args:
        path: The folder next to the configuration.
        is_result: Whether fedhh wrote the folder, as one does not look into it before a resume.
    """
    folder, before = path.resolve(), _finder.offered
    others = {each: own for each, own in before.items() if each != folder}
    _finder.offered = {**others, folder: is_result}
    try:
        yield
    finally:
        _finder.offered = before


def trust(everything: bool) -> None:
    """Say whether modules in offered folders are imported although they are not one's own."""
    _finder.trusts = everything


@contextmanager
def disabled() -> Iterator[None]:
    """Import nothing by name but fedhh's own classes, for as long as a directory is read."""
    finder = _finder
    finder.num_disabling += 1
    try:
        yield
    finally:
        finder.num_disabling -= 1


@contextmanager
def apart() -> Iterator[None]:
    """Know no folder yet, and in the end forget again what was found meanwhile, also modules."""
    before = vars(_finder).copy()
    vars(_finder).update(vars(_Finder()))
    try:
        yield
    finally:
        for name in _finder.loaded:
            _forget(name)
        vars(_finder).update(before)


def sources() -> dict[str, str]:
    """Return the texts of the modules that came from folders, by path such as "mine.py"."""
    texts = dict(_finder.texts)
    for name, file in _finder.loaded.items():
        if file.name == "__init__.py":
            for part in sorted(file.parent.rglob("*.py")):
                path = f"{name}/{part.relative_to(file.parent).as_posix()}"
                texts[path] = part.read_text(encoding="utf-8")
        else:
            texts[file.name] = file.read_text(encoding="utf-8")
    return texts


def save_sources(folder: Path) -> None:
    """Write the modules that came from folders into a folder, where they are found again."""
    for path, text in sources().items():
        write_text(folder / path, text)


def install(texts: Mapping[str, str], named: Sequence[str] = ()) -> None:
    """Make modules importable from what `sources` returned in another process.

    Args:
        texts: Those of modules that came from folders.
        named: Top-level modules of all plug-ins.
    """
    _finder.named |= {*named, *map(_top_of, texts)}
    new = {
        path: text
        for path, text in texts.items()
        if _top_of(path) not in _finder.loaded and _finder.texts.get(path) != text
    }
    for name in {_top_of(path) for path in new}:
        _forget(name)
    _finder.texts.update(new)
    if new:
        _use_finder()


class Carried:
    """A value on its way to another process, with the modules from folders that it may need.

    What comes out of unpickling is the value itself; the modules are there before it is read.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _value_after, (_Modules(), self._value)


class _Modules:
    """Pickled, the sources of this process; unpickled, they are installed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return install, (sources(), sorted(_finder.named))


def _value_after(_: None, value: Any) -> Any:
    return value


class _TextLoader(InspectLoader):
    """Loads a module from its text; tracebacks name the file that it was."""

    def __init__(self, text: str, file: str, *, package: bool) -> None:
        self._text = text
        self._file = file
        self._package = package

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled text."""
        return self.source_to_code(self._text, self._file)

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        return self._text

    def is_package(self, fullname: str) -> bool:
        """Return whether other modules may stand below it."""
        return self._package


class _Finder(MetaPathFinder):
    """Finds modules in folders and among texts; what is installed goes before the folders.

    Attributes:
        folders: Where to look, first to last.
        loaded: Files of the modules that were found in a folder, by their top-level name.
        named: Top-level modules of classes that are not fedhh's own.
        texts: Texts of modules that another process had, by path.
        offered: Folders next to configurations that are being read, newest last, and whether each
            is a result's.
        trusts: Whether an offered folder is opened without a look at whose it is.
        num_disabling: How many readers want nothing to be imported.
    """

    def __init__(self) -> None:
        self.offered: dict[Path, bool] = {}
        self.trusts = False
        self.num_disabling = 0
        self.folders: list[Path] = []
        self.loaded: dict[str, Path] = {}
        self.named: set[str] = set()
        self.texts: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module that a text or a folder has; None for all others."""
        stem = fullname.replace(".", "/")
        for file, package in ((f"{stem}.py", False), (f"{stem}/__init__.py", True)):
            if file in self.texts:
                loader = _TextLoader(self.texts[file], file, package=package)
                return spec_from_loader(fullname, loader, is_package=package)
        found = None if path is not None else self.file_of(fullname)
        if found is None:
            return None
        self.loaded[fullname] = found
        below = [str(found.parent)] if found.name == "__init__.py" else None
        return spec_from_file_location(fullname, found, submodule_search_locations=below)

    def file_of(self, name: str) -> Path | None:
        """Return a folder's file of a top-level module, unless an installed one has the name."""
        for folder in self.folders:
            if file := _module_file(folder, name):
                return None if self._is_installed(name) else file
        return None

    def open_for(self, name: str, place: str) -> None:
        """Open the newest offered folder that has a top-level module and may be opened.

        Raises:
            InputError: Only folders have it that may not be opened.
        """
        refused = ""
        for folder, is_result in reversed(self.offered.items()):
            file = _module_file(folder, name)
            if file is None or self._is_installed(name):
                continue
            why = "" if self.trusts else _why_foreign(file, folder, is_result=is_result)
            if not why:
                add_folder(folder)
                return
            refused = refused or (
                f"{place!r} names code: {file} would be imported, which {why}; read the file, and "
                "give --trust if it may run."
            )
        if refused and self.file_of(name) is None:
            raise InputError(refused)

    def check_installed(self, module: str, place: str) -> None:
        """Raise InputError if what is read names an installed module that nobody trusts.

        A package with an entry point for fedhh is trusted, and so is what is imported already.
        """
        top = _top_module(module)
        kinds: tuple[Kind, ...] = get_args(Kind)
        plugins = {
            _top_module(point.module) for kind in kinds for point in _entry_points(kind).values()
        }
        if self.trusts or not self.offered or module in sys.modules or top in {"fedhh", *plugins}:
            return
        folders = [*self.folders, *self.offered]
        if any(_module_file(each, top) for each in folders) and not self._is_installed(top):
            return  # `open_for` decides.
        others = [finder for finder in sys.meta_path if finder is not self]
        if any(finder.find_spec(top, None) for finder in others):
            raise InputError(
                f"{place!r} names code: the installed module {module} would be imported, which is "
                "no plug-in of fedhh; give --trust if it may run."
            )

    def _is_installed(self, name: str) -> bool:
        if name in sys.stdlib_module_names:
            return True
        spec = PathFinder.find_spec(name)
        if spec is None or spec.origin is None:
            return False
        origin = Path(spec.origin).resolve()
        home = origin.parent.parent if origin.name == "__init__.py" else origin.parent
        return home not in self.folders and home not in self.offered


_finder = _Finder()


def _use_finder() -> None:
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _plugin_at(place: str, kind: Kind) -> type[Any]:
    module = place.partition(":")[0]
    if _top_module(module) not in _finder.named:
        _finder.check_installed(module, place)
    _finder.named.add(_top_module(module))
    return _class_at(place, kind)


def _top_module(name: str) -> str:
    return name.partition(".")[0]


def _class_at(place: str, kind: Kind) -> type[Any]:
    module_name, _, name = place.partition(":")
    module = _module(module_name, place, kind)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise InputError(
            f"{place!r} names no {kind[:-1]}: {module.__name__} has no class "
            f"{name!r}{did_you_mean(name, classes)}"
        )
    return found


def _module(name: str, place: str, kind: Kind) -> ModuleType:
    """Return a module; one from a folder that was added since replaces its namesake."""
    top = name.partition(".")[0]
    _finder.open_for(top, place)
    file = _finder.file_of(top)
    if file is not None and _finder.loaded.get(top, file) != file:
        _forget(top)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, top):
            raise InputError(
                f"{place!r} cannot be imported: {name} needs the module {error.name!r}, which is "
                "missing here."
            ) from error
        where = ", ".join(str(folder) for folder in _finder.folders) or "no folder"
        raise InputError(
            f"{place!r} names no {kind[:-1]}: the module {error.name!r} is neither installed here "
            f"nor next to the config (looked in: {where})."
        ) from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{place!r} cannot be imported: {name} stops with {type(error).__name__}: {error}."
        ) from error


def _forget(top: str) -> None:
    for name in [each for each in sys.modules if each == top or each.startswith(f"{top}.")]:
        del sys.modules[name]


def _module_file(folder: Path, name: str) -> Path | None:
    """Return the file of a top-level module in a folder; None if there is none."""
    files = (folder / f"{name}.py", folder / name / "__init__.py")
    return next((file for file in files if _is_file(file)), None)


def _why_foreign(file: Path, folder: Path, *, is_result: bool) -> str:
    """Return why a module is not the user's own; nothing if it is.

    It is if it stands in the current directory or below it, belongs to the user, and lies in no
    folder that fedhh has written.
    """
    here = Path.cwd().resolve()
    target = file.resolve()
    if not (folder.is_relative_to(here) and target.is_relative_to(here)):
        return "stands outside the current directory"
    if hasattr(os, "getuid"):
        own = os.getuid()
        if any(path.stat().st_uid != own for path in (folder, target)):
            return "belongs to another user"
    inside = (folder, *folder.parents)[: len(folder.parts) - len(here.parts) + 1]
    written = any((each / name).exists() for each in inside for name in RESULT_FILES)
    if is_result or written:
        return "stands in a directory that fedhh wrote"
    return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # Such as a name that is too long: a file that cannot be there.
        return False


def _top_of(path: str) -> str:
    return path.partition("/")[0].removesuffix(".py")


@cache
def _entry_points(kind: Kind) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"fedhh.{kind}")}
