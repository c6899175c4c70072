"""The figure of frequency oracles: their noise by epsilon."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from fedhh.arrays import Floats
from fedhh.experiments.report.style import (
    GREY,
    check_figure,
    log_scale,
    series,
    styled,
    write_one,
)
from fedhh.experiments.report.titles import put_title
from fedhh.oracles.compare import compared_names, noise_of

_LOWEST, _HIGHEST, _STEP = 0.5, 10.0, 0.25
_ALIKE = 0.03
"""Lines that differ by no more are one."""
_MOST_NOISE = 1e4
"""Times the least of the picture; what lies above is cut off."""


@styled
def plot_oracles(path: Path, *, epsilon: float, domain_size: int) -> None:
    """Draw V0 of every oracle for epsilons from 0.5 to 10 or beyond the asked one, which is marked.

    An oracle that does not fit at some epsilon has a gap there.
    """
    check_figure(path)
    highest = max(_HIGHEST, epsilon)
    epsilons = np.arange(min(_LOWEST, epsilon), highest + _STEP / 2, _STEP)
    lines = {
        name: np.array([noise_of(name, epsilon=e, domain_size=domain_size) for e in epsilons])
        for name in compared_names()
    }
    here = int(np.argmin(np.abs(epsilons - epsilon)))
    groups = sorted(_alike(lines), key=lambda group: -np.nan_to_num(group[1][here], nan=0.0))
    figure = Figure(figsize=(8.6, 5.2), layout="constrained")
    axes = figure.subplots()
    for number, (names, line) in enumerate(groups):
        look = series(len(groups) - 1 - number, len(groups)) | {"marker": "none"}
        axes.plot(epsilons, line, label=", ".join(names), **look)
    axes.axvline(epsilon, color=GREY, linewidth=0.8)
    log_scale(axes.yaxis)
    least = min(float(np.nanmin(line)) for _, line in groups)
    most = max(float(np.nanmax(line)) for _, line in groups)
    axes.set_ylim(least / 2, min(most * 2, max(_MOST_NOISE * least, 100.0)))
    axes.set_xlabel("epsilon of one report")
    axes.set_ylabel("V0, variance of a count of 0 per report")
    put_title(axes, f"{domain_size:,} values")
    figure.legend(loc="outside right center", title="most noise at the line first")
    write_one(figure, path)


def _alike(lines: dict[str, Floats]) -> list[tuple[list[str], Floats]]:
    """Return groups of names whose lines have the same gaps and values, in the order of names."""
    groups: list[tuple[list[str], Floats]] = []
    for name, line in lines.items():
        if np.isnan(line).all():
            continue
        for names, first in groups:
            same_gaps = np.array_equal(np.isnan(line), np.isnan(first))
            if same_gaps and np.nanmax(np.abs(np.log(line / first))) <= math.log1p(_ALIKE):
                names.append(name)
                break
        else:
            groups.append(([name], line))
    return groups
