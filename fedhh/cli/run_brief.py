"""What a person sees when a run ends: the result in brief, and where the rest is."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from fedhh.accounting import PrivacyReport
from fedhh.accounting.layer_anonymity import claim_over_run
from fedhh.cli.console import print_places
from fedhh.cli.run_tables import falls_short, fidelity_rows, regime_rows
from fedhh.cli.safe_text import safe_text
from fedhh.cli.text_tables import print_table
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.text_table import TextTable
from fedhh.experiments.run.privacy import (
    central_before_run,
    central_epsilon,
    local_epsilon,
)
from fedhh.experiments.run.result import RunResult

_TOP_WORDS = 10


def print_brief(
    console: Console, result: RunResult, directory: Path, *, beside: TextTable | None = None
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
        console.print()
    if beside is not None:
        print_table(console, beside)
        console.print()
    console.print(privacy_line(result))
    console.print()
    print_places(console, directory)


def sentence(result: RunResult) -> str:
    """Return what came out, in one sentence."""
    metrics = result.metrics
    if not metrics.discovered:
        return "Discovered no word."
    rate = getattr(result.protocol, "false_discovery_rate", 0.0)
    text = (
        f"{metrics.discovered:,} words found, of which in expectation at most {rate:.0%} are "
        f"{_false(result)}, "
        if rate
        else f"Discovered {metrics.discovered:,} words, {metrics.significant:,} significant, "
    )
    text += f"with a coverage of {metrics.coverage:.1%} of new-word contributions"
    if metrics.top:
        shares = _listed([f"{top.found:.1%}" for top in metrics.top])
        sizes = _listed([f"{top.k:,}" for top in metrics.top])
        text += f", and {shares} of the {sizes} most held words"
    text += f"; {metrics.precision:.1%} of the discoveries are held by somebody"
    if metrics.precision_significant is not None and not rate:
        text += f", {metrics.precision_significant:.1%} of the significant ones"
    return f"{text}."


def _false(result: RunResult) -> str:
    """Return what makes a word false that a validation round returns."""
    k = getattr(result.protocol, "anonymity_k", 0)
    return f"held by at most {k:,} clients" if k else "false"


def privacy_line(result: RunResult) -> str:
    """Return the run's smallest epsilons, with unit, reader and delta, and its k-anonymity."""
    report = result.privacy
    before, central, local = (
        [round_up(epsilon(report, unit)) for unit in ("item", "user")]
        for epsilon in (central_before_run, central_epsilon, local_epsilon)
    )
    delta = report.best("item", "central").delta
    which = (
        ""
        if before == central
        else f" before the run ({central[0]} and {central[1]} for the domains that it had)"
    )
    return (
        f"Privacy: epsilon {before[0]} at item level and {before[1]} at user level against "
        f"readers of results{which}, at delta {delta:g}; {local[0]} and {local[1]} against the "
        f"server. {anonymity_text(report)}"
    )


def anonymity_text(report: PrivacyReport) -> str:
    """Return the run's claim of k-anonymity, in one sentence."""
    claim = claim_over_run(report.anonymity)
    if claim is None:
        return "No k-anonymity is claimed."
    when = ", for the layers that it had," if claim.realised else ""
    return (
        f"k-anonymity: k = {claim.k:,} at alpha {claim.alpha:g}{when} (a word that at most "
        f"{claim.k:,} clients hold returns with probability at most {1 - claim.alpha:.2g})."
    )


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


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
