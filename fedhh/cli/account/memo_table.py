"""What `fedhh account memo` computes and prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from fedhh.accounting.longitudinal import (
    LifeEpsilon,
    ObservedDays,
    Observer,
    find_device,
    observed_after,
)
from fedhh.cli.account.bounds import round_up
from fedhh.cli.console import open_console, print_json, print_written
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.bloom_filters import BitResponse, BloomFilters
from fedhh.oracles.memoised import (
    DailyAnswer,
    FreshAnswer,
    MemoisedBits,
    MemoisedDBitFlip,
    MemoisedOneBitMean,
    MemoisedRappor,
)
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_choice, require_epsilon

_LONGEST = 1000
_LARGEST_CROWD = 10_000
_TRIALS = 200
_MOST_BITS = 4096
_MOST_BITS_OF_CROWD = 2**22
_WIDTHS = (1, 2, 3)
"""Of patterns: how many distinct values a life has."""
_SHOWN_DAYS = (1, 2, 3, 7, 14, 30, 60, 90, 180, 365, 730)

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "rappor": {"bits": 128, "hashes": 2, "p": 0.5, "q": 0.75},
    "one-bit-mean": {"gamma": 0.0},
    "dbitflip": {"buckets": 32, "drawn": 4, "gamma": 0.0},
    "fresh": {"oracle": "grr", "domain_size": 10},
}


def memo_command(
    name: str,
    *,
    local_epsilon: float,
    days: int,
    changes: int,
    given: Mapping[str, Any],
    crowd: int | None,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print, and perhaps draw, what all reports of a device say after some days.

    Raises:
        InputError: A value out of range, an option of another answer, or a figure's name.
    """
    settings = settings_of(name, given)
    require_at_least(1, days=days, changes=changes)
    if days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={days}.")
    answer = make_answer(name, local_epsilon, settings)
    if crowd is not None:
        _check_crowd(answer, crowd)
    require_at_least(0, seed=seed)
    if plot is not None:
        from fedhh.experiments.report.account_figures import check_figure
        from fedhh.experiments.report.memo_figures import plot_memo

        check_figure(plot)
    shown = sorted({each for each in _SHOWN_DAYS if each < days} | {days})
    rows = observed_after(answer, shown, changes=changes)
    found = None
    if crowd is not None:
        assert isinstance(answer, MemoisedBits)
        found = find_device(
            answer,
            days=days,
            num_devices=crowd,
            num_trials=_TRIALS,
            rng=generator(seed, Stream.MEMO),
        )
    if plot is not None:
        plot_memo(plot, rows, forever=answer.epsilon_forever, title=_title(name, settings))
    if as_json:
        content = _as_json(name, answer, settings, rows, changes)
        print_json({**content, "found_in_crowd": None if found is None else asdict(found)})
        return
    _print_table(name, answer, settings, rows, changes)
    if found is not None:
        open_console().print(
            f"Found again among {crowd} devices with the same value, {days} reports under each of "
            f"two pseudonyms: {100 * found.right:.1f}% (99% interval {100 * found.lower:.1f} to "
            f"{100 * found.upper:.1f}, {found.num_trials} trials simulated); by chance "
            f"{100 * found.by_chance:.3g}%."
        )
    if plot is not None:
        print_written(plot)


