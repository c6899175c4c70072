"""Executor on Ray: client actors answer for blocks, a server actor merges what they answer.

An actor is a shell around the same worker object that the in-process executor uses. Each client
actor has a fixed share of the blocks and hands over one aggregate per round. If an actor dies, a
new one takes over its whole share: answers are addressed by block, so the bits stay the same.

`map_on_ray` is for many small runs side by side, in place of one large one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

# First, since it sets what ray reads when it is imported.
from fedhh.simulation.ray_connection import (  # isort: skip
    alive_nodes,
    free_cores,
    require_same_fedhh,
    start_ray,
)

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayError

from fedhh.doors import Carried
from fedhh.queries.base import Answer, Query
from fedhh.simulation.executor import Executor, Progress, Worker
from fedhh.validation import InputError, require_at_least

_CALLS_PER_SHARE = 16
"""In how many calls an actor works off its share; each reports progress."""

_MOST_FAILURES = 20
"""Actor deaths in one round after which the run stops: something else is wrong then."""

_LOST = (RayActorError, ObjectLostError)

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


class _ClientActor:
    """Holds clients; adds up the answers of its blocks until they are handed over."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._query: Query | None = None
        self._answer: Answer | None = None

    def begin(self, query: Query) -> int:
        """Take a round's query; the blocks follow in later calls."""
        self._query, self._answer = query, None
        return 0

    def absorb(self, blocks: Sequence[int]) -> int:
        """Answer for some blocks, and return how many clients they hold."""
        assert self._query is not None
        before = 0 if self._answer is None else self._answer.aggregate.num_clients
        self._answer = self._worker.answer(self._query, blocks, onto=self._answer)
        return self._answer.aggregate.num_clients - before

    def hand_over(self) -> tuple[Answer | None, int]:
        """Return the merged answer of the round, with its clients, and forget it."""
        answer, self._answer = self._answer, None
        return answer, 0 if answer is None else answer.aggregate.num_clients


class _ServerActor:
    """Merges the client actors' aggregates."""

    def __init__(self, _: None) -> None:
        """Take nothing, carried with the modules that an answer may need."""

    def merge(self, *answers: Answer) -> Answer:
        """Return one answer for all shares."""
        return reduce(Answer.merge, answers)


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
    """Spreads a cohort's blocks over client actors.

    Attributes:
        clients: Handles of the client actors, replaced when one dies.
    """

    def __init__(self, worker: Worker, *, num_workers: int | None, address: str = "") -> None:
        """Start or join Ray, and place the actors.

        Args:
            worker: Answers for blocks; copied to every actor once.
            num_workers: How many client actors; None for one on each core that is free.
            address: A running cluster's address; a local Ray of our own if empty.

        Raises:
            InputError: The cluster cannot be joined, see `ray_connection.start_ray`.
        """
        if num_workers is not None:
            require_at_least(1, num_workers=num_workers)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            start_ray(num_workers, address)
        num_workers = num_workers or free_cores()
        self._nodes = alive_nodes()
        self._worker = ray.put(Carried(worker))
        # Blocks must not depend on a free slot: an actor asks for one core, the server for none.
        self._client_class = ray.remote(num_cpus=1)(_ClientActor)
        self._server_class = ray.remote(num_cpus=0)(_ServerActor)
        self.clients = [self._client_class.remote(self._worker) for _ in range(num_workers)]
        self._server = self._server_class.remote(Carried(None))

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield one answer for the whole cohort, merged by the server actor."""
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
                self._submit(share, reference)
            try:
                lost = self._work_off(shares, progress)
                if not lost:
                    yield ray.get(self._server.merge.remote(*(share.answer for share in shares)))
                    return
            except _LOST:
                self._server = self._server_class.remote(Carried(None))
                lost = [share for share in shares if not _is_there(share.answer)]
            failures += 1
            if failures > _MOST_FAILURES:
                raise RuntimeError(f"Ray actors were lost {failures} times in one round.")
            self._check_new_nodes()
            for share in lost:
                _log.info("client actor %d was lost; another takes over its blocks", share.index)
                ray.kill(self.clients[share.index])
                self.clients[share.index] = self._client_class.remote(self._worker)

    def close(self) -> None:
        """Stop the actors, and Ray if this executor started it."""
        for actor in (*self.clients, self._server):
            ray.kill(actor)
        self.clients = []
        if self._owns_ray:
            ray.shutdown()

    def _check_new_nodes(self) -> None:
        """Refuse nodes that joined since and hold another fedhh, before an actor is placed."""
        joined = {n: at for n, at in alive_nodes().items() if n not in self._nodes}
        require_same_fedhh(joined)
        self._nodes |= joined

    def _submit(self, share: _Share, query: Any) -> None:
        """Queue the calls for a whole share; an actor works them off in order."""
        actor = self.clients[share.index]
        size = -(-len(share.blocks) // _CALLS_PER_SHARE)
        share.clients_done = 0
        share.pending = [
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
