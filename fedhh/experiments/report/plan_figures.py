"""The figure of a plan: what its settings find against days, bytes and epsilon, with the front."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.experiments.planner.deployment import DeploymentPlan
from fedhh.experiments.planner.front import Cost, costs, front
from fedhh.experiments.planner.trial import Trial
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

_SIZE = (11.0, 4.2)
_NOTE = (
    "One run of each setting that meets the goal; the line joins those that no other dominates in "
    "its panel. Central protocols have no local epsilon."
)


@styled
def draw_plan(plan: DeploymentPlan) -> Figure:
    """Return the figure: a panel for each cost, a look for each protocol."""
    by = costs(plan.goal)
    titles = list(dict.fromkeys(trial.terms.title for trial in plan.trials))
    figure = Figure(figsize=_SIZE, layout="constrained")
    panels = figure.subplots(1, len(by), sharey=True)
    for axes, (name, cost) in zip(panels, by.items(), strict=True):
        _draw_front(axes, plan, cost)
        for title, own in zip(titles, looks(titles), strict=True):
            look = own | {"linestyle": "none", "markersize": 6}
            shown = [
                trial
                for trial in plan.trials
                if trial.terms.title == title and np.isfinite(cost(trial))
            ]
            axes.plot(
                [cost(trial) for trial in shown],
                [trial.metric(plan.goal) for trial in shown],
                label=title,
                **look,
            )
        axes.set_xlabel(name)
        if name == "bytes":
            log_scale(axes.xaxis)
            axes.set_xlabel("upload and download of a client (B)")
    metric = plan.goal.metric
    panels[0].set_ylabel("recall of the words to find" if metric == "recall" else metric)
    in_percent(panels[0].yaxis)
    entries = legend_entries(figure)
    figure.legend(entries.values(), entries.keys(), loc="outside right center")
    put_heading(figure, f"Plan for {plan.population.name}: {plan.sentence}")
    put_note(figure, _NOTE)
    return figure


def plot_plan(path: Path, plan: DeploymentPlan) -> None:
    """Write the figure of a plan, as `draw_plan`."""
    check_figure(path)
    write_one(draw_plan(plan), path)


def _draw_front(axes: Axes, plan: DeploymentPlan, cost: Cost) -> None:
    """Draw the settings that no other dominates by one cost alone, as steps."""
    shown = [trial for trial in plan.trials if np.isfinite(cost(trial))]
    best: list[Trial] = front(shown, plan.goal, [cost])[::-1]
    axes.step(
        [cost(trial) for trial in best],
        [trial.metric(plan.goal) for trial in best],
        where="post",
        color=GREY,
        linewidth=1.2,
        zorder=1,
    )
