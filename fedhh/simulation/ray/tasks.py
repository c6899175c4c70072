"""Many small runs in parallel on Ray, in place of one large one: each a task on one core."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError

from fedhh.plugins import Carried, without_exit
from fedhh.simulation.ray.connection import all_cores, free_cores, start_ray, stop_ray
from fedhh.simulation.ray.watch import MOST_FAILURES, RayWatch, failure_of, stored, watch_ray
from fedhh.validation import RunFailedError, require_at_least

_WAITS_UNTIL_CORES_ARE_COUNTED = 20

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


@dataclass(kw_only=True, eq=False)
class Shared:
    """An argument of several calls of `map_on_ray`: stored once, and freed with this object.

    Attributes:
        value: What the called function gets.
    """

    value: Any

    @cached_property
    def reference(self) -> Any:
        return stored(self.value)


@dataclass(kw_only=True, eq=False)
class Computed:
    """An argument of several calls of `map_on_ray` that a task of its own makes on the cluster.

    It is stored where it is made, and never comes to this process. Ray makes it again if that node
    is lost. Calls that need it wait for it without a core.

    Attributes:
        function: Importable on every node.
        arguments: Of the function.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def begin(self) -> None:
        """Begin to make it; within a call of `map_on_ray`, since Ray has to be there."""
        _ = self.reference

    @cached_property
    def reference(self) -> Any:
        return _task().remote(self.function, *map(Carried, self.arguments))


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
        arguments: Taken one by one, whenever a worker is free; a `Shared` argument is stored once,
            and a `Computed` one made once, by a task of its own.
        num_workers: How many calls run at a time, at most the cluster's cores; None for one on each
            core that is free.
        address: A running cluster's address; a local Ray of our own if empty.

    Yields:
        The number of a call, from 0, and what it returned or raised, in the order of completion.

    Raises:
        InputError: The cluster cannot be joined, see `connection.start_ray`.
        RunFailedError: Ray is gone, or no core of the cluster is left.
    """
    if num_workers is not None:
        require_at_least(1, num_workers=num_workers)
    owns_ray = not ray.is_initialized()
    if owns_ray:
        start_ray(num_workers, address)
    watch = watch_ray(address)
    waits = 0
    task = _task()
    waiting = enumerate(arguments)
    running: dict[Any, int] = {}
    try:
        at_a_time = _most_at_a_time(num_workers)
        while True:
            while len(running) < at_a_time and (call := next(waiting, None)) is not None:
                watch.check()
                number, values = call
                passed = [
                    value.reference if isinstance(value, Shared | Computed) else Carried(value)
                    for value in values
                ]
                running[task.remote(function, *passed)] = number
            if not running:
                return
            # A short wait, so that a signal in the main thread is handled soon.
            done, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
            watch.check()
            waits = 0 if done else waits + 1
            if waits % _WAITS_UNTIL_CORES_ARE_COUNTED == _WAITS_UNTIL_CORES_ARE_COUNTED - 1:
                _require_cores()
            for reference in done:
                yield running.pop(reference), _outcome(reference, watch)
    finally:
        if running and watch.is_there():
            for reference in running:
                ray.cancel(reference, force=True)
        if owns_ray:
            stop_ray()


def _task() -> Any:
    """Return what runs a function on one core of the cluster."""
    return ray.remote(num_cpus=1, max_retries=MOST_FAILURES)(_call)


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


def _most_at_a_time(num_workers: int | None) -> int:
    """Return how many calls run at a time; what is asked for and not there is said."""
    wanted, cores = num_workers or max(free_cores(), 1), _require_cores()
    if wanted > cores:
        _log.warning(
            "%d workers were asked for, and the Ray cluster has %d cores: so many work at a time",
            wanted,
            cores,
        )
    return min(wanted, cores)


def _require_cores() -> int:
    """Return how many cores the cluster has; RunFailedError if none, since calls would wait."""
    if cores := all_cores():
        return cores
    raise RunFailedError(
        "The Ray cluster has no core left: start a node (`ray start --address`), and go on with "
        "--resume."
    )


def _call(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a function; a plug-in that exits would end the worker."""
    with without_exit():
        return function(*arguments)
