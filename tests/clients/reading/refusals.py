"""Readers, and what they refuse, as tests ask for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fedhh.clients.clients import Clients
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.sources import read_file
from fedhh.clients.reading.tokens import Tokenizer
from fedhh.validation import InputError


def read_population(path: Path, *, unit: str = "user", **layout: Any) -> Clients:
    """Return the clients of a file that is laid out in some way."""
    return read_file(path, Layout(**layout), unit=unit)


def tokenize_all(texts: Sequence[str]) -> tuple[list[list[str]], Counter[tuple[str, str]]]:
    """Return the words of texts, as files of texts are read, and what is none."""
    dropped = Counter[tuple[str, str]]()
    words = Tokenizer().words(pa.array(texts, pa.string()), dropped)
    return words.to_pylist(), dropped


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """Return the one printable line in which a reader refuses a file."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert message.isprintable()
    return message
