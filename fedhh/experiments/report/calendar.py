"""How long runs took with their devices, as rows and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from fedhh.experiments.run.calendar import HOURS_PER_DAY
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.text_table import TextTable

_Row = tuple[str, str, str]
"""What, its value, and a note."""


def calendar_rows(result: RunResult) -> list[_Row]:
    """Return how long a run took with its devices, where they are not always there."""
    calendar, layers = result.calendar, result.layers
    if calendar is None:
        return []
    note = f"to the result; {calendar.share_served:.1%} of the clients served"
    if len(layers):
        share = layers["num_clients"] / layers["clients_asked"]
        note += f", {share.min():.1%} to {share.max():.1%} of a cohort"
    rows = [("days", f"{calendar.days:,.1f}", note)]
    if calendar.missed is not None:
        rows.append(("stopped", f"layer {calendar.missed.layer}", calendar.missed_text[:-1]))
    elif len(waited := layers[layers["waited_hours"] > 0]):
        note = f"beyond their deadline, {waited['waited_hours'].sum():,.1f} hours in all"
        rows.append(("layers that waited", f"{len(waited)}", note))
    return rows


def calendar_table(results: Sequence[RunResult]) -> TextTable:
    """Return when each round of some runs began and ended, and how many of its devices answered."""
    rows = []
    for result in results:
        for row in result.layers.to_dict("records"):
            rows.append(
                (
                    result.protocol.title, str(row["pass"]), str(row["layer"]),
                    f"{row['opened_hours'] / HOURS_PER_DAY:,.2f}",
                    f"{row['closed_hours'] / HOURS_PER_DAY:,.2f}", f"{row['waited_hours']:,.1f}",
                    f"{row['clients_asked']:,}", f"{row['clients_eligible']:,}",
                    f"{row['clients_dropped']:,}", f"{row['num_clients']:,}",
                    f"{row['least_clients']:,}", f"{row['num_reports']:,}",
                )
            )  # fmt: skip
        missed = None if result.calendar is None else result.calendar.missed
        if missed is not None:
            rows.append(
                (
                    result.protocol.title, str(missed.pass_index + 1), str(missed.layer), "-",
                    "missed", f"{missed.waited_hours:,.1f}", f"{missed.asked:,}",
                    f"{missed.eligible:,}", f"{missed.dropped:,}", f"{missed.answers:,}",
                    f"{missed.fewest:,}", "-",
                )
            )  # fmt: skip
    totals = "; ".join(
        f"{result.protocol.title} {each.days:,.1f} days, {each.share_served:.1%} of the clients"
        for result in results
        if (each := result.calendar) is not None
    )
    return TextTable(
        title="calendar",
        columns=(
            "protocol", "pass", "layer", "opens, day", "closes, day", "waited, h", "asked",
            "eligible", "dropped out", "answered", "least", "reports",
        ),
        rows=tuple(rows),
        note=f"Until the result, and who served: {totals}.",
        labels=1,
    )  # fmt: skip
