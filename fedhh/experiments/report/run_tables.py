"""What is printed of a finished run: in brief at its end, and all of it. It computes no number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd

from fedhh.accounting.guarantees import PrivacyReport
from fedhh.accounting.layer_anonymity import claim_over_run
from fedhh.accounting.plan import Plan
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.calendar import calendar_rows
from fedhh.experiments.report.measures import bytes_text
from fedhh.experiments.run.adversary import AdversaryOutcome
from fedhh.experiments.run.metrics import Metrics
from fedhh.experiments.run.privacy import epsilon_of, local_epsilon
from fedhh.experiments.run.regime import regime_of_run
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.sentences import (
    against_server,
    below_zero,
    noticed,
    privacy_line,
    realised_of,
    sentence,
)
from fedhh.experiments.study.parts import Columns, Facts, Line, Part
from fedhh.experiments.study.text_table import TextTable
from fedhh.simulation.fidelity import PER_REPORT

_Row = tuple[str, str, str]
"""What, its value, and a note."""
_TOP_WORDS = 10
_BY_VOTES = frozenset(("votes", "threshold", "validation"))
"""What keeps candidates by one number of the round's own votes."""


BRIEF = {
    "coverage": "coverage",
    "discovered": "words",
    "local_epsilon_user": "local epsilon",
    "central_epsilon_user_before_run": "central epsilon",
    "upload_bits_per_client_max": "bytes up",
    "download_bits_per_client_max": "bytes down",
    "rounds_per_client": "rounds served",
}
"""What a run's end states of each protocol, by columns of results, and what it calls them."""


def brief_of(result: RunResult, comparison: TextTable) -> Iterator[Part]:
    """Yield a run's result in one sentence, its top words, its protocols, and its privacy.

    ``comparison`` has a row for each protocol, and the columns of `BRIEF`.
    """
    yield Line(f"{result.protocol.title} on {result.population['name']}", style="bold")
    yield Line(sentence(result))
    if result.adversary is not None:
        yield Line(result.adversary.sentence)
    approximate = result.simulation if "clients_drawn_per_layer" in result.simulation else None
    of_clients = fidelity_rows(approximate) if approximate else []
    for what, value, note in (*of_clients, *calendar_rows(result)):
        yield Line(f"{what.capitalize()} {value}: {note}.")
    # Of honest clients it says that they hold more prefixes than they contribute.
    if result.adversary is not None and (seen := noticed(result)):
        yield Line(seen)
    yield Line("")
    shown = result.discoveries[~result.discoveries["word"].str.lower().isin(swear_words())]
    top = shown.head(_TOP_WORDS)
    if len(top):
        known = ["true contributors"] if "contributing_clients" in top else []
        estimated = f"{estimated_of(result.protocol.plan)} ± 2 std. errors"
        heads = ("", "top words", estimated, *known, "true holders")
        rows = [
            (
                str(number),
                row["word"],
                f"{row['estimated_clients']:,.0f} ± {2 * row['std_error']:,.0f}",
                *true_numbers(row),
            )
            for number, row in enumerate(top.to_dict("records"), start=1)
        ]
        yield Columns(heads=heads, rows=rows, label=1)
        if hidden := int(top.index[-1]) + 1 - len(top):
            what = "swear word" if hidden == 1 else "swear words"
            yield Line(f"Left out here: {hidden} {what}; fedhh show --all has all.", style="dim")
        yield Line("")
    yield Columns(heads=("", *BRIEF.values()), rows=comparison.rows)
    yield Line("")
    yield Line(privacy_line(result))


@cache
def swear_words() -> frozenset[str]:
    """Return the words that the end of a run does not show, nor do any of its files lack."""
    path = resources.files("fedhh.words") / "assets" / "swear_words_en.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


def run_parts(result: RunResult, *, num_words: int) -> Iterator[Part]:
    """Yield a run's summary, its first words, at most so many, its layers and its privacy."""
    yield Facts(
        title=f"{result.protocol.title} on {result.population['name']}", rows=summary_rows(result)
    )
    yield _words(result, num_words)
    yield Line("layers", "italic")
    yield _layers(result.layers)
    yield from _privacy(result.privacy, measured=_measured_anonymity(result))


