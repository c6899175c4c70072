"""Alphabets: which symbols a word may have, and the integer codes that stand for them."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

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


def clusters(text: str) -> list[str]:
    """Return the user-perceived characters of a text: extended grapheme clusters (UAX 29)."""
    if text.isascii():
        return list(text)
    import regex  # Only words beyond ASCII need it.

    parts: list[str] = regex.findall(r"\X", text)
    return parts


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """A set of symbols, and the end symbol.

    The end symbol has code 0, the i-th of ``symbols`` code i + 1. ``size`` counts the end symbol,
    as the paper's A does. The end symbol is no character: of an alphabet that holds U+0000, which
    fills up words in arrays, nobody could tell a symbol from a word's end, so it is refused.

    >>> Alphabet.named("printable").size, Alphabet.named("lower").size
    (100, 39)
    >>> Alphabet(symbols="ab").encode(["ba", "abc"], width=3).tolist()
    [[2, 1, 0], [1, 2, 65535]]
    """

    symbols: str
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.symbols:
            raise InputError("Expected an alphabet with at least one symbol, got alphabet=''.")
        if len(self.symbols) >= FOREIGN:
            raise InputError(f"Expected fewer than {FOREIGN} symbols, got {len(self.symbols)}.")
        repeated = sorted(s for s, times in Counter(self.symbols).items() if times > 1)
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
        object.__setattr__(self, "_codes", {s: i + 1 for i, s in enumerate(self.symbols)})

    @classmethod
    def named(cls, name: str) -> Alphabet:
        """Return ``printable`` or ``lower``; any other text is taken as the symbols themselves."""
        return cls(symbols=NAMED_ALPHABETS.get(name, name))

    @property
    def size(self) -> int:
        """Number of symbols, the end symbol included."""
        return len(self.symbols) + 1

    def encode(self, words: Sequence[str], *, width: int) -> npt.NDArray[np.uint16]:
        """Return the first ``width`` codes of each of n words, closed and filled up with END.

        They are ``(n, width) uint16`` in [0, size), with FOREIGN for symbols outside the alphabet.
        END stands only behind a word's last symbol; a word of ``width`` or more is cut.
        """
        # One look-up per symbol in whole arrays: a population has millions of words.
        cut = np.array([word[:width] for word in words], dtype=f"<U{max(width, 1)}")
        points = cut.view(np.uint32).reshape(len(words), max(width, 1))[:, :width]
        largest = int(points.max(initial=0))
        table = np.full(largest + 1, FOREIGN, dtype=np.uint16)
        table[0] = END
        for symbol, code in self._codes.items():
            if ord(symbol) <= largest:
                table[ord(symbol)] = code
        codes = table[points]
        # What fills up a word is no symbol of it, but one of its own may look the same.
        holds_nul = NUL in "".join(words)
        for row, word in enumerate(words if holds_nul else ()):
            if NUL in word:
                codes[row, [i for i, symbol in enumerate(word[:width]) if symbol == NUL]] = FOREIGN
        return codes

    def decode(self, codes: npt.NDArray[np.uint16]) -> list[str]:
        """Return the text of each row of ``(n, width)`` codes, up to its first END."""
        if not codes.size:
            return [""] * len(codes)
        points = np.array([0, *map(ord, self.symbols)], dtype=np.uint32)[codes]
        points[np.logical_or.accumulate(codes == END, axis=1)] = 0
        # numpy takes zeros at the end of text for what fills it up, and no symbol is one.
        text: list[str] = points.view(f"<U{codes.shape[1]}").ravel().tolist()
        return text
