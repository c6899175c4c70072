"""Gboard's Table 1 and Figure 1 compared with what the paper and others state; `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from fedhh.arrays import Bools
from fedhh.experiments.config.labels import value_text
from fedhh.experiments.config.schema import Config
from fedhh.experiments.report.measures import (
    note_of,
    points,
    points_with_interval,
    record_of,
    with_interval,
)
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.columns import EXTRA, varying
from fedhh.experiments.sweep.directory import base_config
from fedhh.experiments.sweep.intervals import paired_gain, summarize
from fedhh.validation import InputError

_EPSILON, _SAMPLER, _PASSES, _COHORT = (
    "privacy.local_epsilon", "protocol.sampler", "protocol.passes", "protocol.clients_per_layer",
)  # fmt: skip
_TABLE_1_SETTINGS = {_SAMPLER, _PASSES, _COHORT}
_KEYS = ("paper", "independent", "full")
_OTHERS = ("paper", "independent", "full size")
_FULL_SIZE = 15_000_000
_SOURCE = "wordfreq-tail"
_FIGURE_1_WORDS = 100_000
_VOCABULARY = 60_000
"""What the population has that its configuration does not state."""
_NO_SUCH = "their users are not public; order, gains and shape are what can be compared"


@dataclass(frozen=True, kw_only=True)
class Published:
    """Coverage that others state for the cells of a sweep.

    Attributes:
        label: Whose.
        values: What they state, each for a cell with these values by path.
    """

    label: str
    values: tuple[tuple[dict[str, Any], float], ...]


@cache
def published() -> dict[str, Any]:
    """Return the content of `published.toml`, where its origin is said."""
    text = files("fedhh.experiments.report").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def fitting_table(table: pd.DataFrame, description: dict[str, Any]) -> str | None:
    """Return which of the paper's tables a sweep on clients of its kind repeats, if one."""
    config = base_config(description)
    if config is None or config.population.source != _SOURCE:
        return None
    grid = table[~table["beside_grid"]]
    if set(grid) >= _TABLE_1_SETTINGS and not _not_of_table_1(grid):
        rows = [_is_row(grid, row["sampler"], row["passes"]) for row in published()["table_1"]]
        if all(mask.any() for mask in rows):
            return "gboard-table1"
    return "gboard-figure1" if varying(grid) == [_EPSILON] else None


def published_to_compare(table: pd.DataFrame, description: dict[str, Any]) -> list[Published]:
    """Return what is to be drawn next to a sweep's coverage; nothing for most sweeps."""
    name = fitting_table(table, description)
    config = base_config(description)
    if name is None or config is None:
        return []
    is_table = name == "gboard-table1"
    words = _vocabulary(config) if is_table else _FIGURE_1_WORDS
    labels = (
        "paper", f"independent, {words:,} words", f"fedhh, full size, {words:,} words",
    )  # fmt: skip
    rows: list[tuple[dict[str, Any], Sequence[float | None]]]
    if is_table:
        rows = [
            ({_SAMPLER: row["sampler"], _PASSES: row["passes"]}, _stated_of(row, words))
            for row in published()["table_1"]
        ]
    else:
        curves = [published()["figure_1"][key] for key in _KEYS]
        epsilons = dict.fromkeys(x for curve in curves for x in curve)
        rows = [({_EPSILON: float(x)}, [curve.get(x) for curve in curves]) for x in epsilons]
    to_compare = [
        (label, [(cell, value) for cell, each in rows if (value := each[i]) is not None])
        for i, label in enumerate(labels[: len(_others(config))])
    ]
    return [Published(label=label, values=tuple(values)) for label, values in to_compare if values]


