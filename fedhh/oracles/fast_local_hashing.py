"""Fast Local Hashing: optimal local hashing with hash functions from a shared pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.oracles.hashed_response import HashedResponseOracle
from fedhh.validation import require_between

_LARGEST_EPSILON = 20.0


@dataclass(frozen=True, kw_only=True)
class FastLocalHashing(HashedResponseOracle):
    """Fast Local Hashing (Cormode, Maddock, Maple 2021, section 3.4).

    Optimal Local Hashing (Wang et al. 2017) lets every client draw a hash function of its own into
    m = round(e**epsilon) + 1 cells, and randomizes the value's cell by generalized randomized
    response: the cell itself with probability p = e**epsilon / (e**epsilon + m - 1), otherwise one
    of the others. Here the function is one of k public ones, so that reports add up in a table of
    k m counts and a candidate costs O(k), whatever the number of reports.

    A report supports all values that its function sends to the cell sent; q = 1/m over the draw of
    the functions. The variance is that of optimal local hashing, and a share of about
    (number of reports) (sum of squared frequencies) / (4 k) on top (`exact_variance`): k is to be
    large against the number of reports of a typical frequent value. k to infinity is optimal local
    hashing.

    Formal guarantees:
        * epsilon-local differential privacy, for any hash functions; the factor e**epsilon is
          reached wherever two values have different cells.
        * Estimates are unbiased over the draw of the functions, not for fixed ones.
        * `exact_variance` is the variance over draw and coins.
        * `sample_sketch` has the law of the sketch of fresh reports.

    Report size: log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).

    References:
        Cormode, Maddock, Maple (2021), "Frequency estimation under local differential privacy",
        PVLDB 14(11).
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.4.
    """

    def _check_epsilon(self) -> None:
        # Above, the number of cells would not fit any memory, and its exponential no float.
        super()._check_epsilon()
        require_between(0, _LARGEST_EPSILON, epsilon=self.epsilon)

    @property
    def row_size(self) -> int:
        """Number of cells m: round(e**epsilon) + 1."""
        return round(math.exp(self.epsilon)) + 1
