"""Subset Selection's inner loops: reports drawn and counted without being stored.

All routes have the same law. A report's members other than its client's value are drawn one by one
and repeats are rejected, which is uniform sampling without replacement. d members other than the
client's value are always drawn; with probability p one of them gives its place to that value.

What is written at a random address is kept narrow, since votes wait for nothing but memory: a count
is one byte, and how often it ran over stands in a table that is hardly ever touched. What a report
has met so far fits the first cache, however many values there are.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.lanes import LANES, aligned_empty, bound_in_place, fill_words
from fedhh.kernels.prng import next_below, next_uint64

_Words = npt.NDArray[np.uint64]
_Halves = npt.NDArray[np.uint32]
_Coins = npt.NDArray[np.uint16]
_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
Counters = tuple[_Bytes, _Halves]

CHUNK = 2048
_BUFFER = 4096
_SCAN = 128
_FAILED = np.uint32(1)
_UNDECIDED = np.uint32(2)
_ONE = np.uint64(1)
_TWO = np.uint64(2)

# Up to here a table of stamps and counts fits the second cache. Beyond, values share stamps in the
# first, and a report that meets one of its own looks through its members; large ones look long.
_LARGEST_TABLE = 2**16
_LARGEST_LOOKED_THROUGH = 2048
_STAMPS_PER_MEMBER = 32
_FEWEST_STAMPS = 2**12


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
def _count(counts: _Bytes, overflows: _Halves, value: np.uint32) -> None:
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
    """Draw one report per value and count its members: one table of all values, for any d.

    A value's stamp is the number of the last report that met it, next to its count: one access to
    memory tells a repeated draw and counts a new one.

    Args:
        values: ``(n,) int64`` in [0, s), n below 2**32.
        subset_size: d, the number of values in a report, below s.
        miss: Probability that a report lacks its client's value, times 2**64.
        out: ``(s,) int64`` to add to.
        states: ``(4, LANES) uint64`` of the generator, changed in place.
    """
    # Two words per value, its stamp and its count, and a spare value for what must not count.
    table = np.zeros(2 * (len(out) + 1), dtype=np.uint32)
    _stamped(values, subset_size, miss, table, states, _random_buffers())
    out += table[1:-1:2]


def _random_buffers() -> tuple[_Words, _Halves, _Words]:
    words = aligned_empty(_BUFFER // 2, np.uint64)
    return words, words.view(np.uint32), aligned_empty(LANES, np.uint64)


@compiled
def _stamped(
    values: _Ints,
    subset_size: int,
    miss: np.uint64,
    table: _Halves,
    states: _Words,
    random: tuple[_Words, _Halves, _Words],
) -> None:
    words, draws, coins = random
    spare = np.uint64(len(table) // 2 - 1)
    size = len(draws)
    next_draw = size
    next_coin = len(coins)
    stamp = np.uint32(0)
    for value in values:
        stamp = np.uint32(stamp + np.uint32(1))
        own = np.uint64(value) * _TWO
        # Stamped first, neither the client's own value nor a rejected draw can be a member.
        table[own] = stamp
        table[spare * _TWO] = stamp
        missing = subset_size
        while missing > 0:
            if next_draw == size:
                fill_words(states, words)
                bound_in_place(draws, spare)
                next_draw = 0
            stop = min(size, next_draw + missing)
            repeats = 0
            for draw in draws[next_draw:stop]:
                place = np.uint64(draw) * _TWO
                if table[place] == stamp:
                    repeats += 1
                    continue
                table[place] = stamp
                table[place + _ONE] += np.uint32(1)
            missing -= stop - next_draw - repeats
            next_draw = stop
        if next_coin == len(coins):
            fill_words(states, coins)
            next_coin = 0
        held = np.uint32(coins[next_coin] >= miss)
        next_coin += 1
        # The last draw of the loop above is a member. Without a branch on the coin.
        table[np.uint64(draws[next_draw - 1]) * _TWO + _ONE] -= held
        table[own + _ONE] += held


def add_looked_through_votes(
    values: _Ints, subset_size: int, miss: np.uint64, counters: Counters, states: _Words
) -> None:
    """Draw one report per value and count its members: the route for many values.

    A stamp is the number of the last report that met one of the values that share it. Only a draw
    that finds its own report's stamp can be a repeat, and is compared with the members so far.

    Args:
        values: ``(n,) int64`` in [0, s), n below 2**32.
        subset_size: d, below s.
        miss: Probability that a report lacks its client's value, times 2**64.
        counters: Those of s values.
        states: ``(4, LANES) uint64`` of the generator, changed in place.
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
                bound_in_place(draws, np.uint64(spare))
                next_draw = 0
            stop = min(size, next_draw + last + 1 - filled)
            for draw in draws[next_draw:stop]:
                place = draw & mask
                if stamps[place] == stamp and _is_among(members, filled, draw):
                    continue
                stamps[place] = stamp
                members[filled] = draw
                filled += 1
            next_draw = stop
        if next_coin == len(coins):
            fill_words(states, coins)
            next_coin = 0
        other = members[last]
        members[last] = own if coins[next_coin] >= miss else other
        next_coin += 1
        for member in members[2:]:
            _count(counts, overflows, member)


