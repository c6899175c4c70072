"""The list of known words that fedhh ships, as a piece of a page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from typing import Any

from fedhh.words.scowl import scowl_words

_SHIPPED = "scowl70"
_CHUNK = "known-scowl70"
_MOST_SHARED = 25


def known_list(name: str) -> tuple[dict[str, str | None] | None, dict[str, Any]]:
    """Return what a page says of a run's list of known words, and its piece of data.

    Args:
        name: `population.known`. A file of the user's is named; its words are not read again.
    """
    if name == "none":
        return None, {}
    if name != _SHIPPED:
        return {"name": name, "chunk": None}, {}
    return {"name": name, "chunk": _CHUNK}, {_CHUNK: _shipped()}


@cache
def _shipped() -> str:
    return front_coded(scowl_words())


def front_coded(words: Iterable[str]) -> str:
    """Return words without capital letters in order, each after what it shares with the last one.

    A capital letter begins a word, and says how many of the last word's first symbols it has: "A"
    for 0, "Z" for 25.

    >>> front_coded(["hello", "hell", "help"])
    'AhellEoDp'
    """
    pieces, before = [], ""
    for word in sorted(words):
        same = takewhile(bool, map(str.__eq__, before[:_MOST_SHARED], word))
        shared = sum(1 for _ in same)
        pieces.append(f"{chr(ord('A') + shared)}{word[shared:]}")
        before = word
    return "".join(pieces)
