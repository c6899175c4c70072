"""Strings for the ranks of new words: every rank has its own, the same in every population.

Three parts, in order. Real words: wordfreq's English list (Speer 2022) without what ``scowl70``
knows. Misspelled and made-up words: known words changed in the mix of changes seen in real text,
and names from a chain of letters; they fill up to rank `NAMED_RANKS`. Coded words beyond:
pronounceable, one for each integer. Only the order of wordfreq's words is used, because its
frequencies are too flat for new words. A later version of wordfreq may order words in another way.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import re
from collections.abc import Container, Iterable, Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedhh.kernels.ranks import MAX_RANK
from fedhh.random import scatter
from fedhh.system.kept import kept_text
from fedhh.validation import InputError
from fedhh.words.known_words import SCOWL70, asset, shipped_list

_Ids = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]

NAMED_RANKS = 400_000
"""Ranks up to here are real or changed words; beyond, they are coded."""

LONGEST_WORD = 24
"""Symbols of the longest string."""

_WORD = re.compile(rf"(?=.*[a-z])[a-z0-9']{{1,{LONGEST_WORD}}}")
# wordfreq writes every run of two or more digits as zeros: no one typed such a word.
_ZEROED = re.compile(r"[0-9]{2}")
CONSONANTS = "bcdfghjklmnprstvwxyz"
VOWELS = "aeiou"
_SYLLABLES = len(CONSONANTS) * len(VOWELS)
FEWEST_SYLLABLES = 3
# No other string ends like this: the mark keeps coded words apart from all earlier ones.
MARK = "q"
_CODED = re.compile(rf"([{CONSONANTS}][{VOWELS}]){{{FEWEST_SYLLABLES},}}{MARK}")

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


def rank_strings(ranks: _Ids) -> list[str]:
    """Return each rank's string, at most 24 of ``a-z0-9'`` with a letter among them.

    Args:
        ranks: ``(n,) int64`` in [1, 2**53).

    Raises:
        InputError: A rank is outside.
    """
    if len(ranks) and not 1 <= ranks.min() <= ranks.max() < MAX_RANK:
        raise InputError(
            f"Expected ranks in [1, 2^53), got {int(ranks.min())} to {int(ranks.max())}."
        )
    coded = ranks > NAMED_RANKS
    strings = np.empty(len(ranks), dtype=object)
    if not coded.all():
        named = _named_words()
        strings[~coded] = [named[i] for i in (ranks[~coded] - 1).tolist()]
    strings[coded] = coded_words(ranks[coded] - NAMED_RANKS - 1)
    return strings.tolist()


def coded_words(numbers: _Ids) -> list[str]:
    """Return a word for each number: its digits in base 100 as syllables, lowest first, and a q.

    Words of one length share their first syllables evenly, whatever the numbers.

    Args:
        numbers: ``(n,) int64`` in [0, 2**53).

    >>> coded_words(np.array([0, 1, 100, 999_999, 1_000_000]))
    ['bababaq', 'bebabaq', 'babebaq', 'zuzuzuq', 'babababaq']
    """
    rest = numbers.copy()
    syllables = np.full(len(rest), FEWEST_SYLLABLES)
    while (long := rest >= np.power(_SYLLABLES, syllables)).any():
        rest[long] -= np.power(_SYLLABLES, syllables[long])
        syllables[long] += 1
    consonants = np.array([ord(symbol) for symbol in CONSONANTS], dtype=np.uint32)
    vowels = np.array([ord(symbol) for symbol in VOWELS], dtype=np.uint32)
    width = 2 * int(syllables.max(initial=0)) + 1
    points = np.zeros((len(rest), width), dtype=np.uint32)
    for place in range(width // 2):
        rest, digit = np.divmod(rest, _SYLLABLES)
        there = place < syllables
        points[:, 2 * place] = np.where(there, consonants[digit // len(VOWELS)], 0)
        points[:, 2 * place + 1] = np.where(there, vowels[digit % len(VOWELS)], 0)
    points[np.arange(len(rest)), 2 * syllables] = ord(MARK)
    words: list[str] = points.view(f"<U{width}").ravel().tolist()
    return words


def coded_numbers(words: Iterable[str]) -> _Ids:
    """Return each word's number, ``int64``; -1 for words that no number below 2**53 has.

    >>> coded_numbers(["bababaq", "babababaq", "word"]).tolist()
    [0, 1000000, -1]
    """
    numbers = []
    for word in words:
        number = -1
        if _is_coded(word):
            digits = [
                CONSONANTS.index(word[i]) * len(VOWELS) + VOWELS.index(word[i + 1])
                for i in range(0, len(word) - 1, 2)
            ]
            shorter = sum(_SYLLABLES**size for size in range(FEWEST_SYLLABLES, len(digits)))
            number = shorter + sum(d * _SYLLABLES**place for place, d in enumerate(digits))
        numbers.append(number if number < MAX_RANK else -1)
    return np.array(numbers, dtype=np.int64)


@functools.cache
def _named_words() -> list[str]:
    """Return the words of all ranks up to `NAMED_RANKS`, made once per user and not per run."""

    def made() -> str:
        return "\n".join(_real_and_changed_words())

    sources = _digest_of_sources()
    return (made() if sources is None else kept_text("words", sources, made)).split("\n")


def _digest_of_sources() -> bytes | None:
    """Return a digest of the code and the lists that the words are made of, None if unreadable."""
    spec = importlib.util.find_spec("wordfreq")
    if spec is None or spec.origin is None:
        return None
    digest = hashlib.sha256()
    here = resources.files("fedhh.clients")
    listed = Path(spec.origin).parent / "data"
    try:
        for source in (
            here.joinpath("populations", "strings.py"),
            resources.files("fedhh.words").joinpath("known_words.py"),
            asset(SCOWL70),
            Path(spec.origin),
            listed / "large_en.msgpack.gz",
        ):
            content = source.read_bytes()
            digest.update(len(content).to_bytes(8, "little") + content)
    except OSError:
        return None
    return digest.digest()


def _real_words() -> tuple[list[str], list[str]]:
    """Return wordfreq's words that ``scowl70`` lacks, and the first 40,000 that it knows."""
    import wordfreq  # Only synthetic populations need it, and it takes a while.

    bins = wordfreq.get_frequency_list("en", wordlist="large")
    words = [
        word
        for words in bins
        for word in words
        if _WORD.fullmatch(word) and not _ZEROED.search(word)
    ]
    is_known = shipped_list(SCOWL70).contains_all(words)
    new = [word for word, known in zip(words, is_known, strict=True) if not known]
    bases = [
        word
        for word, known in zip(words, is_known, strict=True)
        if known and word.isalpha() and len(word) >= _SHORTEST_BASE
    ]
    return [word for word in new if not _is_coded(word)][:NAMED_RANKS], bases[:_BASES]


