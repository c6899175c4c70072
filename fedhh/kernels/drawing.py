"""Draws the words of synthetic clients, each client from its own stream.

A client's stream is xoshiro256++ started by SplitMix64 from the population's key and the client's
number (the seeding that Blackman and Vigna 2021 recommend). So any client can be drawn alone, in
any block and on any worker, and types the same words.

Exact draws, apart from the 53 bits of a float: normals by Box and Muller (1958); Poisson numbers by
inversion below a mean of 10 and by PTRS above (Hormann 1993, "The transformed rejection method for
generating Poisson random variables", Insurance: Mathematics and Economics 12); ranks as
`fedhh.kernels.ranks` says.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from fedhh.arrays import Bools, Ints, SmallInts, UInts
from fedhh.kernels.cache import compiled
from fedhh.kernels.prng import U0, U1, U11, U32, advance, mix, next_float
from fedhh.kernels.ranks import BATCH, RankTable, draw_adopted
from fedhh.kernels.sampling import slot_count
from fedhh.random import GOLDEN

_INVERSION_BELOW = 10.0
# More than what rounding moves a chance or its bounds by; they are at most 1.
_ROUNDING = 1e-14


class TypingDistribution(NamedTuple):
    """How many words a client types, which of them are new, and when it repeats itself.

    Attributes:
        log_mean: Mean of the logarithm of the number of words, from ``min_words`` to ``max_words``.
        log_sd: Its standard deviation.
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


@compiled
def count_tokens(keys: UInts, clients: Ints, distribution: TypingDistribution) -> Ints:
    """Return ``(n,) int64``: how many new words each client types, repetitions included.

    Args:
        keys: ``(2,) uint64``: the population's key of streams, and its key of adoption. A third
            key is that of a time: how many words a client types and which share of them is new
            stay those of the first two, and what it types is drawn from a stream of that time.
        clients: ``(n,) int64`` client numbers.
        distribution: How clients type.
    """
    state = np.empty(4, dtype=np.uint64)
    tokens = np.empty(len(clients), dtype=np.int64)
    for i in range(len(clients)):
        tokens[i] = _begin(state, keys, clients[i], distribution)[0]
    return tokens


@compiled
def draw_ranks(
    keys: UInts, clients: Ints, distribution: TypingDistribution, table: RankTable
) -> tuple[Ints, Ints, SmallInts]:
    """Return the ranks that each client types, and how often.

    Word j of a client's new words stands at about word j / share of all its words: there, it is
    fresh with probability (1 + j / (share k))^-b, and otherwise a copy of a uniformly random
    earlier one. A fresh word is drawn from the table until it is one that the client adopts.

    Args:
        keys: ``(2,) or (3,) uint64``, as in `count_tokens`.
        clients: ``(n,) int64`` client numbers.
        distribution: How clients type.
        table: The distribution of ranks.

    Returns:
        ``(n + 1,) int64`` offsets, ``(rows,) int64`` ranks in [1, MAX_RANK), distinct within a
        client and in the order in which it first typed them, and ``(rows,) int32`` counts. Both
        begin arrays with room for as many rows as words.
    """
    num_clients = len(clients)
    tokens = np.empty(num_clients, dtype=np.int64)
    shares = np.empty(num_clients, dtype=np.float64)
    states = np.empty((num_clients, 4), dtype=np.uint64)
    total, most = 0, 0
    for i in range(num_clients):
        tokens[i], shares[i] = _begin(states[i], keys, clients[i], distribution)
        total += tokens[i]
        most = max(most, tokens[i])
    offsets = np.empty(num_clients + 1, dtype=np.int64)
    offsets[0] = 0
    ranks = np.empty(total, dtype=np.int64)
    counts = np.empty(total, dtype=np.int32)
    is_fresh = np.empty(most, dtype=np.bool_)
    fresh_ranks = np.empty(most, dtype=np.int64)
    fresh_rows = np.empty(most + 1, dtype=np.int32)
    row_of = np.empty(most, dtype=np.int32)
    slots = np.empty(slot_count(most), dtype=np.int32)
    candidates = np.empty((4, BATCH + 1), dtype=np.int64)
    rows = 0
    for i in range(num_clients):
        state = states[i]
        adoption_key = mix(keys[1] + np.uint64(clients[i]) * GOLDEN)
        stretched = shares[i] * distribution.copy_scale
        num_fresh = _choose_fresh(state, tokens[i], stretched, distribution.copy_exponent, is_fresh)
        draw_adopted(
            state, table, adoption_key, distribution.adoption, fresh_ranks, num_fresh, candidates
        )
        first = rows
        rows += _number_rows(fresh_ranks[:num_fresh], slots, fresh_rows, ranks[first:])
        counts[first:rows] = 0
        _count_rows(state, is_fresh[: tokens[i]], fresh_rows, row_of, counts[first:])
        offsets[i + 1] = rows
    return offsets, ranks[:rows], counts[:rows]