def table_1(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return the paper's Table 1 next to ours; cells outside the grid are none of its rows."""
    if missing := sorted(_TABLE_1_SETTINGS - set(table)):
        raise InputError(
            f"These results do not vary {', '.join(missing)}; make them with "
            "fedhh sweep --preset gboard-table1-quick."
        )
    grid = table[~table["beside_grid"]]
    if varied := _not_of_table_1(grid):
        raise InputError(
            f"Table 1 has one setting per sampler and passes, and these results also vary "
            f"{', '.join(varied)}; use fedhh show DIR --table summary, or run a sweep without them."
        )
    config = base_config(description)
    words, others = _VOCABULARY if config is None else _vocabulary(config), _others(config)
    rows, records = [], []
    earlier: tuple[Bools, float] | None = None
    for stated in published()["table_1"]:
        sampler, passes, paper = stated["sampler"], stated["passes"], stated["paper"]
        mask = _is_row(grid, sampler, passes)
        if not mask.any():
            raise InputError(f"These results lack sampler={sampler!r} with passes={passes}.")
        cohort, ours, values = (
            grid[mask][_COHORT].iloc[0],
            _mean(grid[mask]),
            _stated_of(stated, words),
        )
        paper_gain = None if earlier is None else paper - earlier[1]
        gain = None if earlier is None else paired_gain(grid, mask, earlier[0], "coverage")
        earlier = mask, paper
        rows.append(
            (
                sampler,
                str(passes),
                value_text(cohort),
                *map(_share, values[: len(others)]),
                with_interval(ours),
                "" if paper_gain is None else points(paper_gain),
                "" if gain is None else points_with_interval(gain),
            )
        )
        records.append(
            {
                **{_SAMPLER: sampler, _PASSES: passes, _COHORT: cohort},
                **_record(ours, values),
                "paper_gain": paper_gain,
                **record_of("gain", gain),
            }
        )
    return TextTable(
        title="Coverage as in Table 1 of Sun et al. (2024)",
        columns=(
            "sampling", "passes", "clients per layer", *others, "fedhh", "paper's gain",
            "fedhh's gain",
        ),
        rows=tuple(rows),
        note=(
            f"fedhh: {_population(table)}. {_beside(words, config)} {_note_of(records)} Gains are "
            "over the row above, seed by seed."
        ),
        labels=2,
        records=tuple(records),
    )  # fmt: skip


def figure_1(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return coverage by local epsilon next to the paper's one number and the others' curves."""
    grid = table[~table["beside_grid"]]
    config = base_config(description)
    if fitting_table(table, description) != "gboard-figure1":
        source = "other clients" if config is None else config.population.source
        raise InputError(
            f"Figure 1 varies {_EPSILON} alone on {_SOURCE}, and these results vary "
            f"{', '.join(varying(grid)) or 'nothing'} on {source}; use fedhh show DIR "
            "--table summary, or make them with fedhh sweep --preset gboard-figure1-quick."
        )
    stated, others = published()["figure_1"], _others(config)
    rows, records = [], []
    for _, part in table.groupby([_EPSILON, EXTRA], sort=False):
        epsilon, extra, ours = part[_EPSILON].iloc[0], part[EXTRA].iloc[0], _mean(part)
        values = [stated[key].get(f"{epsilon:g}") for key in _KEYS]
        if extra:
            unrandomized = set(part.get("protocol.oracle", [])) == {"none"}
            values = [None, None, stated["full_without_ldp"] if unrandomized else None]
        rows.append(
            (
                extra or value_text(epsilon),
                *map(_share, values[: len(others)]),
                with_interval(ours),
            )
        )
        setting = {_EPSILON: None if extra else epsilon, EXTRA: extra}
        records.append({**setting, **_record(ours, values)})
    return TextTable(
        title="Coverage as in Figure 1 of Sun et al. (2024)",
        columns=("epsilon", *others, "fedhh"),
        rows=tuple(rows),
        note=(
            f"fedhh: {_population(table)}. {_beside(_FIGURE_1_WORDS, config)} The paper's figure "
            f"has no numbers; the one at epsilon 10 is that of its Table 1. {_note_of(records)}"
        ),
        records=tuple(records),
    )


def _stated_of(row: dict[str, Any], words: int) -> list[float | None]:
    """Return what others state of a row of Table 1: the paper, and those with so many words."""
    return [row["paper"], *(row[key].get(str(words)) for key in _KEYS[1:])]


def _mean(rows: pd.DataFrame) -> dict[Any, Any]:
    return summarize(rows.assign(all="all"), ["all"], "coverage").iloc[0].to_dict()


def _record(ours: dict[Any, Any], values: Sequence[float | None]) -> dict[str, Any]:
    stated = zip(("paper", "independent", "full_size"), values, strict=True)
    return {"seeds": ours["seeds"], **dict(stated), **record_of("coverage", ours)}


def _note_of(records: Sequence[dict[str, Any]]) -> str:
    return note_of(record["seeds"] for record in records)


def _beside(words: int, config: Config | None) -> str:
    text = (
        f"Paper: 15,000,000 clients; {_NO_SUCH}. Independent: a simulation with other code and "
        f"clients, {words:,} words."
    )
    if config is None or _is_full(config):
        return text
    return (
        f"{text} Full size: fedhh with 15,000,000 clients and {words:,} words, which "
        "docs/reproduction-gboard-coverage.md discusses; fewer clients, with fewer prefixes kept, "
        "find less."
    )


def _others(config: Config | None) -> tuple[str, ...]:
    """Return the columns of others; results of the full size are not next to themselves."""
    return _OTHERS[:-1] if config is not None and _is_full(config) else _OTHERS


def _not_of_table_1(grid: pd.DataFrame) -> list[str]:
    """Return what varies although sampler and passes should decide the cell."""
    others = [path for path in varying(grid) if path not in _TABLE_1_SETTINGS]
    for row in published()["table_1"]:
        if len(grid[_COHORT][_is_row(grid, row["sampler"], row["passes"])].unique()) > 1:
            others.append(_COHORT)
            break
    return others


def _is_row(table: pd.DataFrame, sampler: str, passes: int) -> Bools:
    return ((table[_SAMPLER] == sampler) & (table[_PASSES] == passes)).to_numpy()


def _vocabulary(config: Config) -> int:
    return config.population.model.vocabulary or _VOCABULARY


def _is_full(config: Config) -> bool:
    return (config.population.clients or 0) >= _FULL_SIZE


def _population(table: pd.DataFrame) -> str:
    return str(table["population"].iloc[0]).rsplit(", seed", maxsplit=1)[0]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
