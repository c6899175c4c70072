"""What can be met where nothing meets a goal: one line with the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from fedhh.clients.population import Population
from fedhh.experiments.planner.goal import Goal
from fedhh.experiments.planner.search import Entrant
from fedhh.experiments.planner.trial import Trial, with_guarantee
from fedhh.validation import InputError

_MOST_DOUBLINGS = 60
_HALVINGS = 8
"""Steps between a central epsilon that is out of reach and its double."""


def nearest(
    entrants: Sequence[Entrant], goal: Goal, population: Population, left_out: dict[str, str]
) -> str:
    """Return why nothing meets a goal, and the nearest that can be met."""
    trials = [trial for each in entrants for trial in each.trials]
    if not trials:
        found = _nearest_epsilon(entrants, goal, population.num_clients)
        if found is None:
            return f"No settings meet the goal: {'; '.join(left_out.values())}"
        epsilon, title = found
        return (
            f"No settings have {goal.unit} central epsilon {goal.central_epsilon:g} or less before "
            f"the run; the nearest is {epsilon:.3g}, of {title}: "
            f"--at {goal.unit}-central-epsilon={epsilon:.3g}."
        )
    return f"No settings meet the goal. The nearest tried, of {needs_of(trials, goal)}."


def needs_of(trials: Sequence[Trial], goal: Goal) -> str:
    """Return what the trial that breaks the limits least needs, by its protocol's title."""
    best = min(trials, key=lambda trial: max(trial.shares_of_limits(goal).values()))
    needs = [
        _need(name, share, best, goal)
        for name, share in best.shares_of_limits(goal).items()
        if share > 1
    ]
    return f"{best.terms.title}, need {' and '.join(needs)}"


def _need(name: str, share: float, trial: Trial, goal: Goal) -> str:
    limit = getattr(goal, name)
    option = f"--{name.replace('_', '-')}"
    if name == "days":
        days = goal.days_of(trial.terms.rounds)
        return f"{option} {days:g} ({trial.terms.rounds} rounds), got {limit:g}"
    if name == "min_precision":
        assert trial.outcome is not None
        return f"{option} {trial.outcome.precision:.3g}, got {limit:g}"
    return f"{option} {math.ceil(share * limit):,} B, got {limit:,} B"


def _nearest_epsilon(
    entrants: Sequence[Entrant], goal: Goal, num_clients: int
) -> tuple[float, str] | None:
    """Return about the least central epsilon above the goal's that a protocol has, rounded up."""
    if goal.central_epsilon is None:
        return None
    found = []
    for entrant in entrants:
        holds = partial(_has, entrant, goal, num_clients)
        if holds(goal.central_epsilon):
            # It is refused for another reason.
            continue
        if (least := _least(holds, goal.central_epsilon)) is not None:
            found.append((least, entrant.name))
    return min(found, default=None)


def _has(entrant: Entrant, goal: Goal, num_clients: int, epsilon: float) -> bool:
    try:
        with_guarantee(entrant.base, replace(goal, central_epsilon=epsilon), num_clients)
    except InputError:
        return False
    return True


def _least(holds: Callable[[float], bool], missed: float) -> float | None:
    """Return about the least value above one that is missed at which something holds."""
    high = missed
    for _ in range(_MOST_DOUBLINGS):
        low, high = high, 2 * high
        if holds(high):
            break
    else:
        return None
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    # What is printed has three digits, and holds.
    digits = 10.0 ** (math.floor(math.log10(high)) - 2)
    return math.ceil(high / digits) * digits
