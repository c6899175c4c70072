"""Coded words: a pronounceable word for each integer.

They are the strings of rare ranks, the same in every language: an alphabet without Latin letters
spells none of them.
"""

from __future__ import annotations

import re

import numpy as np

from fedhh.arrays import Ints

CONSONANTS = "bcdfghjklmnprstvwxyz"
VOWELS = "aeiou"
_SYLLABLES = len(CONSONANTS) * len(VOWELS)
FEWEST_SYLLABLES = 3
# No other string ends like this: the mark keeps coded words apart from all earlier ones.
MARK = "q"
_CODED = re.compile(rf"([{CONSONANTS}][{VOWELS}]){{{FEWEST_SYLLABLES},}}{MARK}")


def coded_words(numbers: Ints) -> list[str]:
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


def is_coded(word: str) -> bool:
    """Return whether a word is spelled as coded ones are."""
    return word.endswith(MARK) and _CODED.fullmatch(word) is not None
