"""Two values are the same, to the last bit."""

from __future__ import annotations

from typing import Any

from fedhh.testing.checks import first_difference


def assert_same(one: Any, other: Any) -> None:
    assert first_difference(one, other, "it") is None
