"""Gboard's Table 1 and Figure 1 beside what the paper and others state; `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import value_text
from fedhh.experiments.config.schema import Config
from fedhh.experiments.report.cells import (
    note_of,
    points,
    points_with_interval,
    record_of,
    with_interval,
)
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.columns import EXTRA, varying
from fedhh.experiments.sweep.directory import base_config
from fedhh.experiments.sweep.intervals import Mask, paired_gain, summarize
from fedhh.validation import InputError

_EPSILON, _SAMPLER, _PASSES, _COHORT = (
    "privacy.local_epsilon", "protocol.sampler", "protocol.passes", "protocol.clients_per_layer",
)  # fmt: skip
_TABLE_1_SETTINGS = {_SAMPLER, _PASSES, _COHORT}
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


def published_beside(table: pd.DataFrame, description: dict[str, Any]) -> list[Published]:
    """Return what is to be drawn beside a sweep's coverage; nothing for most sweeps."""
    name = fitting_table(table, description)
    config = base_config(description)
    if name is None or config is None:
        return []
    is_table = name == "gboard-table1"
    words = _vocabulary(config) if is_table else _FIGURE_1_WORDS
    paper: list[tuple[dict[str, Any], float]] = []
    independent, full = list(paper), list(paper)
    for key, values in (("paper", paper), ("independent", independent), ("full", full)):
        if not is_table:
            stated = published()["figure_1"][key]
            values += [({_EPSILON: float(x)}, value) for x, value in stated.items()]
            continue
        for row in published()["table_1"]:
            value = row[key] if key == "paper" else row[key].get(str(words))
            if value is not None:
                values.append(({_SAMPLER: row["sampler"], _PASSES: row["passes"]}, value))
    of_whom = {
        "paper": paper,
        f"independent, {words:,} words": independent,
        f"fedhh, full size, {words:,} words": [] if _is_full(config) else full,
    }
    return [Published(label=x, values=tuple(values)) for x, values in of_whom.items() if values]


