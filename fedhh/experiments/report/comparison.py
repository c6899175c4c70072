"""Protocols side by side: one table, a column for each protocol, means over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.config.labels import listed, round_up, short_label, value_text
from fedhh.experiments.config.schema import Config
from fedhh.experiments.report.cells import record_of
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.central_target import LOCAL_EPSILON, TARGETS
from fedhh.experiments.sweep.columns import follows
from fedhh.experiments.sweep.directory import flat_result
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.validation import InputError

CENTRAL = "central_epsilon"
CLAIMED_K = "claimed_k"

_HALF = "Mean ± half the"

SERVER_SECONDS = "server"
"""Column of the server's processor time; of the timings, not of the results."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A row of the table.

    Attributes:
        column: Column of the results.
        label: What the table calls it.
        text: Returns a mean as text.
        half: Returns half an interval's width as text.
    """

    column: str
    label: str
    text: Callable[[float], str]
    half: Callable[[float], str]


def _share(column: str, label: str) -> Measure:
    return Measure(column=column, label=label, text="{:.1%}".format, half=_points)


def _points(half: float) -> str:
    return f"{100 * half:.1f}"


def _epsilon(column: str, label: str) -> Measure:
    return Measure(column=column, label=label, text=round_up, half="{:.3f}".format)


def _count(column: str, label: str) -> Measure:
    return Measure(column=column, label=label, text="{:,.0f}".format, half="{:,.0f}".format)


def _bytes_at_most(column: str, label: str) -> Measure:
    def text(bits: float) -> str:
        return f"{whole_bytes(bits):,} B"

    def half(bits: float) -> str:
        return f"{bits / 8:,.0f} B"

    return Measure(column=column, label=f"{label}, at most", text=text, half=half)


def whole_bytes(bits: float) -> int:
    """Return how many bytes hold at most so many bits, an expected length.

    >>> whole_bytes(379.5), whole_bytes(384)
    (48, 48)
    """
    # A mean of equal numbers may lie above them by its last digit.
    return math.ceil(bits / 8 * (1 - 1e-12))


_TRUNCATED = "discovered_truncated"
_CEILING = "ceiling_coverage"
_OF_CEILING = "share_of_ceiling"
_COUNT_ERROR = "count_error_relative_significant"
_QUALITY = (
    _share("coverage", "coverage"),
    _share(_CEILING, "ceiling of coverage"),
    _share(_OF_CEILING, "share of the ceiling"),
    _share("precision", "precision"),
    _share("precision_significant", "precision of the significant"),
    Measure(
        column=_TRUNCATED,
        label="cut words among the false",
        text="{:,.1f}".format,
        half="{:,.1f}".format,
    ),
    _share("recall", "recall"),
    _share("f1", "F1"),
)
_COST = (
    _share(_COUNT_ERROR, "count error of the significant"),
    _epsilon("local_epsilon", "local epsilon, item"),
    _epsilon("local_epsilon_user", "local epsilon, user"),
    _epsilon("central_epsilon_before_run", "central epsilon before the run, item"),
    _epsilon(CENTRAL, "central epsilon after the run, item"),
    _epsilon("central_epsilon_user_before_run", "central epsilon before the run, user"),
    _epsilon("central_epsilon_user", "central epsilon after the run, user"),
    _count(CLAIMED_K, "k-anonymity, claimed"),
    _count("clients_asked", "clients asked"),
    _count("rounds", "rounds"),
    _bytes_at_most("upload_bits_per_client_max", "upload per client"),
    _bytes_at_most("download_bits_per_client_max", "download per client"),
    Measure(
        column=SERVER_SECONDS,
        label="server, CPU seconds",
        text="{:.2f}".format,
        half="{:.2f}".format,
    ),
)
_CHOSEN = (
    _epsilon(LOCAL_EPSILON, "local epsilon, chosen"),
    Measure(column="delta", label="delta", text="{:g}".format, half="{:g}".format),
)
"""Rows of a comparison at one central epsilon."""
_SHORT = {
    "coverage", _CEILING, _OF_CEILING, "precision", "recall", _COUNT_ERROR,
    "central_epsilon_before_run", CENTRAL, "central_epsilon_user_before_run",
    "central_epsilon_user", CLAIMED_K, "rounds", "upload_bits_per_client_max",
    "download_bits_per_client_max", SERVER_SECONDS, _TRUNCATED,
}  # fmt: skip
_NOT_ZERO = re.compile(r"[1-9]")
_TOP = re.compile(r"(?:precision|recall|f1)_top_(\d+)")


def measures_of(table: pd.DataFrame) -> list[Measure]:
    """Return the measures that some results have numbers for, in the order of the rows."""
    tops = sorted({int(match[1]) for column in table if (match := _TOP.fullmatch(str(column)))})
    by_k = [
        _share(f"{metric}_top_{k}", f"{label} of the top {k:,}")
        for k in tops
        for metric, label in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
    ]
    chosen = _CHOSEN if any(axis in table for axis in TARGETS) else ()
    return [
        each
        for each in (*_QUALITY, *by_k, *chosen, *_COST)
        if each.column in table and _says_something(table[each.column])
    ]


def _says_something(column: pd.Series[Any]) -> bool:
    """Return whether a row would: few protocols cut words, and ceilings are seldom asked for."""
    if column.name == _TRUNCATED:
        return bool((column > 0).any())
    return column.name not in (_CEILING, _OF_CEILING) or bool(column.notna().any())


def comparison_table(
    table: pd.DataFrame,
    description: dict[str, Any],
    *,
    chosen: Callable[[str], bool] = lambda column: True,
) -> TextTable:
    """Return a column for each protocol, and a row for each measure.

    Args:
        table: Results, one row per cell and seed, with a column "protocol" of labels and, if the
            times are known, `SERVER_SECONDS`.
        description: ``title`` and ``axes`` of the sweep; if other settings vary than the protocol,
            rows are repeated for each combination of them; those that follow from others have no
            column, but are in the records.
        chosen: Says of a column of the results whether it gets a row.

    Raises:
        InputError: The results are not of several protocols.
    """
    if PROTOCOL not in table:
        raise InputError(
            "These results do not list protocols; make them with fedhh compare, or with "
            "[sweep.protocols] in a sweep's file."
        )
    others = [path for path in description["axes"] if path != PROTOCOL and path in table]
    # What goes with another setting, as clients with a population, says nothing in a column.
    named = [path for i, path in enumerate(others) if not follows(table, others[:i], path)]
    labels = list(dict.fromkeys(table[PROTOCOL]))
    measures = [measure for measure in measures_of(table) if chosen(measure.column)]
    parts = _parts(table, others)
    runs = {
        (number, label): chosen
        for number, (_, part) in enumerate(parts)
        for label in labels
        if not (chosen := part[part[PROTOCOL] == label]).empty
    }
    means = _means(list(runs.values()), measures)
    texts = {
        key: [_cell(*each) for each in zip(row, measures, strict=True)]
        for key, row in zip(runs, means, strict=True)
    }
    nothing = ["-"] * len(measures)
    rows = [
        (
            *(value_text(x) for path, x in zip(others, values, strict=True) if path in named),
            measure.label,
            *(texts.get((number, label), nothing)[line] for label in labels),
        )
        for number, (values, _) in enumerate(parts)
        for line, measure in enumerate(measures)
    ]
    records = [
        {
            **dict(zip(others, parts[number][0], strict=True)),
            PROTOCOL: label,
            "seeds": chosen["seed"].nunique(),
            **_record(row, measures),
        }
        for ((number, label), chosen), row in zip(runs.items(), means, strict=True)
    ]
    counts = [record["seeds"] for record in records]
    over = "One seed." if max(counts) == 1 else f"{interval_text(counts, mean=_HALF)}."
    return TextTable(
        title=description["title"],
        columns=(*(short_label(path) for path in named), "", *labels),
        rows=tuple(rows),
        note=" ".join(
            [
                over,
                *filter(None, [description.get("clients", "")]),
                *_meanings(table, measures),
                *_equal_note(table),
                _central_note(table),
                *_anonymity_notes(table, measures),
            ]
        ),
        labels=len(named) + 1,
        records=tuple(records),
    )


def _meanings(table: pd.DataFrame, measures: Sequence[Measure]) -> list[str]:
    """Return sentences that say what the rows' words mean, see `metrics.measure`."""
    shown = {measure.column for measure in measures}
    notes = []
    if _CEILING in shown:
        notes.append(
            "Ceiling: coverage of one round of Subset Selection that asks all clients about the "
            "held words alone, with the same epsilon and B, after Benjamini-Hochberg at 5 %."
        )
    if "recall" in shown and "min_clients" in table:
        numbers = sorted(table["min_clients"].dropna().unique())
        fewest = " or ".join(f"{number:,.0f}" for number in numbers)
        notes.append(f"Recall is over the words held by at least {fewest} clients.")
    if any(column.startswith("f1") for column in shown):
        notes.append("F1 is the harmonic mean of precision and recall.")
    if any(_TOP.search(column) for column in shown):
        notes.append(
            "Of the top K: the K largest estimates against the K words held by most clients."
        )
    if "precision" in shown:
        notes.append("Words cut to the longest length that a protocol spells count as false.")
    if _COUNT_ERROR in shown:
        notes.append(
            "Count error: mean of |estimated - true| / true clients over significant discoveries "
            "that somebody holds."
        )
    if "population_clients" in table and (
        "clients_asked" in shown and (table["clients_asked"] > table["population_clients"]).any()
    ):
        notes.append("Clients asked in several rounds count in each.")
    return notes