def summary_rows(result: RunResult) -> list[_Row]:
    """Return the summary as rows (what, value, note)."""
    metrics, cost = result.metrics, result.cost
    plan = result.protocol.plan
    passes, items = plan.num_passes, plan.max_items
    unit = result.population["unit"]
    fakes = 0 if result.adversary is None else result.adversary.clients
    clients = f"{result.population['clients'] + fakes:,}"
    asked = f"{cost['clients_asked']:,}"
    if plan.reuses_clients:
        each = "client and layer"
        drawn = "most of them asked again" if plan.num_apart else "drawn anew in each layer"
        if plan.participation == "epochs":
            drawn = f"once in each of {plan.epochs} epochs"
        who = ("answers", asked, f"of {clients} clients, {drawn}")
    else:
        each = "client"
        who = ("clients", asked, f"asked, of {clients}")
    cut = ""
    if truncated := metrics.discovered_truncated:
        length = result.protocol.longest_word
        cut = f"; {truncated:,} are longer words, cut to {length} symbols, and count as false"
    return [
        (*who[:2], f"{who[2]}; a client is a {unit}"),
        *fidelity_rows(result.simulation),
        ("reports", f"{cost['reports']:,}", f"at most {items} per {each}"),
        ("layers", f"{cost['rounds']}", f"in {passes} {'pass' if passes == 1 else 'passes'}"),
        *calendar_rows(result),
        ("discovered", f"{metrics.discovered:,}", f"{metrics.significant:,} significant{cut}"),
        *_adversary_rows(result.adversary),
        *regime_rows(result),
        (
            "coverage",
            f"{metrics.coverage:.1%}",
            f"of new-word contributions; {metrics.reachable_mass:.1%} can be spelled",
        ),
        *_ceiling_rows(metrics),
        (
            "precision",
            _share(metrics.precision),
            "of discoveries are held by somebody; "
            f"{_share(metrics.precision_significant)} of the significant ones",
        ),
        (
            "recall",
            f"{metrics.recall:.1%}",
            f"of the {metrics.words_with_min_clients:,} words held by at least "
            f"{metrics.min_clients:,} clients",
        ),
        *[
            (f"top {top.k}", f"{top.found:.1%}", f"of the {top.k} most held words found")
            for top in metrics.top
        ],
        *estimate_rows(result),
        *_local_rows(result),
        *_central_rows(result),
        *_anonymity_rows(result.privacy),
        (
            "cost per client",
            f"{bytes_text(cost['upload_bits_per_client_max'])} up",
            f"{bytes_text(cost['download_bits_per_client_max'])} down, at most",
        ),
        (
            "time",
            f"{result.seconds:.1f} s",
            f"of which {result.timings['rounds']:.1f} s in the layers",
        ),
    ]


def _adversary_rows(outcome: AdversaryOutcome | None) -> list[_Row]:
    """Return what fake clients, or clients that collude, did; nothing without any."""
    if outcome is None:
        return []
    what = "colluding clients" if outcome.goal == "collude" else "fake clients"
    return [(what, f"{outcome.colluding:,}", outcome.sentence[:-1])]


def _ceiling_rows(metrics: Metrics) -> list[_Row]:
    if metrics.ceiling_coverage is None:
        return []
    note = (
        f"coverage of the {metrics.ceiling_words:,} words that one round finds which knows all "
        f"held words; {_share(metrics.share_of_ceiling)} of it covered"
    )
    return [("ceiling", f"{metrics.ceiling_coverage:.1%}", note)]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def fidelity_rows(simulation: dict[str, Any]) -> list[_Row]:
    """Return how clients were simulated, where not every report was drawn."""
    layers = simulation.get("layers_without_reports", 0)
    if simulation["fidelity"] == PER_REPORT or not layers:
        return []
    what = "1 layer" if layers == 1 else f"{layers} layers"
    note = f"{what} drawn at once, with the distribution of all reports"
    if "clients_drawn_per_layer" in simulation:
        drawn = simulation["clients_drawn_per_layer"]
        error = simulation["count_std_error_per_sqrt_count"]
        note += (
            f"; approximate in clients that were not drawn: {drawn:,} per layer were, scaled up; "
            f"std error of a count c: {error:.2g} sqrt(c)"
        )
    return [("fidelity", simulation["fidelity"], note)]


