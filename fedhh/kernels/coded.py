"""Coded words in a trie: their candidate values straight from their numbers, without a string.

`fedhh.words.coded_words` says how a number is spelled. Few coded words stay
in a trie for long, so a word is spelled only as far as it is followed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine

_Ids = npt.NDArray[np.int64]

VOWELS = 5
SYLLABLES = 20 * VOWELS
PAIRS = SYLLABLES**2
"""How many ways there are to begin with two syllables; a word's is its number modulo this."""


@compiled
def coded_values(
    numbers: _Ids,
    consonants: _Ids,
    vowels: _Ids,
    mark: int,
    fewest_syllables: int,
    level_starts: _Ids,
    candidates: _Ids,
    alphabet_size: int,
    pair_nodes: _Ids,
    consonants_after: npt.NDArray[np.uint32],
) -> _Ids:
    """Return ``(n,) int64``: each coded word's value ``node * A + symbol``, or -1.

    Args:
        numbers: ``(n,) int64`` numbers of coded words.
        consonants: Codes of the consonants in a question's alphabet, A or more for foreign ones.
        vowels: Codes of the vowels.
        mark: Code of the mark at a word's end; the end symbol has code 0.
        fewest_syllables: Of the shortest coded words.
        level_starts: ``(length + 1,) int64``: where each level of the trie begins ...
        candidates: ... among the levels, one after the other.
        alphabet_size: A.
        pair_nodes: ``(PAIRS,) int64``: for every two first syllables the node, or in tries
            shorter than their four symbols the value, or -1; empty to go without.
        consonants_after: ``(PAIRS,) uint32``, for longer tries: a bit for each consonant, in their
            order, by which coded words go on from these two syllables to the last level.
    """
    length = len(level_starts) - 1
    values = np.full(len(numbers), -1, dtype=np.int64)
    for i in range(len(numbers)):
        number = np.uint64(numbers[i])
        node, first = 0, 0
        if len(pair_nodes) > 0:
            # Numbers of longer words begin where three syllables come round: the first ones need
            # no length. Most words end here.
            pair = number % np.uint64(PAIRS)
            node, first = pair_nodes[pair], 4
            if length > 4:
                third = number // np.uint64(PAIRS) % np.uint64(SYLLABLES)
                goes_on = consonants_after[pair] >> (third // np.uint64(VOWELS)) & np.uint64(1)
                node = node if goes_on else -1
        if first > length:
            values[i] = node
        elif node >= 0:
            values[i] = _follow(
                numbers[i], node, first, consonants, vowels, mark, fewest_syllables,
                level_starts, candidates, alphabet_size,
            )  # fmt: skip
    return values


@subroutine
def _follow(
    rest: int,
    node: int,
    first: int,
    consonants: _Ids,
    vowels: _Ids,
    mark: int,
    fewest_syllables: int,
    level_starts: _Ids,
    candidates: _Ids,
    alphabet_size: int,
) -> Any:
    """Return the value of one coded word, whose first symbols, none or four, lead to a node."""
    base = len(consonants) * len(vowels)
    length = len(level_starts) - 1
    syllables = fewest_syllables
    words_of_length = base**fewest_syllables
    while rest >= words_of_length:
        rest -= words_of_length
        words_of_length *= base
        syllables += 1
    rest //= base ** (first // 2)
    digit = 0
    for place in range(first, min(length, 2 * syllables + 1) + 1):
        if place < 2 * syllables:
            if place % 2 == 0:
                digit = rest % base
                rest //= base
                symbol = consonants[digit // len(vowels)]
            else:
                symbol = vowels[digit % len(vowels)]
        else:
            symbol = mark if place == 2 * syllables else 0
        if symbol >= alphabet_size:
            break
        if place == length:
            return node * alphabet_size + symbol
        # No level holds a finished word, so a word that ends before the trie is not found.
        wanted = node * alphabet_size + symbol
        start, end = level_starts[place], level_starts[place + 1]
        found = _first_from(wanted, candidates, start, end)
        if found == end or candidates[found] != wanted:
            break
        node = found - start
    return -1


@subroutine
def _first_from(wanted: int, sorted_values: _Ids, start: int, end: int) -> Any:
    """Return where the first value of a range stands that is not below another; else its end."""
    while start < end:
        middle = (start + end) >> 1
        if sorted_values[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    return start


@compiled
def part_ranks(ranks: _Ids, largest: int) -> tuple[npt.NDArray[np.int32], _Ids]:
    """Return ``(n,) int32`` ids of ranks from 1, and the ``(m,) int64`` ranks above ``largest``.

    Ranks up to there have id ``rank - 1``; the others ``largest`` and up, in order.
    """
    ids = np.empty(len(ranks), dtype=np.int32)
    beyond = np.empty(len(ranks) + 1, dtype=np.int64)
    size = np.uint64(0)
    for i in range(len(ranks)):
        rank = ranks[i]
        # Which it is, is hard to guess: so both are written, without a branch.
        is_beyond = rank > largest
        ids[i] = largest + np.int64(size) if is_beyond else rank - 1
        beyond[size] = rank
        size += np.uint64(is_beyond)
    return ids, beyond[:size].copy()


@compiled
def count_words(
    word_ids: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int32],
    totals: npt.NDArray[np.signedinteger[Any]],
) -> None:
    """Add a block's rows to ``(V, 2)`` totals: contributions, and clients.

    Args:
        word_ids: ``(rows,) int32``, distinct within a client; those of V and more are left out.
        counts: ``(rows,) int32``.
        totals: ``int32``, or ``int64`` where that may be too few bits; changed in place.
    """
    size = np.uint64(len(totals))
    for i in range(len(word_ids)):
        # Unsigned, so that no negative index has to be provided for.
        word = np.uint64(word_ids[i])
        if word < size:
            totals[word, 0] += counts[i]
            totals[word, 1] += 1
