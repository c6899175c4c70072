"""Alphabets: which symbols a word may have, and the integer codes that stand for them."""

from __future__ import annotations

import functools
import itertools
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.validation import InputError, shown

END = 0
"""Code of the end symbol, which closes every word."""

FOREIGN = np.iinfo(np.uint16).max
"""Code of a symbol that the alphabet lacks; it never matches a prefix."""

NUL = "\0"

NAMED_ALPHABETS = {
    # The paper's 100 symbols are Python's string.printable. One of them has to close words; a
    # line feed cannot stand inside one, so it is the one that gives its place.
    "printable": string.printable.replace("\n", ""),
    "lower": string.ascii_lowercase + "'-" + string.digits,
}


BREAK = "\u200b"
"""Zero width space: stands between two symbols that would be one without it; no symbol itself."""


def nfc(text: str) -> str:
    """Return a text in Unicode form NFC, in which equivalent spellings are one."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def clusters(text: str) -> list[str]:
    """Return the user-perceived characters of a text: extended grapheme clusters (UAX 29)."""
    if text.isascii():
        return list(text)
    parts: list[str] = _patterns()[0].findall(text)
    return parts


def length_of(word: str) -> int:
    """Return how many symbols a word has."""
    return len(word) if word.isascii() else len(clusters(nfc(word)))


def beginning(word: str, length: int) -> str:
    """Return the first symbols of a word, ``length`` at most."""
    return word[:length] if word.isascii() else "".join(clusters(nfc(word))[:length])


def joined(symbols: Sequence[str]) -> str:
    """Return symbols as a text that splits into them again, with `BREAK` where that takes it.

    >>> joined(["a", "b"]), clusters(joined(["\u1100", "\u1161"])) == ["\u1100", BREAK, "\u1161"]
    ('ab', True)
    """
    text = "".join(symbols)
    if text.isascii() or clusters(nfc(text)) == list(symbols):
        return text
    pairs = itertools.pairwise(symbols)
    rest = (b if clusters(nfc(a + b)) == [a, b] else BREAK + b for a, b in pairs)
    return "".join((*symbols[:1], *rest))


def stands_alone(symbol: str) -> bool:
    """Return whether a symbol begins with no mark that belongs to the symbol before it."""
    return symbol.isascii() or clusters("a" + symbol)[0] == "a"


@functools.cache
def _patterns() -> tuple[Any, Any]:
    """Return the patterns of a cluster, and of what may be part of one of several code points.

    Of two code points that the second lacks, none is in one cluster but CR and LF.
    """
    import regex  # Only texts beyond ASCII need it.

    kinds = ("Extend", "ZWJ", "SpacingMark", "Prepend", "L", "V", "T", "Regional_Indicator")
    parts = "".join(rf"\p{{Grapheme_Cluster_Break={kind}}}" for kind in kinds)
    return regex.compile(r"\X"), regex.compile(rf"[{parts}]")


def _may_join(text: str) -> bool:
    return not text.isascii() and _patterns()[1].search(text) is not None


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """A set of symbols, and the end symbol.

    A symbol is what a reader sees as one character: an extended grapheme cluster (UAX 29) in
    Unicode form NFC, such as a letter with its accents and vowel signs, a Hangul syllable, a flag.
    ``symbols`` has them one after the other. Where two of them would be one, `BREAK` stands between
    them, there and in decoded words: no word that is typed has these two codes in a row.

    The end symbol has code 0, the i-th of ``listed`` code i + 1. ``size`` counts the end symbol,
    as the paper's A does. The end symbol is no character: of an alphabet that holds U+0000, which
    fills up words in arrays, nobody could tell a symbol from a word's end, so it is refused.

    Attributes:
        symbols: All symbols but the end symbol.
        listed: Each of them.

    >>> Alphabet.named("printable").size, Alphabet.named("lower").size
    (100, 39)
    >>> Alphabet(symbols="ab").encode(["ba", "abc"], width=3).tolist()
    [[2, 1, 0], [1, 2, 65535]]
    >>> Alphabet(symbols="e\u0301").encode(["\u00e9", "e"], width=2).tolist()
    [[1, 0], [65535, 0]]
    """

    symbols: str
    listed: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.symbols:
            raise InputError("Expected an alphabet with at least one symbol, got alphabet=''.")
        listed = tuple(each for each in clusters(nfc(self.symbols)) if each != BREAK)
        if not listed:
            raise InputError(
                "Expected an alphabet with at least one symbol, got only what stands between "
                f"symbols, U+{ord(BREAK):04X}."
            )
        if len(listed) >= FOREIGN:
            raise InputError(f"Expected fewer than {FOREIGN} symbols, got {len(listed)}.")
        repeated = sorted(s for s, times in Counter(listed).items() if times > 1)
        if repeated:
            raise InputError(
                f"Expected an alphabet of distinct symbols, got {''.join(repeated)!r} more than "
                f"once in alphabet={shown(self.symbols)}; name each symbol once."
            )
        if NUL in self.symbols:
            raise InputError(
                f"Expected an alphabet without the symbol {NUL!r}, which would be read as the end "
                f"of a word, got alphabet={shown(self.symbols)}; leave it out."
            )
        for symbol in listed:
            if not stands_alone(symbol):
                raise InputError(
                    f"Expected an alphabet of symbols that stand alone, got {symbol!a}, which "
                    f"joins the letter before it, in alphabet={shown(self.symbols)}; leave it out, "
                    "or write it behind its letter."
                )
        object.__setattr__(self, "symbols", joined(listed))
        object.__setattr__(self, "listed", listed)
        object.__setattr__(self, "_codes", {s: i + 1 for i, s in enumerate(listed)})

    @classmethod
    @functools.lru_cache(maxsize=64)
    def named(cls, name: str) -> Alphabet:
        """Return ``printable`` or ``lower``; any other text is taken as the symbols themselves."""
        return cls(symbols=NAMED_ALPHABETS.get(name, name))

    @property
    def size(self) -> int:
        """Number of symbols, the end symbol included."""
        return len(self.listed) + 1

    def foreign(self, word: str) -> list[str]:
        """Return the symbols of a word that the alphabet lacks."""
        return [symbol for symbol in clusters(nfc(word)) if symbol not in self._codes]

    def encode(self, words: Sequence[str], *, width: int) -> npt.NDArray[np.uint16]:
        """Return the first ``width`` codes of each of n words, closed and filled up with END.

        They are ``(n, width) uint16`` in [0, size), with FOREIGN for symbols outside the alphabet.
        END stands only behind a word's last symbol; a word of ``width`` or more is cut.
        """
        text = "".join(words)
        several: list[int] = []
        if not text.isascii():
            words = list(map(nfc, words))
            if _may_join("".join(words)):
                several = [row for row, word in enumerate(words) if _may_join(word)]
        # One look-up per symbol in whole arrays: a population has millions of words.
        cut = np.array([word[:width] for word in words], dtype=f"<U{max(width, 1)}")
        points = cut.view(np.uint32).reshape(len(words), max(width, 1))[:, :width]
        largest = int(points.max(initial=0))
        table = np.full(largest + 1, FOREIGN, dtype=np.uint16)
        table[0] = END
        for symbol, code in self._codes.items():
            if len(symbol) == 1 and ord(symbol) <= largest:
                table[ord(symbol)] = code
        codes = table[points]
        # What fills up a word is no symbol of it, but one of its own may look the same.
        holds_nul = NUL in text
        for row, word in enumerate(words if holds_nul else ()):
            if NUL in word:
                codes[row, [i for i, symbol in enumerate(word[:width]) if symbol == NUL]] = FOREIGN
        for row in several:
            symbols = clusters(words[row])[:width]
            codes[row] = END
            codes[row, : len(symbols)] = [self._codes.get(each, FOREIGN) for each in symbols]
        return codes

    def decode(self, codes: npt.NDArray[np.uint16]) -> list[str]:
        """Return the text of each row of ``(n, width)`` codes, up to its first END."""
        if not codes.size:
            return [""] * len(codes)
        if _may_join(self.symbols):
            sizes = np.logical_and.accumulate(codes != END, axis=1).sum(axis=1).tolist()
            rows = zip(codes.tolist(), sizes, strict=True)
            return [joined([self.listed[code - 1] for code in row[:size]]) for row, size in rows]
        points = np.array([0, *map(ord, self.listed)], dtype=np.uint32)[codes]
        points[np.logical_or.accumulate(codes == END, axis=1)] = 0
        # numpy takes zeros at the end of text for what fills it up, and no symbol is one.
        text: list[str] = points.view(f"<U{codes.shape[1]}").ravel().tolist()
        return text
