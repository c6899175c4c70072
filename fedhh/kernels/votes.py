"""Votes of Subset Selection and of clients, counted without storing a report."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints, UInts
from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LANES, U0, U1, aligned_empty, bound_in_place, fill_words

_Halves = npt.NDArray[np.uint32]
_Table = npt.NDArray[np.unsignedinteger[Any]]

_BUFFER = 4096
_LARGE = 2**16
"""Values of which words of 64 bits no longer fit a core's cache."""
_ONE_STAMP = np.uint64(0x10000)
_COUNT = np.uint64(0xFFFF)
_LAST_STAMP = np.uint64(0xFFFF0000)


def add_subset_votes(
    values: Ints, subset_size: int, miss: np.uint64, out: Ints, states: UInts
) -> None:
    """Draw one Subset Selection report per value and add its members to ``out``.

    d members other than the client's value are drawn one by one and repeats are rejected, which is
    uniform sampling without replacement; with probability p one of them gives its place to that
    value. A value's stamp is the number of the last report that met it, in one word with its count:
    one access to memory tells a repeated draw and counts a new one. Both have 16 bits, so counts
    are moved on after 65,535 reports. Words of 64 bits are quicker; of 32, a large table is near.

    Args:
        values: ``(n,) int64`` in [0, s), n below 2**32.
        subset_size: d, in [1, s).
        miss: Probability that a report lacks its client's value, times 2**64.
        out: ``(s,) int64``, s below 2**32, changed in place.
        states: ``(4, LANES) uint64`` of the generator, changed in place.
    """
    room = aligned_empty(_BUFFER // 2 + LANES, np.uint64)
    words, coins = room[: _BUFFER // 2], room[_BUFFER // 2 :]
    random = (words, words.view(np.uint32), coins)
    # A spare value for what must not count.
    table = np.zeros(len(out) + 1, dtype=np.uint32 if len(out) > _LARGE else np.uint64)
    _add_stamped(values, subset_size, miss, table, out, states, random)


@compiled
def _add_stamped(
    values: Ints,
    subset_size: int,
    miss: np.uint64,
    table: _Table,
    out: Ints,
    states: UInts,
    random: tuple[UInts, _Halves, UInts],
) -> None:
    words, draws, coins = random
    spare = np.uint64(len(out))
    # Numbers of draws are unsigned, which spares every look-up the question whether it is from the
    # end of the array.
    num_members, size = np.uint64(subset_size), np.uint64(len(draws))
    next_draw = size
    next_coin = len(coins)
    stamp = U0
    for value in values:
        if stamp == _LAST_STAMP:
            _move_counts(table, out)
            stamp = U0
        stamp += _ONE_STAMP
        own = np.uint64(value)
        # Stamped first, neither the client's own value nor a rejected draw can be a member.
        table[own] = stamp | (table[own] & _COUNT)
        table[spare] = stamp
        missing = num_members
        while missing != U0:
            if next_draw == size:
                fill_words(states, words)
                bound_in_place(words, spare)
                next_draw = U0
            stop = min(size, next_draw + missing)
            repeats = U0
            # Without a branch on repeats, which no processor could foresee.
            for i in range(next_draw, stop):
                place = draws[i]
                entry = table[place]
                repeats += np.uint64(entry >= stamp)
                table[place] = stamp + (entry & _COUNT) + np.uint64(entry < stamp)
            missing -= stop - next_draw - repeats
            next_draw = stop
        if next_coin == len(coins):
            fill_words(states, coins)
            next_coin = 0
        held = np.uint64(coins[next_coin] >= miss)
        next_coin += 1
        # The last draw of the loop above is a member. Without a branch on the coin.
        table[draws[next_draw - U1]] -= held
        table[own] += held
    _move_counts(table, out)


@subroutine
def _move_counts(table: _Table, out: Ints) -> None:
    """Add the counts of a table to ``out``, and clear it."""
    for value in range(len(out)):
        out[value] += np.int64(table[value] & _COUNT)
        table[value] = 0
    table[len(out)] = 0


@compiled
def add_distinct(supported: Ints, out: Ints) -> None:
    """Add one to each value of a row, once a row, whatever its repeats: one vote per client.

    Args:
        supported: ``(n, w) int64`` in [0, s): what all reports of a client support, a row each.
        out: ``(s,) int64``, changed in place.
    """
    last_row = np.full(len(out), -1, dtype=np.int64)
    for row in range(len(supported)):
        for value in supported[row]:
            if last_row[value] != row:
                last_row[value] = row
                out[value] += 1
