"""How faithfully a run simulates its clients, and what its result says about that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedhh.clients.exact_tally import ExactTallyExecutor, require_sampling
from fedhh.protocol import AnyProtocol
from fedhh.simulation.executor import Executor
from fedhh.validation import InputError, require_choice

AUTO = "auto"
EXACT_TALLY = "exact-tally"
PER_REPORT = "per-report"

MIXED = "mixed"
"""What a result says if some of its layers' tallies were drawn at once, and others by report."""


def layer_fidelity(is_sampled: bool) -> str:
    """Return what a layer's row says, given whether its tally was drawn at once."""
    return EXACT_TALLY if is_sampled else PER_REPORT


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """A run's fidelity.

    Attributes:
        name: "per-report": every client randomizes every contribution. "exact-tally": tallies are
            drawn at once, with the same distribution, see `fedhh.clients.exact_tally`. "auto": each
            layer's in the cheaper way.
        drawn_clients: The most clients of a layer that are drawn; all if None.
    """

    name: str = AUTO
    drawn_clients: int | None = None

    def __post_init__(self) -> None:
        require_choice((AUTO, EXACT_TALLY, PER_REPORT), fidelity=self.name)

    def check(self, protocol: AnyProtocol) -> None:
        """Raise InputError if a settled protocol's clients cannot be simulated in this way."""
        question = protocol.next_question(protocol.initialize())
        if question is None:
            return
        scaled = self.drawn_clients is not None and self.drawn_clients < question.cohort.size
        if self.name == PER_REPORT and scaled:
            raise InputError(
                f"Expected simulation.drawn_clients = 'all' with fidelity {PER_REPORT!r}, got "
                f"{self.drawn_clients:,} of {question.cohort.size:,} clients per layer: clients "
                f"that are not drawn make no reports. Set simulation.fidelity = {EXACT_TALLY!r}."
            )
        try:
            require_sampling(question, always=self.name == EXACT_TALLY, scaled=scaled)
        except InputError as error:
            raise InputError(f"{protocol.name}: {error}") from None

    def wrap(self, executor: Executor, *, seed: int) -> Executor:
        """Return the executor that answers with this fidelity."""
        if self.name == PER_REPORT:
            return executor
        return ExactTallyExecutor(
            executor, seed=seed, always=self.name == EXACT_TALLY, drawn_clients=self.drawn_clients
        )

    def facts(self, cohorts: Sequence[int], chosen: Sequence[str]) -> dict[str, Any]:
        """Return what a result states."""
        kinds = set(chosen)
        name = MIXED if len(kinds) > 1 else next(iter(kinds), self.name)
        facts: dict[str, Any] = {"fidelity": name}
        if EXACT_TALLY in kinds:
            facts["layers_without_reports"] = list(chosen).count(EXACT_TALLY)
        largest = max(cohorts, default=0)
        if self.drawn_clients is not None and self.drawn_clients < largest:
            facts["clients_drawn_per_layer"] = self.drawn_clients
            # Of a true count c of a layer, from drawing only some of its clients.
            facts["count_std_error_per_sqrt_count"] = (largest / self.drawn_clients - 1) ** 0.5
        return facts
