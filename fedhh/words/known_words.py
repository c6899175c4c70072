"""Lists of known words: what they are, the rule that applies one, and those that fedhh ships.

A known word is public, and a device keeps it to itself. Any figure about out-of-vocabulary words
depends on the list, so a result names it.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
import numpy.typing as npt

from fedhh.words.languages import ENGLISH, NAMES, normalised

_ORDINAL = re.compile(r"[0-9]+(st|nd|rd|th)")
_POSSESSIVE = "'s"
_AT_ONCE = 2**18
_ENDINGS = (_POSSESSIVE, "st", "nd", "rd", "th")

SCOWL70 = "scowl70"
NO_WORDS = "none"

_FILES = {SCOWL70: "known_scowl70_en.txt.gz"} | {
    language: f"known_{language}.txt.gz" for language in NAMES if language != ENGLISH
}


@dataclass(frozen=True, kw_only=True, repr=False)
class KnownWords:
    """A list of known words and the rule that applies it.

    A word counts as known if, in Unicode form NFC and lower case, it is in the list. Of an English
    list, also if it ends in ``'s`` and is in the list without it; or if it is digits and one of st,
    nd, rd, th (1st, 22nd). An empty list knows nothing, ordinals included.

    Attributes:
        name: What a report calls the list.
        words: The list, in Unicode form NFC and lower case.
        language: Whose rules of case and endings hold, see `fedhh.words.languages`.

    >>> known = KnownWords(name="mine", words=frozenset({"dog"}))
    >>> known.contains_all(["dog", "Dog's", "22nd", "doge"]).tolist()
    [True, True, True, False]
    """

    name: str
    words: frozenset[str] = field(hash=False)
    language: str = ENGLISH

    def __repr__(self) -> str:
        digest = hashlib.sha256("\0".join(sorted(self.words)).encode("utf-8", "surrogatepass"))
        return f"KnownWords({self.name}, {len(self.words)} words, {digest.hexdigest()[:16]})"

    def contains_all(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return ``(n,) bool``: which of the words are known."""
        known = np.zeros(len(words), dtype=bool)
        if self.words:
            for first in range(0, len(words), _AT_ONCE):
                piece = slice(first, first + _AT_ONCE)
                known[piece] = self._contains(words[piece])
        return known

    def _contains(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        lowered = [normalised(word, self.language) for word in words]
        known = np.fromiter(map(self.words.__contains__, lowered), dtype=bool, count=len(words))
        if self.language != ENGLISH:
            # Some lists have folded forms: ss for the German sharp s, one Greek sigma.
            folded = ((lowered[i].casefold() in self.words) for i in np.flatnonzero(~known))
            known[~known] = np.fromiter(folded, dtype=bool)
            return known
        # Few words end so, and only those need a closer look.
        for i, word in enumerate(lowered):
            if word.endswith(_ENDINGS) and not known[i]:
                stem = word.removesuffix(_POSSESSIVE)
                known[i] = stem in self.words or _ORDINAL.fullmatch(word) is not None
        return known


def shipped_lists() -> tuple[str, ...]:
    """Return the names of the lists that fedhh ships, ``none`` last."""
    return (*_FILES, NO_WORDS)


@functools.cache
def shipped_list(name: str) -> KnownWords:
    """Return a list of `shipped_lists`.

    ``scowl70`` is English: SCOWL 2020.12.07 up to size 70, 168,580 words of American, British,
    Canadian and Australian spelling, names and abbreviations included (``tools/build_scowl.py``).
    The others are called by their language: words that a public spelling dictionary accepts, out of
    wordfreq's list (``tools/build_word_lists.py``).
    """
    if name == NO_WORDS:
        return KnownWords(name=name, words=frozenset())
    text = gzip.decompress(asset(name).read_bytes()).decode("utf-8")
    language = ENGLISH if name == SCOWL70 else name
    return KnownWords(name=name, words=frozenset(text.split("\n")) - {""}, language=language)


def list_name(language: str) -> str:
    """Return what a language's list is called, whether or not fedhh ships one."""
    return SCOWL70 if language == ENGLISH else language


def language_list(language: str) -> KnownWords | None:
    """Return the list that fedhh ships for a language; None if it ships none."""
    name = list_name(language)
    return shipped_list(name) if name in _FILES else None


def asset(name: str) -> resources.abc.Traversable:
    """Return the file of a shipped list."""
    return resources.files("fedhh.words").joinpath("assets", _FILES[name])
