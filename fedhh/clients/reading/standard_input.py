"""What is written into the program, as a file that is named by what it is."""

from __future__ import annotations

import functools
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedhh.validation import InputError

STANDARD_INPUT = "-"
"""The source that stands for it."""
NAME = "standard input"
"""What messages and titles call it."""

_LOOKED_AT = 2**12
"""Bytes by which it is a table of some kind."""


def copied_input(folder: Path) -> Path:
    """Write standard input into a file in an existing folder, and return that."""
    copy = folder / "input"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with copy.open("rb") as file:
        start = file.read(_LOOKED_AT)
    ending = ".gz" if start.startswith(b"\x1f\x8b") else ""
    if ending:
        start = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start)
    if start.startswith(b"PAR1"):
        kind = ".parquet"
    else:
        kind = ".jsonl" if start.lstrip().startswith(b"{") else ".csv"
    return copy.rename(copy.with_name(f"input{kind}{ending}"))


@functools.cache
def kept_input() -> Path:
    """Return a file with standard input, which is read once and kept until the program ends."""
    return copied_input(Path(_kept_folder().name))


@functools.cache
def _kept_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fedhh-input-")


@contextmanager
def named_instead(copy: Path, name: str) -> Iterator[None]:
    """Turn a copy's path in an InputError into the name by which the user can find it."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(copy), name)) from None
