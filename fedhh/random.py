"""Named random streams: what is drawn depends on the purpose, never on the worker that draws.

A stream is addressed by the run's seed, its purpose, and a path of integers (pass, layer, block
of clients). The same address gives the same bits on one worker or eight, in process or on Ray.

PCG64 and xoshiro256++ are not cryptographic generators: fedhh simulates privacy mechanisms, it
does not protect anyone's data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import numpy as np

from fedhh.arrays import Ints, UInts
from fedhh.validation import require_at_least

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: SplitMix64's step, and a multiplier that scatters."""

# Constants of the module, since a call of np.uint64 takes long to compile.
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Stream(IntEnum):
    """Purposes of randomness. Values are part of what a seed means: append, never renumber."""

    COHORT = 1
    """The order in which clients are asked; fixed once per run."""
    SAMPLING = 2
    """A client's choice of B items; path (pass, layer, block)."""
    RANDOMIZER = 3
    """The local randomizer's coins; path (pass, layer, block)."""
    POPULATION = 4
    """A synthetic population; path chosen by the population."""
    HASHING = 5
    """Hash families that both sides share."""
    TIE_BREAK = 6
    """The fixed rule that orders equal counts; one key per layer."""
    TALLY = 7
    """Tallies drawn without reports; path (pass, layer, part of the tally)."""
    BOOTSTRAP = 8
    """Intervals over seeds, computed after the runs."""
    SUBSAMPLE = 9
    """The users of a file that take part, where not all do."""
    CURATOR = 10
    """Noise of a trusted curator, or of servers together; path (pass, layer)."""
    EVENTS = 11
    """What happens on devices day by day; path (use case, day, block)."""
    QUEUE = 12
    """Which stored records a device sends, and when; path (use case, day, block)."""
    MEMOIZATION = 13
    """Answers that a device draws once and keeps; path (use case, block)."""
    CALENDAR = 14
    """When words rise and fall, and clients come and go; path chosen by the population."""
    INGESTION = 15
    """The order in which an ingestor passes reports on; path (use case, day)."""
    CHECK_IN = 16
    """When devices check in, and which drop out; path (pass, layer, block)."""
    ELIGIBILITY = 17
    """Which devices ever answer; fixed once per run."""
    DROPOUT = 18
    """Which clients drop out after they agreed to answer; path (pass, layer, block)."""
    ADVERSARY = 20
    """Where fake clients stand, the words that they push, and their coins; see fedhh.adversary."""


def generator(seed: int, stream: Stream, *path: int) -> np.random.Generator:
    """Return the generator at an address.

    Args:
        seed: The run's seed, a non-negative integer.
        stream: What the randomness is for.
        *path: Non-negative integers below 2**32 that tell blocks of the same purpose apart.

    >>> a = generator(7, Stream.SAMPLING, 0, 3, 5).integers(100, size=3)
    >>> b = generator(7, Stream.SAMPLING, 0, 3, 5).integers(100, size=3)
    >>> bool((a == b).all())
    True
    """
    require_at_least(0, seed=seed)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *path)))


def kernel_state(rng: np.random.Generator) -> UInts:
    """Return a ``(4,) uint64`` state for a kernel's xoshiro256++ generator, drawn from ``rng``."""
    state = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    # The all-zero state is a fixed point of xoshiro.
    state[0] |= np.uint64(1)
    return state


def scatter(words: UInts) -> UInts:
    """Return SplitMix64's finalizer of each word: a fixed bijection without visible order.

    For fixed rules and tables that must not change with NumPy's generators; kernels compile it for
    one word.
    """
    words = (words ^ (words >> _30)) * _FIRST_FACTOR
    words = (words ^ (words >> _27)) * _SECOND_FACTOR
    return words ^ (words >> _31)


_ROUNDS = 10
"""Of a Feistel network, as in NIST SP 800-38G's FF1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyedPermutation:
    """A permutation of [0, size) that is computed where it is asked for: it needs no memory.

    A Feistel network on the fewest bits that hold every number (at least two): rounds change the
    high half by a keyed function of the low one, then the low half by one of the high one (Luby and
    Rackoff 1988, "How to construct pseudorandom permutations from pseudorandom functions"). What
    falls outside goes through the network again until it falls inside (Black and Rogaway 2002,
    "Ciphers with arbitrary finite domains", cycle walking): less than twice in the mean for more
    than two numbers. The keyed function is `scatter` of half plus key, which is not cryptographic.

    Attributes:
        size: How many numbers are permuted, at most 2**62.
        keys: ``(rounds,) uint64``.
    """

    size: int
    keys: UInts

    @classmethod
    def draw(cls, size: int, *, rng: np.random.Generator) -> Self:
        """Return a permutation with fresh keys."""
        require_at_least(1, size=size)
        return cls(size=size, keys=rng.integers(0, 2**64, size=_ROUNDS, dtype=np.uint64))

    def at(self, positions: Ints) -> Ints:
        """Return ``(n,) int64``: the number at each of ``(n,)`` positions in [0, size)."""
        numbers = self._mixed(positions.astype(np.uint64))
        while (outside := np.flatnonzero(numbers >= self.size)).size:
            numbers[outside] = self._mixed(numbers[outside])
        return numbers.astype(np.int64)

    def _mixed(self, numbers: UInts) -> UInts:
        bits = max(2, (self.size - 1).bit_length())
        low_bits, high_bits = np.uint64(bits // 2), np.uint64(bits - bits // 2)
        low_mask, high_mask = (
            (np.uint64(1) << each) - np.uint64(1) for each in (low_bits, high_bits)
        )
        low, high = numbers & low_mask, numbers >> low_bits
        for into_high, into_low in zip(self.keys[::2], self.keys[1::2], strict=True):
            high ^= scatter(low + into_high) & high_mask
            low ^= scatter(high + into_low) & low_mask
        return (high << np.uint64(low_bits)) | low
