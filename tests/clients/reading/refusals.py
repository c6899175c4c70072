"""What readers refuse, as tests ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fedhh.validation import InputError


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """Return the one printable line in which a reader refuses a file."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert message.isprintable()
    return message
