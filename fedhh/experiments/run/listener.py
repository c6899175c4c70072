"""Who follows a run: the command line's progress, the live page, or nobody."""

from __future__ import annotations

from typing import Protocol

from fedhh.clients.populations.population import Population
from fedhh.experiments.run.heard_round import HeardRound
from fedhh.experiments.run.layers import LayerRow
from fedhh.protocol import AnyProtocol


class Listener(Protocol):
    """Follows a run; the command line shows what it hears."""

    def count(self, counted: int, of: int) -> None:
        """Hear on how many clients the true words have been counted, where that takes a pass."""

    def start(self, protocol: AnyProtocol, population: Population, clients_done: int) -> None:
        """Hear that clients are about to be asked, some perhaps before a resume."""

    def advance(self, num_clients: int) -> None:
        """Hear that some clients have answered."""

    def hear(self, heard: HeardRound) -> None:
        """Hear what became of a round's candidates, of a run in a directory; its row follows."""

    def finish_round(self, layer: LayerRow) -> None:
        """Hear a finished round's row of the layers table."""


class Silence:
    """A listener that does nothing."""

    def count(self, counted: int, of: int) -> None:
        """Ignore."""

    def start(self, protocol: AnyProtocol, population: Population, clients_done: int) -> None:
        """Ignore."""

    def advance(self, num_clients: int) -> None:
        """Ignore."""

    def hear(self, heard: HeardRound) -> None:
        """Ignore."""

    def finish_round(self, layer: LayerRow) -> None:
        """Ignore."""
