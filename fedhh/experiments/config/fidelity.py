"""How faithfully a run simulates its clients, and what its result says about that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedhh.protocol import AnyProtocol
from fedhh.simulation.approximate import ApproximateExecutor
from fedhh.simulation.executor import Executor
from fedhh.validation import InputError, require_choice

PER_REPORT = "per-report"
APPROXIMATE_TALLY = "approximate-tally"


def check_fidelity(protocol: type[AnyProtocol], fidelity: str) -> None:
    """Raise InputError if a protocol's tallies cannot be drawn from true counts, but should be."""
    if fidelity == APPROXIMATE_TALLY and not protocol.counts_values:
        raise InputError(
            f"Expected simulation.fidelity = {PER_REPORT!r} for {protocol.name}, got "
            f"{APPROXIMATE_TALLY!r}: its tallies cannot be drawn from true counts."
        )


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """A run's fidelity.

    Attributes:
        name: "per-report": every client randomizes every contribution. "approximate-tally": see
            `fedhh.simulation.approximate`.
        drawn_clients: For approximate tallies, the most clients of a layer that are drawn.
    """

    name: str = PER_REPORT
    drawn_clients: int = 1_000_000

    def __post_init__(self) -> None:
        require_choice((PER_REPORT, APPROXIMATE_TALLY), fidelity=self.name)

    def wrap(self, executor: Executor, *, seed: int) -> Executor:
        """Return the executor that answers with this fidelity."""
        if self.name == PER_REPORT:
            return executor
        return ApproximateExecutor(executor, seed=seed, drawn_clients=self.drawn_clients)

    def facts(self, cohorts: Sequence[int]) -> dict[str, Any]:
        """Return what a result states, given the sizes of the layers' cohorts."""
        if self.name == PER_REPORT:
            return {"fidelity": self.name}
        largest = max(cohorts, default=0)
        drawn = min(largest, self.drawn_clients)
        return {
            "fidelity": self.name,
            "tally": "independent binomials for each value: exact law of each, no dependence",
            "clients_drawn_per_layer": drawn,
            # Of a true count c of a layer, from drawing only some of its clients.
            "count_std_error_per_sqrt_count": (largest / drawn - 1) ** 0.5 if drawn else 0.0,
        }
