"""The strings of the frequent ranks: real words that a list does not know, and changed known words.

Two parts, in order. Real words: wordfreq's list of the language (Speer 2022) without what is known.
Misspelled and made-up words: known words changed in the mix of changes seen in real English text,
and names from a chain of symbols. Only the order of wordfreq's words is used, because its
frequencies are too flat for new words. A later version of wordfreq may order words in another way.

English has its own letters and rules. Any other language has the symbols of its known words; its
words come in the form that `fedhh.words.languages` states, and one ending is put in another's
place where English has its s.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import importlib.util
import itertools
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedhh.random import GOLDEN, scatter
from fedhh.system.kept import kept_text
from fedhh.validation import InputError
from fedhh.words.alphabet import clusters
from fedhh.words.coded_words import is_coded
from fedhh.words.known_words import KnownWords, is_named, named_list, scowl_file
from fedhh.words.languages import ENGLISH, normalised

_Hashes = npt.NDArray[np.uint64]

NAMED_RANKS = 400_000
"""Ranks up to here are real or changed words; beyond, they are coded."""

LONGEST_WORD = 24
"""Symbols of the longest string."""

_ENGLISH_WORD = re.compile(rf"(?=.*[a-z])[a-z0-9']{{1,{LONGEST_WORD}}}")
# wordfreq writes every run of two or more digits as zeros: no one typed such a word.
_ZEROED = re.compile(r"[0-9]{2}")

_BASES = 40_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST_BASE = 3
_CHANGES = {
    "substitution": 0.22,
    "insertion": 0.13,
    "deletion": 0.055,
    "transposition": 0.025,
    "compound": 0.11,
    "elongation": 0.04,
    "digits": 0.05,
    "possessive": 0.04,
    "name": 0.33,
}
_LONGEST_NAME = 14
_SHORTEST_NAME = 4
_FLOATS_PER_DRAW = 32
_FEWEST_BASES = 1_000
# Of what is drawn, the least share of new words with which a kind goes on.
_FRUITFUL = 0.02

Word = Sequence[str]
"""A word by its symbols."""


@dataclass(frozen=True, kw_only=True)
class _Spelling:
    """How words of a language are written.

    Attributes:
        fits: Whether a text may be a new word.
        parts: A word's symbols.
        letters: What a changed symbol becomes, each as likely as it is often here.
        endings: What is put behind a word, likewise.
        shortest_name: Symbols of the shortest made-up name.
    """

    fits: Callable[[str], bool]
    parts: Callable[[str], Word]
    letters: Sequence[str]
    endings: Sequence[str]
    shortest_name: int


@functools.lru_cache(maxsize=4)
def named_words(known: KnownWords) -> list[str]:
    """Return the words of the ranks up to `NAMED_RANKS`, made once per user and not per run.

    Args:
        known: The words that none of them is among, and whose language they are of.

    Raises:
        InputError: wordfreq has no list of the language, or the known words are too few of its.
    """

    def made() -> str:
        return "\n".join(_real_and_changed_words(known))

    source = _list_of(known.language)
    sources = None if source is None else _digest_of_sources(source, known)
    return (made() if sources is None else kept_text("words", sources, made)).split("\n")


def _list_of(language: str) -> Path | None:
    """Return the file of wordfreq's largest list of a language; None if it cannot be found."""
    import wordfreq  # Only synthetic populations need it, and it takes a while.

    offered = wordfreq.available_languages("best")
    if language not in offered:
        raise InputError(
            f"Expected a language of which wordfreq has a list, got {language!r}; it has "
            f"{', '.join(sorted(offered))}."
        )
    return Path(offered[language])


def _digest_of_sources(listed: Path, known: KnownWords) -> bytes | None:
    """Return a digest of the code and the lists that the words are made of, None if unreadable."""
    spec = importlib.util.find_spec("wordfreq")
    if spec is None or spec.origin is None:
        return None
    has_name = is_named(known.name) and known is named_list(known.name)
    digest = hashlib.sha256(known.name.encode() if has_name else repr(known).encode())
    try:
        for source in (
            resources.files("fedhh.clients").joinpath("named_words.py"),
            resources.files("fedhh.words").joinpath("known_words.py"),
            resources.files("fedhh.words").joinpath("languages.py"),
            Path(spec.origin),
            listed,
            # Read faster than its words are sorted.
            *((scowl_file(),) if has_name and known.language == ENGLISH else ()),
        ):
            content = source.read_bytes()
            digest.update(len(content).to_bytes(8, "little") + content)
    except OSError:
        return None
    return digest.digest()


