"""Compiled code on disk: in the user's cache directory, shared by all runs, never needed.

Not by numba's own cache: its index is read, changed and written again, so two processes that
compile two signatures at once can leave one that gives a signature the code of the other, which
then computes nonsense; and a full disk ends a run. Here each compiled signature is one file, named
by everything that it depends on (`fedhh.system.kept`). Whatever goes wrong costs a compilation.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from fedhh import random
from fedhh.system import kept
from fedhh.validation import reason_of
from fedhh.version import __version__

_log = logging.getLogger(__name__)

_listeners: list[Callable[[str], None]] = []


@contextmanager
def hearing_of_compilations(hear: Callable[[str], None]) -> Iterator[None]:
    """Tell a function of each kernel that this process is about to compile, and "" afterwards.

    Kernels whose code is on the disk are not reported.
    """
    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def _tell(name: str) -> None:
    for hear in _listeners:
        hear(name)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function of this package that Python calls, and keep its code on disk.

    The sources of this package alone are searched for changes.
    """
    dispatcher = subroutine(function)
    # With NUMBA_DISABLE_JIT it is the function itself, which compiles nothing.
    if dispatcher is not function:
        dispatcher._cache = _Cache(function)
    return dispatcher


def subroutine(function: Callable[..., Any]) -> Any:
    """Compile a function that other kernels call: its code is a part of theirs.

    All have the same options, since numba compiles what they use of its own (`numpy.empty`, `min`)
    again for every other set of options.
    """
    # Nobody takes a kernel for a C function; that wrapper would be compiled for each.
    return numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)


def cache_directory() -> Path:
    """Return where this fedhh, on this Python, numba and platform, keeps its compiled code."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    platform = sysconfig.get_platform()
    return kept.cache_directory() / f"{__version__}-numba-{numba.__version__}-{python}-{platform}"


@cache
def digest_of_sources() -> bytes:
    """Return a digest of all sources that kernels are made of: each compiles others' code, too."""
    digest = hashlib.sha256()
    own = sorted(files(__package__).iterdir(), key=lambda file: file.name)
    for source in [Path(random.__file__), *own]:
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.digest()


class _Cache:
    """What a numba dispatcher asks for compiled code, for one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        # Read now, with the code itself: the file may change before the function is compiled.
        self._sources = digest_of_sources()

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature, or None if there is none that can be used."""
        target_context.refresh()
        try:
            path = self._path(signature, target_context.codegen())
            return CompileResult._rebuild(target_context, *pickle.loads(path.read_bytes()))
        except OSError:  # Mostly, it is not there. What else is wrong is said on saving.
            pass
        except Exception as error:  # Bad bytes may raise anything, and none of it matters.
            _log.info(
                "Code of %s is damaged, so it compiles again: %s", self._name, reason_of(error)
            )
        _tell(self._name)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the compiled code of a signature, if it can be kept."""
        _tell("")
        if result.lifted or result.library.has_dynamic_globals:
            return
        try:
            kept.keep(self._path(signature, result.codegen), dumps(result._reduce()))
        except Exception as error:  # The code is in memory; only the next process misses it.
            _log.info("Code of %s is not kept: %s", self._name, reason_of(error))

    def _path(self, signature: Any, codegen: Any) -> Path:
        """Return the file of a signature on this processor."""
        key = repr((self._name, signature, codegen.magic_tuple())).encode() + self._sources
        return cache_directory() / f"{self._name}-{hashlib.sha256(key).hexdigest()[:32]}.bin"
