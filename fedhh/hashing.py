"""Seeded hash functions that clients and server share.

A run's hash functions are public and fixed before anybody reports; claims of the sketching oracles
are over their draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import UInts
from fedhh.kernels.sketches import PRIME, evaluate_strings, hash_pairs
from fedhh.random import Stream, generator
from fedhh.validation import require_at_least

Keys = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]

NUM_KEYS = PRIME
"""Keys are the integers below this prime, 2**61 - 1."""


def derived_seeds(seed: int, count: int) -> list[int]:
    """Return independent seeds for several hash families of one run; questions may carry them.

    They are drawn by `Stream.HASHING`, and no other stream of the run follows from them: who reads
    them can compute no noise, unless by guessing the seed.
    """
    seeds: list[int] = generator(seed, Stream.HASHING).integers(2**63, size=count).tolist()
    return seeds


@dataclass(frozen=True, kw_only=True, eq=False)
class HashFamily:
    """k hash functions from keys into m cells, drawn independently.

    Each is a uniformly random polynomial of degree at most two over the integers modulo
    p = 2**61 - 1: exactly three-wise independent with values uniform modulo p (Wegman and Carter
    1981, "New hash functions and their use in authentication and set equality", JCSS 22(3)). The
    value modulo m is a cell; since m does not divide p, a cell's probability is off 1/m by less
    than 1/p, or by a factor of at most 1 + m/p.

    Attributes:
        coefficients: ``(k, 3) uint64`` below p, lowest degree first.
        num_cells: m.
    """

    coefficients: UInts
    num_cells: int

    @classmethod
    def draw(cls, *, num_hashes: int, num_cells: int, seed: int) -> HashFamily:
        """Return k functions into m cells, drawn from the hashing stream of a seed."""
        require_at_least(1, num_hashes=num_hashes, num_cells=num_cells)
        rng = generator(seed, Stream.HASHING)
        coefficients = rng.integers(PRIME, size=(num_hashes, 3), dtype=np.uint64)
        return cls(coefficients=coefficients, num_cells=num_cells)

    def cells(self, rows: npt.NDArray[np.integer[Any]], keys: Keys) -> Cells:
        """Return ``(n,) int64``: the cell of ``keys[i]`` under hash function ``rows[i]``."""
        cells: Cells = hash_pairs(self.coefficients, self.num_cells, rows, keys)
        return cells


@dataclass(frozen=True, kw_only=True, eq=False)
class StringKeys:
    """Names strings of codes by keys.

    A string of codes c_1 .. c_L gets the value of the polynomial with these coefficients at a
    point, modulo 2**61 - 1. With the alphabet's size as the point, that is the string read as a
    number, and no two strings share a key, as long as A**L fits. For longer strings the point is
    random: two given strings share a key with probability below L / 2**61.

    Attributes:
        point: Where the polynomial is evaluated.
        num_keys: Keys lie below.
    """

    point: int
    num_keys: int

    @classmethod
    def draw(cls, *, alphabet_size: int, length: int, seed: int) -> StringKeys:
        """Return the naming of strings of ``length`` codes in [0, alphabet_size)."""
        if alphabet_size**length <= PRIME:
            return cls(point=alphabet_size, num_keys=alphabet_size**length)
        point = int(generator(seed, Stream.HASHING).integers(1, PRIME))
        return cls(point=point, num_keys=PRIME)

    def keys(self, codes: Codes) -> Keys:
        """Return ``(n,) int64`` in [0, num_keys): the key of each row of ``(n, length)`` codes."""
        keys: Keys = evaluate_strings(np.ascontiguousarray(codes), np.uint64(self.point))
        return keys
