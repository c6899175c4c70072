"""Many small runs in parallel on Ray, in place of one large one: each a task on one core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError

from fedhh.plugins import Carried, without_exit
from fedhh.simulation.ray.cluster import (
    MOST_FAILURES,
    PAUSE_SECONDS,
    RayWatch,
    failure_of,
    require_cores,
    running_ray,
    workers_at_a_time,
)

_Result = TypeVar("_Result")


def computed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a reference to what a task of its own makes on the cluster, where it is stored.

    It never comes to this process. Ray makes it again if that node is lost. Calls of `map_on_ray`
    that need it wait for it without a core.
    """
    return _task().remote(function, *map(Carried, arguments))


def map_on_ray(
    function: Callable[..., _Result],
    arguments: Iterable[tuple[Any, ...]],
    *,
    num_workers: int | None,
    address: str = "",
) -> Iterator[tuple[int, _Result | Exception]]:
    """Call a function for each tuple of arguments, each call a task of its own on one core.

    A task whose worker dies is started again; what its function raises is handed back, and the
    other tasks go on.

    Args:
        function: Importable on every node.
        arguments: Taken one by one, whenever a worker is free. In place of an argument, a reference
            to it may stand, see `computed` and `fedhh.simulation.ray.cluster.stored`.
        num_workers: How many calls run at a time, at most the cluster's cores; None for one on each
            core that is free.
        address: A running cluster's address; a local Ray of our own if empty.

    Yields:
        The number of a call, from 0, and what it returned or raised, in the order of completion.

    Raises:
        InputError: The cluster cannot be joined, see `cluster.start_ray`.
        RunFailedError: Ray is gone, or no core of the cluster is left.
    """
    with running_ray(num_workers, address):
        watch, at_a_time = RayWatch(address), workers_at_a_time(num_workers)
        task, waiting = _task(), enumerate(arguments)
        running: dict[Any, int] = {}
        try:
            while True:
                while len(running) < at_a_time and (call := next(waiting, None)) is not None:
                    watch.check()
                    number, values = call
                    passed = [x if isinstance(x, ray.ObjectRef) else Carried(x) for x in values]
                    running[task.remote(function, *passed)] = number
                if not running:
                    return
                done, _ = ray.wait(list(running), num_returns=1, timeout=PAUSE_SECONDS)
                watch.check()
                if not done:
                    require_cores()
                for reference in done:
                    yield running.pop(reference), _outcome(reference, watch)
        finally:
            if running and watch.is_there():
                for reference in running:
                    ray.cancel(reference, force=True)


def _task() -> Any:
    """Return what runs a function on one core of the cluster."""
    return ray.remote(num_cpus=1, max_retries=MOST_FAILURES)(_call)


def _call(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a function; a plug-in that exits would end the worker."""
    with without_exit():
        return function(*arguments)


def _outcome(reference: Any, watch: RayWatch) -> Any:
    """Return a finished task's result, or the exception that ended it."""
    try:
        return ray.get(reference)
    except RayError as error:
        # An end of Ray is not one of the call.
        watch.check()
        return failure_of(error)
    except Exception as error:
        return error