def _local_rows(result: RunResult) -> list[_Row]:
    plan = result.protocol.plan
    uses = plan.most_rounds_per_client
    several_layers = f"{uses} layers" if plan.num_apart else f"all {uses} layers"
    if plan.participation == "epochs":
        several_layers = f"{uses} epochs"
    rounds = f", in {several_layers}" if uses > 1 else ""
    one, several = "contribution", f"{plan.max_items} contributions of a client"
    if plan.is_of_whole_set:
        one, several = "word of a client", "that a client holds"
    item, user = (local_epsilon(result.privacy, unit) for unit in ("item", "user"))
    if math.isinf(item):
        return [("local epsilon", "none", against_server(result.privacy, plan)[:-1])]
    return [
        ("local epsilon", round_up(item), f"item level: one {one}{rounds}"),
        ("", round_up(user), f"user level: all {several}{rounds}"),
    ]


def _central_rows(result: RunResult) -> list[_Row]:
    """Return what holds before the run and, where that is less, after it."""
    report, rows = result.privacy, list[_Row]()
    after = f"for this run's {realised_of(result)}"
    for unit in ("item", "user"):
        best, before = report.best(unit, "central"), report.before_run(unit)
        stated = [(before, "before the run"), (best, after)]
        for each, when in stated if best.realised else [(best, "")]:
            note = f"{unit} level{', ' if when else ''}{when} at delta {each.delta:g}, "
            note += f"{each.method}, against readers of results"
            rows.append(("" if rows else "central epsilon", round_up(epsilon_of(each)), note))
    return rows


def _anonymity_rows(report: PrivacyReport) -> list[_Row]:
    claim = claim_over_run(report.anonymity)
    if claim is None:
        return []
    note = f"a word that at most {claim.k:,} clients hold returns with probability at most "
    when = "for this run's layers" if claim.realised else "before the run"
    return [("k-anonymity", f"k = {claim.k:,}", f"{note}{1 - claim.alpha:.2g}, claimed {when}")]


def regime_rows(result: RunResult) -> list[_Row]:
    """Return what limits a run, and what to do about it, where that is known."""
    regime = regime_of_run(result.layers)
    if regime is None:
        return []
    share = f"about {regime.noise_share:.0%} of prefixes kept where words were lost are noise"
    return [("limited by", regime.limit, f"{share}: {regime.advice}")]


def estimate_rows(result: RunResult) -> list[_Row]:
    """Return how far estimates are off, and how often the truth is within what a run states."""
    metrics, what = result.metrics, estimated_of(result.protocol.plan)
    rows: list[_Row] = []
    if metrics.interval_coverage is not None:
        note = (
            f"words with their {what} within clients_low to clients_high; "
            f"{_share(metrics.lower_bound_coverage)} have at least clients_low holders"
        )
        rows.append(("interval coverage", f"{metrics.interval_coverage:.1%}", note))
    elif metrics.within_two_std is not None:
        note = f"held words whose holders are that close to their estimated {what}"
        rows.append(("within 2 std. errors", f"{metrics.within_two_std:.1%}", note))
    if metrics.count_error_relative_significant is not None:
        note = f"mean of |estimated {what} - holders| / holders over significant words"
        rows.append(("count error", f"{metrics.count_error_relative_significant:.1%}", note))
    return rows


