"""What every mechanism says: which rounds a run may have, and what a client puts into one."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PlannedLayer:
    """A round that a run may have, by what is known of it before the run.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer of the pass, from 1.
        num_clients: Clients to be asked.
        smallest_domain: Fewest values that the layer's randomizer may have, the dummy included.
        largest_domain: Most values that it may have.
    """

    pass_index: int
    layer: int
    num_clients: int
    smallest_domain: int
    largest_domain: int


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """How a run treats its clients' data. `fedhh.accounting.account` goes by the value's type.

    Attributes:
        layers: Every round that a run may have, in order; it may stop earlier.
        max_items: B, contributions of a client in a round at most.
        padded: Whether every client sends exactly as many reports as any other.
        reuses_clients: Whether a client may serve in several rounds.
    """

    layers: tuple[PlannedLayer, ...]
    max_items: int = 1
    padded: bool = True
    reuses_clients: bool = False

    @property
    def local_epsilon(self) -> float:
        """Local privacy of one contribution (item level); infinite without any."""
        return math.inf

    @property
    def most_rounds_per_client(self) -> int:
        """Rounds in which one client takes part, at most."""
        return len(self.layers) if self.reuses_clients else 1

    @property
    def most_answers(self) -> int:
        """Answers of clients that a run collects at most; a client reused counts each time."""
        return sum(layer.num_clients for layer in self.layers)

    @property
    def num_passes(self) -> int:
        """Passes of a run."""
        return 1 + max(layer.pass_index for layer in self.layers)

    def values_per_report(self, domain_size: int) -> int | None:
        """Return d where a report is a set of d values of so large a domain; None otherwise."""
        return None
