"""The row of a run's layers table: what the server knows of a round, and what a simulator sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from fedhh.accounting.plan import Plan
from fedhh.experiments.run.truth import Observed
from fedhh.protocol import RoundSummary
from fedhh.questions.answer import Attendance, Diagnostics
from fedhh.settings import described
from fedhh.simulation.fidelity import EXACT_TALLY, PER_REPORT

OF_DEVICES = (
    *("opened_hours", "closed_hours", "waited_hours"),
    *("clients_asked", "clients_eligible", "clients_dropped", "least_clients"),
)
"""Columns of runs with `[devices]` alone."""
OF_FAKES = ("fake_clients", "fake_reports")
"""Columns of runs with fake clients alone."""


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
        opened_hours: Only where devices are not always there (``[devices]``): when the round began,
            in hours since the first one did.
        closed_hours: Likewise when it ended.
        waited_hours: Likewise how long of that it waited beyond its deadline for its least answers.
        clients_asked: Likewise clients of the cohort, of which ``num_clients`` answered.
        clients_eligible: Likewise those of them whose devices ever answer.
        clients_dropped: Likewise devices that checked in before the end, and dropped out.
        least_clients: Likewise the fewest answers that the round accepts.
        fake_clients: Only where clients are fake (``[adversary]``): how many of ``num_clients``.
        fake_reports: Likewise how many of ``num_reports`` are theirs.
    """

    subset_size: int | None
    dummies: int
    clients_with_items: int
    coverage: float
    missed_mass: float
    fidelity: str
    opened_hours: float | None = None
    closed_hours: float | None = None
    waited_hours: float | None = None
    clients_asked: int | None = None
    clients_eligible: int | None = None
    clients_dropped: int | None = None
    least_clients: int | None = None
    fake_clients: int | None = None
    fake_reports: int | None = None

    @classmethod
    def of(
        cls,
        summary: RoundSummary,
        plan: Plan,
        diagnostics: Diagnostics,
        observed: Observed,
        *,
        opened_hours: float = 0.0,
        has_fakes: bool = False,
    ) -> LayerRow:
        """Return a round's row.

        ``opened_hours`` is when it began, where devices have hours; ``has_fakes``: whether clients
        of the run are fake, be it none in this round.
        """
        fakes = diagnostics.fakes
        return cls(
            **_of_devices(diagnostics.attendance, opened_hours),
            fake_clients=(0 if fakes is None else fakes.num_clients) if has_fakes else None,
            fake_reports=(0 if fakes is None else fakes.num_reports) if has_fakes else None,
            **asdict(summary),
            subset_size=plan.values_per_report(summary.domain_size),
            dummies=diagnostics.num_dummies,
            clients_with_items=diagnostics.num_clients_with_items,
            coverage=observed.coverage,
            missed_mass=observed.missed_mass,
            fidelity=EXACT_TALLY if diagnostics.is_sampled else PER_REPORT,
        )

    @property
    def asked(self) -> int:
        """Clients of the cohort."""
        return self.num_clients if self.clients_asked is None else self.clients_asked

    @property
    def note(self) -> str:
        """What the layer decided, in a line."""
        # Other rules do not go by one number of votes.
        by_votes = self.kept_by in {"votes", "threshold"}
        rule = f"with {self.threshold:,} votes or more" if by_votes else "kept"
        # It comes at the end where the true words are counted while clients answer.
        covered = "" if math.isnan(self.coverage) else f", coverage {self.coverage:.1%}"
        counts = f"{self.num_reports:,} reports, {self.num_candidates:,} prefixes"
        waited = ""
        if self.waited_hours:
            waited = (
                f", waited {self.waited_hours:,.3g} h beyond the deadline for its "
                f"{self.least_clients:,} answers"
            )
        return f"{counts}, {self.num_kept:,} {rule}{covered}{waited}"

    def columns(self) -> dict[str, Any]:
        """Return the table's row: the server's columns, whether the layer decided, and the rest."""
        values = {**asdict(self), "pass": self.pass_index + 1, "decides": self.decides}
        values["subset_size"] = self.subset_size or 0
        left_out = {
            *(OF_DEVICES if self.clients_asked is None else ()),
            *(OF_FAKES if self.fake_clients is None else ()),
        }
        return {name: values[name] for name in column_texts() if name not in left_out}


def layers_table(rows: Sequence[LayerRow]) -> pd.DataFrame:
    """Return the table of some rounds; also without any it has its columns."""
    if rows:
        return pd.DataFrame([row.columns() for row in rows])
    kinds = {"int": np.int64, "int | None": np.int64, "float": np.float64, "bool": np.bool_}
    types = {field.name: str(field.type) for field in fields(LayerRow)}
    types |= {"pass": "int", "decides": "bool"}
    return pd.DataFrame(
        {
            name: pd.Series(dtype=kinds.get(types[name], np.dtype(object)))
            for name in column_texts()
            if name not in (*OF_DEVICES, *OF_FAKES)
        }
    )


def _of_devices(attendance: Attendance | None, opened_hours: float) -> dict[str, Any]:
    """Return the columns of a round whose devices were not always there."""
    if attendance is None:
        return {}
    return {
        "opened_hours": opened_hours,
        "closed_hours": opened_hours + attendance.hours,
        "waited_hours": attendance.waited_hours,
        "clients_asked": attendance.asked,
        "clients_eligible": attendance.eligible,
        "clients_dropped": attendance.dropped,
        "least_clients": attendance.fewest,
    }


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
