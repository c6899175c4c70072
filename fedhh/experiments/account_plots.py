"""Central epsilon against the number of reports: all bounds in one picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fedhh.accounting import NotApplicable, shuffle_epsilon
from fedhh.experiments.plots import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION
from fedhh.simulation.files import whole_file

_BOUNDS = (
    ("closed-form", "closed form (2024, Theorem 2)", GREY, ":"),
    ("clones", "clones (2021)", BLUE, "-"),
    ("clones-2023", "clones (2023, erratum)", ORANGE, "--"),
    ("blanket", "Subset Selection blanket", GREEN, "-"),
)
_POINTS = 13
_STEP = 2.0
_WIDEST = (2, 10**9)


def plot_shuffle(
    path: Path, *, local_epsilon: float, num_reports: int, delta: float, domain_size: int | None
) -> None:
    """Draw every bound for three local epsilons around the asked one, which is marked.

    Args:
        path: PNG, PDF or SVG.
        local_epsilon: The middle of the three.
        num_reports: The middle of the axis.
        delta: Of all points.
        domain_size: Of Subset Selection; without it, its bound is left out.
    """
    low, high = max(_WIDEST[0], num_reports // 100), min(_WIDEST[1], num_reports * 100)
    reports = np.unique(np.geomspace(low, high, _POINTS).round().astype(int)).tolist()
    epsilons = [
        e for e in (local_epsilon - _STEP, local_epsilon, local_epsilon + _STEP) if e >= 0.1
    ]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * len(epsilons) + 0.6, 4.4), layout="constrained")
        panels = figure.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
        for axes, epsilon in zip(panels, epsilons, strict=True):
            for bound, label, color, style in _BOUNDS:
                if bound == "blanket" and domain_size is None:
                    continue
                values = [
                    _epsilon(bound, epsilon, n, delta=delta, domain_size=domain_size)
                    for n in reports
                ]
                axes.plot(reports, values, color=color, linestyle=style, label=label)
                if epsilon == local_epsilon:
                    here = _epsilon(
                        bound, epsilon, num_reports, delta=delta, domain_size=domain_size
                    )
                    axes.plot([num_reports], [here], "o", color=color, markersize=5)
            if epsilon == local_epsilon:
                axes.axvline(num_reports, color=VERMILION, linewidth=0.8)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(f"local epsilon {epsilon:g}")
            axes.set_xlabel("reports in one shuffle")
        panels[0].set_ylabel(f"central epsilon at delta {delta:g} (item level)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        with whole_file(path) as temporary:
            figure.savefig(temporary, dpi=160)


def _epsilon(
    bound: str, local_epsilon: float, num_reports: int, *, delta: float, domain_size: int | None
) -> float:
    """Return a bound's epsilon, NaN (a gap in the line) where it does not apply."""
    epsilon = shuffle_epsilon(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        delta=delta,
        domain_size=domain_size if bound == "blanket" else None,
    )
    return float("nan") if isinstance(epsilon, NotApplicable) else epsilon