def _real_words(known: KnownWords) -> tuple[list[str], list[str], _Spelling]:
    """Return new words of wordfreq's list, the first 40,000 known ones, and their spelling."""
    import wordfreq

    bins = wordfreq.get_frequency_list(known.language, wordlist="best")
    listed = [word for words in bins for word in words]
    if known.language != ENGLISH:
        listed = list(dict.fromkeys(normalised(word, known.language) for word in listed))
    is_known = known.contains_all(listed)
    spelling = _spelling(
        known.language, [word for word, is_one in zip(listed, is_known, strict=True) if is_one]
    )
    new, bases = [], []
    for word, is_one in zip(listed, is_known, strict=True):
        if not spelling.fits(word) or _ZEROED.search(word):
            continue
        if not is_one:
            new.append(word)
        elif _is_of_letters(word) and len(spelling.parts(word)) >= _SHORTEST_BASE:
            bases.append(word)
    if len(bases) < _FEWEST_BASES:
        raise InputError(
            f"Expected at least {_FEWEST_BASES:,} known words of at least {_SHORTEST_BASE} symbols "
            f"in wordfreq's list of {known.language!r}, to make new words of, got {len(bases)} in "
            f"{known.name}; set population.known to a list of the language."
        )
    return [word for word in new if not is_coded(word)][:NAMED_RANKS], bases[:_BASES], spelling


def _spelling(language: str, known: Sequence[str]) -> _Spelling:
    if language == ENGLISH:
        return _Spelling(
            fits=lambda word: _ENGLISH_WORD.fullmatch(word) is not None,
            parts=lambda word: word,
            letters=_LETTERS,
            endings=("s",),
            shortest_name=_SHORTEST_NAME,
        )
    words = [clusters(word) for word in known if _is_of_letters(word)]
    symbols = frozenset(itertools.chain.from_iterable(words))
    plain = symbols | frozenset("0123456789'")

    def fits(word: str) -> bool:
        parts = clusters(word)
        is_spelled = plain.issuperset(parts) and not symbols.isdisjoint(parts)
        return is_spelled and len(parts) <= LONGEST_WORD

    often = [word for word in words if len(word) >= _SHORTEST_BASE][:_BASES]
    return _Spelling(
        fits=fits,
        parts=clusters,
        letters=[symbol for word in often for symbol in word],
        endings=["".join(word[-2:]) for word in often],
        # Where a symbol is a syllable, names are shorter.
        shortest_name=min(_SHORTEST_NAME, int(np.median([len(word) for word in often])) - 1),
    )


def _is_of_letters(word: str) -> bool:
    """Return whether a word has letters only, and the marks that belong to them."""
    return word.isalpha() or all(unicodedata.category(each)[0] in "LM" for each in word)


def _real_and_changed_words(known: KnownWords) -> list[str]:
    real, bases, spelling = _real_words(known)
    chain = _Chain.of([spelling.parts(word) for word in real[:50_000] if _is_of_letters(word)])
    symbols = [spelling.parts(word) for word in bases]
    found = dict.fromkeys(real)
    # Each kind fills its own share: some kinds give known or repeated words more often. What a kind
    # has not in a small list, compounds are in place of.
    shares = np.cumsum(list(_CHANGES.values())) * (NAMED_RANKS - len(real))
    ends = [*(len(real) + np.rint(shares).astype(np.int64)).tolist(), NAMED_RANKS]
    for number, (kind, end) in enumerate(zip([*_CHANGES, "compound"], ends, strict=True)):
        first, fruitful = number << 32, True
        while len(found) < end and fruitful:
            size = len(found)
            draws = _draws(first, 2 * (end - len(found)) + 1000)
            if kind == "name":
                words = chain.names(draws, shortest=spelling.shortest_name)
            else:
                words = _changed(kind, symbols, spelling, draws)
            fits = [word for word in words if spelling.fits(word) and not is_coded(word)]
            is_known = known.contains_all(fits)
            new = (word for word, drop in zip(fits, is_known, strict=True) if not drop)
            found.update(dict.fromkeys(itertools.islice(_unseen(new, found), end - len(found))))
            first += len(draws)
            fruitful = len(found) == end or len(found) - size > _FRUITFUL * len(draws)
    changed = list(found)[len(real) :]
    order = np.argsort(_uniform(_draws(1 << 40, len(changed)), 0), kind="stable")
    return real + [changed[i] for i in order.tolist()]


def _unseen(words: Iterable[str], found: Container[str]) -> Iterator[str]:
    seen = set()
    for word in words:
        if word not in found and word not in seen:
            seen.add(word)
            yield word


