"""Ray's actors that answer for clients: shells around the worker object that answers in process.

They are started before there are clients, so that they get ready while these are made, and hold
nothing but copies. So any of them can answer for any block, and one that is lost is replaced.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ray

from fedhh.plugins import without_exit
from fedhh.questions.answer import Answer
from fedhh.simulation.ray.connection import all_cores, free_cores, start_ray, stop_ray
from fedhh.simulation.ray.server import start_server
from fedhh.simulation.ray.watch import watch_ray
from fedhh.validation import InputError, require_at_least

_CORE_SECONDS = 10.0
"""How long a core of a cluster is waited for."""

_log = logging.getLogger(__name__)

Box = list[Any]
"""A reference that Ray passes as it is, so that an actor fetches its value once, not every call."""


class Client:
    """Answers for blocks of clients."""

    def __init__(self) -> None:
        self._fetched: dict[str, tuple[Box, Any]] = {}

    def ready(self, warm_up: Callable[[], None] | None = None) -> None:
        """Load what answers take; what fails here fails again where it is asked for."""
        if warm_up is not None:
            with suppress(Exception):
                warm_up()

    def answer(self, worker: Box, broadcast: Box, blocks: Sequence[int]) -> list[Answer]:
        """Return a worker's answers for some blocks of a broadcast's cohort."""
        held, asked = self._fetch("worker", worker), self._fetch("broadcast", broadcast)
        # A plug-in that exits would end the actor, and each of those in its place.
        with without_exit():
            answers: list[Answer] = held.answer(asked, blocks)
        return answers

    def _fetch(self, name: str, box: Box) -> Any:
        """Return what a reference leads to; the same object as long as the reference is the same.

        By that a worker knows what it has already worked out of a broadcast.
        """
        if self._fetched.get(name, (None, None))[0] != box:
            self._fetched[name] = box, ray.get(box[0])
        return self._fetched[name][1]


class RayActors:
    """Client actors on a Ray that was there or is started for them.

    Attributes:
        clients: Handles of the client actors.
        server: Handle of the server actor.
        watch: Knows whether Ray is there.
    """

    def __init__(
        self,
        num_workers: int | None,
        address: str,
        *,
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        """Start or join Ray, and the actors; close them after use.

        Args:
            num_workers: How many client actors at most; fewer, with a warning, where fewer cores
                are free. None for one on each core that is free.
            address: A running cluster's address; a local Ray of our own if empty.
            warm_up: Importable on every node; each client actor calls it before all else.

        Raises:
            InputError: The cluster cannot be joined, see `connection.start_ray`; or none of its
                cores is free.
        """
        if num_workers is not None:
            require_at_least(1, num_workers=num_workers)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            start_ray(num_workers, address)
        self.watch = watch_ray(address)
        self.clients: list[Any] = []
        try:
            self.server = start_server()
            self.clients += [start_client() for _ in range(_cores_for(num_workers))]
        except BaseException:
            self.close()
            raise
        for client in self.clients:
            client.ready.remote(warm_up)

    def close(self) -> None:
        """Stop the actors, and Ray if it was started for them; once is enough."""
        if self.clients and self.watch.is_there():
            for actor in (self.server, *self.clients):
                ray.kill(actor)
        self.clients.clear()
        if self._owns_ray:
            self._owns_ray = False
            stop_ray()


def start_client() -> Any:
    """Return the handle of a client actor, which waits for a core of its own."""
    return ray.remote(num_cpus=1)(Client).remote()


def _cores_for(num_workers: int | None) -> int:
    """Return how many cores are free for so many workers; InputError if none is."""
    end = time.monotonic() + _CORE_SECONDS
    while (free := free_cores()) < (num_workers or 1) and time.monotonic() < end:
        time.sleep(0.1)
    if not free:
        raise InputError(
            f"None of the {all_cores()} cores of the Ray cluster is free; wait until others are "
            "done, start a node (`ray start --address`), or use --workers 0."
        )
    if num_workers is not None and free < num_workers:
        _log.warning(
            "%d workers were asked for, and the Ray cluster has free cores for %d: %d answer for "
            "all clients, with the same result",
            num_workers,
            free,
            free,
        )
    return min(num_workers or free, free)
