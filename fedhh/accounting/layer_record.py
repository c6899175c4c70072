"""What accounting has to know about one layer of a run."""

from __future__ import annotations

from dataclasses import dataclass

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