def _equal_note(table: pd.DataFrame) -> list[str]:
    """Return what is equal where epsilons were chosen for one central epsilon."""
    return [
        f"Equal privacy: every protocol's epsilons are chosen so that the central epsilon before "
        f"the run, of one {unit} (neighbors swap one {unit}), is at most "
        f"{' or '.join(value_text(each) for each in dict.fromkeys(table[axis]))} at delta "
        f"{_deltas(table)}, and as near to it as the accounting comes."
        for axis, unit in TARGETS.items()
        if axis in table
    ]


def _deltas(table: pd.DataFrame) -> str:
    return ", ".join(f"{delta:g}" for delta in sorted(table["delta"].unique()))


def _central_note(table: pd.DataFrame) -> str:
    note = (
        f"Central epsilons are at delta {_deltas(table)}, against readers of the results, for "
        "neighbors that swap one item or one user; before the run for any domains that its votes "
        "may decide, after it for those that they did"
    )
    unrandomized = np.isinf(table["local_epsilon"]) & np.isfinite(table[CENTRAL])
    return note + ("; without a randomizer, at the theorem's delta." if unrandomized.any() else ".")


def _anonymity_notes(table: pd.DataFrame, measures: Sequence[Measure]) -> list[str]:
    """Return what k means, where some run claims one."""
    if CLAIMED_K not in {measure.column for measure in measures} or "alpha" not in table:
        return []
    alphas = ", ".join(f"{alpha:g}" for alpha in sorted(table["alpha"].dropna().unique()))
    if not alphas:
        return []
    return [
        f"k-anonymity at alpha {alphas}: a word that at most k clients hold returns with "
        "probability at most 1 - alpha."
    ]