@compiled
def _begin(state: UInts, keys: UInts, client: int, distribution: TypingDistribution) -> Any:
    """Start a client's stream, and return its number of new words and their share of all."""
    seed_client(state, keys[0], client)
    words, share = typed_words(state, distribution)
    if len(keys) > 2:
        seed_client(state, keys[2], client)
    return new_words(state, distribution, words, share), share


@compiled
def _choose_fresh(
    state: UInts, num_tokens: int, stretched: float, exponent: float, is_fresh: Bools
) -> int:
    """Say of each word whether it is a fresh draw, and return how many are."""
    num_fresh = 0
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    # The chance f falls with j, and is convex: from word a to word a + h, it lies below its chord,
    # by at most f''(a) i (h - i) / 2 at word a + i. That decides for most words. A branch on which
    # side of the chord a word lies would often be guessed wrong; one on the distance seldom is.
    start, end, least = 0, 1, 1.0
    while start < num_tokens:
        most, least = least, (1.0 + end / stretched) ** -exponent
        length = end - start
        slope = (least - most) / length
        away = stretched + start
        half = 0.25 * exponent * (exponent + 1.0) * most / (away * away) * (length * length // 4)
        middle = most - half
        half += _ROUNDING
        for j in range(start, min(end, num_tokens)):
            word, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            u = np.float64(word >> U11) * 2.0**-53
            above = u - (middle + slope * (j - start))
            fresh = above < 0.0
            if abs(above) <= half:
                fresh = u < (1.0 + j / stretched) ** -exponent
            is_fresh[j] = fresh
            num_fresh += int(fresh)
        start, end = end, 2 * end
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return num_fresh


@compiled
def _number_rows(
    fresh_ranks: Ints, slots: SmallInts, fresh_rows: SmallInts, ranks: Ints
) -> np.int64:
    """Number the distinct ones among some ranks from 0, in their order; return how many they are.

    Rows are found by hashed rank: at least half of the slots stay free, -1. Whether a rank is new
    is hard to guess, so there is no branch on it: it is written as the next row, and a free slot
    says just that row.
    """
    mask = np.uint64(slot_count(len(fresh_ranks)) - 1)
    slots[: mask + U1] = -1
    rows = U0
    for j in range(len(fresh_ranks)):
        rank = fresh_ranks[j]
        ranks[rows] = rank
        slot = (np.uint64(rank) * GOLDEN) >> U32 & mask
        row = rows if slots[slot] < 0 else np.uint64(slots[slot])
        while ranks[row] != rank:
            slot = (slot + U1) & mask
            row = rows if slots[slot] < 0 else np.uint64(slots[slot])
        slots[slot] = np.int32(row)
        fresh_rows[j] = np.int32(row)
        rows += np.uint64(row == rows)
    return np.int64(rows)


@compiled
def _count_rows(
    state: UInts, is_fresh: Bools, fresh_rows: SmallInts, row_of: SmallInts, counts: SmallInts
) -> None:
    """Count each word's row: the next fresh one, or that of a uniformly random earlier word.

    Which of the two is as random as a coin, so both are looked up and no branch has to guess.
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    drawn = U0
    for j in range(len(is_fresh)):
        word, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
        earlier = np.int64(np.float64(word >> U11) * 2.0**-53 * j)
        copied, new = row_of[np.uint64(earlier)], fresh_rows[drawn]
        row = new if is_fresh[j] else copied
        drawn += np.uint64(is_fresh[j])
        row_of[j] = row
        counts[np.uint64(row)] += 1
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@numba.njit(inline="always")
def seed_client(state: UInts, key: Any, client: Any) -> None:
    """Start a client's stream: four outputs of SplitMix64, whose start is the hashed client."""
    counter = mix(key + np.uint64(client) * GOLDEN)
    for word in range(4):
        counter += GOLDEN
        state[word] = mix(counter)


@numba.njit(inline="always")
def typed_words(state: UInts, distribution: TypingDistribution) -> Any:
    """Return a client's number of words, and its share of new ones, at most 1."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_float(state)))
    angle = 2.0 * math.pi * next_float(state)
    words = np.rint(
        math.exp(distribution.log_mean + distribution.log_sd * radius * math.cos(angle))
    )
    words = min(max(words, distribution.min_words), distribution.max_words)
    share = math.exp(
        distribution.log_share_mean + distribution.log_share_sd * radius * math.sin(angle)
    )
    return words, min(share, 1.0)


@numba.njit(inline="always")
def new_words(state: UInts, distribution: TypingDistribution, words: Any, share: Any) -> Any:
    """Return how many of a client's words are new: all, where nobody types any other word."""
    if distribution.log_share_mean == 0.0 and distribution.log_share_sd == 0.0:
        return np.int64(words)
    return poisson(state, words * share)


@compiled
def poisson(state: UInts, mean: float) -> Any:
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
