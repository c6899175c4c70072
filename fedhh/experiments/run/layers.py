"""The row of a run's layers table: what the server knows of a round, and what a simulator sees."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from fedhh.experiments.config.fidelity import layer_fidelity
from fedhh.experiments.run.truth import Observed
from fedhh.plans.base import Plan
from fedhh.protocol import RoundSummary
from fedhh.queries.base import Diagnostics
from fedhh.settings import described


@dataclass(frozen=True, kw_only=True)
class LayerRow(RoundSummary):
    """A row of the table: `RoundSummary` and the columns below.

    The table's ``pass`` is ``pass_index + 1``, and its ``subset_size`` is 0 where there is none.

    Attributes:
        subset_size: Values in a report, where a report is a set of values.
        dummies: Contributions that were the dummy.
        clients_with_items: Clients that held a candidate.
        coverage: Share of contributions for words found so far.
        missed_mass: Share for words that were still in the trie, and neither kept nor found in
            this round; NaN for protocols without a trie.
        fidelity: "per-report", or "exact-tally" if the tally was drawn at once.
    """

    subset_size: int | None
    dummies: int
    clients_with_items: int
    coverage: float
    missed_mass: float
    fidelity: str

    @classmethod
    def of(
        cls, summary: RoundSummary, plan: Plan, diagnostics: Diagnostics, observed: Observed
    ) -> LayerRow:
        return cls(
            **asdict(summary),
            subset_size=plan.values_per_report(summary.domain_size),
            dummies=diagnostics.num_dummies,
            clients_with_items=diagnostics.num_clients_with_items,
            coverage=observed.coverage,
            missed_mass=observed.missed_mass,
            fidelity=layer_fidelity(diagnostics.is_sampled),
        )

    @property
    def note(self) -> str:
        """What the layer decided, in a line."""
        # Other rules do not go by one number of votes.
        by_votes = self.kept_by in {"votes", "threshold"}
        rule = f"with {self.threshold:,} votes or more" if by_votes else "kept"
        # It comes at the end where the true words are counted while clients answer.
        covered = "" if math.isnan(self.coverage) else f", coverage {self.coverage:.1%}"
        counts = f"{self.num_reports:,} reports, {self.num_candidates:,} prefixes"
        return f"{counts}, {self.num_kept:,} {rule}{covered}"

    def columns(self) -> dict[str, Any]:
        """Return the table's row: the server's columns, whether the layer decided, and the rest."""
        values = {**asdict(self), "pass": self.pass_index + 1, "decides": self.decides}
        values["subset_size"] = self.subset_size or 0
        return {name: values[name] for name in column_texts()}


def column_texts() -> dict[str, str]:
    """Return what each column of the table is, by name, in order."""
    texts = described(LayerRow)
    names = [field.name for field in fields(LayerRow)]
    server = [field.name for field in fields(RoundSummary)]
    own = [name for name in names if name not in server and name != "subset_size"]
    server.insert(server.index("domain_size") + 1, "subset_size")
    shown = {
        "pass_index": ("pass", "Which pass, from 1."),
        "subset_size": ("subset_size", "Values in a report, where it is a set of values; else 0."),
    }
    columns = [shown.get(name, (name, texts.get(name, ""))) for name in server]
    decides = ("decides", "Whether the layer dropped a candidate; its votes mean something then.")
    return dict([*columns, decides, *((name, texts.get(name, "")) for name in own)])
