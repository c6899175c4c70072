"""Cases of a test of which some run by default and all run in CI."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark.structures import ParameterSet

__all__ = ["thinned"]


def thinned(cases: Iterable[object], *, keep: int = 1) -> list[object]:
    """Return the cases for ``parametrize``, of which all but the first `keep` are slow.

    The first ones are the siblings of the others: the same test, so the same behavior.
    """
    return [case if number < keep else _slow(case) for number, case in enumerate(cases)]


def _slow(case: object) -> object:
    if isinstance(case, ParameterSet):
        return case._replace(marks=[*case.marks, pytest.mark.slow])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
