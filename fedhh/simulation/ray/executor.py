"""Executor on Ray: chunks of blocks go to whichever client actor is free.

A chunk is asked again elsewhere if its actor is lost or late; the first answer counts. Answers are
addressed by block, so the bits stay the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.simulation.executor import Executor, Progress, Worker, merged
from fedhh.simulation.ray.actors import RayActors, start_client
from fedhh.simulation.ray.connection import alive_nodes, all_cores, require_same_fedhh
from fedhh.simulation.ray.server import Numbered, Served
from fedhh.simulation.ray.watch import LOST, MOST_FAILURES, failure_of, stored
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


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A chunk that an actor answers for, since when."""

    seat: int
    chunk: int
    since: float


class RayExecutor(Executor):
    """Spreads a cohort's blocks over client actors.

    Attributes:
        clients: Handles of the client actors, replaced when one dies.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        num_workers: int | None = None,
        address: str = "",
        actors: RayActors | None = None,
    ) -> None:
        """Start or join Ray, see `RayActors`, and give every actor a copy of the worker.

        Actors that have been started for this stand in place of ``num_workers`` and ``address``;
        they serve no other worker, and are closed with this executor.
        """
        self._actors: RayActors | None = actors or RayActors(num_workers, address)
        self._watch, self.clients = self._actors.watch, self._actors.clients
        self._watch.check()
        self._worker, self._remembers = [stored(worker)], worker.remembers
        self._nodes = set(alive_nodes())
        self._pace: float | None = None
        self._begin()

    def __getstate__(self) -> dict[str, Any]:
        # A copy asks the same actors, and stops none.
        return {**self.__dict__, "_actors": None, "_free": [], "_coming": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def answer(self, broadcast: Any, progress: Progress | None = None) -> list[Answer]:
        """Return the answers of every block of the cohort, one to each question.

        Raises:
            RunFailedError: Ray is gone, no core is left, or workers are lost again and again.
        """
        self._watch.check()
        round_ = _Round(broadcast, len(self.clients))
        asked = [stored(broadcast)]
        answers: list[Answer] = []
        while round_.left:
            for seat in list(self._free):
                chunk = round_.next_for(seat, self._patience, remembers=self._remembers)
                if chunk is not None:
                    self._free.remove(seat)
                    blocks = round_.chunks[chunk]
                    call = self.clients[seat].answer.remote(self._worker, asked, blocks)
                    round_.calls[call] = _Call(seat=seat, chunk=chunk, since=time.monotonic())
            # A short wait, so that a signal in the main thread is handled soon.
            done, _ = ray.wait([*self._coming, *round_.calls], num_returns=1, timeout=0.5)
            self._watch.check()
            if not done and not round_.calls:
                self._require_cores(round_.began)
            for reference in done:
                if (chunk := self._received(reference, round_, answers)) is None:
                    continue
                if progress is not None:
                    progress(round_.clients(chunk))
        # Who is at a chunk that another has answered comes back when it is done with it.
        self._coming |= {reference: call.seat for reference, call in round_.calls.items()}
        return answers

    def serve(self, walks: Sequence[Any]) -> Iterator[Numbered]:
        assert self._actors is not None
        served = Served(self._actors.server, self._watch, walks)
        try:
            yield from served.follow(self)
        finally:
            self._actors.server = served.server

    def close(self) -> None:
        if self._actors is not None:
            self._actors.close()

    def _begin(self) -> None:
        """Ask all actors whether they are there."""
        self._free: list[int] = []
        self._coming = {each.ready.remote(): seat for seat, each in enumerate(self.clients)}

    def _received(self, reference: Any, round_: _Round, answers: list[Answer]) -> int | None:
        """Merge what a call returned if it is the first answer of its chunk, which is returned."""
        call = round_.calls.pop(reference, None)
        seat = self._coming.pop(reference) if call is None else call.seat
        try:
            # At once: of what lies on a node that is lost later, nothing comes any more.
            part: list[Answer] = ray.get(reference, timeout=_FETCH_SECONDS)
        except RayError as error:
            failure = failure_of(error)
            # A lost actor says so, or why it could not be made.
            if not isinstance(error, (*LOST, GetTimeoutError)) or isinstance(failure, InputError):
                raise failure from error
            round_.lose(call)
            self._replace(seat)
            return None
        self._free.append(seat)
        if call is None or call.chunk not in round_.left:
            return None
        round_.left.remove(call.chunk)
        seconds = time.monotonic() - call.since
        self._pace = max(self._pace or 0.0, seconds / max(round_.clients(call.chunk), 1))
        answers[:] = merged([answers, part]) if answers else part
        return call.chunk

    def _replace(self, seat: int) -> None:
        """Put a new client actor in the place of one that is lost, once there is a core for it."""
        self._watch.check()
        nodes = alive_nodes()
        require_same_fedhh({node: at for node, at in nodes.items() if node not in self._nodes})
        self._nodes |= set(nodes)
        _log.info("client actor %d was lost; others take over its blocks", seat)
        ray.kill(self.clients[seat])
        self.clients[seat] = start_client()
        self._coming[self.clients[seat].ready.remote()] = seat

    def _patience(self, num_clients: float) -> float:
        """Return after how many seconds the answers of some clients are late."""
        if self._pace is None:
            return _FIRST_SECONDS
        return _LATE_SECONDS + _SLOWER * self._pace * num_clients

    def _require_cores(self, began: float) -> None:
        """Raise RunFailedError if nobody answers, and none will."""
        if not all_cores() or time.monotonic() - began > _ALONE_SECONDS:
            raise RunFailedError(
                "No worker of this run is left, or was there from the first, and the Ray cluster "
                "has no free core for one: start a node, and go on with --resume."
            )


class _Round:
    """The chunks of a broadcast's cohort, and who is at which.

    Attributes:
        chunks: Blocks, every one in one chunk.
        left: Numbers of the chunks that nobody has answered for.
        calls: What actors are at.
        began: When.
    """

    def __init__(self, broadcast: Any, num_workers: int) -> None:
        cohort: Cohort = broadcast.cohort
        fewest = max(_FEWEST_CLIENTS, broadcast.tally_size // _NUMBERS_PER_CLIENT)
        for_each = min(max(cohort.size // _CLIENTS_PER_CHUNK // num_workers, 1), _MOST_CHUNKS)
        at_most = max(cohort.size // fewest, 1)
        number = min(at_most, for_each * num_workers, cohort.num_blocks)
        self.chunks: list[range] = [range(at, cohort.num_blocks, number) for at in range(number)]
        self.left = set(range(number))
        self.calls: dict[Any, _Call] = {}
        self.began = time.monotonic()
        self._todo: list[int] = list(self.left)
        self._num_workers, self._cohort = num_workers, cohort
        self._failures = 0

    def clients(self, chunk: int) -> int:
        """Return how many clients a chunk has."""
        return sum(map(self._cohort.size_of, self.chunks[chunk]))

    def next_for(
        self, seat: int, patience: Callable[[float], float], *, remembers: bool
    ) -> int | None:
        """Return the chunk to ask an actor for: of its own, of others', or one that is late.

        Chunks of the same blocks are the same actor's in every round. Where workers remember
        blocks, others take them only if all of a share should have been answered long ago.
        """
        now, share = time.monotonic(), len(self.chunks) / self._num_workers
        is_open = not remembers or now - self.began > patience(share * self.clients(0))
        own = [chunk for chunk in self._todo if chunk % self._num_workers == seat]
        for chunk in own or (self._todo if is_open else ()):
            self._todo.remove(chunk)
            return chunk
        at = [call.chunk for call in self.calls.values()]
        for call in self.calls.values():
            is_late = now - call.since > patience(self.clients(call.chunk))
            if is_late and call.chunk in self.left and at.count(call.chunk) == 1:
                return call.chunk
        return None

    def lose(self, call: _Call | None) -> None:
        """Have a lost actor's chunk asked again; RunFailedError after too many losses."""
        self._failures += 1
        if self._failures > MOST_FAILURES:
            raise RunFailedError(
                f"Ray workers were lost {self._failures} times in one round, perhaps for want of "
                "memory: go on with --resume and fewer --workers."
            )
        if call is None or call.chunk not in self.left:
            return
        if all(other.chunk != call.chunk for other in self.calls.values()):
            self._todo.append(call.chunk)
