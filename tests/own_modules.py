"""Modules from folders, known for as long as a test runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedhh import plugins


@contextmanager
def own_modules(*, trusted: bool) -> Iterator[None]:
    """Know no folder yet, and in the end forget again what came from some."""
    before, paths = plugins._state, list(sys.path)
    plugins._state = state = plugins.State(trusts=trusted)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            folders = Path(getattr(module, "__file__", None) or "").parents
            if any(each in state.folders for each in folders) and name.partition(".")[0] != "fedhh":
                del sys.modules[name]
        plugins._state = before
        sys.path[:] = paths
