"""A file with a word per line, plain or gzip: known words, candidates, a pipeline's domain."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from fedhh.system.reading import text_lines
from fedhh.validation import InputError


def read_word_list(path: Path, *, what: str, missing: str) -> list[str]:
    """Return the words of a UTF-8 text with one word a line, without blanks around them.

    Args:
        path: Of the file, gzip if it ends in .gz; empty lines hold no word.
        what: What the words are, for messages.
        missing: The message where there is no such file.

    Raises:
        InputError: The file is missing, unreadable, not UTF-8, or holds no word.
    """
    if not os.path.lexists(path):
        raise InputError(missing)
    try:
        # Python's other ends of lines end words, too.
        lines = (line.strip() for text in text_lines(path) for line in text.splitlines())
        words = [line for line in lines if line]
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Expected a readable file of {what}, got {path}: {error}.") from None
    if not words:
        raise InputError(f"Expected {what}, one a line, got an empty file {path}.")
    return words
