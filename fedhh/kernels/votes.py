"""Subset Selection's inner loops: reports drawn and counted without being stored.

All routes have the same distribution. A report's members other than its client's value are drawn
one by one and repeats are rejected, which is uniform sampling without replacement. d members other
than the client's value are always drawn; with probability p one of them gives its place to that
value.

What is written at a random address is kept narrow: counters of votes have one byte each, and how
often one ran over stands in a table that is hardly ever touched. What a report has met so far fits
the first cache, however many values there are. Reports of few members: `quick_votes`.

Routes take the same arguments: ``values``, ``(n,) int64`` in [0, s), n below 2**32;
``subset_size``, d, below s; ``miss``, the probability that a report lacks its client's value, times
2**64; where the votes go, changed in place; and ``states``, ``(4, LANES) uint64`` of the generator,
changed in place.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LANES, aligned_empty, bound_in_place, fill_words

_Words = npt.NDArray[np.uint64]
_Halves = npt.NDArray[np.uint32]
_Ints = npt.NDArray[np.int64]
_Coins = npt.NDArray[np.uint16]
_Bytes = npt.NDArray[np.uint8]
Counters = tuple[_Bytes, _Halves]

_BUFFER = 4096
_ONE = np.uint64(1)
_COUNT = np.uint64(0xFFFFFFFF)
_NONE = np.uint64(0)
_ONE_STAMP = np.uint64(0x100000000)

# Up to here a table of stamps and counts fits the second cache. Beyond, values share stamps in the
# first, and a report that meets one of its own looks through its members; large ones look long.
_LARGEST_TABLE = 2**16
_LARGEST_LOOKED_THROUGH = 2048
_STAMPS_PER_MEMBER = 32
_FEWEST_STAMPS = 2**13
_JUST_WRITTEN = 48


def make_counters(domain_size: int) -> Counters:
    """Return zeroed counters for the kernels, and how often each ran over 255.

    Both are ``(domain_size + 1,)``, uint8 and uint32: the last is for what must not count.
    """
    return np.zeros(domain_size + 1, dtype=np.uint8), np.zeros(domain_size + 1, dtype=np.uint32)


@compiled
def move_counts(counters: Counters, out: _Ints) -> None:
    """Add the counters to ``(s,) int64`` ``out``."""
    counts, overflows = counters
    for value in range(len(out)):
        out[value] += np.int64(counts[value]) + 256 * np.int64(overflows[value])


@numba.njit(inline="always")
def count_vote(counts: _Bytes, overflows: _Halves, value: np.uint32) -> None:
    """Add one to a value's counter."""
    count = np.uint8(counts[value] + np.uint8(1))
    counts[value] = count
    if count == 0:
        overflows[value] += np.uint32(1)


def shares_stamps(domain_size: int, subset_size: int) -> bool:
    """Return whether `add_looked_through_votes` is faster than `add_stamped_votes`."""
    return domain_size > _LARGEST_TABLE and subset_size <= _LARGEST_LOOKED_THROUGH


def add_stamped_votes(
    values: _Ints, subset_size: int, miss: np.uint64, out: _Ints, states: _Words
) -> None:
    """Draw one report per value and add its members to ``(s,) int64``: for any d.

    A value's stamp is the number of the last report that met it, in one word with its count: one
    access to memory tells a repeated draw and counts a new one.
    """
    # A word per value, its stamp above its count, and a spare value for what must not count.
    table = np.zeros(len(out) + 1, dtype=np.uint64)
    _stamped(values, subset_size, miss, table, states, _random_buffers())
    table &= _COUNT
    out += table[:-1].view(np.int64)