def _words(result: RunResult, num_words: int) -> TextTable:
    shown = result.discoveries.head(num_words)
    plan = result.protocol.plan
    notes = [falls_short(plan), below_zero(result, shown)]
    known = "contributing_clients" in shown
    return TextTable(
        title=f"discovered words, the first {len(shown):,} of {len(result.discoveries):,}",
        columns=(
            "word", "pass", f"estimated {estimated_of(plan)}", "± 2 std. errors",
            *(["true contributors"] if known else []), "true holders", "true count",
        ),
        rows=tuple(
            (
                row["word"], str(row["pass"]), f"{row['estimated_clients']:,.0f}",
                f"{2 * row['std_error']:,.0f}", *true_numbers(row), f"{row['true_count']:,}",
            )
            for row in shown.to_dict("records")
        ),
        note="",
        caption="\n".join(note for note in notes if note),
    )  # fmt: skip


def true_numbers(row: dict[Any, Any]) -> list[str]:
    """Return a discovered word's true contributors, where a run knows them, and holders."""
    holders = f"{row['true_clients']:,}"
    if "contributing_clients" not in row:
        return [holders]
    said = row["contributing_clients"]
    return ["-" if math.isnan(said) else f"{said:,.0f}", holders]


def estimated_of(plan: Plan) -> str:
    """Return whom estimates count: "contributors" of a word, or its "holders"."""
    return "holders" if _scales_up(plan) else "contributors"


def falls_short(plan: Plan) -> str:
    """Return what estimates are about, and why they may lie below a word's holders."""
    if _scales_up(plan):
        return (
            "A client says one member of its padded set, and counts are scaled up; what larger "
            "sets lose is made up in the mean over all words, if at all."
        )
    return (
        f"Contributors say the word when asked. Clients with more than {plan.max_items} candidates "
        f"say {plan.max_items}, so estimates are lower bounds on holders, up to their error."
    )


def _scales_up(plan: Plan) -> bool:
    return plan.is_of_whole_set and not plan.false_discovery_rate


def _layers(layers: pd.DataFrame) -> Columns:
    counts = ("num_clients", "num_reports", "num_candidates", "num_kept")
    rows = [
        (
            str(row["pass"]),
            "validation" if row["kept_by"] in ("validation", "evidence") else str(row["layer"]),
            *(f"{row[key]:,}" for key in counts),
            # Where votes of several rounds decide, no number of one round's votes does.
            f"{row['threshold']:,}" if row["kept_by"] in _BY_VOTES else "-",
            f"{row['coverage']:.1%}",
        )
        for row in layers.to_dict("records")
    ]
    return Columns(
        heads=(
            "pass", "layer", "clients", "reports", "prefixes", "kept", "threshold", "coverage",
        ),
        rows=rows,
    )  # fmt: skip


def _privacy(report: PrivacyReport, *, measured: str) -> Iterator[Line]:
    smallest = min(each.smallest_cohort for each in report.guarantees)
    yield Line("")
    yield Line("privacy: what this run can claim", "italic")
    head = f"unit  against  {'bound':<33}{'epsilon or k':>13}  delta"
    yield Line(head, "bold", is_whole=True)
    for row in report.rows():
        value, _, reason = (row["epsilon"] or f"k = {row['k']}").partition(": ")
        reader = "server" if row["trust"] == "local" else "reader"
        value = "none" if reason or value == "inf" else value
        line = f"{row['unit']:<6}{reader:<9}{row['method']:<33}{value:>13}  {row['delta']}"
        yield Line(line, is_whole=True)
        notes = [row["theorem"], reason, row["note"]]
        yield Line("; ".join(note for note in notes if note), "dim", indent=6)
    yield Line(
        f"* the smallest valid bound of its unit and reader. Smallest cohort: {smallest:,} clients."
    )
    yield from map(Line, (measured, *report.notes, ""))


def _measured_anonymity(result: RunResult) -> str:
    metrics = result.metrics
    fewest, significant = metrics.fewest_holders, metrics.fewest_holders_significant
    share = metrics.share_held_by_at_most_k
    if fewest is None:
        return "Measured anonymity: nothing was discovered."
    text = f"Measured anonymity: clients that hold the rarest discovered word: {fewest:,}"
    if significant is not None:
        text += f", the rarest significant one: {significant:,}"
    return text + ("." if share is None else f"; {share:.1%} of words held by at most k clients.")
