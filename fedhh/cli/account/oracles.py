"""`fedhh account oracles`: which frequency oracle to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import Plot
from fedhh.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from fedhh.experiments.study.text_table import TextTable
    from fedhh.oracles.comparison import OracleComparison, OracleFacts, ServerWork

_SHORT = 1e6


def oracles(
    epsilon: Annotated[float, typer.Option(help="Privacy of one report, 0.01 to 30.")],
    domain_size: Annotated[int, typer.Option(help="Number of values, the dummy included.")],
    plot: Plot = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Noise, report size and server's work of all oracles, and which of them to use.

    Example: fedhh account oracles --epsilon 4 --domain-size 10000 --plot oracles.png
    """
    from fedhh.cli.account.output import show_table
    from fedhh.cli.console import open_console, print_json, print_written
    from fedhh.oracles.comparison import compare_oracles

    found = compare_oracles(epsilon=epsilon, domain_size=domain_size)
    if plot is not None:
        from fedhh.experiments.report.oracle_figures import plot_oracles

        plot_oracles(plot, epsilon=epsilon, domain_size=domain_size)
    if output_format is Format.JSON:
        print_json(found.to_dict())
        return
    console = open_console()
    show_table(_table(found), console=console)
    for reason in found.refused.values():
        console.print(reason, soft_wrap=True, highlight=False)
    console.print(f"Use {found.recommended}: {found.reason}", soft_wrap=True, highlight=False)
    if plot is not None:
        print_written(plot)


def _table(found: OracleComparison) -> TextTable:
    from fedhh.experiments.study.text_table import TextTable

    rows: list[tuple[str, ...]] = [
        (
            facts.name,
            f"{facts.variance:.4g}",
            f"{found.relative_to_oue(facts.name):.3g}",
            _number(facts.report_bits),
            *_work(facts.work),
            _sum(facts),
        )
        for facts in found.facts.values()
    ]
    rows += [(name, *["-"] * 5, "does not fit") for name in found.refused]
    return TextTable(
        title=f"epsilon {found.epsilon:g}, {found.domain_size:,} values",
        columns=("oracle", "V0", "to oue", "bits", "per report", "per candidate", "adds up to"),
        rows=tuple(rows),
        note="V0: variance of a count of 0, per report. Work in numbers touched, n reports; "
        "a candidate's where all values are decoded.",
    )


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
    kind = "sketch of" if facts.is_sketch else "counts:"
    return f"{kind} {_number(facts.aggregate_size)}"


def _number(value: float) -> str:
    """Return a number in full where it is short."""
    return f"{value:,.0f}" if value < _SHORT else f"{value:.3g}".replace("e+0", "e")
