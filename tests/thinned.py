"""Cases of a test of which some run by default and all run in CI."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark.structures import ParameterSet

__all__ = ["thinned"]


def thinned(cases: Iterable[object], *, keep: int = 1, single: bool = False) -> list[object]:
    """Return the cases for ``parametrize``, of which all but so many are slow.

    Those that run by default are spread over the list, its first among them; they are the siblings
    of the others: the same test, so the same behavior. `single` is for one parameter whose values
    are tuples.
    """
    cases = list(cases)
    kept = {number * len(cases) // keep for number in range(keep)}
    return [case if number in kept else _slow(case, single) for number, case in enumerate(cases)]


def _slow(case: object, single: bool) -> object:
    if isinstance(case, ParameterSet):
        return case._replace(marks=[*case.marks, pytest.mark.slow])
    values = case if isinstance(case, tuple) and not single else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
