"""Central epsilon against the number of reports: all bounds in one picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedhh.accounting.bounds.clones import closed_form_epsilon
from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.shuffles import shuffle_bound
from fedhh.experiments.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    check_figure,
    legend_entries,
    log_scale,
    styled,
    write_one,
)
from fedhh.experiments.report.titles import name_panel

_BOUNDS = (
    ("closed-form", "closed form (2024, Theorem 2)", GREY, ":"),
    ("clones", "clones (2021)", BLUE, "-"),
    ("clones-2023", "clones (2023)", ORANGE, "--"),
    ("blanket", "Subset Selection blanket", GREEN, "-"),
)
_COMPARED = ("closed-form", "clones-2023")
"""Proven for Subset Selection only."""
_POINTS = 17
_STEP = 2.0
_TOLERANCE = 1e-3
"""Bounds on wide bins are upper bounds too, and a picture shows no difference."""
_WIDEST = (2, 10**9)
_PAPER = {"local_epsilon": 10.0, "num_reports": 30_000_000, "delta": 1e-10}
_PAPER_CLAIM = 0.315
"""Sun et al. (2024), section 4.1: the central epsilon of their production run."""


@styled
def plot_shuffle(
    path: Path, *, local_epsilon: float, num_reports: int, delta: float, domain_size: int | None
) -> None:
    """Draw every bound for three local epsilons around the asked one, which is marked.

    A star is what the paper states of its own run, where that lies in the picture.
    """
    check_figure(path)
    low, high = max(_WIDEST[0], num_reports // 100), min(_WIDEST[1], num_reports * 100)
    reports = np.unique(np.geomspace(low, high, _POINTS).round().astype(int)).tolist()
    epsilons = [
        e for e in (local_epsilon - _STEP, local_epsilon, local_epsilon + _STEP) if e >= 0.1
    ]
    at: Any = {"delta": delta, "domain_size": domain_size}
    figure = Figure(figsize=(3.6 * len(epsilons) + 0.6, 4.4), layout="constrained")
    panels = figure.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for bound, label, color, style in _BOUNDS:
            if bound == "blanket" and domain_size is None:
                continue
            compared = domain_size is None and bound in _COMPARED
            values = [_epsilon(bound, epsilon, n, **at) for n in reports]
            name = f"{label}, for comparison" if compared else label
            axes.plot(reports, values, color=color, linestyle=style, label=name)
            if epsilon == local_epsilon:
                here = _epsilon(bound, epsilon, num_reports, **at)
                axes.plot([num_reports], [here], "o", color=color, markersize=5)
        if epsilon == local_epsilon:
            axes.axvline(num_reports, color=VERMILION, linewidth=0.8)
        paper = _PAPER["num_reports"]
        if (epsilon, delta) == (_PAPER["local_epsilon"], _PAPER["delta"]) and (
            reports[0] <= paper <= reports[-1]
        ):
            label = f"stated by the paper: {_PAPER_CLAIM}"
            axes.plot([paper], [_PAPER_CLAIM], "*", color=VERMILION, markersize=9, label=label)
        log_scale(axes.xaxis)
        log_scale(axes.yaxis)
        axes.set_xlabel("reports in one shuffle")
        name_panel(axes, f"local epsilon {epsilon:g}", size=12)
    panels[0].set_ylabel(f"central epsilon at delta {delta:g} (item level)")
    named = legend_entries(figure)
    columns = min(3, len(named))
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns)
    write_one(figure, path)


def _epsilon(
    bound: str, local_epsilon: float, num_reports: int, *, delta: float, domain_size: int | None
) -> float:
    """Return a bound's epsilon, NaN (a gap in the line) where it does not apply."""
    of: Any = {"local_epsilon": local_epsilon, "num_reports": num_reports}
    if bound == "closed-form":
        closed = closed_form_epsilon(**of, delta=delta)
        return float("nan") if isinstance(closed, NotApplicable) else closed
    size = domain_size if bound == "blanket" else None
    return replace(shuffle_bound(bound, **of, domain_size=size), tolerance=_TOLERANCE).epsilon(
        delta
    )
