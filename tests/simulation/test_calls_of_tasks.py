"""Which tasks `map_on_ray` starts, and when: on a stand-in for Ray in this process.

It carries out a task when its result is asked for. What only processes show is in
test_ray_executor.py.
"""

from __future__ import annotations

import pickle
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fedhh.plugins import Carried
from fedhh.validation import RunFailedError

pytest.importorskip("ray")

from ray.exceptions import RayError

from fedhh.simulation.ray import cluster, tasks
from fedhh.simulation.ray.cluster import MOST_FAILURES
from fedhh.simulation.ray.tasks import computed, map_on_ray


class Task:
    """A task: carried out once, when somebody looks."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._done: list[Any] = []

    def result(self) -> Any:
        if not self._done:
            self._done.append(self._function(*map(_there, self._arguments)))
        return self._done[0]


def _there(argument: Any) -> Any:
    """Return what a task gets: of a reference its value, of what is carried a copy."""
    if isinstance(argument, Task):
        return argument.result()
    is_carried = isinstance(argument, Carried)
    return pickle.loads(pickle.dumps(argument)) if is_carried else argument


class Here:
    """Stands in for Ray: the task that was started last is done first."""

    ObjectRef = Task

    def __init__(self) -> None:
        self.cores, self.free = 2, 2
        self.options: list[dict[str, Any]] = []
        self.cancelled: list[Task] = []
        self.most_at_a_time = 0

    def is_initialized(self) -> bool:
        return True

    def remote(self, **options: Any) -> Callable[..., Any]:
        self.options.append(options)
        return lambda function: types.SimpleNamespace(
            remote=lambda *arguments: Task(function, arguments)
        )

    def wait(self, running: list[Task], *, num_returns: int, timeout: float) -> tuple[Any, Any]:
        self.most_at_a_time = max(self.most_at_a_time, len(running))
        return running[-num_returns:], []

    def get(self, task: Task) -> Any:
        return task.result()

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores}

    def available_resources(self) -> dict[str, float]:
        return {"CPU": self.free}

    def cancel(self, task: Task, *, force: bool) -> None:
        assert force
        self.cancelled.append(task)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    here = Here()
    watch = types.SimpleNamespace(check=lambda: None, is_there=lambda: True)
    for module in (cluster, tasks):
        monkeypatch.setattr(module, "ray", here)
    monkeypatch.setattr(tasks, "RayWatch", lambda address: watch)
    return here


def square(number: int) -> int:
    if number == 5:
        raise ZeroDivisionError("of the call")
    if number == 6:
        raise RayError("of Ray")
    return number * number


def test_every_result_comes_with_its_number_and_errors_are_handed_back(here: Here):
    results = dict(map_on_ray(square, ((number,) for number in range(8)), num_workers=2))
    assert {n: results.pop(n) for n in (0, 1, 2, 3, 4, 7)} == {n: n * n for n in (0, 1, 2, 3, 4, 7)}
    assert isinstance(results[5], ZeroDivisionError)
    assert "A Ray worker failed (RayError): of Ray" in str(results[6])
    assert here.options == [{"num_cpus": 1, "max_retries": MOST_FAILURES}]
    assert not here.cancelled


@pytest.mark.parametrize(
    ("cores", "free", "workers", "most"),
    [(2, 2, 3, 2), (4, 4, 3, 3), (4, 2, None, 2), (2, 0, None, 1)],
)
def test_arguments_are_taken_when_a_worker_is_free(here: Here, caplog, cores, free, workers, most):
    here.cores, here.free = cores, free
    taken: list[int] = []

    def calls() -> Iterator[tuple[int]]:
        for number in range(5):
            taken.append(number)
            yield (number,)

    results = map_on_ray(square, calls(), num_workers=workers)
    next(results)
    assert len(taken) == here.most_at_a_time == most
    assert len(list(results)) == 4
    assert here.most_at_a_time == most
    short = "3 workers were asked for, and the Ray cluster has 2 cores: so many work at a time"
    assert (short in caplog.text) == (cores == 2 and workers == 3)


def test_what_calls_share_is_made_once(here: Here):
    made: Counter[str] = Counter()

    def make(what: str) -> int:
        made[what] += 1
        return len(what)

    shared = computed(make, "four")
    calls = [(shared, number) for number in range(3)]
    results = dict(map_on_ray(lambda four, n: four + n, calls, num_workers=1))
    assert results == {0: 4, 1: 5, 2: 6}
    assert made == {"four": 1}


def test_calls_need_a_core_and_those_left_behind_are_cancelled(here: Here):
    results = map_on_ray(square, ((number,) for number in range(4)), num_workers=2)
    next(results)
    results.close()
    assert len(here.cancelled) == 1
    here.cores = 0
    with pytest.raises(RunFailedError, match="has no core left: start a node"):
        next(map_on_ray(square, [(1,)], num_workers=1))
