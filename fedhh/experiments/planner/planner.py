"""From a goal and a population to a plan: `fedhh plan`, and `fedhh.plan` in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedhh.clients.population import Population
from fedhh.experiments.config.domain import CANDIDATES
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import settle, with_protocols
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import borrowed_settings
from fedhh.experiments.planner.deployment import DeploymentPlan
from fedhh.experiments.planner.goal import (
    ALL,
    Goal,
    bytes_of,
    share_of,
)
from fedhh.experiments.planner.nearest import nearest, needs_of
from fedhh.experiments.planner.prediction import CONFIRMATIONS, Prediction
from fedhh.experiments.planner.runner import Runner
from fedhh.experiments.planner.search import Entrant, Search
from fedhh.experiments.planner.trial import Trial
from fedhh.experiments.planner.trust import LOCAL, trust_model_of
from fedhh.experiments.run.arguments import require_population
from fedhh.experiments.study.callbacks import Callbacks, Several, Work
from fedhh.experiments.study.request import Request
from fedhh.experiments.sweep.central_target import TARGETS, target_named
from fedhh.server.registry import protocol_class, protocol_names
from fedhh.validation import InputError, require_at_least, require_choice, shown

DEFAULT_RUNS = 60
"""Runs of the search."""

_SECONDS_OF_RUN = 1.0
_SECONDS_OF_CLIENT = 2e-6
"""Of one core, about."""


def plan(
    source: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    data: Path | None = None,
    held_by: str | float | None = None,
    at: str | None = None,
    local_epsilon: float | None = None,
    days: float | None = None,
    rounds_per_day: float = 1.0,
    max_upload: str | int | None = None,
    max_download: str | int | None = None,
    max_bytes: str | int | None = None,
    min_precision: float = 0.5,
    trust_model: str = ALL,
    protocols: Sequence[str] = (),
    runs: int = DEFAULT_RUNS,
    callbacks: Sequence[Callbacks] = (),
) -> DeploymentPlan:
    """Return the settings that find most within a goal, as `fedhh plan` does.

    Candidates run on planning clients, drawn by the seed after the configured one; accounting
    chooses each one's epsilons. What is predicted comes from further seeds.

    Args:
        source: A run's preset or TOML file, whose population is planned for; "default" if None.
        settings: ``section.key=value`` each; ``privacy.delta`` is the central guarantees' delta.
        data: A file of clients, in place of the configured ones.
        held_by: Words held by at least this share of clients are to be found, as ``"1/10000"``;
            coverage is made large if None.
        at: ``"item-central-epsilon=E"`` or ``"user-central-epsilon=E"``, the most before the run.
        local_epsilon: The most of a contribution.
        days: The most days.
        rounds_per_day: Rounds that follow each other in a day.
        max_upload: The most bytes that a client sends, as ``"100kB"`` or a number.
        max_download: The most that it receives.
        max_bytes: The most of both together.
        min_precision: The least share of returned words that somebody holds.
        trust_model: "local", "central", "hybrid" or what else a protocol states; "all" for any.
        protocols: Their names; all that can be planned if empty.
        runs: Runs of the search, its budget.
        callbacks: Hear how it goes on.

    Raises:
        InputError: A value is wrong, or nothing meets the goal: then with what is nearest.
    """
    goal = _goal(
        held_by=held_by,
        at=at,
        local_epsilon=local_epsilon,
        days=days,
        rounds_per_day=rounds_per_day,
        sizes={"max_upload": max_upload, "max_download": max_download, "max_bytes": max_bytes},
        min_precision=min_precision,
        trust_model=trust_model,
    )
    require_at_least(1, runs=runs)
    request, left_out = Request(source=source, settings=settings, data=data), dict[str, str]()
    request.search_modules()
    config = request.run_config()
    # The goal says which epsilons are allowed.
    privacy = config.privacy.at_local(config.privacy.local_epsilon)
    config = config.model_copy(update={"privacy": privacy})
    names = protocols or (*protocol_names(), config.protocol.name)
    bases = with_protocols(config, names)
    listener = Several(callbacks)
    listener.phase("drawing clients")
    planning = config.model_copy(update={"seed": config.seed + 1})
    population = build_population(planning.population, seed=planning.seed)
    require_population(population)
    bases = [each.model_copy(update={"seed": planning.seed}) for each in bases]
    bases = _trusted(bases, goal, population, left_out)
    seconds = runs * (_SECONDS_OF_RUN + _SECONDS_OF_CLIENT * population.num_clients)
    listener.start(Work(title="plan", noun="runs", total=runs))
    with Runner(
        population, goal, execution=config.execution, seconds=seconds, listener=listener
    ) as runner:
        search = Search(
            bases,
            goal,
            runner,
            num_clients=population.num_clients,
            words=population.lexicon.words,
            runs=runs,
        )
        search.run()
        entrants = list(search.entrants.values())
        left_out |= {each.name: each.reason for each in entrants if not each.trials}
        if not any(trial.meets(goal) for each in entrants for trial in each.trials):
            raise InputError(nearest(entrants, goal, population, left_out))
        left_out |= {
            each.name: f"the nearest tried, of {needs_of(each.trials, goal)}."
            for each in entrants
            if each.trials and not any(trial.meets(goal) for trial in each.trials)
        }
        predictions = _predictions(entrants, search.finalists, goal, runner)
    return DeploymentPlan(
        goal=goal,
        base=config,
        population=population,
        predictions=tuple(predictions),
        trials=tuple(t for each in entrants for t in each.trials if t.meets(goal)),
        left_out=left_out,
        runs=runs - search.runs_left,
    )


def _goal(
    *,
    held_by: str | float | None,
    at: str | None,
    sizes: dict[str, str | int | None],
    **others: Any,
) -> Goal:
    """Return the goal of options as they were given."""
    target = None if at is None else target_named(at)
    others |= {
        name: bytes_of(size, f"--{name.replace('_', '-')}")
        for name, size in sizes.items()
        if size is not None
    }
    return Goal(
        held_by=None if held_by is None else share_of(held_by),
        unit="item" if target is None else TARGETS[target[0]],
        central_epsilon=None if target is None else target[1],
        **others,
    )


def _trusted(
    bases: Sequence[Config], goal: Goal, population: Population, left_out: dict[str, str]
) -> list[Config]:
    """Return those whose clients trust whom the goal says; why others are left out is noted."""
    models: dict[str, str] = {}
    for base in bases:
        name = base.protocol.name
        borrowed = borrowed_settings(protocol_class(name)).values()
        if CANDIDATES in borrowed and not base.population.candidates:
            left_out[name] = "they ask about known words, and population.candidates has none."
            continue
        try:
            settled = settle(base, population.num_clients, population.lexicon.words)[1]
        except InputError as refusal:
            left_out[name] = str(refusal)
        else:
            models[name] = trust_model_of(settled)
    if models:
        require_choice([*dict.fromkeys(models.values()), ALL], trust_model=goal.trust_model)
    kept = []
    for base in bases:
        name = base.protocol.name
        if name not in models or goal.trust_model not in (ALL, models[name]):
            continue
        if goal.local_epsilon is not None and models[name] != LOCAL:
            left_out[name] = f"trust model {models[name]}, without a local epsilon for all clients."
            continue
        kept.append(base)
    if not kept:
        why = "; ".join(left_out.values()) or "no protocol has it"
        raise InputError(f"No protocol to plan with trust_model={shown(goal.trust_model)}: {why}")
    return kept


def _predictions(
    entrants: Sequence[Entrant], finalists: Sequence[Entrant], goal: Goal, runner: Runner
) -> list[Prediction]:
    """Return each protocol's best settings, the best protocol first.

    Those that were searched to the end are run by fresh seeds. Settings that break a limit then
    give way to the next best.

    Raises:
        InputError: None keep the limits; with the nearest.
    """
    predictions, missed = [], []
    for each in entrants:
        if each not in finalists and each.best is not None and each.best.meets(goal):
            predictions.append(Prediction.of(each.best, []))
    waiting = {each.name: _ranked(each, goal) for each in finalists}
    while waiting := {name: trials for name, trials in waiting.items() if trials}:
        jobs = [
            trials[0].settled.model_copy(update={"seed": trials[0].settled.seed + 1 + number})
            for trials in waiting.values()
            for number in range(CONFIRMATIONS)
        ]
        outcomes = iter(runner.outcomes(jobs))
        for name, trials in list(waiting.items()):
            found = Prediction.of(trials[0], [next(outcomes) for _ in range(CONFIRMATIONS)])
            if found.meets(goal):
                predictions.append(found)
                waiting[name] = []
            else:
                missed.append(found.as_trial)
                waiting[name] = trials[1:]
    if not predictions:
        raise InputError(
            f"No settings meet the goal in {CONFIRMATIONS} further runs. The nearest tried, of "
            f"{needs_of(missed, goal)}."
        )
    return sorted(predictions, key=lambda each: each.rank(goal), reverse=True)


def _ranked(entrant: Entrant, goal: Goal) -> list[Trial]:
    met = [trial for trial in entrant.trials if trial.meets(goal)]
    return sorted(met, key=lambda trial: trial.rank(goal), reverse=True)
