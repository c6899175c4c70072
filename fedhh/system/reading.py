"""Files that are read: regular ones, and text line by line, no line longer than memory is for.

A FIFO or a device may never end, or never begin, so neither is opened. A line is read up to a
bound, and compressed files are decompressed as they are read: what a small file unpacks to is no
line that fills the memory.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from fedhh.validation import InputError

LONGEST_LINE = 2**24
"""Of bytes."""

LARGEST_TEXT = 2**24
"""Of bytes, for files that are read in one piece."""


def require_regular(path: Path) -> None:
    """Raise InputError unless the path is that of a regular file; looks only, and opens nothing."""
    if os.path.isfile(path):
        return
    if os.path.isdir(path):
        raise InputError(f"Expected a file, got the directory {path}; name a file in it.")
    if os.path.exists(path):
        raise InputError(
            f"Expected a regular file, got {path}, a pipe or a device; write what it gives into a "
            "file."
        )
    raise InputError(f"Expected an existing file, got {path}; check the path.")


def opened(path: Path) -> BinaryIO:
    """Open a regular file for reading bytes, those of ``.gz`` decompressed as they are read.

    Raises:
        InputError: The path is not that of a regular file.
        OSError: It cannot be opened.
    """
    require_regular(path)
    is_packed = path.suffix.lower() == ".gz"
    return cast("BinaryIO", gzip.open(path)) if is_packed else path.open("rb")


def text_lines(path: Path) -> Generator[str, None, None]:
    """Yield the decoded lines of a text file, plain or gzip, with their line feeds.

    Who may stop before the end closes it, so that the file is closed then, too.

    Raises:
        InputError: The file is no regular one, a line is not UTF-8 or has more bytes than
            `LONGEST_LINE`.
        OSError, EOFError, zlib.error: It cannot be read.
    """
    with opened(path) as file:
        for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise InputError(
                    f"Expected lines of at most {LONGEST_LINE:,} bytes, got a longer one on line "
                    f"{number} of {path}."
                )
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"Expected UTF-8 text, got other bytes on line {number} of {path}; save the "
                    "file as UTF-8."
                ) from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file of at most `LARGEST_TEXT` bytes.

    Raises:
        InputError: It is no regular file, or larger.
        OSError: It cannot be read.
    """
    with opened(path) as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise InputError(f"Expected at most {LARGEST_TEXT:,} bytes, got more in {path}.")
    return content
