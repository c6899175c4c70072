"""Figures of a trie by layer: what is covered, how wide it is, and what decides."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedhh.experiments.report.style import (
    GREY,
    VERMILION,
    NotebookFigure,
    in_percent,
    log_scale,
    series,
    styled,
)
from fedhh.experiments.report.titles import put_heading, put_note
from fedhh.experiments.run.result import RunResult

_ASIDE = 0.1
"""How far behind the last layer the validation round stands, of all layers."""
_BELIEVED = (
    "Layers keep candidates by their posterior probability of being held: there is no threshold of "
    "votes."
)
_VALIDATED = {
    "validation": "The validation round keeps words by its votes alone.",
    "evidence": "The validation round keeps words by the votes of all rounds that asked about them "
    "since they were found.",
}


def draw_coverage(axes: Axes, result: RunResult) -> None:
    """Draw the share of contributions covered after each layer, one line per pass.

    A validation round is a mark of its own: it takes words back, so that coverage falls.
    """
    layers, validation = _layers_and_validation(result)
    passes = layers["pass"].nunique()
    for number, rows in layers.groupby("pass"):
        axes.plot(
            rows["layer"],
            rows["coverage"],
            label=f"after pass {number}" if passes > 1 else "covered",
            **series(int(str(number)) - 1, passes),
        )
    if len(validation):
        before, after = layers["coverage"].iloc[-1], validation["coverage"].iloc[-1]
        _mark_validation(
            axes, layers, validation, "coverage",
            label=f"after the validation round: {after:.1%}\n(before it {before:.1%})",
        )  # fmt: skip
    axes.axhline(
        result.metrics.reachable_mass, color=GREY, linestyle="--", label="reachable by the trie"
    )
    axes.set_ylim(0, 1)
    in_percent(axes.yaxis)
    _name_layers(axes, layers, validation)
    axes.set_ylabel("coverage of new-word contributions")
    axes.legend(loc="best")


@styled
def draw_trie(result: RunResult, title: str) -> Figure:
    """Return the trie's width and, below it, the threshold of the layers that votes decide."""
    layers, validation = _layers_and_validation(result)
    by_votes = layers["kept_by"].isin(("votes", "threshold"))
    voted = layers[by_votes & np.isfinite(layers["threshold_z"])]
    thresholds = len(voted) > 0
    figure = NotebookFigure(figsize=(6.8, 5.8 if thresholds else 3.8), layout="constrained")
    panels = figure.subplots(1 + thresholds, 1, sharex=True, squeeze=False)[:, 0]
    upper, bottom = panels[0], panels[-1]
    passes = layers["pass"].nunique()
    for number, rows in layers.groupby("pass"):
        look = series(int(str(number)) - 1, passes)
        upper.plot(
            rows["layer"], rows["num_candidates"], label=f"candidates, pass {number}",
            **{**look, "markerfacecolor": "white", "markeredgecolor": look["color"],
               "markeredgewidth": 1.2},
        )  # fmt: skip
        upper.plot(rows["layer"], rows["num_kept"], label=f"kept, pass {number}", **look)
        if thresholds:
            own = rows["threshold_z"].where(by_votes)
            bottom.plot(rows["layer"], own, label=f"pass {number}", **look)
    if len(validation):
        for column, label, filled in (
            ("num_candidates", "words validated", False), ("num_kept", "words returned", True),
        ):  # fmt: skip
            _mark_validation(upper, layers, validation, column, label=label, filled=filled)
    log_scale(upper.yaxis)
    upper.set_ylabel("prefixes")
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if thresholds:
        bottom.set_ylabel("threshold (standard\ndeviations of the noise)")
        bottom.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _name_layers(bottom, layers, validation)
    put_heading(figure, title)
    note = [_BELIEVED] if (layers["kept_by"] == "posterior").any() else []
    note += [_VALIDATED[kind] for kind in validation["kept_by"].unique()]
    if note:
        put_note(figure, " ".join(note))
    return figure


def _layers_and_validation(result: RunResult) -> tuple[pd.DataFrame, pd.DataFrame]:
    validates = result.layers["kept_by"].isin([*_VALIDATED])
    return result.layers[~validates], result.layers[validates]


def _place_of_validation(layers: pd.DataFrame) -> float:
    """Return where the validation round stands, which is no layer: behind the last one."""
    first, last = int(layers["layer"].min()), int(layers["layer"].max())
    return last + max(1.0, _ASIDE * (last - first + 1))


def _mark_validation(
    axes: Axes,
    layers: pd.DataFrame,
    validation: pd.DataFrame,
    column: str,
    *,
    label: str,
    filled: bool = True,
) -> None:
    places = [int(layers["layer"].iloc[-1]), _place_of_validation(layers)]
    values = [layers[column].iloc[-1], validation[column].iloc[-1]]
    if column == "coverage":
        axes.plot(places, values, color=GREY, linestyle=":", linewidth=1.2)
    axes.plot(
        places[1:], values[1:], linestyle="none", marker="D", markersize=7,
        color=VERMILION, markerfacecolor=VERMILION if filled else "white", label=label,
    )  # fmt: skip


def _name_layers(axes: Axes, layers: pd.DataFrame, validation: pd.DataFrame) -> None:
    axes.set_xlabel("layer (symbols in a word, end symbol apart)")
    if not len(validation):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    first, last = int(layers["layer"].min()), int(layers["layer"].max())
    place = _place_of_validation(layers)
    every = MaxNLocator(integer=True).tick_values(first, max(last, first + 1))
    ticks = [int(tick) for tick in every if first <= tick <= last]
    # Two lines of its name are as wide as about two layers of fifteen.
    kept = [tick for tick in ticks if place - tick > 1.5 * _ASIDE * (place - first)]
    names = [*(f"{tick}" for tick in kept), "validation\nround"]
    axes.set_xticks([*kept, place], names)
