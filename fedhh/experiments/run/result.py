"""What a run leaves: words, layers, measures, privacy and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedhh.accounting.guarantees import PrivacyReport
from fedhh.experiments.run.adversary import AdversaryOutcome
from fedhh.experiments.run.calendar import Calendar
from fedhh.experiments.run.candidates import CandidateRecord
from fedhh.experiments.run.metrics import Metrics
from fedhh.protocol import DiscoveryProtocol
from fedhh.validation import printable

if TYPE_CHECKING:
    from fedhh.accounting.guarantees import Trust, Unit


@dataclass(frozen=True, kw_only=True)
class MetricSettings:
    """What a run is measured against; see `fedhh.experiments.config.schema.MetricsConfig`."""

    top_k: tuple[int, ...] = (20, 100, 500)
    min_clients: int | str = "auto"
    significance_z: float = 4.0
    ceiling: bool = False

    def min_clients_of(self, num_clients: int) -> int:
        """Return the least number of holders of a word to find, in a population of this size."""
        if isinstance(self.min_clients, int):
            return self.min_clients
        return max(10, -(-num_clients // 1000))


@dataclass(frozen=True, kw_only=True, eq=False)
class RunResult:
    """What a run found, how good that is, and what it cost.

    Attributes:
        protocol: The settings.
        population: Name, unit and number of clients of the population, and of how many users of a
            file they were drawn, None if of no other.
        seed: The run's seed.
        simulation: How faithfully clients were simulated, see `Fidelity.facts`.
        settings: What the run was measured against.
        discoveries: One row per word, see `metrics.discoveries_table`.
        layers: One row per round, see `layers.LayerRow`.
        metrics: See `metrics.Metrics`.
        privacy: What the run can claim, made from what took part.
        cost: Clients asked, reports, rounds, bits per client.
        candidates: The outcome of candidates, of a run in a directory of a protocol that asks for
            prefixes; else None.
        calendar: How long the run took with its devices; None where all of them always answer.
        adversary: What fake clients, or clients that collude, did; None where all are honest.
        timings: Seconds; the only part that differs between two runs of one seed. "server" is the
            processor time of the protocol's part of "rounds".
    """

    protocol: DiscoveryProtocol
    population: dict[str, Any]
    seed: int
    simulation: dict[str, Any]
    settings: MetricSettings
    discoveries: pd.DataFrame
    layers: pd.DataFrame
    metrics: Metrics
    privacy: PrivacyReport
    cost: dict[str, Any]
    timings: dict[str, float]
    candidates: CandidateRecord | None = None
    calendar: Calendar | None = None
    adversary: AdversaryOutcome | None = None

    @property
    def seconds(self) -> float:
        """What the run took in all; the server's part is in that of the rounds already."""
        return sum(self.timings.values()) - self.timings["server"]

    def dp_event(self, *, unit: Unit = "user", trust: Trust = "local") -> Any:
        """Return the event of dp-accounting that stands for the whole plan of the run.

        A ``dp_accounting.DpEvent``, see `fedhh.accounting.dp_event`; neighbors are replace-one,
        ``NeighboringRelation.REPLACE_ONE``.

        Args:
            unit: "item" or "user".
            trust: "local", what the server reads, or "central", what is published.

        Raises:
            NoDpEventError: dp-accounting has none, as for a shuffle: for "central".
        """
        from fedhh.accounting.dp_event import event_of_plan

        return event_of_plan(self.protocol.plan, unit=unit, trust=trust)

    def __str__(self) -> str:
        """Return the run in a few lines; the rest is in its attributes."""
        from fedhh.experiments.run.sentences import noticed, privacy_sentence, sentence

        lines = [f"{self.protocol.title} on {self.population['name']}", sentence(self)]
        if note := noticed(self):
            lines.append(note)
        if len(self.discoveries):
            lines.append("First words: " + ", ".join(self.discoveries["word"].head(10)))
        return "\n".join(map(printable, [*lines, privacy_sentence(self)]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        numbers = {"coverage": f"{self.metrics.coverage:.1%}"}
        numbers.update({name: f"{value:,.0f}" for name, value in self.cost.items()})
        head = pd.Series(numbers, name=self.population["name"]).to_frame()
        words = self.discoveries.head(20)
        return str(head.to_html() + words.to_html(index=False, float_format="{:,.1f}".format))
