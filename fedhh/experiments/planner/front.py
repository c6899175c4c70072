"""The Pareto front: trials of which no other finds as much for as little."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fedhh.experiments.planner.goal import Goal
from fedhh.experiments.planner.trial import Trial

_DIGITS = 3
"""Significant digits of an epsilon that counts as less, rounded up."""

Cost = Callable[[Trial], float]


def costs(goal: Goal) -> dict[str, Cost]:
    """Return what settings cost, by its name: days, bytes, and the epsilon that is not the goal's.

    With a central target that is the local epsilon, infinite where nothing is randomized; else the
    central one.
    """
    of_central = goal.central_epsilon is None

    def epsilon(trial: Trial) -> float:
        terms = trial.terms
        return _rounded_up(terms.central_epsilon if of_central else terms.local_epsilon)

    name = f"central epsilon, {goal.unit}" if of_central else "local epsilon"
    return {
        "days": lambda trial: goal.days_of(trial.terms.rounds),
        "bytes": lambda trial: float(trial.bytes),
        name: epsilon,
    }


def front(trials: Sequence[Trial], goal: Goal, by: Sequence[Cost]) -> list[Trial]:
    """Return the trials that no other dominates, the one that finds most first.

    One dominates another if it finds no less at no higher cost of any kind, and differs.
    """
    points = [(-trial.metric(goal), *(cost(trial) for cost in by)) for trial in trials]
    kept: dict[tuple[float, ...], Trial] = {}
    for point, trial in zip(points, trials, strict=True):
        if not any(_dominates(other, point) for other in points):
            kept.setdefault(point, trial)
    return [kept[point] for point in sorted(kept)]


def _rounded_up(epsilon: float) -> float:
    if not 0 < epsilon < math.inf:
        return epsilon
    unit = 10.0 ** (math.floor(math.log10(epsilon)) + 1 - _DIGITS)
    return float(f"{math.ceil(epsilon / unit * (1 - 1e-12)) * unit:.{_DIGITS}g}")


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
