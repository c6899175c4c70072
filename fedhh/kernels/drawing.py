"""Draws the words of synthetic clients, each client from its own stream.

A client's stream is xoshiro256++ started by SplitMix64 from the population's key and the client's
number (the seeding that Blackman and Vigna 2021 recommend). So any client can be drawn alone, in
any block and on any worker, and types the same words.

Exact draws, apart from the 53 bits of a float: normals by Box and Muller (1958); Poisson numbers by
inversion below a mean of 10 and by PTRS above (Hormann 1993, "The transformed rejection method for
generating Poisson random variables", Insurance: Mathematics and Economics 12); ranks of the head by
an alias table (Vose 1991, "A linear algorithm for generating random numbers with a given
distribution", IEEE TSE 17); ranks of the tail by rejection from a continuous power law (Hormann and
Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete distributions",
TOMACS 6).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.prng import mix, next_below, next_float, next_uint64

_Floats = npt.NDArray[np.float64]
_Ids = npt.NDArray[np.int64]
_Keys = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_INVERSION_BELOW = 10.0

MAX_RANK = 2**53
"""Ranks stay below: float64 holds no larger integer exactly. Larger draws are drawn again."""


class TypingLaw(NamedTuple):
    """How many words a client types, which of them are new, and when it repeats itself.

    Attributes:
        log_mean: Mean of the logarithm of the number of words.
        log_sd: Its standard deviation.
        min_words: Fewest words.
        max_words: Most words.
        log_share_mean: Mean of the logarithm of a client's share of new words.
        log_share_sd: Its standard deviation.
        copy_scale: k in the chance (1 + j / k)^-b that word j is a fresh draw.
        copy_exponent: b.
        adoption: Share of all new words that a client can use.
    """

    log_mean: float
    log_sd: float
    min_words: int
    max_words: int
    log_share_mean: float
    log_share_sd: float
    copy_scale: float
    copy_exponent: float
    adoption: float


class RankTable(NamedTuple):
    """A law of ranks 1, 2, ...: an alias table for the head, a power law for the tail.

    Attributes:
        cuts: ``(head + 1,) float64`` in [0, 1]: how much of a column is its own.
        aliases: ``(head + 1,) int64``: whose the rest is. Column i is rank i + 1; the last column
            is the whole tail, ranks above ``head``, at least 16.
        tail_exponent: Ranks r of the tail weigh r to the minus this, which is above 1.
    """

    cuts: _Floats
    aliases: _Ids
    tail_exponent: float


def alias_table(weights: _Floats) -> tuple[_Floats, _Ids]:
    """Return the cuts and aliases (Vose 1991) of a law with these positive weights."""
    size = len(weights)
    scaled = (weights * (size / weights.sum())).tolist()
    cuts = np.ones(size)
    aliases = np.arange(size)
    poor = [i for i in range(size) if scaled[i] < 1]
    rich = [i for i in range(size) if scaled[i] >= 1]
    while poor and rich:
        taker, giver = poor.pop(), rich.pop()
        cuts[taker] = scaled[taker]
        aliases[taker] = giver
        scaled[giver] -= 1 - scaled[taker]
        (poor if scaled[giver] < 1 else rich).append(giver)
    return cuts, aliases


@numba.njit(cache=True, nogil=True, error_model="numpy")
def count_tokens(keys: _Keys, clients: _Ids, law: TypingLaw) -> _Ids:
    """Return how many new words each client types, repetitions included.

    Args:
        keys: ``(2,) uint64``: the population's key of streams, and its key of adoption.
        clients: ``(n,) int64`` client numbers.
        law: How clients type.

    Returns:
        ``(n,) int64``.
    """
    state = np.empty(4, dtype=np.uint64)
    tokens = np.empty(len(clients), dtype=np.int64)
    for i in range(len(clients)):
        seed_client(state, keys[0], clients[i])
        words, share = typed_words(state, law)
        tokens[i] = poisson(state, words * share)
    return tokens


@numba.njit(cache=True, nogil=True, error_model="numpy")
def draw_ranks(
    keys: _Keys, clients: _Ids, law: TypingLaw, table: RankTable, tokens: _Ids
) -> tuple[_Ids, _Ids, npt.NDArray[np.int32]]:
    """Return the ranks that each client types, and how often.

    Word j of a client's new words stands at about word j / share of all its words: there, it is
    fresh with probability (1 + j / (share k))^-b, and otherwise a copy of a uniformly random
    earlier one. A fresh word is drawn from the table until it is one that the client adopts.

    Args:
        keys: ``(2,) uint64``, as in `count_tokens`.
        clients: ``(n,) int64`` client numbers.
        law: How clients type.
        table: The law of ranks.
        tokens: ``(n,) int64``, from `count_tokens`.

    Returns:
        ``(n + 1,) int64`` offsets, ``(rows,) int64`` ranks in [1, MAX_RANK), distinct within a
        client and in the order in which it first typed them, and ``(rows,) int32`` counts.
    """
    offsets = np.zeros(len(clients) + 1, dtype=np.int64)
    ranks = np.empty(tokens.sum(), dtype=np.int64)
    counts = np.empty(len(ranks), dtype=np.int32)
    most = tokens.max() if len(tokens) else 0
    row_of = np.empty(most, dtype=np.int64)
    # A client's rows by hashed rank; at least half of the slots stay free.
    slots = np.empty(_slot_count(most), dtype=np.int64)
    state = np.empty(4, dtype=np.uint64)
    rows = 0
    for i in range(len(clients)):
        seed_client(state, keys[0], clients[i])
        adoption_key = mix(keys[1] + np.uint64(clients[i]) * _GOLDEN)
        words, share = typed_words(state, law)
        num_tokens = poisson(state, words * share)
        stretched = share * law.copy_scale
        surely_fresh = (1 + max(num_tokens - 1, 0) / stretched) ** -law.copy_exponent
        mask = _slot_count(num_tokens) - 1
        slots[: mask + 1] = -1
        for j in range(num_tokens):
            u = next_float(state)
            # The chance falls with j, so most draws are decided without a power.
            if u < surely_fresh or u < (1 + j / stretched) ** -law.copy_exponent:
                rank = _adopted_rank(state, table, adoption_key, law.adoption)
                slot = np.int64(mix(np.uint64(rank)) & np.uint64(mask))
                while slots[slot] >= 0 and ranks[slots[slot]] != rank:
                    slot = (slot + 1) & mask
                if slots[slot] < 0:
                    slots[slot] = rows
                    ranks[rows] = rank
                    counts[rows] = 0
                    rows += 1
                row = slots[slot]
            else:
                row = row_of[next_below(state, np.uint64(j))]
            row_of[j] = row
            counts[row] += 1
        offsets[i + 1] = rows
    return offsets, ranks[:rows].copy(), counts[:rows].copy()


@numba.njit(inline="always")
def _slot_count(num_tokens: Any) -> Any:
    size = 2
    while size < 2 * num_tokens:
        size *= 2
    return size


@numba.njit(inline="always")
def seed_client(state: _Keys, key: Any, client: Any) -> None:
    """Start a client's stream: four outputs of SplitMix64, whose start is the hashed client."""
    counter = mix(key + np.uint64(client) * _GOLDEN)
    for word in range(4):
        counter += _GOLDEN
        state[word] = mix(counter)


