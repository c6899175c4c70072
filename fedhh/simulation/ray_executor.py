"""Executor on Ray: client actors answer for blocks, and what they answer is merged.

Each client actor, see `ray_actors`, has a fixed share of the blocks and hands over one aggregate
per round. If an actor dies, a new one takes over its whole share: answers are addressed by block,
so the bits stay the same.

`map_on_ray` is for many small runs side by side, in place of one large one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

# First, since it sets what ray reads when it is imported.
from fedhh.simulation.ray_connection import free_cores, start_ray  # isort: skip

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayError

from fedhh.doors import Carried
from fedhh.queries.base import Answer, Query
from fedhh.simulation.executor import Executor, Progress, Worker
from fedhh.simulation.ray_actors import RayActors
from fedhh.simulation.ray_ahead import ActorsAhead
from fedhh.validation import InputError, require_at_least

_MOST_CALLS_PER_SHARE, _CLIENTS_PER_CALL = 16, 2**15
"""An actor works off its share in a number of calls, each of which reports progress; a call takes
about as long as answers of 3,000 clients, so a small share is worked off in one."""

_MOST_FAILURES = 20
"""Actor deaths in one round after which the run stops: something else is wrong then."""

_LOST = (RayActorError, ObjectLostError)

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")

_Result = TypeVar("_Result")


@dataclass(kw_only=True)
class _Share:
    """The blocks of one client actor in one round, and how far it is with them."""

    index: int
    blocks: range
    pending: list[Any] = field(default_factory=list)
    answer: Any = None
    clients_done: int = 0
    clients_reported: int = 0


class RayExecutor(Executor):
    """Spreads a cohort's blocks over client actors."""

    def __init__(
        self,
        worker: Worker,
        *,
        num_workers: int | None = None,
        address: str = "",
        ahead: ActorsAhead | None = None,
    ) -> None:
        """Start or join Ray, place the actors, and give them the worker.

        Args:
            worker: Answers for blocks; copied to every actor once.
            num_workers: How many client actors; None for one on each core that is free.
            address: A running cluster's address; a local Ray of our own if empty.
            ahead: Actors that have been started for this, in place of the two before.

        Raises:
            InputError: The cluster cannot be joined, see `ray_connection.start_ray`.
        """
        self._ahead = ahead
        self._actors = RayActors(num_workers, address) if ahead is None else ahead.actors()
        self._actors.hold(worker)

    @property
    def clients(self) -> list[Any]:
        """Handles of the client actors, replaced when one dies."""
        return self._actors.clients

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield one answer for the whole cohort."""
        reference = ray.put(Carried(query))
        num_blocks = query.cohort.num_blocks
        shares = [
            _Share(index=index, blocks=range(index, num_blocks, len(self.clients)))
            for index in range(min(len(self.clients), num_blocks))
        ]
        failures = 0
        lost = shares
        while True:
            for share in lost:
                self._submit(share, reference, query.cohort.block_size)
            try:
                lost = self._work_off(shares, progress)
                if not lost:
                    yield self._actors.merge([share.answer for share in shares])
                    return
            except _LOST:
                self._actors.replace_server()
                lost = [share for share in shares if not _is_there(share.answer)]
            failures += 1
            if failures > _MOST_FAILURES:
                raise RuntimeError(f"Ray actors were lost {failures} times in one round.")
            self._actors.check_new_nodes()
            for share in lost:
                self._actors.replace_client(share.index)

    def close(self) -> None:
        """Stop the actors, and Ray if it was started for them."""
        if self._ahead is None:
            self._actors.close()
        else:
            self._ahead.close()

    def _submit(self, share: _Share, query: Any, block_size: int) -> None:
        """Queue the calls for a whole share; an actor works them off in order."""
        actor = self.clients[share.index]
        size = max(
            -(-len(share.blocks) // _MOST_CALLS_PER_SHARE), -(-_CLIENTS_PER_CALL // block_size)
        )
        share.clients_done = 0
        share.pending = [
            *self._actors.first_calls(share.index),
            actor.begin.remote(query),
            *(
                actor.absorb.remote(share.blocks[start : start + size])
                for start in range(0, len(share.blocks), size)
            ),
        ]
        share.answer, finished = actor.hand_over.options(num_returns=2).remote()
        share.pending.append(finished)

    def _work_off(self, shares: list[_Share], progress: Progress | None) -> list[_Share]:
        """Wait until every share is handed over or an actor is lost; return the lost shares."""
        while any(share.pending for share in shares):
            # In submission order, one result per share at a time; a short wait, so that a signal
            # in the main thread is handled soon.
            heads = {share.pending[0]: share for share in shares if share.pending}
            done, _ = ray.wait(list(heads), num_returns=1, timeout=0.5)
            lost = []
            for reference in done:
                share = heads[reference]
                try:
                    clients = ray.get(reference)
                except RayError as error:
                    _refuse_missing_module(error)
                    if not isinstance(error, _LOST):
                        raise
                    lost.append(share)
                    continue
                share.pending.pop(0)
                if share.pending:
                    share.clients_done += clients
                elif clients != share.clients_done:
                    raise RuntimeError(
                        f"Expected answers of {share.clients_done} clients, got {clients}."
                    )
                # A share that is worked off again after a death counts only once.
                if progress is not None and share.clients_done > share.clients_reported:
                    progress(share.clients_done - share.clients_reported)
                    share.clients_reported = share.clients_done
            if lost:
                return lost
        return []


@dataclass(kw_only=True, eq=False)
class Shared:
    """An argument of several calls of `map_on_ray`: stored once, and freed with this object.

    Attributes:
        value: What the called function gets.
    """

    value: Any
    _reference: Any = field(default=None, repr=False)

    def reference(self) -> Any:
        """Return where Ray keeps the value."""
        if self._reference is None:
            self._reference = ray.put(Carried(self.value))
        return self._reference


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
        arguments: Taken one by one, whenever a worker is free; a `Shared` argument is stored once
            and passed as its value.
        num_workers: How many calls run at a time; None for one on each core that is free.
        address: A running cluster's address; a local Ray of our own if empty.

    Yields:
        The number of a call, from 0, and what it returned or raised, in the order of completion.

    Raises:
        InputError: The cluster cannot be joined, see `ray_connection.start_ray`.
    """
    if num_workers is not None:
        require_at_least(1, num_workers=num_workers)
    owns_ray = not ray.is_initialized()
    if owns_ray:
        start_ray(num_workers, address)
    num_workers = num_workers or free_cores()
    task = ray.remote(num_cpus=1, max_retries=_MOST_FAILURES)(function)
    waiting = enumerate(arguments)
    running: dict[Any, int] = {}
    try:
        while True:
            while len(running) < num_workers and (call := next(waiting, None)) is not None:
                number, values = call
                passed = [v.reference() if isinstance(v, Shared) else Carried(v) for v in values]
                running[task.remote(*passed)] = number
            if not running:
                return
            # A short wait, so that a signal in the main thread is handled soon.
            done, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
            for reference in done:
                yield running.pop(reference), _outcome(reference)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        if owns_ray:
            ray.shutdown()


def _outcome(reference: Any) -> Any:
    """Return a finished task's result, or the exception that ended it."""
    try:
        return ray.get(reference)
    except RayError as error:
        try:
            _refuse_missing_module(error)
        except InputError as missing:
            return missing
        return error
    except Exception as error:
        return error


def _refuse_missing_module(error: RayError) -> None:
    """Raise InputError if a worker could not read what it was sent for want of a module."""
    if found := _MISSING.search(str(error)):
        raise InputError(
            f"A Ray worker cannot import the module {found[1]!r}, which is there in this process; "
            "install it on every node, or put it beside the config."
        ) from None


def _is_there(reference: Any) -> bool:
    """Return whether a finished result can still be fetched."""
    try:
        ray.get(reference, timeout=60)
    except (*_LOST, GetTimeoutError):
        return False
    return True
