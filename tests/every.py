"""Many values of a test in one case."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["every"]


def every(names: str | tuple[str, ...], cases: Iterable[object]) -> Callable[..., Any]:
    """As ``pytest.mark.parametrize``, but one test goes through all cases, up to the first failure.

    For checks of a few lines, of which pytest's own work per case would take longer than they do.
    A failure says its values; what the test asks for besides is shared by all cases.
    """
    each = (names,) if isinstance(names, str) else names
    rows = [(case,) if isinstance(names, str) else case for case in cases]
    if not rows:
        raise ValueError(f"no values of {names}")

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def test(*args: Any, **given: Any) -> None:
            for row in rows:
                values = dict(zip(each, row, strict=True))
                try:
                    function(*args, **given, **values)
                except BaseException as error:
                    error.add_note(", ".join(f"{name}={value!r}" for name, value in values.items()))
                    raise

        rest = [one for one in signature.parameters.values() if one.name not in each]
        test.__signature__ = signature.replace(parameters=rest)
        return test

    return decorate
