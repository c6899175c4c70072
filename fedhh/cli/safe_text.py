"""The one way from what users give (words, labels, paths, values) to a console."""

from __future__ import annotations

import unicodedata

from fedhh.words.readable import readable

LONGEST = 120
"""Of a word, a label, a value."""

LONGEST_LINE = 1_000
"""Of a line that says what is wrong; paths and values stand in it."""

ISOLATE, END_OF_ISOLATE = "\u2068", "\u2069"
"""What stands around text from right to left, so that it turns nothing else of its line around."""


def safe_text(text: object, *, longest: int | None = LONGEST, keep: str = "") -> str:
    r"""Return text that a terminal shows as it is, and does not act on.

    Control and format characters, those of writing direction among them, lone surrogates and
    spaces other than the plain one become escapes. Joiners stay where they spell a word or make one
    emoji of several. Text that begins from right to left is isolated from what is around it. Long
    text loses its middle, between what a reader sees as characters.

    >>> print(safe_text("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    >>> print(safe_text("abcdef" * 100, longest=12))
    abcdefab …[600 characters]… cdef

    Args:
        text: What a user gave, or holds.
        longest: Longer text loses its middle; None: it stays.
        keep: Characters that are no danger where they come from.
    """
    shown = str(text)
    if shown.isascii() and shown.isprintable() and (longest is None or len(shown) <= longest):
        return shown
    if shown[:1] == ISOLATE and shown[-1:] == END_OF_ISOLATE and shown[1:-1] != "":
        # It has been here before.
        shown = shown[1:-1]
    if longest is not None and len(shown) > longest:
        shown = _cut(shown, longest)
    shown = readable(shown, keep=keep)
    directions = map(unicodedata.bidirectional, shown)
    if next((each for each in directions if each in ("L", "R", "AL")), "L") == "L":
        # Among others a command with such a path, which is copied as it stands.
        return shown
    return f"{ISOLATE}{shown}{END_OF_ISOLATE}"


def _cut(text: str, longest: int) -> str:
    from fedhh.words.alphabet import clusters  # Few texts are so long.

    tail = longest // 3
    symbols = clusters(text)
    if len(symbols) <= longest:
        return text
    head, end = "".join(symbols[: longest - tail]), "".join(symbols[len(symbols) - tail :])
    return f"{head} …[{len(symbols):,} characters]… {end}"
