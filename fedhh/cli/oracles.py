"""`fedhh oracles`: which frequency oracle to use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import FigureOption, Format, FormatOption

if TYPE_CHECKING:
    from fedhh.experiments.study.parts import Part
    from fedhh.oracles.compare import OracleComparison, OracleFacts

_SHORT = 1e6

oracles = typer.Typer(
    help="Compare frequency oracles.\n\n"
    "Example: fedhh oracles compare --local-epsilon 4 --domain-size 10000",
    no_args_is_help=True,
)


@oracles.command()
def compare(
    local_epsilon: Annotated[float, typer.Option(help="Privacy of one report, 0.01 to 30.")],
    domain_size: Annotated[int, typer.Option(help="Number of values, the dummy included.")],
    figure: FigureOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Noise and report size of all oracles, what reports add up to, and which to use.

    Example: fedhh oracles compare --local-epsilon 4 --domain-size 10000 --figure oracles.png
    """
    from fedhh.cli.text_tables import print_result
    from fedhh.oracles.compare import compare_oracles

    found = compare_oracles(epsilon=local_epsilon, domain_size=domain_size)
    if figure is not None:
        from fedhh.experiments.report.oracle_figures import plot_oracles

        plot_oracles(figure, epsilon=local_epsilon, domain_size=domain_size)
    print_result(output_format, found.to_dict, _compared(found), figure=figure)


def _compared(found: OracleComparison) -> Iterator[Part]:
    from fedhh.experiments.study.parts import Line
    from fedhh.experiments.study.text_table import TextTable

    rows: list[tuple[str, ...]] = [
        (
            facts.name,
            f"{facts.variance:.4g}",
            f"{found.relative_to_oue(facts.name):.3g}",
            _number(facts.report_bits),
            _sum(facts),
        )
        for facts in found.facts.values()
    ]
    rows += [(name, *["-"] * 3, "does not fit") for name in found.refused]
    yield TextTable(
        title=f"local epsilon {found.epsilon:g}, {found.domain_size:,} values",
        columns=("oracle", "V0", "to oue", "bits", "adds up to"),
        rows=tuple(rows),
        note="V0: variance of a count of 0, per report.",
        is_whole=True,
    )
    for reason in found.refused.values():
        yield Line(reason, is_whole=True)
    yield Line(f"Use {found.recommended}: {found.reason}", is_whole=True)


def _sum(facts: OracleFacts) -> str:
    if facts.aggregate_size is None:
        return "nothing, all kept"
    kind = "sketch of" if facts.is_sketch else "counts:"
    return f"{kind} {_number(facts.aggregate_size)}"


def _number(value: float) -> str:
    """Return a number in full where it is short."""
    return f"{value:,.0f}" if value < _SHORT else f"{value:.3g}".replace("e+0", "e")
