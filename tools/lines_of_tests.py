"""Which tests execute which lines of fedhh, by coverage.py, whose contexts are the tests.

A plugin of pytest, ``-p tools.lines_of_tests``, in one process: it leaves `FILE` where it runs.
What runs at import, in compiled kernels and in other processes belongs to no test, and what is made
once for several tests, as by fixtures and caches, belongs to the first of them.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import coverage

FILE = "lines_of_tests.sqlite"

_running: list[coverage.Coverage] = []


def pytest_configure() -> None:
    """Begin before the first of fedhh is imported."""
    import coverage

    _running.append(coverage.Coverage(data_file=FILE, source=["fedhh"], config_file=False))
    _running[-1].set_option("run:relative_files", True)
    _running[-1].start()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    """Say whose the lines are from here on."""
    _running[-1].switch_context(nodeid.partition("[")[0])


def pytest_unconfigure() -> None:
    """Leave the file."""
    _running[-1].stop()
    _running.pop().save()


def tests_of(folder: Path, file: str, number: int) -> list[str]:
    """Return the tests, without parameters, that executed a line, or else its statement."""
    import coverage

    data = coverage.CoverageData(str(folder / FILE))
    data.read()
    by_line = data.contexts_by_lineno(file)
    for lines in ([number], _statement((folder / file).read_text(encoding="utf-8"), number)):
        tests = {test for line in lines for test in by_line.get(line, ()) if test}
        if tests:
            return sorted(tests)
    return []


def _statement(source: str, number: int) -> range:
    """Return the lines of the innermost statement around a line, those of its body left out."""
    around = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or 0)
    ]
    node = max(around, key=lambda node: node.lineno)
    inner = getattr(node, "body", [])
    return range(node.lineno, inner[0].lineno if inner else (node.end_lineno or 0) + 1)
