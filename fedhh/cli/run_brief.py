"""What a person sees when a run ends: the result in brief, and where the rest is."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from fedhh.cli.console import SafeConsole, print_places
from fedhh.cli.safe_text import safe_text
from fedhh.cli.text_tables import print_table
from fedhh.experiments.report.run_tables import falls_short, fidelity_rows, regime_rows
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.sentences import below_zero, privacy_sentence, sentence
from fedhh.experiments.study.text_table import TextTable

_TOP_WORDS = 10


def print_brief(
    console: SafeConsole, result: RunResult, directory: Path, *, beside: TextTable | None = None
) -> None:
    """Print a run's result in one sentence, its top words, its privacy, and where the rest is.

    Args:
        console: Where to.
        result: The run.
        directory: Its files.
        beside: The comparison with the baseline, if there is one.
    """
    title = f"{safe_text(result.protocol.title)} on {safe_text(result.population['name'])}"
    console.print(title, style="bold")
    console.print(sentence(result))
    for what, value, note in (*fidelity_rows(result.simulation), *regime_rows(result)):
        console.print(f"{what.capitalize()} {value}: {note}.")
    console.print()
    if len(result.discoveries):
        console.print(_top_words(result))
        console.print(falls_short(result.protocol.mechanism), style="dim")
        reason = below_zero(result, result.discoveries.head(_TOP_WORDS))
        if reason is not None:
            console.print(reason, style="dim")
        console.print()
    if beside is not None:
        print_table(console, beside)
        console.print()
    console.print(privacy_sentence(result))
    console.print()
    print_places(console, directory)


def _top_words(result: RunResult) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", justify="right")
    table.add_column("top words")
    table.add_column("clients, estimated ± 2 std. errors", justify="right")
    table.add_column("clients, true", justify="right")
    for number, row in enumerate(result.discoveries.head(_TOP_WORDS).to_dict("records"), start=1):
        table.add_row(
            str(number),
            safe_text(row["word"]),
            f"{row['estimated_clients']:,.0f} ± {2 * row['std_error']:,.0f}",
            f"{row['true_clients']:,}",
        )
    return table
