"""Coded words in a trie: their candidate values straight from their numbers, without a string.

`fedhh.clients.populations.strings.coded_words` says how a number is spelled. Few coded words stay
in a trie for long, so a word is spelled only as far as it is followed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled

_Ids = npt.NDArray[np.int64]


@compiled(nogil=True)
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
) -> _Ids:
    """Return ``(n,) int64``: each coded word's value ``node * A + symbol``, or -1.

    Args:
        numbers: ``(n,) int64`` numbers of coded words.
        consonants: Codes of the consonants in a query's alphabet, A or more for foreign ones.
        vowels: Codes of the vowels.
        mark: Code of the mark at a word's end; the end symbol has code 0.
        fewest_syllables: Of the shortest coded words.
        level_starts: ``(length + 1,) int64``: where each level of the trie begins ...
        candidates: ... among the levels, one after the other.
        alphabet_size: A.
        pair_nodes: ``(10_000,) int64``: the node of every two first syllables, by their place in
            ``number % 10_000``, or -1; empty for tries shorter than four symbols.
    """
    base = len(consonants) * len(vowels)
    length = len(level_starts) - 1
    values = np.empty(len(numbers), dtype=np.int64)
    for i in range(len(numbers)):
        values[i] = -1
        rest = numbers[i]
        syllables = fewest_syllables
        words_of_length = base**fewest_syllables
        while rest >= words_of_length:
            rest -= words_of_length
            words_of_length *= base
            syllables += 1
        node = 0
        digit = 0
        first = 0
        if len(pair_nodes) > 0:
            node = pair_nodes[rest % len(pair_nodes)]
            if node < 0:
                continue
            rest //= len(pair_nodes)
            first = 4
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
                values[i] = node * alphabet_size + symbol
                break
            # No level holds a finished word, so a word that ends before the trie is not found.
            wanted = node * alphabet_size + symbol
            start, end = level_starts[place], level_starts[place + 1]
            found = _first_from(wanted, candidates, start, end)
            if found == end or candidates[found] != wanted:
                break
            node = found - start
    return values


@compiled(nogil=True)
def _first_from(wanted: int, sorted_values: _Ids, start: int, end: int) -> int:
    """Return where the first value of a range stands that is not below another; else its end."""
    while start < end:
        middle = (start + end) >> 1
        if sorted_values[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    return start


@compiled(nogil=True)
def part_ranks(ranks: _Ids, largest: int) -> tuple[npt.NDArray[np.int32], _Ids]:
    """Return word ids, and the ranks above ``largest``.

    Args:
        ranks: ``(n,) int64`` from 1.
        largest: Ranks up to here have id ``rank - 1``; the others ``largest`` and up, in order.

    Returns:
        ``(n,) int32`` and ``(m,) int64``.
    """
    ids = np.empty(len(ranks), dtype=np.int32)
    beyond = np.empty(len(ranks), dtype=np.int64)
    size = 0
    for i in range(len(ranks)):
        rank = ranks[i]
        if rank <= largest:
            ids[i] = rank - 1
        else:
            ids[i] = largest + size
            beyond[size] = rank
            size += 1
    return ids, beyond[:size].copy()


@compiled(nogil=True)
def count_words(
    word_ids: npt.NDArray[np.int32], counts: npt.NDArray[np.int32], totals: _Ids
) -> None:
    """Add a block's rows to ``(V, 2) int64`` totals: contributions, and clients.

    Args:
        word_ids: ``(rows,) int32``, distinct within a client; those of V and more are left out.
        counts: ``(rows,) int32``.
        totals: Changed in place.
    """
    for i in range(len(word_ids)):
        word = word_ids[i]
        if word < len(totals):
            totals[word, 0] += counts[i]
            totals[word, 1] += 1
