"""Subset Selection's votes where a report has few members: chunks of reports in vector code.

Reports have the distribution of the other routes, and arguments are theirs: see `votes`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LANES, aligned_empty, bound_in_place, fill_words
from fedhh.kernels.votes import Counters, count_vote

_Words = npt.NDArray[np.uint64]
_Halves = npt.NDArray[np.uint32]
_Coins = npt.NDArray[np.uint16]
_Ints = npt.NDArray[np.int64]

CHUNK = 2048
# Flags are looked at in blocks of so many, and those of a block with any in blocks of so few.
_SCAN = 128
_FEW = 16
_UNFLAGGED = np.uint32(0)
_FAILED = np.uint32(1)
_UNDECIDED = np.uint32(2)


def add_quick_votes(
    values: _Ints, subset_size: int, miss: np.uint64, counters: Counters, states: _Words
) -> _Ints:
    """Draw one report per value and count its members: the route for small d.

    Works on chunks of reports, d vectors of draws compared pair by pair, so that nothing but the
    count itself depends on a random address. A report with a repeat is dropped whole and its
    client handed back: the kept reports have the exact distribution, as rejection sampling gives
        it.

    Returns:
        ``(m,) int64``: the values whose clients have no report yet, for
        `votes.add_looked_through_votes` once they are known to lie in [0, s): values outside are
        handed back, uncounted.
    """
    retry = np.empty(len(values), dtype=np.int64)
    # One array for all, since to align one takes as long as hundreds of votes: a chunk's draws and
    # its coins, which are filled at once, a few words more, and what the kernel writes down.
    num_draw_words, num_coin_words = subset_size * CHUNK // 2, CHUNK // 4
    random_end = num_draw_words + num_coin_words
    room = aligned_empty(random_end + LANES + CHUNK, np.uint64)
    words, rest = room[:random_end], room[random_end:]
    draw_words, coin_words = words[:num_draw_words], words[num_draw_words:]
    notes = rest[LANES:].view(np.uint32)
    lanes = (
        draw_words.view(np.uint32),
        coin_words.view(np.uint16),
        notes[:CHUNK],
        notes[CHUNK:],
    )
    random = (states, words, draw_words, rest[:LANES])
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
    states, words, draw_words, more_words = random
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
        fill_words(states, words)
        bound_in_place(draw_words, num_values)
        _read_values(chunk, draws, num_values, own, flags)
        _flag_failures(draws, own, len(chunk), subset_size, spare, flags)
        _place_own(draws, own, coins, coarse, flags)
        for block in range(0, CHUNK, _SCAN):
            seen = _UNFLAGGED
            for i in range(_SCAN):
                seen |= flags[block + i]
            if seen == 0:
                continue
            for few in range(block, block + _SCAN, _FEW):
                seen = _UNFLAGGED
                for i in range(few, few + _FEW):
                    seen |= flags[i]
                if seen == 0:
                    continue
                for i in range(few, few + _FEW):
                    if flags[i] & _UNDECIDED:
                        fill_words(states, more_words)
                        if more_words[0] << np.uint64(16) >= fine:
                            draws[i] = own[i]
                    if flags[i] & _FAILED:
                        draws[i::CHUNK] = spare
                        retry[num_retry] = chunk[i]
                        num_retry += 1
        for draw in draws:
            count_vote(counts, overflows, draw)
    return num_retry


@subroutine
def _read_values(
    chunk: _Ints, draws: _Halves, num_values: np.uint64, own: _Halves, flags: _Halves
) -> None:
    """Read the clients' values, and flag reports that fail by them or by their first draw."""
    spare = np.uint32(num_values)
    for i in range(len(chunk)):
        value, draw = np.uint32(min(np.uint64(chunk[i]), num_values)), draws[i]
        own[i] = value
        flags[i] = np.uint32((draw == spare) | (value == spare) | (draw == value))
    for i in range(len(chunk), CHUNK):
        own[i] = spare


@subroutine
def _flag_failures(
    draws: _Halves,
    own: _Halves,
    num_clients: int,
    subset_size: int,
    spare: np.uint32,
    flags: _Halves,
) -> None:
    """Flag also reports that fail by a later draw: rejected, a repeat, or the client's value.

    Every draw is compared, also the one that the coin may replace: a report's failure must not
    depend on its coin, or the reports kept would favor one side of it.
    """
    for row in range(1, subset_size):
        here = draws[row * CHUNK : (row + 1) * CHUNK]
        for i in range(CHUNK):
            flags[i] |= np.uint32((here[i] == spare) | (here[i] == own[i]))
        for earlier in range(row):
            there = draws[earlier * CHUNK : (earlier + 1) * CHUNK]
            for i in range(CHUNK):
                flags[i] |= np.uint32(here[i] == there[i])
    # Beyond the last client there is nothing to count, and nobody to hand back.
    for i in range(num_clients, CHUNK):
        draws[i::CHUNK] = spare
        flags[i] = _UNFLAGGED


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
