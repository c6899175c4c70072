"""Runs candidates of one planning population: in this process, or each on a core by Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from fedhh.clients.population import Population
from fedhh.experiments.config.schema import Config, ExecutionConfig
from fedhh.experiments.planner.goal import Goal
from fedhh.experiments.planner.trial import Outcome, Trial, confirmed, run_trial
from fedhh.experiments.run.workers import choose_workers
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.experiments.sweep.execution import fits_with_others
from fedhh.plugins import without_exit
from fedhh.validation import InputError


class Runner:
    """The way to trials; which results come out does not depend on how many run at a time."""

    def __init__(
        self,
        population: Population,
        goal: Goal,
        *,
        execution: ExecutionConfig,
        seconds: float,
        listener: Callbacks,
    ) -> None:
        """Run on these clients.

        Args:
            population: The planning population.
            goal: What trials are held against.
            execution: How many run at a time.
            seconds: What all of them take on one core, about.
            listener: Hears which begins and ends.
        """
        self._population, self._goal, self._listener = population, goal, listener
        self._execution = execution
        self._number: int | None = 0
        if fits_with_others(population):
            self._number = choose_workers(execution, seconds).number
        self._stack = ExitStack()
        self._best: Trial | None = None
        self._shared: Any = None

    def __enter__(self) -> Runner:
        if self._number != 0:
            from fedhh.simulation.ray.cluster import running_ray, stored

            self._stack.enter_context(running_ray(self._number, self._execution.ray_address))
            self._shared = stored(self._population)
        return self

    def __exit__(self, *_: object) -> None:
        self._shared = None
        self._stack.close()

    def trials(self, configs: Sequence[Config]) -> list[Trial | InputError]:
        """Return the trial of each configuration, or why it has none."""
        return self._all(run_trial, configs, hear=self._hear)

    def outcomes(self, configs: Sequence[Config]) -> list[Outcome]:
        """Return the outcome of each settled configuration, in runs beside the budget."""
        self._listener.start(Work(title="plan", noun="runs by other seeds", total=len(configs)))
        found = self._all(confirmed, configs)
        for each in found:
            if isinstance(each, InputError):
                raise each
        return found

    def _hear(self, trial: Trial | InputError) -> None:
        """Note which trial is the best so far, and what it finds."""
        if isinstance(trial, InputError) or trial.outcome is None:
            return
        goal, best = self._goal, self._best
        if best is None or trial.rank(goal) > best.rank(goal):
            self._best = best = trial
        head = "best so far" if best.meets(goal) else "nothing meets the goal so far; the nearest"
        self._listener.note(f"{head}: {best.terms.title}, {best.found(goal)}")

    def _all(
        self,
        function: Callable[..., Any],
        configs: Sequence[Config],
        *,
        hear: Callable[[Any], None] = lambda result: None,
    ) -> list[Any]:
        names = [config.protocol.name for config in configs]
        results: list[Any] = [None] * len(configs)
        for name in names:
            self._listener.begin(name)
        if self._number == 0:
            for number, config in enumerate(configs):
                results[number] = _tried(function, config, self._goal, self._population)
                hear(results[number])
                self._listener.finish(names[number], results[number])
            return results
        from fedhh.simulation.ray.tasks import map_on_ray

        calls = ((function, config, self._goal, self._shared) for config in configs)
        for number, result in map_on_ray(
            _tried, calls, num_workers=self._number, address=self._execution.ray_address
        ):
            if isinstance(result, Exception) and not isinstance(result, InputError):
                raise result
            results[number] = result
            hear(result)
            self._listener.finish(names[number], result)
        return results


def _tried(function: Callable[..., Any], config: Config, goal: Goal, population: Population) -> Any:
    """Return what a function makes of a configuration; what it refuses is handed back."""
    try:
        with without_exit():
            return function(config, goal, population)
    except InputError as refusal:
        return refusal
