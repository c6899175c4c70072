"""What a person sees of a finished run: its summary. No number is computed here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fedhh.accounting import PrivacyReport
from fedhh.experiments.comparison import whole_bytes
from fedhh.experiments.fidelity import PER_REPORT
from fedhh.experiments.labels import round_up
from fedhh.experiments.privacy import MEASURED_ANONYMITY, central_epsilon, local_epsilon
from fedhh.experiments.regime import regime_of_run
from fedhh.experiments.run_result import RunResult
from fedhh.experiments.text_table import TextTable

_TOP_WORDS = 20


def print_result(
    console: Console, result: RunResult, directory: Path, *, beside: TextTable | None = None
) -> None:
    """Print a run's summary, its top words, its privacy, and where its files are.

    Args:
        console: Where to.
        result: The run.
        directory: Its files.
        beside: The comparison with the baseline, if there is one.
    """
    console.print(_summary(result))
    console.print(_top_words(result))
    if beside is not None:
        print_table(console, beside)
    print_privacy(console, result.privacy, measured=_measured_anonymity(result))
    console.print("Files: ", str(directory), sep="", soft_wrap=True, highlight=False)


def print_table(console: Console, table: TextTable) -> None:
    """Print a table of text."""
    shown = Table(title=table.title, caption=table.note)
    for number, column in enumerate(table.columns):
        is_label = number < table.labels
        shown.add_column(column, justify="left" if is_label else "right", no_wrap=is_label)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)


def _summary(result: RunResult) -> Table:
    name = result.population["name"]
    table = Table(title=f"{result.protocol.title} on {name}", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("note", style="dim")
    for row in summary_rows(result):
        table.add_row(*row)
    return table


def summary_rows(result: RunResult) -> list[tuple[str, str, str]]:
    """Return the summary as rows (what, value, note)."""
    metrics, cost = result.metrics, result.cost
    passes, _ = result.protocol.shape
    items = result.protocol.contributions_per_client
    unit = result.population["unit"]
    tops = [k for k in result.settings.top_k if f"found_top_{k}" in metrics]
    clients, asked = f"{result.population['clients']:,}", f"{cost['clients_asked']:,}"
    if result.protocol.reuses_clients:
        each = "client and layer"
        who = ("answers", asked, f"of {clients} clients, drawn anew in each layer")
    else:
        each = "client"
        who = ("clients", asked, f"asked, of {clients}")
    return [
        (*who[:2], f"{who[2]}; a client is a {unit}"),
        *_fidelity_rows(result.simulation),
        ("reports", f"{cost['reports']:,}", f"at most {items} per {each}"),
        ("layers", f"{cost['rounds']}", f"in {passes} {'pass' if passes == 1 else 'passes'}"),
        ("discovered", f"{metrics['discovered']:,}", _discovered_note(result)),
        *_regime_rows(result),
        (
            "coverage",
            f"{metrics['coverage']:.1%}",
            f"of new-word contributions; {metrics['reachable_mass']:.1%} can be spelled",
        ),
        (
            "precision",
            _share(metrics["precision"]),
            "of discoveries are held by somebody; "
            f"{_share(metrics['precision_significant'])} of the significant ones",
        ),
        (
            "recall",
            f"{metrics['recall']:.1%}",
            f"of the {metrics['words_with_min_clients']:,} words held by at least "
            f"{metrics['min_clients']:,} clients",
        ),
        *[
            (f"top {k}", f"{metrics[f'found_top_{k}']:.1%}", f"of the {k} most held words found")
            for k in tops
        ],
        *_local_rows(result),
        *_central_rows(result.privacy),
        (
            "cost per client",
            f"{_bytes(cost['upload_bits_per_client_max'])} up",
            f"{_bytes(cost['download_bits_per_client_max'])} down, at most",
        ),
        (
            "time",
            f"{result.seconds:.1f} s",
            f"of which {result.timings['rounds']:.1f} s in the layers",
        ),
    ]


def _discovered_note(result: RunResult) -> str:
    note = f"{result.metrics['significant']:,} significant"
    if cut := result.metrics["discovered_truncated"]:
        length = result.protocol.longest_word
        note += f"; {cut:,} are longer words, cut to {length} symbols, and count as false"
    return note


def _share(value: float | None) -> str:
    """Return a share as text, a dash where there is nothing to have a share of."""
    return "-" if value is None else f"{value:.1%}"


def _bytes(bits: float) -> str:
    """Return what is at most so many bits as text, never less than it is."""
    size = whole_bytes(bits)
    return f"{size:,} B" if size < 10_000 else f"{math.ceil(size / 100) / 10:,.1f} kB"


def _fidelity_rows(simulation: dict[str, Any]) -> list[tuple[str, str, str]]:
    if simulation["fidelity"] == PER_REPORT:
        return []
    drawn = simulation["clients_drawn_per_layer"]
    error = simulation["count_std_error_per_sqrt_count"]
    note = f"no reports: binomial votes on the true counts of {drawn:,} clients per layer"
    if error:
        note += f", scaled up; std error of a count c: {error:.2g} sqrt(c)"
    return [("fidelity", simulation["fidelity"], note)]


def _local_rows(result: RunResult) -> list[tuple[str, str, str]]:
    items = result.protocol.contributions_per_client
    rounds = f", in all {result.cost['rounds']} layers" if result.protocol.reuses_clients else ""
    return [
        (
            "local epsilon",
            round_up(local_epsilon(result.privacy, "item")),
            f"item level: one contribution{rounds}",
        ),
        (
            "",
            round_up(local_epsilon(result.privacy, "user")),
            f"user level: all {items} contributions of a client{rounds}",
        ),
    ]


def _central_rows(report: PrivacyReport) -> list[tuple[str, str, str]]:
    rows = []
    for unit, label in (("item", "central epsilon"), ("user", "")):
        best = report.best(unit, "central")
        rows.append(
            (
                label,
                round_up(central_epsilon(report, unit)),
                f"{unit} level at delta {best.delta:g}, {best.method}, against readers of results",
            )
        )
    return rows


def print_privacy(console: Console, report: PrivacyReport, *, measured: str) -> None:
    """Print every guarantee with its unit, epsilon, delta, theorem and assumptions.

    Args:
        console: Where to.
        report: The claims.
        measured: What a simulator knows of the anonymity of the discoveries, one line.
    """
    smallest = min(each.smallest_cohort for each in report.guarantees)
    console.print()
    console.print("[italic]privacy: what this run can claim[/]", justify="center")
    console.print(
        f"unit  against  {'bound':<33}{'epsilon or k':>13}  delta", style="bold", highlight=False
    )
    for row in report.rows():
        value, _, reason = (row["epsilon"] or f"k = {row['k']}").partition(": ")
        reader = "server" if row["trust"] == "local" else "reader"
        value = "none" if reason else value
        line = f"{row['unit']:<6}{reader:<9}{row['method']:<33}{value:>13}  {row['delta']}"
        console.print(line, highlight=False)
        notes = [row["theorem"], reason, row["note"]]
        text = Text("; ".join(note for note in notes if note), style="dim")
        console.print(Padding(text, (0, 0, 0, 6)))
    console.print(
        "* the smallest valid bound of its unit and reader. P: what the Gboard paper would claim. "
        f"Smallest cohort: {smallest:,} clients.",
        measured,
        *report.notes,
        sep="\n",
        highlight=False,
    )
    console.print()


def _measured_anonymity(result: RunResult) -> str:
    """Return how many clients really hold the discovered words."""
    fewest, significant, share = (result.metrics[key] for key in MEASURED_ANONYMITY)
    if fewest is None:
        return "Measured anonymity: nothing was discovered."
    text = f"Measured anonymity: clients that hold the rarest discovered word: {fewest:,}"
    if significant is not None:
        text += f", the rarest significant one: {significant:,}"
    return text + ("." if share is None else f"; {share:.1%} of words held by fewer than k.")


def _regime_rows(result: RunResult) -> list[tuple[str, str, str]]:
    regime = regime_of_run(result.layers)
    if regime is None:
        return []
    share = f"about {regime.noise_share:.0%} of prefixes kept where words were lost are noise"
    return [("limited by", regime.limit, f"{share}: {regime.advice}")]


def _top_words(result: RunResult) -> Table:
    items = result.protocol.contributions_per_client
    table = Table(
        title=f"top {_TOP_WORDS} discovered words",
        caption=(
            f"Clients with more than {items} candidates leave some unsaid, so estimates of\n"
            "words that such clients hold fall short of the true number of clients."
        ),
    )
    table.add_column("word")
    for name in ("estimated clients", "± 2 std. errors", "true clients", "true count"):
        table.add_column(name, justify="right")
    for row in result.discoveries.head(_TOP_WORDS).to_dict("records"):
        table.add_row(
            row["word"],
            f"{row['estimated_clients']:,.0f}",
            f"{2 * row['std_error']:,.0f}",
            f"{row['true_clients']:,}",
            f"{row['true_count']:,}",
        )
    return table
