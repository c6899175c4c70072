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
import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from fedhh.arrays import Floats, Ints, UInts
from fedhh.kernels.ranks import MAX_RANK
from fedhh.random import GOLDEN, scatter
from fedhh.system.kept import kept_text
from fedhh.validation import InputError
from fedhh.words.alphabet import clusters
from fedhh.words.coded_words import coded_words, is_coded
from fedhh.words.known_words import SCOWL70, KnownWords, is_named, named_list, scowl_file
from fedhh.words.languages import ENGLISH, normalised

NAMED_RANKS = 400_000
"""Ranks up to here are real or changed words; beyond, they are coded."""

LONGEST_WORD = 24
"""Symbols of the longest string."""

_ENGLISH_WORD = re.compile(rf"(?=.*[a-z])[a-z0-9']{{1,{LONGEST_WORD}}}")
ZEROED = re.compile(r"[0-9]{2}")
"""wordfreq writes every run of two or more digits as zeros: no one typed such a word."""

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

_Chain = dict[tuple[str, str], tuple[list[str], list[float]]]
"""By two symbols those that follow, sorted, and the share of these and the earlier ones."""


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
    import wordfreq  # Only synthetic populations need it, and it takes a while.

    offered = wordfreq.available_languages("best")
    if known.language not in offered:
        raise InputError(
            f"Expected a language of which wordfreq has a list, got {known.language!r}; it has "
            f"{', '.join(sorted(offered))}."
        )
    sources = [
        resources.files("fedhh.clients").joinpath("named_words.py"),
        resources.files("fedhh.words").joinpath("known_words.py"),
        resources.files("fedhh.words").joinpath("languages.py"),
        Path(wordfreq.__file__),
        Path(offered[known.language]),
    ]
    made_of = repr(known)
    if is_named(known.name) and known is named_list(known.name):
        made_of = known.name
        if known.language == ENGLISH:
            # Read faster than its words are sorted.
            sources.append(scowl_file())
    text = kept_text(
        "words", made_of.encode(), lambda: "\n".join(_real_and_changed_words(known)), sources
    )
    return text.split("\n")


def rank_strings(ranks: Ints, known: KnownWords | None = None) -> list[str]:
    """Return each rank's string, at most 24 symbols with a letter among them.

    Every rank has its own, the same in every population: up to `NAMED_RANKS` that of `named_words`,
    beyond a coded word.

    Args:
        ranks: ``(n,) int64`` in [1, 2**53).
        known: The words that no string up to `NAMED_RANKS` is among, and whose language these are
            of; ``scowl70``, which is English, if None.

    Raises:
        InputError: A rank is outside, or there are no words of the language.
    """
    if len(ranks) and not 1 <= ranks.min() <= ranks.max() < MAX_RANK:
        raise InputError(
            f"Expected ranks in [1, 2^53), got {int(ranks.min())} to {int(ranks.max())}."
        )
    coded = ranks > NAMED_RANKS
    strings = np.empty(len(ranks), dtype=object)
    if not coded.all():
        named = named_words(named_list(SCOWL70) if known is None else known)
        strings[~coded] = [named[i] for i in (ranks[~coded] - 1).tolist()]
    strings[coded] = coded_words(ranks[coded] - NAMED_RANKS - 1)
    return strings.tolist()


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
        if not spelling.fits(word) or ZEROED.search(word):
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
    chain = _chain([spelling.parts(word) for word in real[:50_000] if _is_of_letters(word)])
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
                words = _names(chain, draws, shortest=spelling.shortest_name)
            else:
                words = _changed(kind, symbols, spelling, draws)
            fits = [word for word in words if spelling.fits(word) and not is_coded(word)]
            for word, is_known in zip(fits, known.contains_all(fits), strict=True):
                if not is_known and len(found) < end:
                    found.setdefault(word)
            first += len(draws)
            fruitful = len(found) == end or len(found) - size > _FRUITFUL * len(draws)
    changed = list(found)[len(real) :]
    order = np.argsort(_uniform(_draws(1 << 40, len(changed)), 0), kind="stable")
    return real + [changed[i] for i in order.tolist()]


def _changed(kind: str, bases: Sequence[Word], spelling: _Spelling, draws: UInts) -> list[str]:
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


def _chain(words: Iterable[Word]) -> _Chain:
    """Return which symbols follow two others in some words, "" standing before and behind them."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for word in words:
        symbols = ["", "", *word, ""]
        for before, last, symbol in zip(symbols, symbols[1:], symbols[2:], strict=False):
            counts[before, last][symbol] += 1
    chain = {}
    for pair, following in counts.items():
        symbols, total = sorted(following), following.total()
        sums = itertools.accumulate(following[symbol] for symbol in symbols)
        chain[pair] = symbols, [part / total for part in sums]
    return chain


def _names(chain: _Chain, draws: UInts, *, shortest: int) -> list[str]:
    """Return a word of ``shortest`` to 14 symbols for each draw, or no text."""
    names = []
    uniforms = np.stack([_uniform(draws, place) for place in range(_LONGEST_NAME)], axis=1)
    for row in uniforms.tolist():
        name = ["", ""]
        for uniform in row:
            symbols, shares = chain[name[-2], name[-1]]
            symbol = symbols[bisect.bisect_right(shares, uniform)]
            if not symbol:
                break
            name.append(symbol)
        names.append("".join(name) if len(name) - 2 >= shortest else "")
    return names


def _draws(first: int, size: int) -> UInts:
    return np.arange(first, first + size, dtype=np.uint64) * np.uint64(_FLOATS_PER_DRAW)


def _uniform(draws: UInts, index: int) -> Floats:
    """Return float number ``index`` of each draw, in [0, 1), by SplitMix64.

    NumPy's generators may change between versions, and strings should not.
    """
    word = scatter((draws + np.uint64(index + 1)) * GOLDEN)
    return (word >> np.uint64(11)).astype(np.float64) * 2.0**-53
