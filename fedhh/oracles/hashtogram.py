"""Hashtogram: a count-sketch of which each report is one noisy bit of its Hadamard transform."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.oracles.base import Floats, Values
from fedhh.oracles.hadamard_sketch import HadamardSketch, hadamard_entries
from fedhh.oracles.sketch import Sketch
from fedhh.validation import require_at_least


@dataclass(frozen=True, kw_only=True)
class Hashtogram(HadamardSketch):
    """Hashtogram (Bassily, Nissim, Stemmer, Thakurta 2017), with the mean over rows.

    Each of k rows has a public location hash into m cells and a public sign hash. The client draws
    a row j and a coefficient l of m, takes s_j(value) H[l, h_j(value)], where H is the Hadamard
    matrix of +-1, (-1)**popcount(l & cell), negates it with probability 1 / (1 + e**epsilon), and
    sends the sign, j and l. Location and sign of a row are one three-wise independent function
    into 2 m cells, read as (cell // 2, (-1)**cell).

    A report supports a value if its sign is what the value's client would have said. p is the
    chance that the sign is kept; q is 1/2 over the draw of the functions, since values that share
    a location share a sign with probability 1/2. So the estimate (support - n q) / (p - q) is the
    count-sketch's mean over rows.

    The paper takes the median over rows, which its proof needs. The mean has a known law, and less
    error where the sketch is large: for normal noise, the median's variance is pi / 2 times as
    much. Measured on 100,000 clients, Zipf(1.1) over 5,000 values, epsilon 2, root mean square
    errors of the 100 most frequent values' counts over six draws: 421 by the mean and 515 by the
    median for 64 rows of 4,096 cells, 408 and 499 for 16 of 16,384. In a sketch as small as 8 rows
    of 256, collisions with the most frequent value outweigh the noise, and the median is ahead,
    514 against 619; `row_estimates` has the numbers to take it of.

    Formal guarantees:
        * epsilon-local differential privacy, for any hash functions; the factor e**epsilon is
          reached wherever two values have different signed cells.
        * Estimates are unbiased over the draw of the functions, not for fixed ones.
        * `exact_variance` is the variance over draw and coins.
        * `sample_sketch` has the law of the sketch of fresh reports.

    The noise never falls below one per report, however large epsilon is: one bit cannot say more.

    Report size: 1 + log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).

    A sketch is k m sums of signs by row and coefficient, and then k numbers of reports.

    Attributes:
        num_cells: m, a power of two.

    References:
        Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters",
        NeurIPS (arXiv:1707.04982), section 4 and its algorithm Hashtogram; numbering not verified.
    """

    num_hashes: int = 64
    num_cells: int = 4096

    def __post_init__(self) -> None:
        require_at_least(1, num_cells=self.num_cells)
        super().__post_init__()

    @property
    def row_size(self) -> int:
        """2 m: a hash function maps to a cell and a sign."""
        return 2 * self.num_cells

    @property
    def q(self) -> float:
        """Chance that a report supports another value, over the draw of the hash functions."""
        return 0.5

    def row_estimates(self, sketch: Sketch, candidates: Values) -> Floats:
        """Return ``(k, c) float64``: each row's own estimate of each candidate's count.

        Their mean is `estimate`, their median the paper's.
        """
        candidates = self.check_values(candidates, "candidates")
        cells = self._agreement(sketch[None])[0]
        scale = self.num_hashes / (self.p - self.flip_probability)
        rows = np.arange(self.num_hashes)
        own = np.stack([self.hashes.cells(np.full(len(candidates), j), candidates) for j in rows])
        return np.asarray(scale * np.take_along_axis(cells, own, axis=1), dtype=np.float64)

    def collision_variance(self, count: npt.ArrayLike) -> Floats:
        """Return ``c (c - 1) / (k m)``: pairs that share a row, and their location with others.

        See `exact_variance`: two clients who hold one other value agree on a third value's sign
        together if they share the row and the location, and are independent otherwise.
        """
        count = np.asarray(count, dtype=np.float64)
        pairs = count * np.maximum(count - 1, 0)
        return np.asarray(pairs / (self.num_hashes * self.num_cells), dtype=np.float64)

    def _signs(self, coefficients: Values, cells: Values) -> npt.NDArray[np.int64]:
        """Return what a client says before noise, of its location and sign."""
        return hadamard_entries(coefficients, cells // 2) * (1 - 2 * (cells & 1))

    def _agreement(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, 2 m)``: reports that agree with each signed cell, less the others."""
        tables = self._transformed(sketches)
        signed = np.stack([tables, -tables], axis=-1)
        return signed.reshape(len(sketches), self.num_hashes, self.row_size)
