"""Lists of known words: what they are, the rule that applies one, and those that have a name.

A known word is public, and a device keeps it to itself. Any figure about out-of-vocabulary words
depends on the list, so a result names it. English has a list of its own; of any other language
that wordfreq (Speer 2022) has a list of, devices know its head, see `wordfreq_head`.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources

import numpy as np

from fedhh.arrays import Bools
from fedhh.validation import require_between
from fedhh.words.languages import ENGLISH, normalised

_ORDINAL = re.compile(r"[0-9]+(st|nd|rd|th)")
_POSSESSIVE = "'s"
_AT_ONCE = 2**18
_ENDINGS = (_POSSESSIVE, "st", "nd", "rd", "th")

SCOWL70 = "scowl70"
NO_WORDS = "none"

NAMED = f"{SCOWL70}, {NO_WORDS}, the code of another language that wordfreq has, such as 'de',"
"""What the lists with a name are called, for messages."""

KNOWN_SHARE = 0.95
"""Share of what people type that devices know, in languages other than English.

The spelling dictionaries of twelve languages accept words that have 90 to 98 % of the frequency in
wordfreq's lists, the median being 95 %.
"""

_LEAST_OF_LETTERS = 0.05
_CODE = re.compile(r"[a-z]{2,3}")


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

    def __deepcopy__(self, _: object) -> KnownWords:
        return self  # Nothing in it can change.

    def contains_all(self, words: Sequence[str]) -> Bools:
        """Return ``(n,) bool``: which of the words are known."""
        known = np.zeros(len(words), dtype=bool)
        if self.words:
            for first in range(0, len(words), _AT_ONCE):
                piece = slice(first, first + _AT_ONCE)
                known[piece] = self._contains(words[piece])
        return known

    def _contains(self, words: Sequence[str]) -> Bools:
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


def is_named(name: str) -> bool:
    """Return whether a list has this name: ``scowl70``, ``none``, or a language's code."""
    return name in (SCOWL70, NO_WORDS) or _has_head(name)


@functools.cache
def named_list(name: str) -> KnownWords:
    """Return the list of a name, for which `is_named` holds.

    ``scowl70`` is English: SCOWL 2020.12.07 up to size 70, 168,580 words of American, British,
    Canadian and Australian spelling, names and abbreviations included (``tools/build_scowl.py``).
    A language's code stands for its `wordfreq_head`.
    """
    if name == NO_WORDS:
        return KnownWords(name=name, words=frozenset())
    if name != SCOWL70:
        return wordfreq_head(name)
    text = gzip.decompress(scowl_file().read_bytes()).decode("utf-8")
    return KnownWords(name=name, words=frozenset(text.split("\n")) - {""})


def wordfreq_head(language: str, share: float = KNOWN_SHARE) -> KnownWords:
    """Return the most frequent words of wordfreq's largest list of a language.

    These are the words that the devices are taken to know: those that a keyboard's dictionary has
    because many type them, whether or not they are spelled right. Left out are words with digits,
    and words with a letter of a script that has less than 5 % of the letters, such as Latin in
    Russian. Frequencies of wordfreq are rounded to steps of 2.3 %; of words with the same one the
    alphabet decides.

    Args:
        language: A code that wordfreq has a list of.
        share: Of the frequency of all words without digits: what the words have together at least.
    """
    import wordfreq  # Only some runs need it, and it takes a while.

    require_between(0, 1, share=share)
    by_frequency = [
        sorted(filter(_is_word, words))
        for words in wordfreq.get_frequency_list(language, wordlist="best")
    ]
    frequencies = [10 ** (-centibels / 100) for centibels in range(len(by_frequency))]
    sums = np.cumsum(np.repeat(frequencies, list(map(len, by_frequency))))
    size = int(np.searchsorted(sums, share * sums[-1])) + 1
    head: list[str] = []
    letters: defaultdict[str, float] = defaultdict(float)
    for words, frequency in zip(by_frequency, frequencies, strict=True):
        added = words[: size - len(head)]
        head += added
        for symbol, times in Counter("".join(added)).items():
            letters[_script(symbol)] += times * frequency
    least = _LEAST_OF_LETTERS * (sum(letters.values()) - letters[""])
    rare = {script for script, often in letters.items() if often < least} - {""}
    unusual = {symbol for symbol in set("".join(head)) if _script(symbol) in rare}
    text = "\n".join(filter(unusual.isdisjoint, head))
    return KnownWords(
        name=language,
        words=frozenset(normalised(text, language).split("\n")),
        language=language,
    )


def _is_word(word: str) -> bool:
    if word.isalpha():
        return True
    kinds = set(map(_kind, word))
    return "L" in kinds and "N" not in kinds


@functools.cache
def _kind(symbol: str) -> str:
    return unicodedata.category(symbol)[0]


@functools.cache
def _script(symbol: str) -> str:
    """Return the first word of a letter's name, which is its script; nothing of what is none."""
    return unicodedata.name(symbol, "").split(" ")[0] if _kind(symbol) == "L" else ""


def list_name(language: str) -> str:
    """Return what a language's list is called, whether or not there is one."""
    return SCOWL70 if language == ENGLISH else language


def language_list(language: str) -> KnownWords | None:
    """Return the list of a language that has a name; None if there is none."""
    name = list_name(language)
    return named_list(name) if is_named(name) else None


@functools.cache
def _has_head(name: str) -> bool:
    if name == ENGLISH or not _CODE.fullmatch(name):
        return False
    import wordfreq

    return name in wordfreq.available_languages("best")


def scowl_file() -> resources.abc.Traversable:
    """Return the file of the English list."""
    return resources.files("fedhh.words").joinpath("assets", "known_scowl70_en.txt.gz")
