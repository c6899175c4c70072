"""What tests of experiments share."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from fedhh.simulation.executor import InProcessExecutor
from tests.fuzz import work


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """For tests that look at no picture."""
    with work.undrawn():
        yield


@pytest.fixture
def ray_here(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Ray's tasks and actors in this process, on copies: what was asked of how many where."""
    pytest.importorskip("ray")
    from fedhh.simulation.ray import cluster, executor, tasks

    asked = []

    def on_ray(function, calls, *, num_workers, address):
        asked.append(("cells", num_workers, address))
        for number, call in enumerate(calls):
            yield number, function(*pickle.loads(pickle.dumps(call)))

    def computed(function, *arguments):
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        return function(*arguments)

    def in_process(worker, *, num_workers, address):
        asked.append(("clients", num_workers, address))
        return InProcessExecutor(pickle.loads(pickle.dumps(worker)))

    monkeypatch.setattr(cluster, "check_cluster", lambda address: None)
    monkeypatch.setattr(cluster, "stored", lambda value: value)
    monkeypatch.setattr(tasks, "map_on_ray", on_ray)
    monkeypatch.setattr(tasks, "computed", computed)
    monkeypatch.setattr(executor, "RayExecutor", in_process)
    return asked
