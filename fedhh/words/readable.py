"""Text that can be printed, in which joiners stay where they spell a word or make one emoji."""

from __future__ import annotations

import functools
from typing import Any

from fedhh.validation import printable

_JOINING = (
    *("Arabic", "Syriac", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil"),
    *("Telugu", "Kannada", "Malayalam", "Sinhala"),
)


def readable(text: str, *, keep: str = "") -> str:
    r"""Return a text with what cannot be printed escaped, but for joiners that belong to it.

    >>> print(readable("a\u200db\n"))
    a\u200db\n
    >>> readable("\u0915\u094d\u200d\u0937") == "\u0915\u094d\u200d\u0937"
    True

    Args:
        text: Any text.
        keep: Characters that stay as well.
    """
    if text.isprintable():
        return text
    # Nothing before U+200C joins.
    joins = set() if text.isascii() else {each.start() for each in _joiners().finditer(text)}
    return "".join(c if c in keep or i in joins else printable(c) for i, c in enumerate(text))


@functools.cache
def _joiners() -> Any:
    """Return the pattern of joiners in emoji, and between letters of scripts that join them."""
    import regex  # Only texts beyond ASCII need it.

    scripts = "".join(rf"\p{{Script={name}}}" for name in _JOINING)
    emoji = r"\p{Extended_Pictographic}"
    return regex.compile(
        rf"(?<=[{emoji}\p{{Emoji_Modifier}}\ufe0f])\u200d(?=[{emoji}])"
        rf"|(?<=[{scripts}])[\u200c\u200d](?=[{scripts}])"
    )
