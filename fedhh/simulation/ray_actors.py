"""Ray's actors: some hold clients and answer for blocks of them; of many, one merges the answers.

An actor is a shell around the same worker object that the in-process executor uses. It gets the
worker after it was started, so that actors can get ready before there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

# First, since it sets what ray reads when it is imported.
from fedhh.simulation.ray_connection import (  # isort: skip
    alive_nodes,
    free_cores,
    require_same_fedhh,
    start_ray,
)

import ray

from fedhh.doors import Carried
from fedhh.queries.base import Answer, Query
from fedhh.simulation.executor import Worker
from fedhh.validation import require_at_least

MERGED_HERE = 2
"""So many answers are as soon fetched as merged elsewhere and then fetched."""

_log = logging.getLogger(__name__)


class _ClientActor:
    """Holds clients; adds up the answers of its blocks until they are handed over."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._query: Query | None = None
        self._answer: Answer | None = None

    def rehearse(self, rehearsal: Callable[[], None]) -> None:
        """Load what answers take; what fails here fails again where it is asked for."""
        with suppress(Exception):
            rehearsal()

    def hold(self, worker: Worker) -> int:
        """Take the worker that answers from now on."""
        self._worker = worker
        return 0

    def begin(self, query: Query) -> int:
        """Take a round's query; the blocks follow in later calls."""
        self._query, self._answer = query, None
        return 0

    def absorb(self, blocks: Sequence[int]) -> int:
        """Answer for some blocks, and return how many clients they hold."""
        assert self._worker is not None
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

    def prepare(self, _: None) -> None:
        """Take nothing, carried with the modules that an answer may need."""

    def merge(self, *answers: Answer) -> Answer:
        """Return one answer for all shares."""
        return reduce(Answer.merge, answers)


class RayActors:
    """Client actors, and a server actor for many, on a Ray that was there or is started for them.

    Attributes:
        clients: Handles of the client actors, replaced when one dies.
        server: Handle of the server actor; None if there are at most `MERGED_HERE` clients.
    """

    def __init__(
        self,
        num_workers: int | None,
        address: str,
        *,
        rehearsal: Callable[[], None] | None = None,
    ) -> None:
        """Start or join Ray, and place the actors.

        Args:
            num_workers: How many client actors; None for one on each core that is free.
            address: A running cluster's address; a local Ray of our own if empty.
            rehearsal: Importable on every node; each client actor calls it before all else.

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
        self._worker: Any = None
        # Blocks must not depend on a free slot: an actor asks for one core, the server for none.
        self._client_class = ray.remote(num_cpus=1)(_ClientActor)
        self._server_class = ray.remote(num_cpus=0)(_ServerActor)
        self.clients = [self._client_class.remote() for _ in range(num_workers)]
        self._held: list[Any] = [None] * num_workers
        self.server: Any = None
        if num_workers > MERGED_HERE:
            self.server = self._server_class.remote()
        if rehearsal is not None:
            for actor in self.clients:
                actor.rehearse.remote(rehearsal)

    def hold(self, worker: Worker) -> None:
        """Copy a worker to every actor."""
        self._worker = ray.put(Carried(worker))
        self._prepare_server()
        for index in range(len(self.clients)):
            self._hand(index)

    def first_calls(self, index: int) -> list[Any]:
        """Return the call by which an actor got its worker, if its end was not waited for yet.

        A worker that cannot be read there is told by its result alone.
        """
        held, self._held[index] = self._held[index], None
        return [] if held is None else [held]

    def replace_client(self, index: int) -> None:
        """Put a new client actor in the place of one that is lost."""
        _log.info("client actor %d was lost; another takes over its blocks", index)
        ray.kill(self.clients[index])
        self.clients[index] = self._client_class.remote()
        self._hand(index)

    def merge(self, answers: Sequence[Any]) -> Answer:
        """Return one answer for all shares.

        Args:
            answers: References to theirs.
        """
        if self.server is None:
            there: list[Answer] = ray.get(list(answers))
            return reduce(Answer.merge, there)
        merged: Answer = ray.get(self.server.merge.remote(*answers))
        return merged

    def replace_server(self) -> None:
        """Put a new server actor in the place of one that may be lost."""
        if self.server is not None:
            self.server = self._server_class.remote()
            self._prepare_server()

    def check_new_nodes(self) -> None:
        """Refuse nodes that joined since and hold another fedhh, before an actor is placed."""
        joined = {n: at for n, at in alive_nodes().items() if n not in self._nodes}
        require_same_fedhh(joined)
        self._nodes |= joined

    def close(self) -> None:
        """Stop the actors, and Ray if it was started for them."""
        for actor in self.clients:
            ray.kill(actor)
        self.clients = []
        if self.server is not None:
            ray.kill(self.server)
        if self._owns_ray:
            ray.shutdown()

    def _prepare_server(self) -> None:
        if self.server is not None:
            self.server.prepare.remote(Carried(None))

    def _hand(self, index: int) -> None:
        self._held[index] = self.clients[index].hold.remote(self._worker)
