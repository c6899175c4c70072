"""`fedhh account oracles`: the table of all oracles, and the picture of their noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from fedhh.cli.console import open_console, print_json, print_written
from fedhh.oracles.base import ServerWork
from fedhh.oracles.comparison import OracleComparison, OracleFacts, compare_oracles

_SHORT = 1e6


def oracles_command(*, epsilon: float, domain_size: int, plot: Path | None, as_json: bool) -> None:
    """Print the comparison, and perhaps draw noise against epsilon."""
    if plot is not None:
        from fedhh.experiments.report.account_figures import check_figure

        check_figure(plot)
    found = compare_oracles(epsilon=epsilon, domain_size=domain_size)
    if plot is not None:
        from fedhh.experiments.report.oracle_figure import plot_oracles

        plot_oracles(plot, epsilon=epsilon, domain_size=domain_size)
    if as_json:
        print_json(_as_json(found))
        return
    console = open_console()
    console.print(_table(found))
    for reason in found.refused.values():
        console.print(reason, soft_wrap=True, highlight=False)
    console.print(f"Use {found.recommended}: {found.reason}", soft_wrap=True, highlight=False)
    if plot is not None:
        print_written(plot)


def _as_json(found: OracleComparison) -> dict[str, Any]:
    reference = found.facts["oue"].variance
    return {
        "unit": "report",
        "epsilon": found.epsilon,
        "domain_size": found.domain_size,
        "recommended": found.recommended,
        "reason": found.reason,
        "oracles": [
            {
                "name": facts.name,
                "variance": facts.variance,
                "relative_to_oue": facts.variance / reference,
                "report_bits": facts.report_bits,
                "aggregate_size": facts.aggregate_size,
                "is_sketch": facts.has_fixed_aggregate,
                "server_work": facts.work._asdict() if facts.work else None,
            }
            for facts in found.facts.values()
        ],
        "refused": dict(found.refused),
    }


def _table(found: OracleComparison) -> Table:
    table = Table(
        title=f"epsilon {found.epsilon:g}, {found.domain_size:,} values",
        caption="V0: variance of a count of 0, per report. Work in numbers touched, n reports; "
        "a candidate's where all values are decoded.",
    )
    table.add_column("oracle")
    for name in ("V0", "to oue", "bits", "per report", "per candidate", "adds up to"):
        table.add_column(name, justify="right")
    reference = found.facts["oue"].variance
    for facts in found.facts.values():
        table.add_row(
            facts.name,
            f"{facts.variance:.4g}",
            f"{facts.variance / reference:.3g}",
            _number(facts.report_bits),
            *_work(facts.work),
            _sum(facts),
        )
    for name in found.refused:
        table.add_row(name, *["-"] * 5, "does not fit")
    return table


def _work(work: ServerWork | None) -> tuple[str, str]:
    if work is None:
        return "-", "-"
    report = f"O({work.report}): {_number(work.per_report)}"
    if work.per_candidate_and_report:
        return report, f"O({work.candidate}): {_number(work.per_candidate_and_report)} n"
    return report, f"O({work.candidate}): {_number(work.per_candidate)}"


def _sum(facts: OracleFacts) -> str:
    if facts.aggregate_size is None:
        return "nothing, all kept"
    kind = "sketch of" if facts.has_fixed_aggregate else "counts:"
    return f"{kind} {_number(facts.aggregate_size)}"


def _number(value: float) -> str:
    """Return a number in full where it is short."""
    return f"{value:,.0f}" if value < _SHORT else f"{value:.3g}".replace("e+0", "e")
