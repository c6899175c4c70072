"""Bassily and Smith's one-bit oracle: a noisy sign of the value's row of a public random matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Values
from fedhh.oracles.local_hashing import HashedResponseOracle
from fedhh.oracles.sampling import SampledAggregates
from fedhh.oracles.sketch import Sketch

# Nanoseconds on one core: a report's coin and its sum, and the coins of a row of the sketch.
_COIN_NS = 20.0
_ROW_NS = 350.0


@dataclass(frozen=True, kw_only=True)
class BassilySmith(SampledAggregates, HashedResponseOracle):
    """The frequency oracle of Bassily and Smith (2015, Algorithm 4), on one random projection.

    The public matrix has a sign, -1 or +1, for each of s values and each of k coordinates. The
    client draws a coordinate and sends it with its value's sign there, negated with probability
    1 / (e**epsilon + 1). Here coordinates are rows, signs are the two cells of a row, and a
    report supports the values that have the sign sent: p = e**epsilon / (e**epsilon + 1) and, over
    the draw of the matrix, q = 1/2. The paper's estimate, the scaled inner product of the mean
    report and the value's row, is (support - n q) / (p - q).

    The paper draws all signs independently. Here a coordinate's are one polynomial's, three-wise
    independent: what the variance needs, and k numbers in place of s k.

    Formal guarantees:
        * epsilon-local differential privacy, for any matrix; the factor e**epsilon is reached
          wherever two values differ in a sign.
        * Estimates are unbiased over the draw of the matrix, not for a fixed one.
        * V0 = (e**epsilon + 1)**2 / (e**epsilon - 1)**2, never below 1 however large epsilon is:
          one bit cannot say more. To it, c clients of another, equal value add c (c - 1) / k
          (`exact_variance`).
        * `sample_aggregate` draws from the distribution of the sketch of fresh reports.

    Report size: log2 k + 1 bits. Cost: O(1) per report, O(k) per candidate, memory O(k).

    Attributes:
        num_hashes: k, the paper's m: coordinates of the projection.

    References:
        Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms",
        STOC, Algorithms 1 and 4.
    """

    @property
    def row_size(self) -> int:
        """2, the signs."""
        return 2

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return how many clients' coordinate and sign each is, before signs are negated; O(n)."""
        values = self._check_values(values)
        out = self._sums(out)
        rows = self._draw_rows(len(values), rng)
        out += np.bincount(
            rows * self.row_size + self.hashes.cells(rows, values), minlength=self.aggregate_size
        )
        return out

    def sample_aggregate(self, counts: Sketch, *, rng: np.random.Generator) -> Sketch:
        """Return the sketch of reports, drawn with the exact distribution; O(k).

        Given the coordinates, signs are negated independently: each of c clients' count keeps
        Bin(c, p) of them, and its coordinate's other count has the rest.
        """
        kept = rng.binomial(counts, self.p).reshape(-1, 2)
        moved = counts.reshape(-1, 2) - kept
        sketch: Sketch = (kept + moved[:, ::-1]).ravel()
        return sketch

    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        # O(k c) for c values.
        return self.sample_aggregate(self._cell_counts(true_counts, rng).ravel(), rng=rng)

    def _nanoseconds_saved(self, num_reports: int) -> float:
        # By k and the number of reports.
        return num_reports * _COIN_NS - self.num_hashes * _ROW_NS
