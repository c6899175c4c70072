"""Executor on Ray: client actors answer for chunks of blocks, a server actor walks the plan.

A chunk goes to whichever client actor is free, and is asked again elsewhere if its actor is lost or
late; the first answer counts. Answers are addressed by block, so the bits stay the same.

The server holds protocol and state, and asks client actors. Who listens to it, the driver, keeps
the log and knows the truth. A server that is lost is started again and hears the log again; a run
without one is asked again from its beginning, to the same bits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import ray
from ray.exceptions import (
    GetTimeoutError,
    ObjectLostError,
    RayActorError,
    RayError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedhh.plugins import Carried, without_exit
from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.simulation.engine import Round, Walk
from fedhh.simulation.executor import Executor, Progress, Worker
from fedhh.simulation.log import LoggedRound
from fedhh.simulation.ray.cluster import (
    MOST_FAILURES,
    PAUSE_SECONDS,
    RayWatch,
    failure_of,
    require_cores,
    require_same_fedhh,
    running_ray,
    stored,
    workers_at_a_time,
)
from fedhh.validation import InputError, RunFailedError

_FEWEST_CLIENTS, _NUMBERS_PER_CLIENT = 2**12, 32
"""A chunk has so many clients at least, and one for so many numbers of its tally: to ask fewer is
sooner done than to merge what they say."""

_CLIENTS_PER_CHUNK, _MOST_CHUNKS = 2**15, 8
"""An actor has several chunks of a round, but not small ones, and not more than so many."""

_LATE_SECONDS, _SLOWER = 1.0, 2.0
"""A chunk is late if it takes so much longer than so many times what the slowest has taken, ..."""
_FIRST_SECONDS = 60.0
"""... and the first ones, if they take so long."""

_ALONE_SECONDS = 60.0
"""How long a run waits for a first core; Ray takes 20 to notice that a node is gone."""

_FETCH_SECONDS = 60.0

_log = logging.getLogger(__name__)

Box = list[Any]
"""A reference that Ray passes as it is, so that an actor fetches its value once, not every call."""


class Client:
    """Answers for blocks of clients; holds nothing but copies, so any other can in its place."""

    def __init__(self) -> None:
        self._fetched: dict[str, tuple[Box, Any]] = {}

    def ready(self, warm_up: Callable[[], None] | None = None) -> None:
        """Load what answers take; what fails here fails again where it is asked for."""
        if warm_up is not None:
            with suppress(Exception):
                warm_up()

    def answer(self, worker: Box, broadcast: Box, blocks: Sequence[int]) -> Answer:
        """Return a worker's answer for some blocks of a broadcast's cohort."""
        held, asked = self._fetch("worker", worker), self._fetch("broadcast", broadcast)
        # A plug-in that exits would end the actor, and each of those in its place.
        with without_exit():
            answer: Answer = held.answer(asked, blocks)
        return answer

    def _fetch(self, name: str, box: Box) -> Any:
        """Return what a reference leads to; the same object as long as the reference is the same.

        By that a worker knows what it has already worked out of a broadcast.
        """
        if self._fetched.get(name, (None, None))[0] != box:
            self._fetched[name] = box, ray.get(box[0])
        return self._fetched[name][1]


class Server:
    """Walks through the plan of a run, and says how far it is."""

    def __init__(self) -> None:
        self._asked = 0

    def rounds(self, walk: Walk, executor: Executor, heard: Sequence[LoggedRound]) -> Iterator[Any]:
        """Yield rounds, each with `asked` at that time."""
        self._asked = 0
        with without_exit():
            for finished in walk.rounds(executor, heard=heard, progress=self._tell):
                yield Carried((self._asked, finished))

    def asked(self) -> int:
        """Return how many clients were asked."""
        return self._asked

    def _tell(self, num_clients: int) -> None:
        self._asked += num_clients


def start_client() -> Any:
    """Return the handle of a client actor, which waits for a core of its own."""
    return ray.remote(num_cpus=1)(Client).remote()


def start_server() -> Any:
    """Return the handle of a server actor on this node.

    It takes no core, and two calls at a time: one walks, the other says how far it is.
    """
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, max_concurrency=2, scheduling_strategy=here)(Server).remote()


class _Call(NamedTuple):
    """A chunk that an actor answers for, since when."""

    seat: int
    chunk: int
    since: float


class RayExecutor(Executor):
    """Spreads a cohort's blocks over client actors.

    Attributes:
        clients: Handles of the client actors, replaced when one dies.
        server: Handle of the server actor; another one after it was lost.
    """

    def __init__(
        self,
        worker: Worker | None = None,
        *,
        num_workers: int | None = None,
        address: str = "",
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        """Start or join Ray, and the actors, which get ready from now on.

        Args:
            worker: Answers for clients; None where `hold` says it later.
            num_workers: How many client actors, at most the cluster's cores; None for one on each
                core that is free.
            address: A running cluster's address; a local Ray of our own if empty.
            warm_up: Importable on every node; each client actor calls it before all else.

        Raises:
            InputError: The cluster cannot be joined, see `cluster.start_ray`.
            RunFailedError: A local Ray cannot be started, or the cluster has no core.
        """
        self._ray = ExitStack()
        self._ray.enter_context(running_ray(num_workers, address))
        self._watch = RayWatch(address)
        self._pace: float | None = None
        self._free: list[int] = []
        self._coming: dict[Any, int] = {}
        self.clients: list[Any] = []
        try:
            self.server = start_server()
            self.clients += [start_client() for _ in range(workers_at_a_time(num_workers))]
            self._nodes = {node["NodeID"] for node in ray.nodes()}
            if worker is not None:
                self.hold(worker)
        except BaseException:
            self.close()
            raise
        for client in self.clients:
            client.ready.remote(warm_up)

    def hold(self, worker: Worker) -> None:
        """Give every actor a copy of a worker."""
        self._watch.check()
        self._worker, self._remembers = [stored(worker)], worker.remembers

    def __getstate__(self) -> dict[str, Any]:
        # A copy asks the same actors, and stops none.
        return {**self.__dict__, "_ray": None, "_free": [], "_coming": {}}

    def answer(self, broadcast: Any, progress: Progress | None = None) -> Answer:
        """Return the merged answers of every block of the cohort, each once.

        Raises:
            RunFailedError: Ray is gone, no core is left, or workers are lost again and again.
        """
        self._watch.check()
        if not self._free and not self._coming:
            self._coming = {each.ready.remote(): seat for seat, each in enumerate(self.clients)}
        chunks = _Chunks(broadcast, len(self.clients), remembers=self._remembers)
        asked, answer = [stored(broadcast)], None
        while chunks.left:
            for seat in list(self._free):
                if (chunk := chunks.next_for(seat, self._patience)) is not None:
                    self._free.remove(seat)
                    blocks = chunks.blocks[chunk]
                    call = self.clients[seat].answer.remote(self._worker, asked, blocks)
                    chunks.calls[call] = _Call(seat, chunk, time.monotonic())
            waiting = [*self._coming, *chunks.calls]
            done, _ = ray.wait(waiting, num_returns=1, timeout=PAUSE_SECONDS)
            self._watch.check()
            if not done and not chunks.calls:
                _require_somebody(chunks.began)
            for reference in done:
                if (part := self._received(reference, chunks)) is None:
                    continue
                chunk, new = part
                answer = new if answer is None else answer.merge(new)
                if progress is not None:
                    progress(chunks.clients(chunk))
        # Who is at a chunk that another has answered comes back when it is done with it.
        self._coming |= {reference: call.seat for reference, call in chunks.calls.items()}
        assert answer is not None
        return answer

    def rounds(
        self,
        walk: Walk,
        heard: Callable[[], Sequence[LoggedRound]],
        progress: Progress | None = None,
    ) -> Iterator[Round]:
        """Yield the rounds that the server actor has, whatever happens to it.

        Raises:
            RunFailedError: Ray is gone, or the server is lost again and again.
        """
        run = [stored(each) for each in (walk, self)]
        yielded = told = told_before = 0
        for _ in range(MOST_FAILURES + 1):
            logged = heard()
            # Nobody is asked again about what a log has, so it is not counted again.
            number, known = 0, told_before if logged else 0
            try:
                for asked, finished in self._listen([*run, stored(logged)]):
                    if known + asked > told:
                        if progress is not None:
                            progress(known + asked - told)
                        told = known + asked
                    number += finished is not None
                    if number > yielded:
                        yielded, told_before = number, told
                        yield finished
                return
            except Exception as error:
                # Whatever a Ray that is gone makes of it.
                self._watch.check()
                if not isinstance(error, RayError):
                    raise
                # That a client is lost is what the server says, and no loss of its own.
                if isinstance(error, RayTaskError) or not isinstance(error, RayActorError):
                    raise failure_of(error) from error
            self.server = start_server()
        raise RunFailedError(
            f"The server of this run was lost {MOST_FAILURES + 1} times, perhaps for want of "
            "memory: go on with --resume and --workers 0."
        )

    def close(self) -> None:
        """Stop the actors, and Ray if it was started for them; once is enough."""
        if self.clients and self._watch.is_there():
            for actor in (self.server, *self.clients):
                ray.kill(actor)
        self.clients.clear()
        self._ray.close()

    def _listen(self, arguments: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield how many clients the server has asked, with a round whenever one has ended."""
        rounds = self.server.rounds.remote(*arguments)
        while True:
            done, _ = ray.wait([rounds], timeout=PAUSE_SECONDS)
            self._watch.check()
            if done:
                try:
                    yield ray.get(next(rounds), timeout=_FETCH_SECONDS)
                except StopIteration:
                    return
            else:
                with suppress(GetTimeoutError):
                    yield ray.get(self.server.asked.remote(), timeout=PAUSE_SECONDS), None

    def _received(self, reference: Any, chunks: _Chunks) -> tuple[int, Answer] | None:
        """Return a chunk, and what a call returned if it is the first answer for it."""
        call = chunks.calls.pop(reference, None)
        seat = self._coming.pop(reference) if call is None else call.seat
        try:
            # At once: of what lies on a node that is lost later, nothing comes any more.
            part: Answer = ray.get(reference, timeout=_FETCH_SECONDS)
        except RayError as error:
            self._watch.check()
            failure = failure_of(error)
            # A lost actor says so, or why it could not be made.
            is_lost = isinstance(error, RayActorError | ObjectLostError | GetTimeoutError)
            if not is_lost or isinstance(failure, InputError):
                raise failure from error
            chunks.lose()
            self._replace(seat)
            return None
        self._free.append(seat)
        if call is None or call.chunk not in chunks.left:
            return None
        chunks.left.remove(call.chunk)
        seconds = time.monotonic() - call.since
        self._pace = max(self._pace or 0.0, seconds / max(chunks.clients(call.chunk), 1))
        return call.chunk, part

    def _replace(self, seat: int) -> None:
        """Put a new client actor in the place of one that is lost, once there is a core for it."""
        require_same_fedhh(self._nodes)
        _log.info("client actor %d was lost; others take over its blocks", seat)
        ray.kill(self.clients[seat])
        self.clients[seat] = start_client()
        self._coming[self.clients[seat].ready.remote()] = seat

    def _patience(self, num_clients: int) -> float:
        """Return after how many seconds the answers of some clients are late."""
        if self._pace is None:
            return _FIRST_SECONDS
        return _LATE_SECONDS + _SLOWER * self._pace * num_clients


