"""Binary local hashing: one noisy bit, the value's hash under a function of the report's own."""

from __future__ import annotations

from dataclasses import dataclass

from fedhh.oracles.local_hashing import LocalHashing


@dataclass(frozen=True, kw_only=True)
class BinaryLocalHashing(LocalHashing):
    """Binary local hashing: local hashing into g = 2 cells.

    With E = e**epsilon, the report is a fresh public hash function to one bit and the value's bit
    under it, flipped with probability 1 / (E + 1): p = E / (E + 1), q = 1/2. Functions, guarantees
    and costs are those of `fedhh.oracles.local_hashing.LocalHashing`.

    V0 = (E + 1)**2 / (E - 1)**2, never below 1 however large epsilon is: one bit cannot say more.
    It is that of Bassily and Smith's oracle without its collisions, since no two clients share a
    function.

    References:
        Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms", STOC.
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4, where it has its name.
    """

    @property
    def num_cells(self) -> int:
        """2, the values of a bit."""
        return 2