def settings_of(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's options, given or by default; raise InputError for another's."""
    require_choice(_DEFAULTS, answer=name)
    settings = dict(_DEFAULTS[name])
    for option, value in given.items():
        if value is None:
            continue
        if option not in settings:
            takes = ", ".join(f"--{each.replace('_', '-')}" for each in settings)
            raise InputError(
                f"Expected no --{option.replace('_', '-')} with --answer {name}, which takes "
                f"{takes}."
            )
        settings[option] = value
    return settings


def make_answer(name: str, local_epsilon: float, settings: Mapping[str, Any]) -> DailyAnswer:
    """Return the answer; its farthest values are asked for, so that a bad one fails here."""
    require_epsilon(local_epsilon=local_epsilon)
    answer: DailyAnswer
    if name == "rappor":
        answer = MemoisedRappor(
            filters=BloomFilters(
                num_bits=settings["bits"],
                num_hashes=settings["hashes"],
                num_cohorts=1,
                hash_seed=0,
            ),
            response=BitResponse.of_all_reports(
                local_epsilon, num_hashes=settings["hashes"], p=settings["p"], q=settings["q"]
            ),
        )
    elif name == "one-bit-mean":
        answer = MemoisedOneBitMean(epsilon=local_epsilon, maximum=1.0, gamma=settings["gamma"])
    elif name == "dbitflip":
        answer = MemoisedDBitFlip(
            epsilon=local_epsilon,
            num_buckets=settings["buckets"],
            num_drawn=settings["drawn"],
            gamma=settings["gamma"],
        )
    else:
        spec = OracleSpec(name=settings["oracle"], epsilon=local_epsilon)
        answer = FreshAnswer(oracle=make_oracle(spec, settings["domain_size"]))
    if isinstance(answer, MemoisedBits):
        if answer.num_bits > _MOST_BITS:
            raise InputError(
                f"Expected reports of at most {_MOST_BITS} bits, got {answer.num_bits}."
            )
        _ = answer.farthest
    return answer


def _check_crowd(answer: DailyAnswer, crowd: int) -> None:
    """Raise InputError unless a device can be looked for in a crowd of this size."""
    if not isinstance(answer, MemoisedBits):
        raise InputError(
            "Expected no --crowd with --answer fresh: nothing links a device's reports."
        )
    largest = min(_LARGEST_CROWD, _MOST_BITS_OF_CROWD // answer.num_bits)
    if not 2 <= crowd <= largest:
        raise InputError(
            f"Expected 2 <= crowd <= {largest}, with reports of {answer.num_bits} bits, got "
            f"crowd={crowd}."
        )


def _title(name: str, settings: Mapping[str, Any]) -> str:
    """Return the answer with its settings, in words."""
    return f"{name} ({', '.join(f'{key} {value}' for key, value in settings.items())})"


def _visible_change(answer: DailyAnswer) -> float | None:
    """Return how likely a change between the farthest values changes the permanent response."""
    if not isinstance(answer, MemoisedBits):
        return None
    equal = 1.0
    for pair in answer.farthest:
        same = pair.first * pair.second + (1 - pair.first) * (1 - pair.second)
        equal *= same**pair.times
    return 1 - equal


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _epsilon_json(epsilon: LifeEpsilon | None) -> dict[str, Any] | None:
    return None if epsilon is None else {**asdict(epsilon), "epsilon": _finite(epsilon.epsilon)}


def _observer_json(observer: Observer | None) -> dict[str, Any] | None:
    return None if observer is None else asdict(observer)


def _as_json(
    name: str,
    answer: DailyAnswer,
    settings: Mapping[str, Any],
    rows: list[ObservedDays],
    changes: int,
) -> dict[str, Any]:
    """Return everything as JSON values; null for an epsilon that nothing bounds."""
    return {
        "answer": name,
        "settings": dict(settings),
        "unit": "user: all reports of a device, linked",
        "delta": 0.0,
        "epsilon_first": answer.epsilon_first,
        "epsilon_forever": _finite(answer.epsilon_forever),
        "epsilon_same_pattern": {
            str(width): _finite(answer.epsilon_of_same_pattern(width)) for width in _WIDTHS
        },
        "public_bits": answer.public_bits,
        "permanent_response_changes": _visible_change(answer),
        "changes": changes,
        "days": [
            {
                "days": row.days,
                **{
                    key: _epsilon_json(getattr(row, key))
                    for key in ("value", "value_if_fresh", "one_day", "change")
                },
                **{
                    key: _observer_json(getattr(row, key))
                    for key in (
                        "value_told",
                        "value_told_if_fresh",
                        "change_told",
                        "change_told_if_fresh",
                        "linked",
                    )
                },
            }
            for row in rows
        ],
    }


def _share(observer: Observer | None) -> str:
    """Return how often an observer is right, between bounds where they differ."""
    if observer is None:
        return "-"
    low, high = (f"{100 * bound:.1f}" for bound in (observer.lower, observer.upper))
    if low == "100.0" and observer.lower < 1:
        return ">99.9%"
    return f"{low}%" if low == high else f"{low}-{high}%"


def _epsilon_text(epsilon: LifeEpsilon | None) -> str:
    """Return an epsilon rounded up, large ones to whole numbers."""
    if epsilon is None:
        return "-"
    digits = 1e3 if epsilon.epsilon < 100 else 1.0
    return _rounded(float(np.ceil(epsilon.epsilon * digits - 1e-6) / digits))


def _rounded(epsilon: float) -> str:
    """Return an epsilon rounded up, but for what floating point has added."""
    return round_up(epsilon * (1 - 1e-12))


def _print_table(
    name: str,
    answer: DailyAnswer,
    settings: Mapping[str, Any],
    rows: list[ObservedDays],
    changes: int,
) -> None:
    console = open_console()
    console.print(f"{_title(name, settings)}: all reports of one device, linked; delta 0")
    fresh = name == "fresh"
    value = Table(title="always A, or always B?")
    change = Table(title=f"always A, or A and B with {changes} change{'s' * (changes > 1)}?")
    kinds = ("fresh",) if fresh else ("memoised", "fresh")
    for heading in ("days", *(f"{kind}: {what}" for kind in kinds for what in ("epsilon", "told"))):
        value.add_column(heading, justify="right")
    change_columns = ["days", "epsilon", *(f"{kind}: told" for kind in kinds)]
    if not fresh:
        change_columns += ["epsilon, B on one day", "one device or two?"]
    for heading in change_columns:
        change.add_column(heading, justify="right")
    for row in rows:
        cells = [_epsilon_text(row.value), _share(row.value_told)]
        if not fresh:
            cells += [_epsilon_text(row.value_if_fresh), _share(row.value_told_if_fresh)]
        value.add_row(str(row.days), *cells)
        cells = [_epsilon_text(row.change), _share(row.change_told)]
        if not fresh:
            cells += [_share(row.change_told_if_fresh)]
            cells += [_epsilon_text(row.one_day), _share(row.linked)]
        change.add_row(str(row.days), *cells)
    console.print(value)
    console.print(change)
    for line in _notes(answer):
        console.print(line)


def _pattern_text(answer: DailyAnswer, width: int) -> str:
    epsilon = answer.epsilon_of_same_pattern(width)
    return f"epsilon {_rounded(epsilon)}" if math.isfinite(epsilon) else "nothing bounds"


def _chance(probability: float) -> str:
    """Return a probability below 1 with four digits, never rounded to 1."""
    return ">0.9999" if probability >= 0.99995 else f"{probability:.4f}"


def _notes(answer: DailyAnswer) -> list[str]:
    """Return what the table's numbers are about, in sentences."""
    notes = [
        "told: how often the best observer is right; 50% is guessing. A and B are the two values "
        "that are told apart best.",
        f"One report: epsilon {_rounded(answer.epsilon_first)}. All reports about one value: "
        f"{_rounded(answer.epsilon_forever)}. Neighbors: always one value, always another.",
    ]
    visible = _visible_change(answer)
    if visible is not None:
        bounds = ", ".join(
            f"{width} {'value' if width == 1 else 'values'} {_pattern_text(answer, width)}"
            for width in _WIDTHS
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