def _require_somebody(began: float) -> None:
    """Raise RunFailedError if nobody answers for a round that began then, and none will."""
    require_cores()
    if time.monotonic() - began > _ALONE_SECONDS:
        raise RunFailedError(
            "No worker of this run is left, or was there from the first, and the Ray cluster "
            "has no free core for one: start a node, and go on with --resume."
        )


class _Chunks:
    """The chunks of a broadcast's cohort, and who is at which.

    Attributes:
        blocks: Of each chunk, every block in one of them.
        left: Numbers of the chunks that nobody has answered for.
        calls: What actors are at.
        began: When.
    """

    def __init__(self, broadcast: Any, num_workers: int, *, remembers: bool) -> None:
        """Cut a cohort: into one chunk a worker at most where workers remember blocks."""
        cohort: Cohort = broadcast.cohort
        fewest = max(_FEWEST_CLIENTS, broadcast.tally_size // _NUMBERS_PER_CLIENT)
        for_each = min(cohort.size // _CLIENTS_PER_CHUNK // num_workers, _MOST_CHUNKS)
        number = num_workers * (1 if remembers else max(for_each, 1))
        number = max(min(number, cohort.size // fewest, cohort.num_blocks), 1)
        self.blocks = [range(at, cohort.num_blocks, number) for at in range(number)]
        self.left = set(range(number))
        self.calls: dict[Any, _Call] = {}
        self.began = time.monotonic()
        self._num_workers, self._cohort, self._failures = num_workers, cohort, 0

    def clients(self, chunk: int) -> int:
        """Return how many clients a chunk has."""
        return sum(map(self._cohort.size_of, self.blocks[chunk]))

    def next_for(self, seat: int, patience: Callable[[int], float]) -> int | None:
        """Return the chunk to ask an actor for: of its own, of others', or one that is late.

        Chunks of the same blocks are the same actor's in every round, if it is there.
        """
        asked = {call.chunk: call.since for call in self.calls.values()}
        if unasked := self.left - asked.keys():
            return min(unasked, key=lambda each: (each % self._num_workers != seat, each))
        now = time.monotonic()
        for chunk in self.left:
            if now - asked[chunk] > patience(self.clients(chunk)):
                return chunk
        return None

    def lose(self) -> None:
        """Note that an actor was lost; RunFailedError after too many losses."""
        self._failures += 1
        if self._failures > MOST_FAILURES:
            raise RunFailedError(
                f"Ray workers were lost {self._failures} times in one round, perhaps for want of "
                "memory: go on with --resume and fewer --workers."
            )
