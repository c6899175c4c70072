"""Check that each slow test has a sibling in the default suite: ``python tools/slow_tests.py``.

A slow test runs in CI alone, so what it holds must be held by a cheap test, too. The mark names
that test, ``@pytest.mark.slow("::test_other")`` in the same file or
``@pytest.mark.slow("tests/words/test_trie.py::test_other")`` elsewhere; a single case that is
slow needs no name, where other cases of the same test are not. Ends with exit code 1 and one
line for each slow test without one.
"""

from __future__ import annotations

import contextlib
import io
import sys

import pytest

__all__: list[str] = []


class Collected:
    """The tests that pytest collects: of the default suite, and slow ones with their marks."""

    def __init__(self) -> None:
        self.default: set[str] = set()
        self.slow: dict[str, tuple[str, ...]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            marks = list(item.iter_markers("slow"))
            if not marks:
                self.default |= _names(item.nodeid)
            elif item.nodeid not in self.slow:
                self.slow[item.nodeid] = tuple(str(name) for mark in marks for name in mark.args)


def _names(nodeid: str) -> set[str]:
    """Return by what names a mark may call a test: with its parameters, and without."""
    return {nodeid, nodeid.split("[", maxsplit=1)[0]}


def sibling(nodeid: str, names: tuple[str, ...], default: set[str]) -> str | None:
    """Return the test of the default suite that stands in for a slow one, or None."""
    file, test = nodeid.split("::", 1)
    for name in (*names, f"::{test.split('[')[0]}"):
        full = f"{file}{name}" if name.startswith("::") else name
        if full in default:
            return full
    return None


def main() -> int:
    """Collect all tests and name those that are slow and have no sibling."""
    collected = Collected()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-p", "no:cacheprovider"], plugins=[collected])
    if code != pytest.ExitCode.OK:
        print(f"{said.getvalue()}\npytest could not collect the tests: {code!r}")
        return 1
    alone = [
        nodeid
        for nodeid, names in collected.slow.items()
        if sibling(nodeid, names, collected.default) is None
    ]
    for nodeid in alone:
        print(f"{nodeid}: no test of the default suite is named as its sibling")
    print(f"{len(collected.slow)} slow tests, {len(alone)} of them without a sibling")
    return 1 if alone else 0


if __name__ == "__main__":
    sys.exit(main())
