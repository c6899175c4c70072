"""Clients who hold one 48-bit value each, with the published counts of a search log.

The log is AOL's, cut to the first six bytes of each query: `LOG_SOURCE` has it. It is what people
searched for, so it is not part of fedhh, and nothing but counts and ranks of it is printed. Without
the file there are stand-ins, with five of its ranks, its number of queries and of distinct values
(`published.toml`): between those ranks, and beyond the last, counts follow power laws.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.populations.wordfreq_tail import ranked_words
from fedhh.random import scatter
from fedhh.system.reading import read_bytes
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon

BITS = 48
_DIGITS = 9
"""Of a count in a file."""

Counts = npt.NDArray[np.int64]
Kind = Literal["random", "text"]
"""Of stand-ins."""

LOG_SOURCE = (
    "query_6bytes_sorted.txt.gz in the folder pem of github.com/vvv214/LDP_Protocols (MIT license)"
)


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


def read_log(
    path: Path, *, total: int, distinct: int, ranks: Mapping[int, int]
) -> tuple[tuple[str, ...], Counts]:
    """Return a log's values as text of 48 bits, the most frequent first, with their counts.

    The file has a value of six bytes, a tab and a count in each line. A value's bits begin with the
    highest of its first byte, so that values which begin with the same letters share a prefix.

    Args:
        path: Of the file, gzip if it ends in .gz.
        total: Sum of all counts.
        distinct: Number of values.
        ranks: Counts by rank, from 1.

    Raises:
        InputError: The file is unreadable or has other totals: it is not the published one.
    """
    try:
        lines = read_bytes(path).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Expected a readable log, got {path}: {error}.") from None
    values, numbers = [], []
    for number, line in enumerate(lines, start=1):
        value, _, count = line.rpartition(b"\t")
        if len(value) != BITS // 8 or not count.isdigit() or len(count) > _DIGITS:
            raise InputError(
                f"Expected six bytes, a tab and a count on line {number} of {path}, got another "
                f"line; the published log is {LOG_SOURCE}."
            )
        values.append(int.from_bytes(value, "big"))
        numbers.append(int(count))
    counts = np.array(numbers, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    counts = counts[order]
    got = (
        len(set(values)),
        int(counts.sum()),
        {rank: int(counts[rank - 1]) for rank in ranks if rank <= len(counts)},
    )
    if got != (distinct, total, dict(ranks)):
        raise InputError(
            f"Expected {distinct:,} values with {total:,} clients and the published counts, got "
            f"{got[0]:,} and {got[1]:,} in {path}; the published log is {LOG_SOURCE}."
        )
    return tuple(f"{values[place]:0{BITS}b}" for place in order.tolist()), counts


def bit_population(counts: Counts, kind: Kind) -> StoredPopulation:
    """Return clients of whom ``counts[i]`` hold the i-th value of `bit_strings`."""
    return holders_of_bits(bit_strings(len(counts), kind), counts, name=kind)


def holders_of_bits(values: Sequence[str], counts: Counts, *, name: str) -> StoredPopulation:
    """Return clients of whom ``counts[i]`` hold the i-th value."""
    clients = int(counts.sum())
    return StoredPopulation.from_rows(
        name=f"48-bit values ({name}), {clients:,} clients",
        lexicon=Lexicon(words=values),
        clients=np.arange(clients),
        word_ids=np.repeat(np.arange(len(counts)), counts),
        num_clients=clients,
        unit="query",
    )
