"""Whom a round asks: positions in a random order of the clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """The clients of one round, as positions in the run's random order of clients.

    Attributes:
        start: First position.
        size: How many clients.
        redraw: None for cohorts that share one order, and so never overlap; otherwise the number
            of a fresh order of all clients, in which a client may have served before.
    """

    start: int
    size: int
    redraw: int | None = None

    @property
    def block_size(self) -> int:
        """Clients per block, the unit of work and of randomness: a function of the size alone."""
        return int(min(max(256, -(-self.size // 64)), 8192))

    @property
    def num_blocks(self) -> int:
        """Number of blocks; the last one may be short."""
        return -(-self.size // self.block_size)

    def block(self, index: int) -> slice:
        """Return the positions of one block."""
        start = self.start + index * self.block_size
        return slice(start, min(start + self.block_size, self.start + self.size))

    def size_of(self, index: int) -> int:
        """Return how many clients one block has."""
        return min(self.block_size, self.size - index * self.block_size)


NOBODY = Cohort(start=0, size=0)
"""Whom a question asks that has no round yet."""
