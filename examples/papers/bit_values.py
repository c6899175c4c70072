"""Clients who hold one 48-bit value each, with the published counts of a search log.

The log is AOL's, cut to the first six bytes of each query: `query_6bytes_sorted.txt.gz` in the
folder pem of github.com/vvv214/LDP_Protocols. It is what people searched for, so it is not part of
fedhh. `SearchLog` reads it from the current directory; `RandomBits` and `TextBits` are stand-ins
with its number of clients and of values, and the counts of five ranks: between those, and beyond
the last, counts follow power laws. Fewer clients are a random sample.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from fedhh import InputError
from fedhh.clients.clients import Clients, Table
from fedhh.clients.wordfreq_tail import ranked_words
from fedhh.random import scatter
from fedhh.words.lexicon import Lexicon

BITS = 48
CLIENTS, VALUES = 657_427, 120_978
COUNTS = {1: 18_720, 2: 12_292, 3: 6_132, 32: 1_243, 64: 865}  # by rank
FILE = "query_6bytes_sorted.txt.gz"


def interpolated_counts() -> np.ndarray:
    """Return how often each value occurs, the most frequent first.

    Beyond the last rank the power is the one that gives the total; counts are rounded down, at
    least 1, and what rounding lost is put back one by one, from the first rank beyond.
    """
    ranks, known = np.arange(1, VALUES + 1), np.array(list(COUNTS))
    heights = np.array(list(COUNTS.values()))
    last = known[-1]
    head = np.rint(np.exp(np.interp(np.log(ranks[:last]), np.log(known), np.log(heights))))
    rest = CLIENTS - int(head.sum())

    def tail(power: float) -> np.ndarray:
        return np.maximum(heights[-1] * (ranks[last:] / last) ** -power, 1.0)

    counts = np.floor(tail(brentq(lambda x: tail(x).sum() - rest, 0.1, 5.0))).astype(np.int64)
    counts[: rest - int(counts.sum())] += 1
    return np.concatenate([head.astype(np.int64), counts])


def random_values() -> list[int]:
    draws = scatter(np.arange(1, 2 * VALUES + 1, dtype=np.uint64)) >> np.uint64(64 - BITS)
    _, first = np.unique(draws, return_index=True)
    return draws[np.sort(first)][:VALUES].tolist()


def text_values() -> list[int]:
    """Return the first six bytes of wordfreq's English words by frequency, filled up by blanks."""
    cut = (word.encode()[: BITS // 8].ljust(BITS // 8) for word in ranked_words()[0])
    return [int.from_bytes(each, "big") for each in dict.fromkeys(cut)][:VALUES]


def read_log(path: Path) -> tuple[list[int], np.ndarray]:
    """Return a log's values with their counts: six bytes, a tab and a count in each line."""
    try:
        lines = gzip.decompress(path.read_bytes()).splitlines()
        pairs = [(line[: BITS // 8], int(line[BITS // 8 + 1 :])) for line in lines]
    except (OSError, EOFError, ValueError):
        raise InputError(f"Expected the published log as {FILE}, got {path}.") from None
    pairs.sort(key=lambda pair: -pair[1])
    counts = np.array([count for _, count in pairs], dtype=np.int64)
    ranks = {rank: int(counts[rank - 1]) for rank in COUNTS if rank <= len(counts)}
    if (int(counts.sum()), len({value for value, _ in pairs}), ranks) != (CLIENTS, VALUES, COUNTS):
        raise InputError(f"Expected the published totals and counts in {path}, got others.")
    # The highest bit of the first byte first: the same first letters are the same prefix.
    return [int.from_bytes(value, "big") for value, _ in pairs], counts


class _Bits(Clients):
    def __init__(self, values, counts, num_clients, seed) -> None:
        if num_clients > CLIENTS:
            raise InputError(f"Expected at most {CLIENTS:,} clients, got {num_clients:,}.")
        if num_clients < CLIENTS:
            rng = np.random.default_rng([seed, num_clients])
            chosen = rng.choice(CLIENTS, num_clients, replace=False, shuffle=False)
            counts = np.bincount(
                np.searchsorted(counts.cumsum(), chosen, side="right"), minlength=VALUES
            )
        table = Table(
            Lexicon(words=[f"{value:0{BITS}b}" for value in values]),
            np.arange(num_clients + 1),
            np.repeat(np.arange(VALUES), counts),
            np.ones(num_clients, dtype=np.int64),
        )
        super().__init__(table, name=f"48-bit values, {num_clients:,} clients")


class RandomBits(_Bits):
    def __init__(self, num_clients: int, *, seed: int) -> None:
        super().__init__(random_values(), interpolated_counts(), num_clients, seed)


class TextBits(_Bits):
    def __init__(self, num_clients: int, *, seed: int) -> None:
        super().__init__(text_values(), interpolated_counts(), num_clients, seed)


class SearchLog(_Bits):
    def __init__(self, num_clients: int, *, seed: int) -> None:
        super().__init__(*read_log(Path(FILE)), num_clients, seed)