def comparison_of_runs(runs: Sequence[tuple[Config, RunResult]]) -> TextTable:
    """Return a short table of some runs, each with its configuration, on the same clients."""
    rows = [
        {
            PROTOCOL: run.protocol.title,
            "seed": run.seed,
            **numbers_of(flat_result(run, delta=config.privacy.delta)),
            SERVER_SECONDS: run.timings["server"],
        }
        for config, run in runs
    ]
    title = f"{listed([row[PROTOCOL] for row in rows])} on the same clients"
    return comparison_table(
        pd.DataFrame(rows), {"title": title, "axes": [PROTOCOL]}, chosen=_is_short
    )


def numbers_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return a flat result with infinities as numbers again."""
    return {name: math.inf if value == "inf" else value for name, value in record.items()}


def _is_short(column: str) -> bool:
    """Return whether a measure belongs to the short table of runs."""
    return column in _SHORT or column.startswith("f1_top_")


def _parts(
    table: pd.DataFrame, others: Sequence[str]
) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Return the values of all settings but the protocol, and the rows that have them."""
    if not others:
        return [((), table)]
    return list(table.groupby(list(others), sort=False, dropna=False))


def _means(
    runs: Sequence[pd.DataFrame], measures: Sequence[Measure]
) -> list[list[dict[str, Any] | None]]:
    """Return, for the runs of each protocol in each setting, every measure's mean over seeds.

    A mean is a row of `summarize`, with half its interval as it is before a share's is cut; None
    if no run has the number. Of infinite numbers it is infinite, without an interval. All means of
    a measure are made at once: one by one takes long.
    """
    number = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
    together = pd.concat(runs, ignore_index=True)
    means: list[list[dict[str, Any] | None]] = [[] for _ in runs]
    for measure in measures:
        numbers = pd.to_numeric(together[measure.column])
        infinite = set(number[np.isinf(numbers)])
        table = pd.DataFrame({"of": number, measure.column: numbers, "uncut": numbers})
        finite = table[~table["of"].isin(infinite)]
        uncut = summarize(finite, ["of"], "uncut")
        summary = summarize(finite, ["of"], measure.column).assign(
            half=uncut["high"] - uncut["mean"]
        )
        found: dict[int, Any] = {row["of"]: row for row in summary.to_dict("records")}
        for which, row in enumerate(means):
            row.append({"mean": math.inf} if which in infinite else found.get(which))
    return means


def _record(
    means: Sequence[dict[str, Any] | None], measures: Sequence[Measure]
) -> dict[str, float | None]:
    """Return mean, low and high of every measure as numbers, by the columns of the results."""
    record: dict[str, float | None] = {}
    for measure, mean in zip(measures, means, strict=True):
        if mean is not None and math.isinf(mean["mean"]):
            record |= {f"{measure.column}_mean": math.inf}
        else:
            record |= record_of(measure.column, mean)
    return record


def _cell(mean: dict[str, Any] | None, measure: Measure) -> str:
    """Return a measure's mean over seeds, and half its interval if seeds differ."""
    if mean is None:
        return "-"
    text = measure.text(float(mean["mean"]))
    if math.isinf(mean["mean"]):
        return text
    half = measure.half(float(mean["half"]))
    # What rounds to nothing, and the missing interval of one seed, are left out.
    return f"{text} ± {half}" if _NOT_ZERO.search(half) else text