def _real_and_changed_words() -> list[str]:
    real, bases = _real_words()
    known = shipped_list(SCOWL70)
    chain = _letter_chain(real)
    found = dict.fromkeys(real)
    # Each kind fills its own share: some kinds give known or repeated words more often.
    shares = np.cumsum(list(_CHANGES.values())) * (NAMED_RANKS - len(real))
    ends = len(real) + np.rint(shares).astype(np.int64)
    for number, (kind, end) in enumerate(zip(_CHANGES, ends.tolist(), strict=True)):
        first = number << 32
        while len(found) < end:
            draws = _draws(first, 2 * (end - len(found)) + 1000)
            words = _names(chain, draws) if kind == "name" else _changed(kind, bases, draws)
            fits = [word for word in words if _WORD.fullmatch(word) and not _is_coded(word)]
            is_known = known.contains_all(fits)
            new = (word for word, drop in zip(fits, is_known, strict=True) if not drop)
            found.update(dict.fromkeys(itertools.islice(_unseen(new, found), end - len(found))))
            first += len(draws)
    changed = list(found)[len(real) :]
    order = np.argsort(_uniform(_draws(1 << 40, len(changed)), 0), kind="stable")
    return real + [changed[i] for i in order.tolist()]


def _unseen(words: Iterable[str], found: Container[str]) -> Iterator[str]:
    seen = set()
    for word in words:
        if word not in found and word not in seen:
            seen.add(word)
            yield word


def _is_coded(word: str) -> bool:
    return word.endswith(MARK) and _CODED.fullmatch(word) is not None


