"""Optimized local hashing: local hashing into the number of cells that has the least noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.oracles.local_hashing import HASH_RANGE, LocalHashing
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class OptimizedLocalHashing(LocalHashing):
    """Optimized local hashing: local hashing into g = round(e**epsilon) + 1 cells.

    With E = e**epsilon, the report is a fresh public hash function and the value's cell under it,
    with probability p = E / (E + g - 1), or one of the others; q = 1/g. Functions, guarantees and
    costs are those of `fedhh.oracles.local_hashing.LocalHashing`.

    V0 = q(1-q) / (p-q)**2, which is 4 E / (E - 1)**2 at g = E + 1: that of optimized unary
    encoding, in a report whose size does not depend on the domain's.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    def _check_epsilon(self) -> None:
        super()._check_epsilon()
        if self.epsilon > math.log(HASH_RANGE // 2):
            raise InputError(
                f"Expected epsilon <= {math.log(HASH_RANGE // 2):.2f} for local hashing, got "
                f"epsilon={self.epsilon!r}; its cells would outnumber its hashes, use grr or ss."
            )

    @property
    def num_cells(self) -> int:
        """Number of cells g: the whole number nearest to e**epsilon, plus 1."""
        return round(math.exp(self.epsilon)) + 1
