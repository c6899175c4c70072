"""Executor on Ray: client actors answer for blocks, a server actor merges what they answer.

An actor is a shell around the same worker object that the in-process executor uses. Each client
actor has a fixed share of the blocks and hands over one aggregate per round. If an actor dies, a
new one takes over its whole share: answers are addressed by block, so the bits stay the same.

`map_on_ray` is for many small runs side by side, in place of one large one.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

# Before ray is imported, since it reads these once: no usage statistics, and no warning about how
# a later Ray will treat accelerators, which no actor here asks for.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError

from fedhh.queries import Answer, Query
from fedhh.simulation.executor import Executor, Progress, Worker
from fedhh.simulation.stopping import before_leaving
from fedhh.validation import InputError, require_at_least

_CALLS_PER_SHARE = 16
"""In how many calls an actor works off its share; each reports progress."""

_MOST_FAILURES = 20
"""Actor deaths in one round after which the run stops: something else is wrong then."""

_LOST = (RayActorError, ObjectLostError)

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
        answer = self._worker.answer(self._query, blocks)
        self._answer = answer if self._answer is None else self._answer.merge(answer)
        return answer.aggregate.num_clients

    def hand_over(self) -> tuple[Answer | None, int]:
        """Return the merged answer of the round, with its clients, and forget it."""
        answer, self._answer = self._answer, None
        return answer, 0 if answer is None else answer.aggregate.num_clients


class _ServerActor:
    """Merges the client actors' aggregates."""

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

    def __init__(self, worker: Worker, *, num_workers: int, address: str = "") -> None:
        """Start or join Ray, and place the actors.

        Args:
            worker: Answers for blocks; copied to every actor once.
            num_workers: How many client actors.
            address: A running cluster's address; a local Ray of our own if empty.

        Raises:
            InputError: No cluster answers at the address.
        """
        require_at_least(1, num_workers=num_workers)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            _start_ray(num_workers, address)
        self._worker = ray.put(worker)
        # Blocks must not depend on a free slot: an actor asks for one core, the server for none.
        self._client_class = ray.remote(num_cpus=1)(_ClientActor)
        self._server_class = ray.remote(num_cpus=0)(_ServerActor)
        self.clients = [self._client_class.remote(self._worker) for _ in range(num_workers)]
        self._server = self._server_class.remote()

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield one answer for the whole cohort, merged by the server actor."""
        reference = ray.put(query)
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
                self._server = self._server_class.remote()
                lost = [share for share in shares if not _is_there(share.answer)]
            failures += 1
            if failures > _MOST_FAILURES:
                raise RuntimeError(f"Ray actors were lost {failures} times in one round.")
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
                except _LOST:
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
            self._reference = ray.put(self.value)
        return self._reference


def map_on_ray(
    function: Callable[..., _Result],
    arguments: Iterable[tuple[Any, ...]],
    *,
    num_workers: int,
    address: str = "",
) -> Iterator[tuple[int, _Result | Exception]]:
    """Call a function for each tuple of arguments, each call a task of its own on one core.

    A task whose worker dies is started again; what its function raises is handed back, and the
    other tasks go on.

    Args:
        function: Importable on every node.
        arguments: Taken one by one, whenever a worker is free; a `Shared` argument is stored once
            and passed as its value.
        num_workers: How many calls run at a time.
        address: A running cluster's address; a local Ray of our own if empty.

    Yields:
        The number of a call, from 0, and what it returned or raised, in the order of completion.

    Raises:
        InputError: No cluster answers at the address.
    """
    require_at_least(1, num_workers=num_workers)
    owns_ray = not ray.is_initialized()
    if owns_ray:
        _start_ray(num_workers, address)
    task = ray.remote(num_cpus=1, max_retries=_MOST_FAILURES)(function)
    waiting = enumerate(arguments)
    running: dict[Any, int] = {}
    try:
        while True:
            while len(running) < num_workers and (call := next(waiting, None)) is not None:
                number, values = call
                passed = [v.reference() if isinstance(v, Shared) else v for v in values]
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
    except Exception as error:
        return error


def _is_there(reference: Any) -> bool:
    """Return whether a finished result can still be fetched."""
    try:
        ray.get(reference, timeout=60)
    except (*_LOST, GetTimeoutError):
        return False
    return True


def _start_ray(num_workers: int, address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    # Ray takes SIGTERM for itself; a run has its own way to stop.
    handler = signal.getsignal(signal.SIGTERM)
    try:
        if address:
            _knock(address)
            ray.init(address=address, **options)
        else:
            before_leaving(_kill_children)
            ray.init(address="local", num_cpus=num_workers, include_dashboard=False, **options)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Ray cluster answers at ray_address={address!r} ({error}); start one with "
            "`ray start --head`, or leave the address empty."
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _kill_children() -> None:
    """Kill the local Ray's processes, all below this one.

    `ray.shutdown` asks the raylet first and gives it a second. Of a raylet that is only killed,
    Ray's agents notice the end half a minute later.
    """
    import psutil  # Ray brings its own

    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _knock(address: str) -> None:
    """Raise OSError if nothing listens at ``host:port``; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5).close()
