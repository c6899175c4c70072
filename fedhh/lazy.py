"""Names of a package that are imported when they are first used: `import fedhh` stays quick."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Its stub ``__init__.pyi``, which type checkers read, says where each name is defined.
    """
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    homes = {
        each.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module
        for each in node.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get, lambda: sorted(homes), list(homes)
