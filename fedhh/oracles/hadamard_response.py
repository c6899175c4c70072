"""Hadamard response: a report is one symbol, likelier from its value's half of a block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.kernels.reports import draw_hadamard_responses
from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import LARGEST_TALLY, Floats, Reports, Tally, Values
from fedhh.oracles.families import CountedOutputs, Moments, ScoredOracle
from fedhh.oracles.hadamard_sketches import hadamard_entries
from fedhh.random import Stream, generator, kernel_state
from fedhh.validation import InputError, require_at_least


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(CountedOutputs, ScoredOracle):
    """Hadamard response (Acharya, Sun, Zhang 2019, section 5).

    With E = e**epsilon and s values, outputs lie in blocks of b, a power of two. Each value has a
    row of the Hadamard matrix of order b, not the first, in one of the blocks; a block holds b - 1
    values. The report is an output y with probability E / Z if y is in the half of the value's
    block where its row is +1, otherwise 1 / Z; Z = (b/2) (E - 1) + K for K outputs in all. b is the
    least power of two above s / B + 1, B = 2**floor(log2 min(E, 2 s)), about s / E: the half-block
    then gets a constant share of all probability. Up to E = 2 there is one block.

    The server scores a value +1 for reports in its half of its block, -1 for those in the other
    half, 0 for all others: all scores follow from one Walsh-Hadamard transform of each block.

    Formal guarantees:
        * epsilon-local differential privacy: E is reached.
        * Estimates are unbiased, wherever values have their rows.
        * `exact_variance` is the variance for the rows at hand: reports of values in the same block
          make (b/2) (E + 1) / b times as much noise as those of other blocks. So no variance
          follows from a value's count alone, and p and q do not exist. `variance` is the exact mean
          over the public random placement of values in rows.

    V0 is 1.5 to 2.8 times Subset Selection's for epsilon from 1 to 10 and s from 100 to 10**6,
    mostly about twice; below epsilon ln 2 it is that of one bit, (E + 1)**2 / (E - 1)**2.

    Report size: log2 K bits. Cost: O(1) per report, O(K log b) for all values, O(s) memory.

    Attributes:
        placement_seed: Seed of the public placement of values in rows; clients and server must
            agree on it.

    References:
        Acharya, Sun, Zhang (2019), "Hadamard response: estimating distributions privately,
        efficiently, and with little communication", AISTATS, Algorithms 1 and 2.
    """

    has_public_coins: ClassVar[bool] = True

    placement_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(0, placement_seed=self.placement_seed)
        if self.aggregate_size > LARGEST_TALLY:
            raise InputError(
                f"Expected at most {LARGEST_TALLY} outputs of hadamard response, got "
                f"{self.aggregate_size} for domain_size={self.domain_size}; use olh."
            )

    @cached_property
    def block_size(self) -> int:
        """Outputs of a block, b."""
        # Beyond 2 s, e**epsilon says no more, and might not be a float.
        most = math.log2(2 * self.domain_size)
        blocks = 2 ** math.floor(min(self.epsilon / math.log(2), most))
        return int(2 ** math.ceil(math.log2(self.domain_size / blocks + 1)))

    @property
    def aggregate_size(self) -> int:
        return self.block_size * -(-self.domain_size // (self.block_size - 1))

    @property
    def _own_share(self) -> float:
        """Share of a report's distribution that is uniform over its value's half-block."""
        half, outputs = self.block_size / 2, self.aggregate_size
        bound = half * -math.expm1(-self.epsilon)
        return bound / (bound + outputs * math.exp(-self.epsilon))

    @cached_property
    def symbols(self) -> Values:
        """The public placement, ``(s,) int64``: b times each value's block, and its row."""
        rng = generator(self.placement_seed, Stream.HASHING, self.domain_size, self.block_size)
        places = rng.permutation(self.domain_size)
        blocks, rows = np.divmod(places, self.block_size - 1)
        return np.asarray(blocks * self.block_size + rows + 1, dtype=np.int64)

    @property
    def held(self) -> Moments:
        share = self._own_share
        in_block = share + (1 - share) * self.block_size / self.aggregate_size
        return Moments(mean=share, variance=in_block - share**2)

    @property
    def other(self) -> Moments:
        """Moments of a report's score of another value, over the placement; its mean is 0."""
        full, rest = divmod(self.domain_size, self.block_size - 1)
        others = full * (self.block_size - 1) * (self.block_size - 2) + rest * (rest - 1)
        together = others / (self.domain_size * (self.domain_size - 1))
        free = (1 - self._own_share) * self.block_size / self.aggregate_size
        return Moments(mean=0.0, variance=free + self._own_share * together)

    def exact_variance(self, true_counts: Values) -> Floats:
        """Return the exact variance of every value's estimate, for the placement at hand.

        ``true_counts``, ``(domain_size,) int64``, says how many clients hold each value.
        """
        counts = np.asarray(true_counts, dtype=np.float64)
        blocks = self.symbols // self.block_size
        together = np.bincount(blocks, weights=counts)[blocks] - counts
        free = (1 - self._own_share) * self.block_size / self.aggregate_size
        scores = counts * self.held.variance + (counts.sum() - counts) * free
        return np.asarray((scores + together * self._own_share) / self.held.mean**2)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        symbols = self.symbols[self._check_values(values)]
        reports = np.empty(len(symbols), dtype=np.int64)
        sizes = self.block_size, self.aggregate_size
        draw_hadamard_responses(symbols, *sizes, self._own_share, reports, kernel_state(rng))
        return reports

    def _support(self, aggregates: Tally, candidates: Values | None) -> Tally:
        # A value's score: reports in its half of its block, less those in the other half.
        symbols = self.symbols if candidates is None else self.symbols[candidates]
        scores = aggregates.copy()
        hadamard_rows(scores.reshape(-1, self.block_size))
        return np.asarray(scores[:, symbols])

    def log_prob(self, reports: Reports, value: int) -> Floats:
        block, row = divmod(int(self.symbols[value]), self.block_size)
        columns = (reports % self.block_size).astype(np.int64)
        entries = hadamard_entries(np.full(len(reports), row), columns)
        in_half = (reports // self.block_size == block) & (entries == 1)
        half, outputs = self.block_size / 2, self.aggregate_size
        # ln Z, less epsilon.
        total = math.log(half * -math.expm1(-self.epsilon) + outputs * math.exp(-self.epsilon))
        return np.where(in_half, 0.0, -self.epsilon) - total
