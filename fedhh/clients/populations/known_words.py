"""Words that a device already knows, and their removal from what it holds.

A device looks for new words only: it drops known ones before it answers. Any figure about
out-of-vocabulary words depends on the list that defines "known", so a result names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.reading.word_list import read_word_list
from fedhh.validation import shown
from fedhh.words.scowl import scowl_words

_ORDINAL = re.compile(r"[0-9]+(st|nd|rd|th)")
_POSSESSIVE = "'s"
_ENDINGS = (_POSSESSIVE, "st", "nd", "rd", "th")


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownWords:
    """A list of known words and the rule that applies it.

    A word counts as known if, in lower case, it is in the list; or it ends in ``'s`` and is in the
    list without it; or it is digits and one of st, nd, rd, th (1st, 22nd). An empty list knows
    nothing, ordinals included.

    Attributes:
        name: What a report calls the list.
        words: The list, in lower case.

    >>> known = KnownWords(name="mine", words=frozenset({"dog"}))
    >>> known.contains_all(["dog", "Dog's", "22nd", "doge"]).tolist()
    [True, True, True, False]
    """

    name: str
    words: frozenset[str] = field(repr=False)

    def contains_all(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return ``(n,) bool``: which of the words are known."""
        if not self.words:
            return np.zeros(len(words), dtype=bool)
        lowered = [word.lower() for word in words]
        known = np.fromiter(map(self.words.__contains__, lowered), dtype=bool, count=len(words))
        # Few words end so, and only those need a closer look.
        for i, word in enumerate(lowered):
            if word.endswith(_ENDINGS) and not known[i]:
                stem = word.removesuffix(_POSSESSIVE)
                known[i] = stem in self.words or _ORDINAL.fullmatch(word) is not None
        return known


def load_known(source: str | Path) -> KnownWords:
    """Return the known words named ``scowl70`` or ``none``, or read from a file.

    ``scowl70`` is English: SCOWL 2020.12.07 up to size 70, 168,580 words of American, British,
    Canadian and Australian spelling, names and abbreviations included (``tools/build_scowl.py``).

    Args:
        source: A name, or the path of a UTF-8 text with one word a line, gzip if it ends in .gz.

    Raises:
        InputError: The file is missing, unreadable, not UTF-8, or holds no word.
    """
    if source == "scowl70":
        return KnownWords(name="scowl70", words=scowl_words())
    if source == "none":
        return KnownWords(name="none", words=frozenset())
    path = Path(source)
    missing = (
        f"Expected known words to be scowl70, none or a file, got {shown(str(path))}, which does "
        "not exist."
    )
    words = read_word_list(path, what="known words", missing=missing)
    return KnownWords(name=path.name, words=frozenset(word.lower() for word in words))


@dataclass(frozen=True, kw_only=True)
class KnownRemoval:
    """What the removal of known words took away.

    Attributes:
        known: Name of the list of known words.
        tokens: Words typed by all clients, each as often as it was typed.
        words: Distinct words.
        known_tokens: Typed words that are known.
        known_words: Distinct words that are known.
    """

    known: str
    tokens: int
    words: int
    known_tokens: int
    known_words: int

    @property
    def known_token_share(self) -> float:
        """Share of typed words that are known; 0 if nothing was typed."""
        return self.known_tokens / self.tokens if self.tokens else 0.0

    @property
    def known_word_share(self) -> float:
        """Share of distinct words that are known; 0 if there are none."""
        return self.known_words / self.words if self.words else 0.0


def remove_known(
    population: StoredPopulation, known: KnownWords
) -> tuple[StoredPopulation, KnownRemoval]:
    """Return the population without known words, and what that took away.

    Clients stay, even with nothing left: a device without a new word is asked like any other.
    """
    is_known = known.contains_all(population.lexicon.words)
    typed = population.word_counts
    facts = KnownRemoval(
        known=known.name,
        tokens=int(typed.sum()),
        words=len(is_known),
        known_tokens=int(typed[is_known].sum()),
        known_words=int(is_known.sum()),
    )
    return (population.keep_words(~is_known) if is_known.any() else population), facts
