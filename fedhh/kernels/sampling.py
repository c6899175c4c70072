"""Client side: from a client's items to its B contributions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats, Ints, SmallInts, UInts
from fedhh.kernels.cache import compiled
from fedhh.kernels.prng import U0, U1, U3, U7, U32, mix, next_below
from fedhh.random import GOLDEN

_Bits = npt.NDArray[np.uint8]


@numba.njit(inline="always")
def slot_count(size: Any) -> Any:
    """Return how many slots, a power of two, keep a hash table of so many at most half full."""
    slots = 2
    while slots < 2 * size:
        slots *= 2
    return slots


@compiled
def choose_contributions(
    clients: Ints,
    offsets: Ints,
    word_ids: SmallInts,
    counts: SmallInts,
    word_values: Ints,
    live: _Bits,
    max_items: int,
    greedy: bool,
    tie_key: np.uint64,
    state: UInts,
) -> tuple[Ints, Ints]:
    """Return each client's contributions: at most ``max_items`` of its distinct values.

    A client's values are those of its words, without repeats and in the order of its words; a
    value's count is the sum over the client's words that have it.

    Args:
        clients: ``(n,) int64`` client numbers, for ties only.
        offsets: ``(n + 1,) int64`` rows of each client.
        word_ids: ``(rows,) int32``.
        counts: ``(rows,) int32``.
        word_values: ``(V,) int64`` value of each word, negative for words with none.
        live: ``(ceil(V / 8),) uint8``: a bit for each word, lowest first: whether it has a value.
        max_items: B.
        greedy: Take the B largest counts, ties by a hash of client and value; otherwise a uniform
            B-subset.
        tie_key: Key of that hash.

    Returns:
        ``(n, max_items) int64`` values, of which row i's first ``sizes[i]`` are set, the rest -1;
        and ``(n,) int64`` sizes.
    """
    num_clients = len(clients)
    chosen = np.full((num_clients, max_items), -1, dtype=np.int64)
    sizes = np.zeros(num_clients, dtype=np.int64)
    longest = 0
    for i in range(num_clients):
        longest = max(longest, offsets[i + 1] - offsets[i])
    values = np.empty(longest, dtype=np.int64)
    totals = np.empty(longest, dtype=np.int64)
    hashes = np.empty(longest, dtype=np.uint64)
    slots = np.empty(slot_count(longest), dtype=np.int32)
    for i in range(num_clients):
        # Past the first layers few words have a value, which is hard to guess: so all are written
        # down, and those without are written over. Their bits stay in the cache, unlike values.
        found = U0
        for row in range(offsets[i], offsets[i + 1]):
            word = np.uint64(word_ids[row])
            values[found] = np.int64(word)
            totals[found] = counts[row]
            found += np.uint64(live[word >> U3] >> (word & U7)) & U1
        for j in range(found):
            values[j] = word_values[np.uint64(values[j])]
        size = _merge_equal(values, totals, np.int64(found), slots)
        if size > max_items and greedy:
            # The hash of client and value alone decides a tie: adding or removing another item
            # of the client then changes at most one contribution, which item-level privacy
            # rests on.
            client_key = mix(tie_key ^ np.uint64(clients[i]))
            for j in range(size):
                hashes[j] = mix(client_key ^ np.uint64(values[j]))
            _move_largest_to_front(values, totals, hashes, size, max_items)
        elif size > max_items:
            for j in range(max_items):
                other = j + np.int64(next_below(state, np.uint64(size - j)))
                values[j], values[other] = values[other], values[j]
        sizes[i] = min(size, max_items)
        for j in range(sizes[i]):
            chosen[i, j] = values[j]
    return chosen, sizes


@compiled
def add_contributors(
    offsets: Ints,
    word_ids: SmallInts,
    word_values: Ints,
    live: _Bits,
    max_items: int,
    said: Floats,
    held: Floats,
) -> None:
    """Add to each value how many of some clients hold it, and say it if each says B of its values.

    A client with m values says each with chance min(1, B / m).

    Args:
        offsets: ``(n + 1,) int64`` rows of each client.
        word_ids: ``(rows,) int32``.
        word_values: ``(V,) int64`` value of each word, negative for words with none.
        live: ``(ceil(V / 8),) uint8``, as in `choose_contributions`.
        max_items: B.
        said: Changed in place.
        held: Changed in place.
    """
    for i in range(len(offsets) - 1):
        # Bits stay in the cache, unlike values, and few words have one.
        size = U0
        for row in range(offsets[i], offsets[i + 1]):
            word = np.uint64(word_ids[row])
            size += np.uint64(live[word >> U3] >> (word & U7)) & U1
        if not size:
            continue
        chance = min(1.0, max_items / size)
        for row in range(offsets[i], offsets[i + 1]):
            word = np.uint64(word_ids[row])
            if np.uint64(live[word >> U3] >> (word & U7)) & U1:
                value = np.uint64(word_values[word])
                said[value] += chance
                held[value] += 1


@compiled
def _merge_equal(values: Ints, totals: Ints, size: np.int64, slots: SmallInts) -> np.int64:
    """Add up the totals of equal values among the first ``size``; return how many are left.

    Equal values are found by hashing: clients hold some dozens, and sorting them costs more.
    """
    mask = np.uint64(slot_count(size) - 1)
    slots[: mask + U1] = -1
    left = U0
    for j in range(size):
        value = values[j]
        # The upper half of a product with the golden ratio (Knuth, TAOCP 3, section 6.4).
        slot = (np.uint64(value) * GOLDEN) >> U32 & mask
        while slots[slot] >= 0 and values[np.uint64(slots[slot])] != value:
            slot = (slot + U1) & mask
        if slots[slot] < 0:
            slots[slot] = np.int32(left)
            values[left], totals[left] = value, totals[j]
            left += U1
        else:
            totals[np.uint64(slots[slot])] += totals[j]
    return np.int64(left)


@compiled
def _move_largest_to_front(
    values: Ints, totals: Ints, hashes: UInts, size: int, front: int
) -> None:
    """Put the ``front`` values with the largest (total, hash) first, in any order.

    Quickselect (Hoare 1961, "Algorithm 65: Find", CACM 4(7)): O(size) on average.
    """
    first, last = 0, size - 1
    while first < last:
        middle = (first + last) // 2
        total, tie = totals[middle], hashes[middle]
        low, high = first, last
        while low <= high:
            while totals[low] > total or (totals[low] == total and hashes[low] > tie):
                low += 1
            while totals[high] < total or (totals[high] == total and hashes[high] < tie):
                high -= 1
            if low <= high:
                values[low], values[high] = values[high], values[low]
                totals[low], totals[high] = totals[high], totals[low]
                hashes[low], hashes[high] = hashes[high], hashes[low]
                low += 1
                high -= 1
        # Everything up to high is at least the pivot, everything from low on at most.
        if front - 1 <= high:
            last = high
        elif front - 1 >= low:
            first = low
        else:
            return
