"""Client side: from a client's items to its B contributions."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.prng import mix, next_below

_INSERTION_SORT_LIMIT = 32


@numba.njit(cache=True)
def choose_contributions(
    clients: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    word_ids: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int32],
    word_values: npt.NDArray[np.int64],
    max_items: int,
    greedy: bool,
    tie_key: np.uint64,
    state: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each client's contributions: at most ``max_items`` of its distinct values.

    A client's values are those of its words, without repeats and in ascending order; a value's
    count is the sum over the client's words that have it.

    Args:
        clients: ``(n,) int64`` client numbers, for ties only.
        offsets: ``(n + 1,) int64`` rows of each client.
        word_ids: ``(rows,) int32``.
        counts: ``(rows,) int32``.
        word_values: ``(V,) int64`` value of each word, negative for words with none.
        max_items: B.
        greedy: Take the B largest counts, ties by a hash of client and value; otherwise a uniform
            B-subset.
        tie_key: Key of that hash.
        state: ``(4,) uint64`` generator state, changed in place.

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

    for i in range(num_clients):
        size = 0
        for row in range(offsets[i], offsets[i + 1]):
            value = word_values[word_ids[row]]
            if value >= 0:
                values[size] = value
                totals[size] = counts[row]
                size += 1
        size = _merge_equal(values, totals, size)
        if size > max_items:
            if greedy:
                _move_largest_to_front(values, totals, size, max_items, tie_key, clients[i])
            else:
                for j in range(max_items):
                    other = j + np.int64(next_below(state, np.uint64(size - j)))
                    values[j], values[other] = values[other], values[j]
            size = max_items
        for j in range(size):
            chosen[i, j] = values[j]
        sizes[i] = size
    return chosen, sizes


@numba.njit(cache=True)
def _merge_equal(values: npt.NDArray[np.int64], totals: npt.NDArray[np.int64], size: int) -> int:
    """Sort the first ``size`` pairs by value, add up equal ones, and return how many are left."""
    if size <= _INSERTION_SORT_LIMIT:
        for j in range(1, size):
            value, total = values[j], totals[j]
            k = j - 1
            while k >= 0 and values[k] > value:
                values[k + 1], totals[k + 1] = values[k], totals[k]
                k -= 1
            values[k + 1], totals[k + 1] = value, total
    else:
        order = np.argsort(values[:size])
        values[:size] = values[:size][order]
        totals[:size] = totals[:size][order]
    left = 0
    for j in range(size):
        if left and values[left - 1] == values[j]:
            totals[left - 1] += totals[j]
        else:
            values[left], totals[left] = values[j], totals[j]
            left += 1
    return left


@numba.njit(cache=True)
def _move_largest_to_front(
    values: npt.NDArray[np.int64],
    totals: npt.NDArray[np.int64],
    size: int,
    front: int,
    tie_key: np.uint64,
    client: int,
) -> None:
    """Put the ``front`` values with the largest counts first; equal counts by hash."""
    # The hash of client and value alone decides a tie: adding or removing another item of the
    # client then changes at most one contribution, which item-level privacy rests on.
    client_key = mix(tie_key ^ np.uint64(client))
    hashes = np.empty(size, dtype=np.uint64)
    for j in range(size):
        hashes[j] = mix(client_key ^ np.uint64(values[j]))
    for j in range(front):
        best = j
        for k in range(j + 1, size):
            if totals[k] > totals[best] or (totals[k] == totals[best] and hashes[k] > hashes[best]):
                best = k
        values[j], values[best] = values[best], values[j]
        totals[j], totals[best] = totals[best], totals[j]
        hashes[j], hashes[best] = hashes[best], hashes[j]
