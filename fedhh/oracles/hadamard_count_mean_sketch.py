"""Hadamard Count Mean Sketch: a report is one noisy bit of the hashed value's Hadamard row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.kernels.packed_reports import signs_supporting
from fedhh.oracles.base import Floats, Reports, Tally, Values
from fedhh.oracles.hadamard_sketch import HadamardSketch, hadamard_entries
from fedhh.oracles.sketch import MeanSketchOracle, Sketch


@dataclass(frozen=True, kw_only=True)
class HadamardCountMeanSketch(HadamardSketch, MeanSketchOracle):
    """Hadamard Count Mean Sketch (Apple 2017, Algorithms 5 to 7).

    The client draws a row j of k and a coefficient l of m, takes the entry H[l, h_j(value)] of the
    Hadamard matrix of +-1, (-1)**popcount(l & cell), and negates it with probability
    1 / (1 + e**epsilon). It sends the sign, j and l.

    A report supports a value if its sign is H[l, h_j(value)]. p is the chance that the sign is
    kept and, over the draw of the functions, q = p/m + (1 - 1/m)/2. The paper's estimate is
    (support - n q) / (p - q).

    Formal guarantees:
        * epsilon-local differential privacy, for any hash functions; the factor e**epsilon is
          reached wherever two values have different cells.
        * Estimates are unbiased over the draw of the functions, not for fixed ones.
        * `exact_variance` is the variance over draw and coins; `published_variance`, the paper's
          Theorem 4.4, bounds it from above.
        * `sample_sketch` has the law of the sketch of fresh reports.

    The noise never falls below one per report, however large epsilon is: one bit cannot say more.

    Report size: 1 + log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).

    A sketch is k m sums of signs by row and coefficient, and then k numbers of reports.

    Attributes:
        num_cells: m, a power of two.

    References:
        Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.2 and
        appendix B.
    """

    @cached_property
    def q(self) -> float:
        """Chance that a report supports another value, over the draw of the hash functions."""
        return 0.5 + (self.p - 0.5) / self.num_cells

    def mean_sketch(self, sketch: Sketch) -> Floats:
        """Return the paper's matrix M, ``(k, m) float64``: Algorithm 7, from the integer sums."""
        scale = 1 / (self.p - self.flip_probability)
        return np.asarray(self.num_hashes * scale * self._transformed(sketch[None])[0])

    def published_variance(self, true_counts: Values) -> Floats:
        """Return the paper's Theorem 4.4 for every value of a histogram, an upper bound."""
        return self._published_variance(true_counts, 1 / (self.p - self.flip_probability) ** 2)

    def _supporters_among(self, reports: Reports, candidates: Values) -> Tally:
        supporters: Tally = signs_supporting(
            self.hashes.coefficients, self.num_cells, reports, candidates
        )
        return supporters

    def _signs(self, coefficients: Values, cells: Values) -> npt.NDArray[np.int64]:
        """Return the Hadamard entries of cells."""
        return hadamard_entries(coefficients, cells)

    def _agreement(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, m)``: reports that agree with each cell, less those that do not."""
        return self._transformed(sketches)
