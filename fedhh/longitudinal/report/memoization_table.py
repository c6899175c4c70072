"""Tables of what an observer of a device's reports learns, memoized and with fresh noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.text_table import TextTable, round_up
from fedhh.longitudinal.memoization import LifeEpsilon, MemoAccount, MemoizedBits, Observer
from fedhh.longitudinal.memoization.memo_account import PATTERN_WIDTHS


def memo_parts(memo: MemoAccount, crowd: int | None = None) -> Iterator[Part]:
    """Yield the tables of an account, and what their numbers are about."""
    yield Line(f"{memo.title}: all reports of one device, linked; delta 0")
    yield from _tables(memo)
    yield from map(Line, _notes(memo))
    if memo.found is not None:
        found, days = memo.found, memo.rows[-1].days
        yield Line(
            f"Found again among {crowd} devices with the same value, {days} reports under each of "
            f"two pseudonyms: {100 * found.right:.1f}% (99% interval {100 * found.lower:.1f} to "
            f"{100 * found.upper:.1f}, {found.num_trials} trials simulated); by chance "
            f"{100 * found.by_chance:.3g}%."
        )


def _tables(memo: MemoAccount) -> Iterator[TextTable]:
    fresh = memo.name == "fresh"
    kinds = ("fresh",) if fresh else ("memoized", "fresh")
    value, change = [], []
    for row in memo.rows:
        values = [_epsilon(row.value), _share(row.value_distinguished)]
        changes = [_epsilon(row.change), _share(row.change_distinguished)]
        if not fresh:
            values += [_epsilon(row.value_if_fresh), _share(row.value_distinguished_if_fresh)]
            changes += [
                _share(row.change_distinguished_if_fresh),
                _epsilon(row.one_day),
                _share(row.linked),
            ]
        value.append((str(row.days), *values))
        change.append((str(row.days), *changes))
    yield TextTable(
        title="always A, or always B?",
        columns=("days", *(f"{kind}: {what}" for kind in kinds for what in ("epsilon", "success"))),
        rows=tuple(value),
        note="",
    )
    links = ("epsilon, B on one day", "one device or two?") if not fresh else ()
    yield TextTable(
        title=f"always A, or A and B with {memo.changes} change{'s' * (memo.changes > 1)}?",
        columns=("days", "epsilon", *(f"{kind}: success" for kind in kinds), *links),
        rows=tuple(change),
        note="",
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


def _notes(memo: MemoAccount) -> Iterator[str]:
    """Yield what the tables' numbers are about, in sentences."""
    answer = memo.answer
    yield (
        "success: how often the best observer is right; 50% is guessing. A and B are the two "
        "values that are easiest to distinguish."
    )
    yield (
        f"One report: epsilon {_rounded(answer.epsilon_first)}. All reports about one value: "
        f"{_rounded(answer.epsilon_forever)}. Neighbors: always one value, always another."
    )
    visible = memo.response_changes
    if visible is None:
        return
    bounds = []
    for width in PATTERN_WIDTHS:
        epsilon = answer.epsilon_of_same_pattern(width)
        text = f"epsilon {_rounded(epsilon)}" if math.isfinite(epsilon) else "nothing bounds"
        bounds.append(f"{width} {'value' if width == 1 else 'values'} {text}")
    rounded = ", once rounded," if isinstance(answer, MemoizedBits) and answer.rounds else ""
    yield (
        f"Two histories whose values{rounded} repeat and differ on the same days: "
        f"{', '.join(bounds)}."
    )
    # Below 1, and never rounded to it.
    chance = ">0.9999" if visible >= 0.99995 else f"{visible:.4f}"
    yield (
        f"Not covered by that: with probability {chance} a change between the two values changes "
        "the permanent response, and reports then show it."
    )
    yield (
        "One device or two: whether two pseudonyms with so many reports each about one value, "
        "with the same cohort or drawn buckets, are one device."
    )
