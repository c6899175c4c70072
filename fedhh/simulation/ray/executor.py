"""Executor on Ray: client actors answer for blocks, and what they answer is merged.

Each client actor, see `actors`, has a fixed share of the blocks and hands over one aggregate per
round. If an actor dies, a new one takes over its whole share: answers are addressed by block, so
the bits stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from fedhh.plugins import Carried
from fedhh.queries.base import Answer, Query
from fedhh.simulation.executor import Executor, Progress, Worker
from fedhh.simulation.ray.actors import RayActors
from fedhh.simulation.ray.watch import LOST, MOST_FAILURES, failure_of
from fedhh.validation import InputError, RunFailedError

_MOST_CALLS_PER_SHARE, _CLIENTS_PER_CALL = 16, 2**15
"""An actor works off its share in a number of calls, each of which reports progress; a call takes
about as long as answers of 3,000 clients, so a small share is worked off in one."""


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
        actors: RayActors | None = None,
    ) -> None:
        """Start or join Ray, see `RayActors`, and give every actor a copy of the worker.

        Actors that have been started for this stand in place of ``num_workers`` and ``address``;
        they serve no other worker, and are closed with this executor.
        """
        self._actors = actors or RayActors(num_workers, address)
        self._actors.hold(worker)

    @property
    def clients(self) -> list[Any]:
        """Handles of the client actors, replaced when one dies."""
        return self._actors.clients

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        self._actors.watch.check()
        reference = ray.put(Carried(query))
        num_blocks = query.cohort.num_blocks
        seats = self._actors.seats
        shares = [
            _Share(index=index, blocks=range(start, num_blocks, len(seats)))
            for start, index in enumerate(seats[:num_blocks])
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
            except LOST:
                self._actors.watch.check()
                self._actors.replace_server()
                lost = [share for share in shares if not _is_there(share.answer)]
            except RayError as error:
                raise failure_of(error) from error
            failures += 1
            if failures > MOST_FAILURES:
                raise RunFailedError(
                    f"Ray workers were lost {failures} times in one round, perhaps for want of "
                    "memory: go on with --resume and fewer --workers."
                )
            lost = self._recover(shares, lost)

    def close(self) -> None:
        self._actors.close()

    def _recover(self, shares: list[_Share], lost: list[_Share]) -> list[_Share]:
        """Replace lost actors, and return all shares that were theirs, each with one to take it."""
        self._actors.watch.check()
        self._actors.check_new_nodes()
        gone = {share.index for share in lost}
        # An actor that took over another's share had more than one.
        orphans = [s for s in shares if s in lost or (s.pending and s.index in gone)]
        for index in sorted(gone):
            self._actors.replace_client(index)
        seats = self._actors.seats
        if not seats:
            raise RunFailedError(
                "All workers of this run were lost with their Ray nodes, and the cluster has no "
                "free core: start a node, and go on with --resume."
            )
        homeless = [share for share in orphans if share.index not in seats]
        for number, share in enumerate(homeless):
            share.index = seats[number % len(seats)]
        return orphans

    def _submit(self, share: _Share, query: Any, block_size: int) -> None:
        """Queue the calls for a whole share; an actor works them off in order."""
        actor = self.clients[share.index]
        size = max(
            -(-len(share.blocks) // _MOST_CALLS_PER_SHARE), -(-_CLIENTS_PER_CALL // block_size)
        )
        share.clients_done = 0
        share.pending = [
            self._actors.held[share.index],
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
            self._actors.watch.check()
            lost = []
            for reference in done:
                share = heads[reference]
                try:
                    clients = ray.get(reference)
                except RayError as error:
                    failure = failure_of(error)
                    # A lost actor says so, or why it could not be made.
                    if not isinstance(error, LOST) or isinstance(failure, InputError):
                        raise failure from error
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


def _is_there(reference: Any) -> bool:
    try:
        ray.get(reference, timeout=60)
    except (*LOST, GetTimeoutError):
        return False
    return True
