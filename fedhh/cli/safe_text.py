"""The one way from what users give (words, labels, paths, values) to a console."""

from __future__ import annotations

from fedhh.validation import printable

LONGEST = 120
"""Of a word, a label, a value."""

LONGEST_LINE = 1_000
"""Of a line that says what is wrong; paths and values stand in it."""


def safe_text(text: object, *, longest: int | None = LONGEST, keep: str = "") -> str:
    r"""Return text that a terminal shows as it is, and does not act on.

    Control and format characters, those of writing direction among them, lone surrogates and
    spaces other than the plain one become escapes. Long text loses its middle.

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
    length = len(shown)
    if longest is not None and length > longest:
        shown = _cut(shown, longest, length)
    if not shown.isprintable():
        shown = "".join(c if c in keep else printable(c) for c in shown)
    return shown


def _cut(text: str, longest: int, length: int) -> str:
    tail = longest // 3
    return f"{text[: longest - tail]} …[{length:,} characters]… {text[length - tail :]}"
