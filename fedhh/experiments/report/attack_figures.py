"""The figure of an attack: the chance that a target is found, by the fake clients that push it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from fedhh.experiments.attack.attack import AttackResult, Resistance
from fedhh.experiments.report.style import (
    GREY,
    check_figure,
    in_percent,
    legend_entries,
    log_scale,
    looks,
    styled,
    write_one,
)
from fedhh.experiments.report.titles import put_heading, put_note

_SIZE = (7.6, 4.4)
_NOTE = (
    "Points: share of targets found, each pushed by its own fake clients. Lines: posterior mean of "
    "a probit in their logarithm. Dotted: one half and 95%."
)


@styled
def draw_attack(result: AttackResult) -> Figure:
    """Return the figure: a line for each of the settings."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    labels = [one.label for one in result.each]
    for one, look in zip(result.each, looks(labels), strict=True):
        clients = [dose.clients for dose in one.doses]
        axes.plot(
            clients,
            [dose.found / dose.targets for dose in one.doses],
            **(look | {"linestyle": "none", "markersize": 4, "alpha": 0.5}),
        )
        response = one.response
        if response is not None:
            grid = np.geomspace(max(min(clients), 1), max(clients), 200)
            line = {"marker": "", "label": _label(one, result)}
            axes.plot(grid, response.chance(grid), **(look | line))
    for chance in (0.5, 0.95):
        axes.axhline(chance, color=GREY, linestyle=":", linewidth=0.8)
    log_scale(axes.xaxis)
    axes.set_xlabel("fake clients in all rounds together")
    axes.set_ylabel("chance that the target is found")
    in_percent(axes.yaxis)
    entries = legend_entries(figure)
    figure.legend(entries.values(), entries.keys(), loc="outside right center")
    put_heading(figure, f"Fake clients that get a word into the result, on {result.population}")
    put_note(figure, _NOTE)
    return figure


def plot_attack(path: Path, result: AttackResult) -> None:
    """Write the figure of an attack, as `draw_attack`."""
    check_figure(path)
    write_one(draw_attack(result), path)


def _label(one: Resistance, result: AttackResult) -> str:
    varied = ", ".join(
        f"{path.rsplit('.', 1)[-1].replace('_', ' ')} {value}"
        for path, value in one.settings.items()
    )
    several = len({each.label for each in result.each}) > 1
    return ", ".join(part for part in (one.label if several or not varied else "", varied) if part)
