"""The pages of public names, from the list of public modules in the docstring of fedhh."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

import fedhh

_INTRODUCTION = """# Python

Public are the names of `fedhh` and of the modules listed here. Everything else is private,
whatever its name, and may change in any release.

"""


def public_modules() -> list[str]:
    """Return the modules that the docstring of fedhh names as public."""
    return re.findall(r"^\* `(fedhh[\w.]*)`", fedhh.__doc__ or "", flags=re.MULTILINE)


def public_names(module: ModuleType) -> list[str]:
    """Return a module's ``__all__``, or the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if name != "__version__"]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value))
        and value.__module__ == module.__name__
    ]


def pages() -> dict[str, str]:
    """Return the list of public modules, and a page for each, which autodoc fills."""
    modules = ["fedhh", *public_modules()]
    listed = "\n".join(modules)
    texts = {"api": f"{_INTRODUCTION}```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"}
    homes: dict[int, str] = {}
    return texts | {name: _module_page(name, homes) for name in modules}


def _module_page(name: str, homes: dict[int, str]) -> str:
    """Return a module's page, and enter in ``homes`` the names that it is the first to export.

    A name of elsewhere that another page has is shown again, but links lead to that page.
    """
    module = import_module(name)
    directives = []
    for each in public_names(module):
        value = getattr(module, each)
        is_again = homes.setdefault(id(value), name) != name
        is_own = getattr(value, "__module__", name) == name
        directives.append(_directive(f"{name}.{each}", value, index=is_own or not is_again))
    return "".join(
        [
            f"# {name}\n\n```{{eval-rst}}\n.. currentmodule:: {name}\n\n",
            f".. automodule:: {name}\n   :no-members:\n   :no-index:\n\n",
            *directives,
            "```\n",
        ]
    )


def _directive(path: str, value: object, *, index: bool) -> str:
    if inspect.isclass(value):
        options = "" if index else "   :no-index:\n"
        return f".. autoclass:: {path}\n   :members:\n   :show-inheritance:\n{options}\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n\n"
    # Autodoc would show the docstring of dict or tuple.
    entries = ", ".join(f"``{each}``" for each in value) if isinstance(value, Iterable) else ""
    return f".. py:data:: {path}\n\n   {entries or repr(value)}\n\n"
