"""What a person sees when a run ends: the result in brief."""

from __future__ import annotations

from collections.abc import Iterator

from fedhh.experiments.report.run_tables import (
    estimate_rows,
    estimated_of,
    falls_short,
    fidelity_rows,
    regime_rows,
    true_numbers,
)
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.sentences import below_zero, privacy_sentence, sentence
from fedhh.experiments.study.parts import Columns, Line, Part
from fedhh.experiments.study.text_table import TextTable

_TOP_WORDS = 10
_EMPTY = Line("")


def brief_of(result: RunResult, beside: TextTable | None = None) -> Iterator[Part]:
    """Yield a run's result in one sentence, its top words and its privacy.

    Args:
        result: The run.
        beside: The comparison with its baselines, if there are any.
    """
    yield Line(f"{result.protocol.title} on {result.population['name']}", style="bold")
    yield Line(sentence(result))
    rows = (*fidelity_rows(result.simulation), *regime_rows(result), *estimate_rows(result))
    for what, value, note in rows:
        yield Line(f"{what.capitalize()} {value}: {note}.")
    yield _EMPTY
    top = result.discoveries.head(_TOP_WORDS)
    if len(top):
        known = ["true contributors"] if "contributing_clients" in top else []
        estimated = f"{estimated_of(result.protocol.plan)} ± 2 std. errors"
        heads = ("", "top words", estimated, *known, "true holders")
        words = [
            (
                str(number),
                row["word"],
                f"{row['estimated_clients']:,.0f} ± {2 * row['std_error']:,.0f}",
                *true_numbers(row),
            )
            for number, row in enumerate(top.to_dict("records"), start=1)
        ]
        yield Columns(heads=heads, rows=words, label=1)
        yield Line(falls_short(result.protocol.plan), style="dim")
        reason = below_zero(result, top)
        if reason is not None:
            yield Line(reason, style="dim")
        yield _EMPTY
    if beside is not None:
        yield beside
        yield _EMPTY
    yield Line(privacy_sentence(result))
    yield _EMPTY