@numba.njit(inline="always")
def _is_among(members: _Halves, num_members: int, draw: np.uint32) -> bool:
    found = np.uint32(0)
    for i in range(num_members):
        found |= np.uint32(members[i] == draw)
    return bool(found != 0)


def add_quick_votes(
    values: _Ints, subset_size: int, miss: np.uint64, counters: Counters, states: _Words
) -> _Ints:
    """Draw one report per value and count its members: the route for small d.

    Works on chunks of reports, d vectors of draws compared pair by pair, so that nothing but the
    count itself depends on a random address. A report with a repeat is dropped whole and its
    client handed back: the kept reports have the exact law, as rejection sampling gives it.

    Args:
        values: ``(n,) int64``, n below 2**32; those outside [0, s) are handed back, uncounted.
        subset_size: d, below s.
        miss: Probability that a report lacks its client's value, times 2**64.
        counters: Those of s values.
        states: ``(4, LANES) uint64`` of the generator, changed in place.

    Returns:
        ``(m,) int64``: the values whose clients have no report yet, for
        `add_looked_through_votes` once they are known to lie in [0, s).
    """
    retry = np.empty(len(values), dtype=np.int64)
    words = aligned_empty(subset_size * CHUNK // 2, np.uint64)
    coin_words = aligned_empty(CHUNK // 4, np.uint64)
    more_words = aligned_empty(LANES, np.uint64)
    lanes = (
        words.view(np.uint32),
        coin_words.view(np.uint16),
        aligned_empty(CHUNK, np.uint32),
        aligned_empty(CHUNK, np.uint32),
    )
    random = (states, words, coin_words, more_words)
    return retry[: _quick(values, subset_size, miss, counters, retry, random, lanes)]


@compiled
def _quick(
    values: _Ints,
    subset_size: int,
    miss: np.uint64,
    counters: Counters,
    retry: _Ints,
    random: tuple[_Words, _Words, _Words, _Words],
    lanes: tuple[_Halves, _Coins, _Halves, _Halves],
) -> int:
    states, words, coin_words, more_words = random
    draws, coins, own, flags = lanes
    counts, overflows = counters
    num_values = np.uint64(len(counts) - 1)
    spare = np.uint32(num_values)
    # Sixteen bits settle a coin but for one case in 65,536; then 48 more bits do.
    coarse = np.uint16(miss >> np.uint64(48))
    fine = miss << np.uint64(16)
    num_retry = 0
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        for i in range(len(chunk)):
            own[i] = np.uint32(min(np.uint64(chunk[i]), num_values))
        own[len(chunk) :] = spare
        fill_words(states, words)
        fill_words(states, coin_words)
        bound_in_place(draws, num_values)
        _flag_failures(draws, own, subset_size, spare, flags)
        _place_own(draws, own, coins, coarse, flags)
        for block in range(0, CHUNK, _SCAN):
            seen = np.uint32(0)
            for i in range(_SCAN):
                seen |= flags[block + i]
            if seen == 0:
                continue
            for i in range(block, block + _SCAN):
                if flags[i] == 0:
                    continue
                if flags[i] & _UNDECIDED:
                    fill_words(states, more_words)
                    if more_words[0] << np.uint64(16) >= fine:
                        draws[i] = own[i]
                if flags[i] & _FAILED:
                    draws[i::CHUNK] = spare
                    if i < len(chunk):
                        retry[num_retry] = chunk[i]
                        num_retry += 1
        for draw in draws:
            _count(counts, overflows, draw)
    return num_retry


@subroutine
def _flag_failures(
    draws: _Halves, own: _Halves, subset_size: int, spare: np.uint32, flags: _Halves
) -> None:
    """Flag reports with a rejected draw, a repeat, or the client's own value; or without any.

    Every draw is compared, also the one that the coin may replace: a report's failure must not
    depend on its coin, or the reports kept would favor one side of it.
    """
    for i in range(CHUNK):
        absent = (draws[i] == spare) | (own[i] == spare)
        flags[i] = np.uint32(absent | (draws[i] == own[i]))
    for row in range(1, subset_size):
        here = draws[row * CHUNK : (row + 1) * CHUNK]
        for i in range(CHUNK):
            flags[i] |= np.uint32((here[i] == spare) | (here[i] == own[i]))
        for earlier in range(row):
            there = draws[earlier * CHUNK : (earlier + 1) * CHUNK]
            for i in range(CHUNK):
                flags[i] |= np.uint32(here[i] == there[i])


@subroutine
def _place_own(
    draws: _Halves, own: _Halves, coins: _Coins, coarse: np.uint16, flags: _Halves
) -> None:
    """Put the client's value in place of its report's first member where the coin is heads."""
    for i in range(CHUNK):
        coin = np.uint32(coins[i])
        flags[i] |= np.uint32(coin == coarse) * _UNDECIDED
        # Both operands are read first: a conditional load keeps the loop from vector code.
        value, draw = own[i], draws[i]
        draws[i] = value if coin > coarse else draw


@compiled
def draw_subsets(
    values: _Ints, domain_size: int, miss: np.uint64, reports: _Ints, state: _Words
) -> None:
    """Fill each row of ``reports`` with one report, in the order of drawing.

    Repeats are found in a hash set of O(d) places, so that no step costs O(s).

    Args:
        values: ``(n,) int64`` in [0, domain_size), n below 2**32.
        domain_size: s, below 2**32.
        miss: Probability that a report lacks its client's value, times 2**64.
        reports: ``(n, d) int64``, d below s.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    num_reports, subset_size = reports.shape
    bits = 2
    while (1 << bits) < 2 * (subset_size + 1):
        bits += 1
    seen = np.zeros(1 << bits, dtype=np.uint64)
    mask = np.uint64((1 << bits) - 1)
    shift = np.uint64(64 - bits)
    for row in range(num_reports):
        # A place whose stamp is older than this row's is empty.
        stamp = np.uint64(row + 1) << np.uint64(32)
        value = np.uint64(values[row])
        filled = 0
        if next_uint64(state) >= miss:
            reports[row, 0] = values[row]
            filled = 1
        other = value
        while True:
            # The client's own value enters the set first, so it is never one of the others.
            place = (other * np.uint64(0x9E3779B97F4A7C15)) >> shift
            entry = stamp | other
            while seen[place] != entry and seen[place] >= stamp:
                place = (place + _ONE) & mask
            if seen[place] != entry:
                seen[place] = entry
                if other != value:
                    reports[row, filled] = np.int64(other)
                    filled += 1
            if filled == subset_size:
                break
            other = next_below(state, np.uint64(domain_size))
