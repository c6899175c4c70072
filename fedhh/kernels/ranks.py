"""Long-tailed distributions of ranks 1, 2, ..., and fast draws of those that a client adopts.

One alias table holds both the ranks that have a column of their own and, beyond them, groups of
ranks that grow with the rank. A draw of a group is a uniform rank of it, accepted with the ratio of
the two ranks' weights, which is at least (1 + 1/16)^-a: so the distribution is exact, and no draw
needs a power but where a quadratic squeeze leaves it open.

Sources: alias tables by Vose (1991), "A linear algorithm for generating random numbers with a given
distribution", IEEE TSE 17; squeezed rejection by Devroye (1986), "Non-Uniform Random Variate
Generation", section II.3.
"""

from __future__ import annotations

import bisect
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats, Ints, SmallInts, UInts
from fedhh.kernels.cache import compiled
from fedhh.kernels.prng import U0, U1, U11, U64, advance, mix
from fedhh.random import GOLDEN

_GROUPS_PER_RANK = 16

STUBS = 100**2
"""Ways to begin with two syllables; a coded word's is its number modulo this."""
_STUBS = np.uint64(STUBS)

MAX_RANK = 2**53
"""Ranks stay below: float64 holds no larger integer exactly. The distribution is cut there."""

BATCH = 512
"""Most candidates that are drawn before they are looked at."""


class RankTable(NamedTuple):
    """A distribution of ranks, ready to draw from.

    Attributes:
        entries: ``(2**bits,) uint64``: the upper bits say how much of a column is its own, as a
            fraction of ``2**(64 - bits)``; the lower ``bits`` whose the rest is.
        starts: ``(2**bits,) int64``: the first rank of each column.
        widths: ``(2**bits,) float64``: its number of ranks.
        bits: Logarithm of the number of columns.
        tail_exponent: Within a column, rank r weighs r to the minus this.
        singles: So many columns at the beginning hold one rank each: column c the rank c + 1.
    """

    entries: UInts
    starts: Ints
    widths: Floats
    bits: int
    tail_exponent: float
    singles: int = 0


def rank_table(head: Floats, *, tail_scale: float, tail_exponent: float) -> RankTable:
    """Return the table of a distribution.

    Args:
        head: ``(h,) float64``: weights of the ranks 1 to h, h at least 16.
        tail_scale: A rank r above h, up to `MAX_RANK`, weighs ``tail_scale`` ...
        tail_exponent: ... times r to the minus this.
    """
    bits = int(len(head) + len(_group_starts(len(head) + 1)) - 1).bit_length()
    # As many ranks of the tail as there is room for get a column of their own. With each of them,
    # there is at most one group less, so the number of columns never falls.
    own = len(head) + bisect.bisect_right(
        range(len(head) + 1, 2**bits + 1),
        2**bits,
        key=lambda ranks: ranks + len(_group_starts(ranks + 1)),
    )
    groups = _group_starts(own + 1)
    starts = np.r_[np.arange(1, own + 1), groups]
    widths = np.r_[np.ones(own), np.diff(np.r_[groups, MAX_RANK])]
    tail = tail_scale * starts[len(head) :].astype(np.float64) ** -tail_exponent
    weights = np.r_[head, tail * widths[len(head) :]]
    empty = 2**bits - len(weights)
    cuts, aliases = alias_table(np.r_[weights, np.zeros(empty)])
    whole = 2 ** (64 - bits)
    # A full column falls to itself also in the one case that its fraction cannot express.
    own_part = np.minimum(np.rint(cuts * whole), whole - 1).astype(np.uint64)
    return RankTable(
        entries=(own_part << np.uint64(bits)) | aliases.astype(np.uint64),
        starts=np.r_[starts, np.ones(empty, dtype=np.int64)],
        widths=np.r_[widths, np.ones(empty)],
        bits=bits,
        tail_exponent=float(tail_exponent),
        singles=own,
    )


def alias_table(weights: Floats) -> tuple[Floats, SmallInts]:
    """Return the ``(n,)`` cuts and aliases of a distribution with these weights, zeros last.

    A column is drawn uniformly; a float below its cut says itself, another one its alias: Walker
    (1977), "An efficient method for generating discrete random variables with general
    distributions", ACM TOMS 3(3), with columns filled as Vose (1991) does.
    """
    columns: tuple[Floats, SmallInts]
    columns = _alias_columns(weights * (len(weights) / weights.sum()))
    return columns


@compiled
def _alias_columns(left: Floats) -> Any:
    size = len(left)
    cuts = np.ones(size)
    aliases = np.arange(size).astype(np.int32)
    poor = np.empty(size, dtype=np.int64)
    rich = np.empty(size, dtype=np.int64)
    num_poor, num_rich = 0, 0
    for column in range(size):
        if left[column] < 1.0:
            poor[num_poor] = column
            num_poor += 1
        else:
            rich[num_rich] = column
            num_rich += 1
    # Taken from the end: columns of weight zero are settled before rounding can leave them over.
    while num_poor and num_rich:
        num_poor -= 1
        taker, giver = poor[num_poor], rich[num_rich - 1]
        cuts[taker] = left[taker]
        aliases[taker] = giver
        left[giver] -= 1.0 - left[taker]
        if left[giver] < 1.0:
            num_rich -= 1
            poor[num_poor] = giver
            num_poor += 1
    return cuts, aliases


