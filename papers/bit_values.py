"""Clients who hold one 48-bit value each, with the published counts of a search log.

The log is AOL's, cut to the first six bytes of each query. It is not part of fedhh; what is public
of its counts is five ranks, the number of queries and the number of distinct values
(`published.toml`). Between those ranks, and beyond the last, counts follow power laws.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.populations.wordfreq_tail import ranked_words
from fedhh.random import scatter
from fedhh.words.lexicon import Lexicon

BITS = 48

Counts = npt.NDArray[np.int64]
Kind = Literal["random", "text"]


def interpolated_counts(anchors: Mapping[int, int], *, total: int, distinct: int) -> Counts:
    """Return how often each value occurs, the most frequent first.

    Between two anchors, a count is a power of the rank. Beyond the last one the power is the one
    that gives the total; counts are rounded down, at least 1, and what rounding lost is put back
    one by one, from the first rank beyond the last anchor.

    Args:
        anchors: Counts by rank, from 1.
        total: Sum of all counts.
        distinct: Number of values.

    Returns:
        ``(distinct,) int64``.
    """
    ranks = np.arange(1, distinct + 1)
    known = np.array(sorted(anchors))
    last = int(known[-1])
    heights = np.array([anchors[int(rank)] for rank in known])
    head = np.exp(np.interp(np.log(ranks[:last]), np.log(known), np.log(heights)))
    head = np.rint(head).astype(np.int64)
    rest = total - int(head.sum())
    beyond = ranks[last:] / last

    def tail(power: float) -> npt.NDArray[np.float64]:
        return np.asarray(np.maximum(heights[-1] * beyond**-power, 1.0))

    power = brentq(lambda x: float(tail(x).sum()) - rest, 0.1, 5.0)
    counts = np.floor(tail(power)).astype(np.int64)
    counts[: rest - int(counts.sum())] += 1
    return np.concatenate([head, counts])


def bit_strings(number: int, kind: Kind) -> tuple[str, ...]:
    """Return distinct values of 48 bits as text, the most frequent first.

    Args:
        number: How many.
        kind: "random": random bits, the same for every seed. "text": the first six bytes of
            wordfreq's English words by frequency, filled up with blanks.
    """
    if kind == "random":
        draws = scatter(np.arange(1, 2 * number + 1, dtype=np.uint64)) >> np.uint64(64 - BITS)
        _, first = np.unique(draws, return_index=True)
        values = draws[np.sort(first)][:number].tolist()
    else:
        words, _ = ranked_words()
        cut = (word.encode()[: BITS // 8].ljust(BITS // 8) for word in words)
        values = [int.from_bytes(each, "big") for each in dict.fromkeys(cut)][:number]
    return tuple(f"{value:0{BITS}b}" for value in values)


def bit_population(counts: Counts, kind: Kind) -> StoredPopulation:
    """Return clients of whom ``counts[i]`` hold the i-th value of `bit_strings`."""
    clients = int(counts.sum())
    return StoredPopulation.from_rows(
        name=f"48-bit values ({kind}), {clients:,} clients",
        lexicon=Lexicon(words=bit_strings(len(counts), kind)),
        clients=np.arange(clients),
        word_ids=np.repeat(np.arange(len(counts)), counts),
        num_clients=clients,
        unit="query",
    )