@numba.njit(inline="always")
def typed_words(state: _Keys, law: TypingLaw) -> Any:
    """Return a client's number of words, and its share of new ones, at most 1."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_float(state)))
    angle = 2.0 * math.pi * next_float(state)
    words = np.rint(math.exp(law.log_mean + law.log_sd * radius * math.cos(angle)))
    words = min(max(words, law.min_words), law.max_words)
    share = math.exp(law.log_share_mean + law.log_share_sd * radius * math.sin(angle))
    return words, min(share, 1.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def poisson(state: _Keys, mean: float) -> Any:
    """Return a Poisson number with this mean, above 0."""
    if mean < _INVERSION_BELOW:
        number = 0
        chance = math.exp(-mean)
        u = next_float(state)
        # The chances add up to 1 - 2^-53 or so: stop where they no longer matter.
        while u >= chance and number < 100:
            u -= chance
            number += 1
            chance *= mean / number
        return number
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)
    log_mean = math.log(mean)
    while True:
        u = next_float(state) - 0.5
        v = 1.0 - next_float(state)
        us = 0.5 - abs(u)
        if us == 0.0:
            continue
        number = math.floor((2.0 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= v_r:
            return number
        if number < 0 or (us < 0.013 and v > us):
            continue
        log_hat = math.log(v * inverse_alpha / (a / (us * us) + b))
        if log_hat <= number * log_mean - mean - math.lgamma(number + 1.0):
            return number


@numba.njit(inline="always")
def _adopted_rank(state: _Keys, table: RankTable, adoption_key: Any, adoption: float) -> Any:
    while True:
        rank = draw_rank(state, table)
        scattered = mix(adoption_key + np.uint64(rank) * _GOLDEN)
        if np.float64(scattered >> np.uint64(11)) * 2.0**-53 < adoption:
            return rank


@numba.njit(inline="always")
def draw_rank(state: _Keys, table: RankTable) -> Any:
    """Return a rank drawn from the table."""
    head = len(table.cuts) - 1
    column = np.int64(next_below(state, np.uint64(head + 1)))
    if next_float(state) >= table.cuts[column]:
        column = table.aliases[column]
    if column < head:
        return column + 1
    return _tail_rank(state, head, table.tail_exponent)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tail_rank(state: _Keys, head: int, exponent: float) -> Any:
    """Return a rank r above ``head`` with chance proportional to r^-exponent.

    r^-a is convex, so it is at most its integral from r - 1/2 to r + 1/2: a rounded continuous
    draw is accepted with the ratio of the two, which is 1 - O(r^-2).
    """
    a = exponent
    while True:
        # 64 bits: the power stretches the lowest values of u far apart.
        u = (np.float64(next_uint64(state)) + 0.5) * 2.0**-64
        x = (head + 0.5) * u ** (-1.0 / (a - 1.0))
        if x >= MAX_RANK:
            continue
        rank = math.floor(x + 0.5)
        # Series of the integral divided by r^-a; from 17 on its next term is below 1e-12.
        inverse_square = 1.0 / (np.float64(rank) * rank)
        series = 1.0 + (a + 4.0) * (a + 5.0) / 168.0 * inverse_square
        series = 1.0 + (a + 2.0) * (a + 3.0) / 80.0 * inverse_square * series
        series = 1.0 + a * (a + 1.0) / 24.0 * inverse_square * series
        if next_float(state) * series < 1.0:
            return rank