def _changed(kind: str, bases: Sequence[Word], spelling: _Spelling, draws: _Hashes) -> list[str]:
    """Return a word after a change for each draw; frequent words are changed more often."""
    base_ids, other_ids = (
        (_uniform(draws, i) ** 2 * len(bases)).astype(np.int64).tolist() for i in (0, 1)
    )
    if kind == "compound":
        pairs = zip(base_ids, other_ids, strict=True)
        return ["".join((*bases[i], *bases[j])) for i, j in pairs]
    rows = zip(base_ids, _uniform(draws, 2).tolist(), _uniform(draws, 3).tolist(), strict=True)
    return ["".join(_change(kind, bases[i], spelling, place, amount)) for i, place, amount in rows]


def _change(kind: str, word: Word, spelling: _Spelling, place: float, amount: float) -> Word:
    """Return the word after one change; ``place`` and ``amount`` are uniform in [0, 1)."""
    at = int(place * len(word))
    before, symbol, after = word[:at], word[at], word[at + 1 :]
    letter = spelling.letters[int(amount * len(spelling.letters))]
    changed: Word
    match kind:
        case "substitution":
            changed = (*before, letter, *after)
        case "insertion":
            changed = (*before, letter, symbol, *after)
        case "deletion":
            changed = (*before, *after)
        case "transposition":
            changed = (*before, *after[:1], symbol, *after[1:])
        case "elongation":
            changed = (*before, symbol * (2 + int(amount * 4)), *after)
        case "digits":
            changed = (*word, str(int(10 ** (4 * amount))))
        case "possessive":
            # Typed without its apostrophe: todays.
            changed = (*word, spelling.endings[int(amount * len(spelling.endings))])
        case _:
            raise AssertionError(kind)
    return changed


@dataclass(frozen=True, kw_only=True)
class _Chain:
    """Which symbol follows the last two, by how often it does in some words.

    Attributes:
        symbols: The symbols in alphabetical order; number 0 stands for none, before the first and
            after the last.
        following: By the two numbers, the numbers that follow, ascending, and how many of all
            occurrences are theirs or of an earlier one, as a share.
    """

    symbols: Sequence[str]
    following: dict[tuple[int, int], tuple[list[int], list[float]]]

    @classmethod
    def of(cls, words: Sequence[Word]) -> _Chain:
        symbols = sorted(set(itertools.chain.from_iterable(words)))
        number = {symbol: i + 1 for i, symbol in enumerate(symbols)}
        triples = [
            triple
            for word in words
            for codes in [[0, 0, *(number[symbol] for symbol in word), 0]]
            for triple in zip(codes, codes[1:], codes[2:], strict=False)
        ]
        distinct, counts = np.unique(np.array(triples), axis=0, return_counts=True)
        starts = np.flatnonzero(np.r_[True, (distinct[1:, :2] != distinct[:-1, :2]).any(axis=1)])
        following = {}
        for start, end in zip(starts, [*starts[1:], len(distinct)], strict=True):
            sums = np.cumsum(counts[start:end]).astype(np.float64)
            first, second = distinct[start, :2].tolist()
            following[first, second] = distinct[start:end, 2].tolist(), (sums / sums[-1]).tolist()
        return cls(symbols=symbols, following=following)

    def names(self, draws: _Hashes, *, shortest: int) -> list[str]:
        """Return a word of ``shortest`` to 14 symbols for each draw, or no text."""
        uniforms = np.stack([_uniform(draws, place) for place in range(_LONGEST_NAME)], axis=1)
        names = (self._name(row) for row in uniforms.tolist())
        return ["".join(name) if len(name) >= shortest else "" for name in names]

    def _name(self, uniforms: list[float]) -> list[str]:
        before, last = 0, 0
        name: list[str] = []
        for uniform in uniforms:
            numbers, shares = self.following[before, last]
            before, last = last, numbers[bisect.bisect_right(shares, uniform)]
            if last == 0:
                break
            name.append(self.symbols[last - 1])
        return name


def _draws(first: int, size: int) -> _Hashes:
    return np.arange(first, first + size, dtype=np.uint64) * np.uint64(_FLOATS_PER_DRAW)


def _uniform(draws: _Hashes, index: int) -> npt.NDArray[np.float64]:
    """Return float number ``index`` of each draw, in [0, 1), by SplitMix64.

    NumPy's generators may change between versions, and strings should not.
    """
    word = scatter((draws + np.uint64(index + 1)) * GOLDEN)
    return (word >> np.uint64(11)).astype(np.float64) * 2.0**-53
