"""What a pipeline's run leaves: rows of its tables, and its losses."""

from __future__ import annotations

from dataclasses import dataclass, field

from fedhh.longitudinal.ledger import LedgerReport, Spending
from fedhh.longitudinal.pipeline.config import PipelineConfig
from fedhh.longitudinal.pipeline.measures import Row


@dataclass(kw_only=True)
class Tables:
    """Rows of a run's tables.

    Attributes:
        days: One for each use case and day.
        values: One for each use case, day and watched value; day 0: all days.
        published: One for each use case, window and published value; window 0: all windows.
        publications: One for each use case and window.
    """

    days: list[Row] = field(default_factory=list)
    values: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    publications: list[Row] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class PipelineResult:
    """What a pipeline learned, and what it cost.

    Attributes:
        config: Its configuration.
        tables: Rows.
        use_cases: One row for each use case, of all days.
        num_opted_in: Devices that took part.
        before: What caps allow a device to lose, whatever happens.
        spent: What devices that opted in lost.
        seconds: Of the run's parts.
    """

    config: PipelineConfig
    tables: Tables
    use_cases: list[Row]
    num_opted_in: int
    before: LedgerReport
    spent: Spending
    seconds: dict[str, float]
