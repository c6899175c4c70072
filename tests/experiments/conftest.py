"""What tests of experiments share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz import work


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """For tests that look at no picture."""
    with work.undrawn():
        yield
