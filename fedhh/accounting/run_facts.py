"""The rounds that a claim is about: those of the plan, or those that took place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE
from fedhh.accounting.local_reports import LocalReports
from fedhh.validation import require_at_least


@dataclass(frozen=True, kw_only=True)
class LayerRecord:
    """What took part in one layer.

    Attributes:
        pass_index: Pass, counted as the run counts.
        layer: Layer within the pass.
        num_clients: Clients whose reports arrived.
        num_reports: Reports that arrived, dummies included.
        domain_size: Values of the oracle, the dummy included.
        num_kept: Candidates that the layer kept.
        decides: Whether it dropped any.
        lost_clients: Clients that were asked but whose reports were lost.
        kept_by: What the candidates were kept by, see `fedhh.protocol.RoundSummary`.
    """

    pass_index: int
    layer: int
    num_clients: int
    num_reports: int
    domain_size: int
    num_kept: int
    decides: bool
    lost_clients: int = 0
    kept_by: str = "votes"

    def __post_init__(self) -> None:
        require_at_least(1, num_clients=self.num_clients, num_reports=self.num_reports)
        require_at_least(2, domain_size=self.domain_size)
        require_at_least(0, num_kept=self.num_kept, lost_clients=self.lost_clients)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What has to be known about a run to account for it.

    Attributes:
        plan: How clients report, and the plan.
        layers: The rounds that the plan has, with the fewest answers that each accepts, or those
            that took place.
        delta: Central target.
        realised: Whether these are the rounds that took place.
    """

    plan: LocalReports
    layers: tuple[LayerRecord, ...]
    delta: float
    realised: bool = False

    @classmethod
    def planned(cls, plan: LocalReports, *, delta: float) -> RunFacts:
        """Return every round of the plan, with the fewest answers that it accepts.

        No round that took place is looked at: a claim before the run is not read from the run.

        Args:
            plan: How clients report.
            delta: Central target.
        """
        layers = tuple(
            LayerRecord(
                pass_index=each.pass_index + 1,
                layer=each.layer,
                num_clients=each.fewest_clients,
                num_reports=each.fewest_clients * plan.max_items,
                domain_size=each.largest_domain,
                num_kept=0,
                decides=False,
            )
            for each in plan.layers
        )
        return cls(plan=plan, layers=layers, delta=delta)

    @property
    def groups(self) -> tuple[RunFacts, ...]:
        """The planned rounds by groups of clients that share none, see `fedhh.accounting.plan`."""
        plans = () if self.realised else self.plan.groups
        if len(plans) <= 1:
            return (self,)
        found, start = [], 0
        for plan in plans:
            layers = self.layers[start : start + len(plan.layers)]
            found.append(replace(self, plan=plan, layers=layers))
            start += len(layers)
        return tuple(found)

    @property
    def uses(self) -> int:
        """Most layers in which one client may take part."""
        return self.plan.most_rounds_per_client

    @property
    def local_epsilon(self) -> float:
        """Privacy of one contribution, math.inf without a randomizer."""
        return self.plan.local_epsilon

    @property
    def domains_vary(self) -> bool:
        """Whether votes decide how large the domain of a later layer is."""
        planned = self.plan.layers
        return any(each.smallest_domain < each.largest_domain for each in planned)

    @property
    def cohort(self) -> int:
        """Fewest clients that hide each other: of a layer, or of an epoch of secret cohorts."""
        return self._fewest_together([record.num_clients for record in self.layers])

    @property
    def same_size(self) -> str:
        """What must be assumed of neighbors if the number of a client's reports tells of it."""
        return "" if self.plan.padded else "; neighbors send equally many reports"

    @property
    def reports(self) -> int:
        """Fewest reports that are shuffled together, cut to what bounds are computed for."""
        numbers = [record.num_reports for record in self.layers]
        return min(NUM_REPORTS_RANGE[1], self._fewest_together(numbers))

    def _fewest_together(self, numbers: Sequence[int]) -> int:
        if not self.plan.hides_epochs:
            return min(numbers)
        ends = list(accumulate((len(rounds) for rounds in self.plan.shuffles), initial=0))
        return min(sum(numbers[start:end]) for start, end in pairwise(ends))
