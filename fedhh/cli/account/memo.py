"""`fedhh account memo`: what all reports of a device say, memoised and with fresh noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import (
    Bits,
    Buckets,
    ChanceFromOne,
    ChanceFromZero,
    Drawn,
    Gamma,
    Hashes,
    SampleSeed,
    settings_given,
)
from fedhh.cli.options import FigureOption, TableFormat, TableFormatOption
from fedhh.cli.text_tables import round_up

if TYPE_CHECKING:
    from fedhh.experiments.study.parts import Part
    from fedhh.experiments.study.text_table import TextTable
    from fedhh.longitudinal.memoization import DailyAnswer, LifeEpsilon, MemoAccount, Observer


def memo(  # noqa: PLR0917 - typer makes these options, none is positional
    answer: Annotated[
        str, typer.Option(help="rappor, one-bit-mean, dbitflip, or fresh for any oracle's noise.")
    ],
    local_epsilon: Annotated[
        float,
        typer.Option(help="Of all reports about one value, however many; with fresh, of one."),
    ],
    days: Annotated[int, typer.Option(help="A report on each, 1 to 1000.")],
    changes: Annotated[int, typer.Option(help="How often the value of a life changes.")] = 1,
    bits: Bits = None,
    hashes: Hashes = None,
    p: ChanceFromZero = None,
    q: ChanceFromOne = None,
    gamma: Gamma = None,
    buckets: Buckets = None,
    drawn: Drawn = None,
    oracle: Annotated[str | None, typer.Option(help="fresh: an oracle's key; grr if none.")] = None,
    domain_size: Annotated[int | None, typer.Option(help="fresh: values; 10 if none.")] = None,
    crowd: Annotated[
        int | None,
        typer.Option(help="Find the device again among so many, by simulation; 2 to 10000."),
    ] = None,
    seed: SampleSeed = 0,
    figure: FigureOption = None,
    output_format: TableFormatOption = TableFormat.TABLE,
) -> None:
    """What an observer of all reports of a device learns over days: memoised against fresh noise.

    Of the two values that are told apart best: the epsilon of always the one against always the
    other, how often the best observer is right which it was, and whether the value changed. 50% is
    guessing. Unit: all reports of one device, linked.

    Example: fedhh account memo --answer rappor --local-epsilon 4.4 --days 365 --figure memo.png
    """
    from fedhh.cli.text_tables import print_result
    from fedhh.longitudinal.memoization import account_memo
    from fedhh.validation import InputError

    settings = settings_given(
        answer,
        bits=bits,
        hashes=hashes,
        p=p,
        q=q,
        gamma=gamma,
        buckets=buckets,
        drawn=drawn,
        oracle=oracle,
        domain_size=domain_size,
    )
    if answer == "fresh" and crowd is not None:
        raise InputError(
            "Expected no --crowd with --answer fresh: nothing links a device's reports."
        )
    found = account_memo(
        answer,
        local_epsilon=local_epsilon,
        days=days,
        changes=changes,
        crowd=crowd,
        seed=seed,
        **settings,
    )
    if figure is not None:
        from fedhh.longitudinal.report.memoization_figures import plot_memo

        plot_memo(figure, found.rows, forever=found.answer.epsilon_forever, title=found.title)
    print_result(output_format, found.to_dict, _parts(found, crowd), figure=figure)


def _parts(memo: MemoAccount, crowd: int | None) -> Iterator[Part]:
    from fedhh.experiments.study.parts import Line

    yield Line(f"{memo.title}: all reports of one device, linked; delta 0")
    yield from _tables(memo)
    for text in _notes(memo):
        yield Line(text)
    if memo.found is not None:
        found, days = memo.found, memo.rows[-1].days
        yield Line(
            f"Found again among {crowd} devices with the same value, {days} reports under each of "
            f"two pseudonyms: {100 * found.right:.1f}% (99% interval {100 * found.lower:.1f} to "
            f"{100 * found.upper:.1f}, {found.num_trials} trials simulated); by chance "
            f"{100 * found.by_chance:.3g}%."
        )


def _tables(memo: MemoAccount) -> tuple[TextTable, TextTable]:
    from fedhh.experiments.study.text_table import TextTable

    fresh = memo.name == "fresh"
    kinds = ("fresh",) if fresh else ("memoised", "fresh")
    value, change = [], []
    for row in memo.rows:
        days = str(row.days)
        cells = [days, _epsilon(row.value), _share(row.value_told)]
        if not fresh:
            cells += [_epsilon(row.value_if_fresh), _share(row.value_told_if_fresh)]
        value.append(tuple(cells))
        cells = [days, _epsilon(row.change), _share(row.change_told)]
        if not fresh:
            cells += [_share(row.change_told_if_fresh), _epsilon(row.one_day), _share(row.linked)]
        change.append(tuple(cells))
    told = ["epsilon, B on one day", "one device or two?"] if not fresh else []
    return (
        TextTable(
            title="always A, or always B?",
            columns=(
                "days",
                *(f"{kind}: {what}" for kind in kinds for what in ("epsilon", "told")),
            ),
            rows=tuple(value),
            note="",
        ),
        TextTable(
            title=f"always A, or A and B with {memo.changes} change{'s' * (memo.changes > 1)}?",
            columns=("days", "epsilon", *(f"{kind}: told" for kind in kinds), *told),
            rows=tuple(change),
            note="",
        ),
    )


def _share(observer: Observer | None) -> str:
    """Return how often an observer is right, between bounds where they differ."""
    if observer is None:
        return "-"
    low, high = (f"{100 * bound:.1f}" for bound in (observer.lower, observer.upper))
    if low == "100.0" and observer.lower < 1:
        return ">99.9%"
    return f"{low}%" if low == high else f"{low}-{high}%"


def _epsilon(epsilon: LifeEpsilon | None) -> str:
    """Return an epsilon rounded up, large ones to whole numbers."""
    if epsilon is None:
        return "-"
    if not math.isfinite(epsilon.epsilon):
        return round_up(epsilon.epsilon)
    digits = 1e3 if epsilon.epsilon < 100 else 1.0
    return _rounded(math.ceil(epsilon.epsilon * digits - 1e-6) / digits)


def _rounded(epsilon: float) -> str:
    """Return an epsilon rounded up, but for what floating point has added."""
    return round_up(epsilon * (1 - 1e-12))


def _pattern_text(answer: DailyAnswer, width: int) -> str:
    epsilon = answer.epsilon_of_same_pattern(width)
    return f"epsilon {_rounded(epsilon)}" if math.isfinite(epsilon) else "nothing bounds"


def _chance(probability: float) -> str:
    """Return a probability below 1 with four digits, never rounded to 1."""
    return ">0.9999" if probability >= 0.99995 else f"{probability:.4f}"


def _notes(memo: MemoAccount) -> list[str]:
    """Return what the table's numbers are about, in sentences."""
    from fedhh.longitudinal.memoization import MemoisedBits
    from fedhh.longitudinal.memoization.memo_account import PATTERN_WIDTHS

    answer = memo.answer
    notes = [
        "told: how often the best observer is right; 50% is guessing. A and B are the two values "
        "that are told apart best.",
        f"One report: epsilon {_rounded(answer.epsilon_first)}. All reports about one value: "
        f"{_rounded(answer.epsilon_forever)}. Neighbors: always one value, always another.",
    ]
    visible = memo.response_changes
    if visible is not None:
        bounds = ", ".join(
            f"{width} {'value' if width == 1 else 'values'} {_pattern_text(answer, width)}"
            for width in PATTERN_WIDTHS
        )
        rounded = ", once rounded," if isinstance(answer, MemoisedBits) and answer.rounds else ""
        notes.append(
            f"Two lives whose values{rounded} repeat and differ on the same days: {bounds}."
        )
        notes.append(
            f"Not covered by that: with probability {_chance(visible)} a change between the two "
            "values changes the permanent response, and reports then show it."
        )
        notes.append(
            "One device or two: whether two pseudonyms with so many reports each about one value, "
            "with the same cohort or drawn buckets, are one device."
        )
    return notes