def _group_starts(first: int) -> Ints:
    """Return the first ranks of groups that together hold the ranks from ``first`` on."""
    starts = []
    while first < MAX_RANK:
        starts.append(first)
        first += max(1, first // _GROUPS_PER_RANK)
    return np.array(starts, dtype=np.int64)


@compiled
def draw_adopted(
    state: UInts,
    table: RankTable,
    adoption_key: Any,
    adoption: float,
    out: Ints,
    size: int,
    candidates: Ints,
) -> None:
    """Fill ``out[:size]`` with independent ranks, given that the client adopts them.

    Candidates are drawn many at a time, in loops without a branch, so that a processor works on
    several of them at once; most are not adopted.

    Args:
        table: The distribution of ranks.
        adoption_key: Which ranks are adopted: those whose hash with it, as a float, is below
        adoption: this share.
        out: ``(>= size,) int64``.
        size: How many ranks to draw.
        candidates: ``(4, BATCH + 1) int64`` to work in.
    """
    bits = np.uint64(table.bits)
    shift = U64 - bits
    column_mask = (U1 << bits) - U1
    fraction_mask = (U1 << shift) - U1
    columns, words, ranks, listed = candidates[0], candidates[1], candidates[2], candidates[3]
    exponent = table.tail_exponent
    entries, starts, widths = table.entries, table.starts, table.widths
    # Most columns hold one rank, which needs no look-up: all of them share the last one's.
    singles = np.uint64(table.singles)
    last_single = np.uint64(max(table.singles - 1, 0))
    # As integers, k * 2**-53 < adoption is k < ceil(adoption * 2**53): the product is exact.
    adopted_below = np.uint64(math.ceil(adoption * 2.0**53))
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    filled = 0
    while filled < size:
        number = min(BATCH, 4 * (size - filled) + 8)
        groups = U0
        for i in range(number):
            word, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            other, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            drawn = word >> shift
            entry = entries[drawn]
            column = drawn if word & fraction_mask < entry >> bits else entry & column_mask
            columns[i] = np.int64(column)
            ranks[i] = np.int64(column + U1)
            words[i] = np.int64(other >> U11)
            listed[groups] = i
            groups += np.uint64(column >= singles)
        for j in range(groups):
            place = np.uint64(listed[j])
            column = np.uint64(columns[place])
            inside = np.float64(words[place]) * 2.0**-53
            ranks[place] = starts[column] + np.int64(widths[column] * inside)
        # By itself, this loop becomes vector code.
        for i in range(number):
            scattered = mix(adoption_key + np.uint64(ranks[i]) * GOLDEN)
            words[i] = np.int64(scattered >> U11 < adopted_below)
        adopted = U0
        for i in range(number):
            listed[adopted] = i
            adopted += np.uint64(words[i])
        for j in range(adopted):
            if filled == size:
                break
            place = np.uint64(listed[j])
            rank = ranks[place]
            start = min(starts[max(np.uint64(columns[place]), last_single)], rank)
            # A column of one rank has x = 0, and passes as all others do: without a branch.
            x = np.float64(rank) / np.float64(start) - 1.0
            word, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            u = np.float64(word >> U11) * 2.0**-53
            # (1 + x)^-a lies between its Taylor polynomials of degree one and two.
            line = 1.0 - exponent * x
            if u >= line and (
                u >= line + 0.5 * exponent * (exponent + 1.0) * x * x or u >= (1.0 + x) ** -exponent
            ):
                continue
            out[np.uint64(filled)] = rank
            filled += 1
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@compiled
def list_words(
    offsets: Ints,
    ranks: Ints,
    counts: SmallInts,
    listed: int,
    named: int,
    ends: Ints,
    words: SmallInts,
) -> np.int64:
    """Give clients' rows a word for each rank, and one stub for many ranks of the tail.

    Args:
        offsets: ``(n + 1,) int64`` rows of each client.
        ranks: ``(rows,) int64`` from 1, distinct within a client.
        counts: ``(rows,) int32``; in the end, those of the words.
        listed: Ranks up to here have the word ``rank - 1``; a rank beyond has the stub ...
        named: ... ``(rank - named - 1) % STUBS``, whose word is ``listed`` and more.
        ends: ``(n + 1,) int64``: the new offsets, of which the first is 0.
        words: ``(rows,) int32``, distinct within a client; may lie in the memory of ``ranks``, of
            which it needs none any more.

    Returns:
        How many rows there are.
    """
    last_row = np.full(STUBS, -1, dtype=np.int32)
    size = U0
    ends[0] = 0
    for client in range(len(offsets) - 1):
        first = np.int64(size)
        for i in range(np.uint64(offsets[client]), np.uint64(offsets[client + 1])):
            word, count = ranks[i] - 1, counts[i]
            if word >= listed:
                stub = np.uint64(word - named) % _STUBS
                row = last_row[stub]
                if row >= first:
                    counts[np.uint64(row)] += count
                    continue
                last_row[stub] = np.int32(size)
                word = listed + np.int64(stub)
            words[size] = np.int32(word)
            counts[size] = count
            size += U1
        ends[client + 1] = np.int64(size)
    return np.int64(size)


@compiled
def count_rows(
    word_ids: SmallInts,
    counts: SmallInts,
    totals: npt.NDArray[np.signedinteger[Any]],
) -> None:
    """Add a block's rows to ``(V, 2) int64`` totals: contributions, and clients.

    Args:
        word_ids: ``(rows,) int32``, distinct within a client.
        counts: ``(rows,) int32``.
        totals: Changed in place.
    """
    for i in range(len(word_ids)):
        # Unsigned, so that no negative index has to be provided for.
        word = np.uint64(word_ids[i])
        totals[word, 0] += counts[i]
        totals[word, 1] += 1