def table_1(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return the paper's Table 1 beside ours; cells beside the grid are none of its rows."""
    if missing := sorted(_TABLE_1_SETTINGS - set(table)):
        raise InputError(
            f"These results do not vary {', '.join(missing)}; make them with "
            "fedhh sweep --preset gboard-table1-quick."
        )
    grid = table[~table["beside_grid"]]
    if others := _not_of_table_1(grid):
        raise InputError(
            f"Table 1 has one setting per sampler and passes, and these results also vary "
            f"{', '.join(others)}; use fedhh show DIR --table summary, or run a sweep without them."
        )
    config = base_config(description)
    words = str(_VOCABULARY if config is None else _vocabulary(config))
    rows, records, seeds = [], [], []
    earlier: tuple[Mask, dict[str, Any]] | None = None
    for stated in published()["table_1"]:
        sampler, passes, paper = stated["sampler"], stated["passes"], stated["paper"]
        mask = _is_row(grid, sampler, passes)
        if not mask.any():
            raise InputError(f"These results lack sampler={sampler!r} with passes={passes}.")
        chosen = grid[mask]
        ours = summarize(chosen.assign(all="all"), ["all"], "coverage").iloc[0].to_dict()
        seeds.append(ours["seeds"])
        independent, full = stated["independent"].get(words), stated["full"].get(words)
        paper_gain = gain = None
        if earlier is not None:
            paper_gain = paper - earlier[1]["paper"]
            gain = paired_gain(grid, mask, earlier[0], "coverage")
        earlier = mask, stated
        rows.append(
            (
                sampler,
                str(passes),
                value_text(chosen[_COHORT].iloc[0]),
                *(_share(value) for value in (paper, independent, full)),
                with_interval(ours, share=True),
                "" if paper_gain is None else points(paper_gain),
                "" if gain is None else points_with_interval(gain),
            )
        )
        records.append(
            {
                _SAMPLER: sampler,
                _PASSES: passes,
                _COHORT: chosen[_COHORT].iloc[0],
                "seeds": ours["seeds"],
                "paper": paper,
                "independent": independent,
                "full_size": full,
                **record_of("coverage", ours),
                "paper_gain": paper_gain,
                **record_of("gain", gain),
            }
        )
    made = TextTable(
        title="Coverage as in Table 1 of Sun et al. (2024)",
        columns=(
            "sampling", "passes", "clients per layer", "paper", "independent", "full size",
            "fedhh", "paper's gain", "fedhh's gain",
        ),
        rows=tuple(rows),
        note=(
            f"fedhh: {_population(table)}. {_beside(int(words), config)} {note_of(seeds)} Gains "
            "are over the row above, seed by seed."
        ),
        labels=2,
        records=tuple(records),
    )  # fmt: skip
    return _without_empty(made, config)


def figure_1(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return coverage by local epsilon beside the paper's one number and the others' curves."""
    grid = table[~table["beside_grid"]]
    config = base_config(description)
    if fitting_table(table, description) != "gboard-figure1":
        source = "other clients" if config is None else config.population.source
        raise InputError(
            f"Figure 1 varies {_EPSILON} alone on {_SOURCE}, and these results vary "
            f"{', '.join(varying(grid)) or 'nothing'} on {source}; use fedhh show DIR "
            "--table summary, or make them with fedhh sweep --preset gboard-figure1-quick."
        )
    stated = published()["figure_1"]
    rows, records, seeds = [], [], []
    for _, part in table.groupby([_EPSILON, EXTRA], sort=False):
        ours = summarize(part.assign(all="all"), ["all"], "coverage").iloc[0].to_dict()
        seeds.append(ours["seeds"])
        epsilon, extra = part[_EPSILON].iloc[0], part[EXTRA].iloc[0]
        if not extra:
            others = [stated[key].get(f"{epsilon:g}") for key in ("paper", "independent", "full")]
        else:
            unrandomized = set(part.get("protocol.oracle", [])) == {"none"}
            others = [None, None, stated["full_without_ldp"] if unrandomized else None]
        rows.append(
            (
                extra or value_text(epsilon),
                *(_share(value) for value in others),
                with_interval(ours, share=True),
            )
        )
        records.append(
            {
                _EPSILON: None if extra else epsilon,
                EXTRA: extra,
                "seeds": ours["seeds"],
                **dict(zip(("paper", "independent", "full_size"), others, strict=True)),
                **record_of("coverage", ours),
            }
        )
    made = TextTable(
        title="Coverage as in Figure 1 of Sun et al. (2024)",
        columns=("epsilon", "paper", "independent", "full size", "fedhh"),
        rows=tuple(rows),
        note=(
            f"fedhh: {_population(table)}. {_beside(_FIGURE_1_WORDS, config)} The paper's figure "
            f"has no numbers; the one at epsilon 10 is that of its Table 1. {note_of(seeds)}"
        ),
        records=tuple(records),
    )
    return _without_empty(made, config)


def _beside(words: int, config: Config | None) -> str:
    """Return what the columns beside ours are."""
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


def _without_empty(table: TextTable, config: Config | None) -> TextTable:
    """Return a table without the column of the full size where it is that itself."""
    if config is None or not _is_full(config):
        return table
    at = table.columns.index("full size")

    def kept(cells: Sequence[str]) -> tuple[str, ...]:
        return (*cells[:at], *cells[at + 1 :])

    return replace(table, columns=kept(table.columns), rows=tuple(kept(row) for row in table.rows))


def _not_of_table_1(grid: pd.DataFrame) -> list[str]:
    """Return what varies although sampler and passes should decide the cell."""
    others = [path for path in varying(grid) if path not in _TABLE_1_SETTINGS]
    for row in published()["table_1"]:
        if len(grid[_COHORT][_is_row(grid, row["sampler"], row["passes"])].unique()) > 1:
            others.append(_COHORT)
            break
    return others


def _is_row(table: pd.DataFrame, sampler: str, passes: int) -> Mask:
    return ((table[_SAMPLER] == sampler) & (table[_PASSES] == passes)).to_numpy()


def _vocabulary(config: Config) -> int:
    return config.population.model.vocabulary or _VOCABULARY


def _is_full(config: Config) -> bool:
    return (config.population.clients or 0) >= _FULL_SIZE


def _population(table: pd.DataFrame) -> str:
    return str(table["population"].iloc[0]).rsplit(", seed", maxsplit=1)[0]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