def _random_buffers() -> tuple[_Words, _Halves, _Words]:
    room = aligned_empty(_BUFFER // 2 + LANES, np.uint64)
    words, coins = room[: _BUFFER // 2], room[_BUFFER // 2 :]
    return words, words.view(np.uint32), coins


@compiled
def _stamped(
    values: _Ints,
    subset_size: int,
    miss: np.uint64,
    table: _Words,
    states: _Words,
    random: tuple[_Words, _Halves, _Words],
) -> None:
    words, draws, coins = random
    spare = np.uint64(len(table) - 1)
    # Numbers of draws are unsigned, which spares every look-up the question whether it is from the
    # end of the array.
    num_members, size = np.uint64(subset_size), np.uint64(len(draws))
    next_draw = size
    next_coin = len(coins)
    stamp = _NONE
    for value in values:
        stamp += _ONE_STAMP
        own = np.uint64(value)
        # Stamped first, neither the client's own value nor a rejected draw can be a member.
        table[own] = stamp | (table[own] & _COUNT)
        table[spare] = stamp
        missing = num_members
        while missing != _NONE:
            if next_draw == size:
                fill_words(states, words)
                bound_in_place(words, spare)
                next_draw = _NONE
            stop = min(size, next_draw + missing)
            repeats = _NONE
            for i in range(next_draw, stop):
                place = draws[i]
                entry = table[place]
                if entry >= stamp:
                    repeats += _ONE
                    continue
                table[place] = stamp + (entry & _COUNT) + _ONE
            missing -= stop - next_draw - repeats
            next_draw = stop
        if next_coin == len(coins):
            fill_words(states, coins)
            next_coin = 0
        held = np.uint64(coins[next_coin] >= miss)
        next_coin += 1
        # The last draw of the loop above is a member. Without a branch on the coin.
        table[draws[next_draw - _ONE]] -= held
        table[own] += held


def add_looked_through_votes(
    values: _Ints, subset_size: int, miss: np.uint64, counters: Counters, states: _Words
) -> None:
    """Draw one report per value and count its members: the route for many values.

    A stamp is the number of the last report that met one of the values that share it. Only a draw
    that finds its own report's stamp can be a repeat, and is compared with the members so far.
    """
    shared = 1 << (_STAMPS_PER_MEMBER * subset_size - 1).bit_length()
    stamps = np.zeros(max(shared, _FEWEST_STAMPS), dtype=np.uint16)
    members = np.empty(subset_size + 2, dtype=np.uint32)
    _looked_through(values, miss, counters, states, _random_buffers(), stamps, members)


@compiled
def _looked_through(
    values: _Ints,
    miss: np.uint64,
    counters: Counters,
    states: _Words,
    random: tuple[_Words, _Halves, _Words],
    stamps: _Coins,
    members: _Halves,
) -> None:
    words, draws, coins = random
    counts, overflows = counters
    spare = np.uint32(len(counts) - 1)
    mask = np.uint32(len(stamps) - 1)
    size = len(draws)
    next_draw = size
    next_coin = len(coins)
    stamp = np.uint16(0)
    # After the two that no member may be.
    last = len(members) - 1
    members[0] = spare
    for value in values:
        stamp = np.uint16(stamp + np.uint16(1))
        if stamp == 0:
            stamps[:] = 0
            stamp = np.uint16(1)
        own = np.uint32(value)
        members[1] = own
        stamps[own & mask] = stamp
        stamps[spare & mask] = stamp
        filled = 2
        while filled <= last:
            if next_draw == size:
                fill_words(states, words)
                bound_in_place(words, np.uint64(spare))
                next_draw = 0
            stop = min(size, next_draw + last + 1 - filled)
            for draw in draws[next_draw:stop]:
                place = draw & mask
                if stamps[place] == stamp and _is_among(members, filled, draw):
                    continue
                stamps[place] = stamp
                # Unsigned, so that no negative index has to be provided for.
                members[np.uint64(filled)] = draw
                filled += 1
                count_vote(counts, overflows, draw)
            next_draw = stop
        if next_coin == len(coins):
            fill_words(states, coins)
            next_coin = 0
        # Heads, and the last draw gives its place to the client's value. Without a branch on it.
        held = np.uint8(coins[next_coin] >= miss)
        next_coin += 1
        other = members[last]
        count = counts[other]
        counts[other] = np.uint8(count - held)
        if count < held:
            overflows[other] -= np.uint32(1)
        count = np.uint8(counts[own] + held)
        counts[own] = count
        if count < held:
            overflows[own] += np.uint32(1)


@subroutine
def _is_among(members: _Halves, num_members: int, draw: np.uint32) -> bool:
    """Return whether a draw is among the first members.

    The last ones are compared one by one: a vector of them would wait until those just written
    have left for the cache.
    """
    settled = max(num_members - _JUST_WRITTEN, 0)
    found = np.uint32(0)
    for i in range(settled):
        found |= np.uint32(members[i] == draw)
    for i in range(settled, num_members):
        if members[i] == draw:
            return True
    return bool(found != 0)
