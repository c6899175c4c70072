"""The server as an actor: it holds protocols and states, walks plans, and asks client actors.

Who listens to it, the driver, keeps the logs and knows the truth. A server that is lost is started
again and hears the logs again; a run without one is asked again from its beginning, to the same
bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedhh.plugins import Carried, without_exit
from fedhh.simulation.engine import Ended, Round, Walk, together
from fedhh.simulation.executor import Executor
from fedhh.simulation.log import LoggedRound
from fedhh.simulation.ray.watch import MOST_FAILURES, RayWatch, failure_of, stored
from fedhh.validation import RunFailedError

_PAUSE_SECONDS = 0.5
"""A short wait, so that a signal in the main thread is handled soon."""

_GET_SECONDS = 60.0

Numbered = tuple[int, Round[Any] | Ended]
"""A run's number, and a round of it or its end."""


class Server:
    """Walks through the plans of runs, and says how far it is."""

    def __init__(self) -> None:
        self._asked: list[int] = []

    def walk(
        self, walks: Sequence[Walk[Any]], executor: Executor, heard: Sequence[Sequence[LoggedRound]]
    ) -> Iterator[Any]:
        """Yield rounds and ends, see `together`, each with `asked` at that time."""
        self._asked = [0] * len(walks)
        for number, walk in enumerate(walks):
            walk.begin(heard[number], partial(self._tell, number))
        # A plug-in that exits would end the actor, and each of those in its place.
        with without_exit():
            for each in together(walks, executor):
                yield Carried((self.asked(), each))

    def asked(self) -> list[int]:
        """Return how many clients were asked in each run."""
        return list(self._asked)

    def _tell(self, number: int, num_clients: int) -> None:
        self._asked[number] += num_clients


def start_server() -> Any:
    """Return the handle of a server actor on this node.

    It takes no core, and two calls at a time: one walks, the other says how far it is.
    """
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, max_concurrency=2, scheduling_strategy=here)(Server).remote()


class Served:
    """Runs as a server actor has them, whatever happens to it.

    Attributes:
        server: The actor's handle; another one after it was lost.
    """

    def __init__(self, server: Any, watch: RayWatch, walks: Sequence[Walk[Any]]) -> None:
        """Listen to a server about some runs."""
        self.server, self._watch, self._walks = server, watch, walks
        self._told = [0] * len(walks)
        self._rounds = [0] * len(walks)
        self._going = set(range(len(walks)))

    def follow(self, executor: Executor) -> Iterator[Numbered]:
        """Yield each round and each end once.

        Args:
            executor: Asks client actors, in any process.

        Raises:
            RunFailedError: Ray is gone, or the server is lost again and again.
        """
        asked = [stored(each) for each in (self._walks, executor)]
        failures = 0
        while self._going:
            try:
                yield from self._followed(asked)
                return
            except RayError as error:
                # That a client is lost is what the server says, and no loss of its own.
                if isinstance(error, RayTaskError) or not isinstance(error, RayActorError):
                    raise failure_of(error) from error
            self._watch.check()
            failures += 1
            if failures > MOST_FAILURES:
                raise RunFailedError(
                    f"The server of this run was lost {failures} times, perhaps for want of "
                    "memory: go on with --resume and --workers 0."
                )
            self.server = start_server()

    def _followed(self, asked: Sequence[Any]) -> Iterator[Numbered]:
        """Yield what a server yields that was not yielded before; tell how far it is in between."""
        heard = [walk.logged() for walk in self._walks]
        # Nobody is asked again about what a log has, so it is not counted again.
        known = [told if log else 0 for told, log in zip(self._told, heard, strict=True)]
        seen = [0] * len(self._walks)
        follow = self.server.walk.remote(*asked, stored(heard))
        while self._going:
            done, _ = ray.wait([follow], timeout=_PAUSE_SECONDS)
            self._watch.check()
            if not done:
                self._tell(known, self._asked())
                continue
            try:
                counts, (number, finished) = ray.get(next(follow), timeout=_GET_SECONDS)
            except StopIteration:
                return
            self._tell(known, counts)
            seen[number] += 1
            if number in self._going and seen[number] > self._rounds[number]:
                yield from self._new(number, finished)

    def _new(self, number: int, finished: Round[Any] | Ended) -> Iterator[Numbered]:
        self._rounds[number] += 1
        yield number, finished
        if not isinstance(finished, Round):
            self._going.discard(number)
        elif (error := self._walks[number].error) is not None:
            # The server need not know: what it still says of this run is not heard.
            self._going.discard(number)
            yield number, error

    def _asked(self) -> list[int]:
        try:
            asked: list[int] = ray.get(self.server.asked.remote(), timeout=_PAUSE_SECONDS)
        except GetTimeoutError:
            return []
        return asked

    def _tell(self, known: Sequence[int], counts: Sequence[int]) -> None:
        for number, count in enumerate(counts):
            new = known[number] + count - self._told[number]
            if new > 0:
                self._walks[number].tell(new)
                self._told[number] += new
