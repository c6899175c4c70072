"""What a person sees before runs on a file start. No number is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from fedhh.cli.safe_text import safe_text
from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.run.preflight import preflight_of_configs
from fedhh.experiments.run.preflight_sentences import epsilon_text

if TYPE_CHECKING:
    from rich.console import Console

    from fedhh.clients.populations.population import Population
    from fedhh.experiments.config.client_file import KeptFile
    from fedhh.experiments.config.schema import Config
    from fedhh.experiments.run.preflight import Preflight


def print_before_run(
    console: Console, configs: Sequence[Config], population: Population, file: KeptFile
) -> None:
    """Print what is known before some configurations run on a file; nothing without a file."""
    if file.content is not None and isinstance(population, StoredPopulation):
        print_preflight(console, preflight_of_configs(configs, population, file.content))


def print_preflight(console: Console, found: Preflight) -> None:
    """Print what is known before a run, in a short block: facts, the plan, what would help."""
    for line in found.contents:
        print_wrapped(console, line)
    print_plans(console, found)
    print_advice(console, found.advice)


def print_plans(console: Console, found: Preflight) -> None:
    """Print the epsilons and the smallest cohort of each protocol."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    delta = found.plans[0].central.delta
    table.add_column(f"before the run (item level, delta {delta:g})", overflow="fold")
    for head in ("central epsilon", "local epsilon", "smallest cohort"):
        table.add_column(head, justify="right")
    for plan in found.plans:
        table.add_row(
            safe_text(plan.title),
            epsilon_text(plan.central_epsilon),
            epsilon_text(plan.local_epsilon),
            f"{plan.smallest_cohort:,} {found.unit}s",
        )
    console.print(table)


def print_advice(console: Console, advice: Sequence[str]) -> None:
    """Print what would help, each with a dash."""
    for line in advice:
        print_wrapped(console, f"- {line}", style="yellow")


def print_wrapped(console: Console, line: str, *, style: str = "") -> None:
    """Print a whole line, broken at blanks to the console's width."""
    console.print(safe_text(line, longest=None), style=style)