def _changed(kind: str, bases: list[str], draws: _Hashes) -> list[str]:
    """Return a word after a change for each draw; frequent words are changed more often."""
    base_ids, other_ids = (
        (_uniform(draws, i) ** 2 * len(bases)).astype(np.int64).tolist() for i in (0, 1)
    )
    if kind == "compound":
        return [bases[i] + bases[j] for i, j in zip(base_ids, other_ids, strict=True)]
    rows = zip(base_ids, _uniform(draws, 2).tolist(), _uniform(draws, 3).tolist(), strict=True)
    return [_change(kind, bases[i], place, amount) for i, place, amount in rows]


def _change(kind: str, word: str, place: float, amount: float) -> str:
    """Return the word after one change; ``place`` and ``amount`` are uniform in [0, 1)."""
    at = int(place * len(word))
    before, symbol, after = word[:at], word[at], word[at + 1 :]
    letter = _LETTERS[int(amount * len(_LETTERS))]
    match kind:
        case "substitution":
            changed = before + letter + after
        case "insertion":
            changed = before + letter + symbol + after
        case "deletion":
            changed = before + after
        case "transposition":
            changed = before + after[:1] + symbol + after[1:]
        case "elongation":
            changed = before + symbol * (2 + int(amount * 4)) + after
        case "digits":
            changed = word + str(int(10 ** (4 * amount)))
        case "possessive":
            # Typed without its apostrophe: todays.
            changed = word + "s"
        case _:
            raise AssertionError(kind)
    return changed


def _letter_chain(words: list[str]) -> npt.NDArray[np.float64]:
    """Return ``(27, 27, 27)``: the distribution function of a letter after the last two.

    Index 0 stands for no letter: before the first, and after the last.
    """
    letters = [word for word in words[:50_000] if word.isalpha()]
    codes = np.zeros((len(letters), LONGEST_WORD + 3), dtype=np.int64)
    text = np.array(letters, dtype=f"<U{LONGEST_WORD}")
    points = text.view(np.uint32).reshape(len(letters), LONGEST_WORD).astype(np.int64)
    codes[:, 2:-1] = np.where(points > 0, points - ord("a") + 1, 0)
    triples = np.stack([codes[:, :-2], codes[:, 1:-1], codes[:, 2:]]).reshape(3, -1)
    size = len(_LETTERS) + 1
    counts = np.bincount(np.ravel_multi_index(triples, (size,) * 3), minlength=size**3)
    counts = counts.reshape(size, size, size)
    # Padding behind a word's end says nothing.
    counts[0, 0, 0] = 0
    sums = np.cumsum(counts, axis=2).astype(np.float64)
    return sums / np.maximum(sums[..., -1:], 1)


def _names(chain: npt.NDArray[np.float64], draws: _Hashes) -> list[str]:
    codes = np.zeros((len(draws), _LONGEST_NAME + 2), dtype=np.int64)
    alive = np.ones(len(draws), dtype=bool)
    for place in range(_LONGEST_NAME):
        distribution = chain[codes[:, place], codes[:, place + 1]]
        letter = (distribution <= _uniform(draws, place)[:, None]).sum(axis=1)
        alive &= letter > 0
        codes[:, place + 2] = np.where(alive, letter, 0)
    points = np.where(codes > 0, codes + ord("a") - 1, 0)[:, 2:].astype(np.uint32)
    words: list[str] = np.ascontiguousarray(points).view(f"<U{_LONGEST_NAME}").ravel().tolist()
    return [word if len(word) >= _SHORTEST_NAME else "" for word in words]


def _draws(first: int, size: int) -> _Hashes:
    return np.arange(first, first + size, dtype=np.uint64) * np.uint64(_FLOATS_PER_DRAW)


def _uniform(draws: _Hashes, index: int) -> npt.NDArray[np.float64]:
    """Return float number ``index`` of each draw, in [0, 1), by SplitMix64.

    NumPy's generators may change between versions, and strings should not.
    """
    word = scatter((draws + np.uint64(index + 1)) * np.uint64(0x9E3779B97F4A7C15))
    return (word >> np.uint64(11)).astype(np.float64) * 2.0**-53
