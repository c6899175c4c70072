"""The rounds that a claim is about: those of the plan, or those that took place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE
from fedhh.accounting.layer_record import LayerRecord
from fedhh.mechanisms.local_reports import LocalReports


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What has to be known about a run to account for it.

    Attributes:
        mechanism: How clients report, and the plan.
        layers: The rounds that the plan has (a lost client is left out), or those that took place.
        delta: Central target.
        realised: Whether these are the rounds that took place.
    """

    mechanism: LocalReports
    layers: tuple[LayerRecord, ...]
    delta: float
    realised: bool = False

    @classmethod
    def planned(
        cls, mechanism: LocalReports, records: Sequence[LayerRecord], *, delta: float
    ) -> RunFacts:
        """Return every round of the plan, whether or not it took place.

        Args:
            mechanism: How clients report.
            records: What took part so far; a round with fewer answers than planned counts with
                those.
            delta: Central target.
        """
        arrived = {(each.pass_index, each.layer): each.num_clients for each in records}
        layers = []
        for each in mechanism.layers:
            clients = arrived.get((each.pass_index + 1, each.layer), each.num_clients)
            clients = min(clients, each.num_clients)
            layers.append(
                LayerRecord(
                    pass_index=each.pass_index + 1,
                    layer=each.layer,
                    num_clients=clients,
                    num_reports=clients * mechanism.max_items,
                    domain_size=each.largest_domain,
                    num_kept=0,
                    decides=False,
                )
            )
        return cls(mechanism=mechanism, layers=tuple(layers), delta=delta)

    @property
    def uses(self) -> int:
        """Most layers in which one client may take part."""
        return self.mechanism.most_rounds_per_client

    @property
    def local_epsilon(self) -> float:
        """Privacy of one contribution, math.inf without a randomizer."""
        return self.mechanism.local_epsilon

    @property
    def max_items(self) -> int:
        """B, most contributions of one client in one layer."""
        return self.mechanism.max_items

    @property
    def padded(self) -> bool:
        """Whether every client sent exactly B reports."""
        return self.mechanism.padded

    @property
    def domains_vary(self) -> bool:
        """Whether votes decide how large the domain of a later layer is."""
        planned = self.mechanism.layers
        return any(each.smallest_domain < each.largest_domain for each in planned)

    @property
    def is_subset_selection(self) -> bool:
        """Whether a contribution is one report of Subset Selection, as in Sun et al. (2024)."""
        return self.mechanism.is_subset_selection

    @property
    def cohort(self) -> int:
        """Fewest clients in one layer."""
        return min(record.num_clients for record in self.layers)

    @property
    def same_size(self) -> str:
        """What must be assumed of neighbors if the number of a client's reports tells of it."""
        return "" if self.padded else "; neighbors send equally many reports"

    @property
    def reports(self) -> int:
        """Fewest reports in one layer, cut to what the bounds are computed for."""
        return min(NUM_REPORTS_RANGE[1], *(record.num_reports for record in self.layers))
