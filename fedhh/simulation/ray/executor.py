"""Executor on Ray: client actors answer for blocks, and what they answer is merged.

Each client actor, see `actors`, has a fixed share of the blocks and hands over one aggregate per
round. If an actor dies, a new one takes over its whole share. If one is much slower than the
others, those that are done answer for its blocks, too, and whoever is first counts. Answers are
addressed by block, so the bits stay the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError

from fedhh.questions.answer import Answer
from fedhh.simulation.executor import Executor, Progress, Worker
from fedhh.simulation.ray.actors import RayActors
from fedhh.simulation.ray.watch import LOST, MOST_FAILURES, failure_of, stored
from fedhh.validation import InputError, RunFailedError

_SLOWER = 2.0
"""A share is asked elsewhere, too, if it takes so many times what others would take for it, ..."""
_SECONDS_LATE = 1.0
"""... and so much more."""

_CALLS_AHEAD = 2
"""Calls that an actor has at a time: it goes on at once, and little is left that nobody needs."""

_MOST_CALLS_PER_SHARE, _MOST_CALLS, _CLIENTS_PER_CALL = 16, 2**10, 2**15
"""An actor works off its share in a number of calls, each of which reports progress. A call takes
about as long as answers of 3,000 clients, so a small share is worked off in one; and this process
makes all calls of a round, so that of many actors each has few, but two at least."""


@dataclass(kw_only=True)
class _Share:
    """The blocks of one client actor in one round, and how far it is with them.

    Attributes:
        index: Of the actor.
        blocks: What it answers for.
        pending: Its calls that have not come back, in order; the last one hands over.
        later: Blocks of its later calls, which are made as earlier ones come back.
        answer: Reference to what is handed over; None until that is called for.
        calls_done: How many came back.
        started: When the first was made.
        seconds: What they took, once none is pending.
        clients_done, clients_reported: Clients worked off, and those that progress was told of.
        answered: Those that answered, once handed over.
    """

    index: int
    blocks: range
    pending: list[Any] = field(default_factory=list)
    later: list[range] = field(default_factory=list)
    answer: Any = None
    calls_done: int = 0
    started: float = 0.0
    seconds: float = 0.0
    clients_done: int = 0
    clients_reported: int = 0
    answered: int = 0

    def seconds_left(self, now: float) -> float:
        """Return about how long its calls still take, at least."""
        left = len(self.pending) + len(self.later) + (self.answer is None)
        return (now - self.started) / (self.calls_done + 1) * left


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

    def answer(self, broadcast: Any, progress: Progress | None = None) -> list[Answer]:
        self._actors.watch.check()
        reference = stored(broadcast)
        num_blocks, block_size = broadcast.cohort.num_blocks, broadcast.cohort.block_size
        seats = self._actors.seats
        shares = [
            _Share(index=index, blocks=range(start, num_blocks, len(seats)))
            for start, index in enumerate(seats[:num_blocks])
        ]
        failures = 0
        lost = shares
        while True:
            for share in lost:
                self._submit(share, reference, block_size)
            try:
                lost = self._work_off(shares, reference, block_size, progress)
                if not lost:
                    answers = self._actors.merge([(s.index, s.answer) for s in shares])
                    # Whoever answered elsewhere, too, every client counts once.
                    clients = answers[0].aggregate.num_clients
                    _require_clients(sum(share.answered for share in shares), clients)
                    return answers
            except LOST:
                self._actors.watch.check()
                # What an actor handed over may be lost with it; of none, what is lost is unknown.
                gone = self._actors.lost()
                lost = [share for share in shares if share.index in gone] or shares
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

    def _submit(self, share: _Share, broadcast: Any, block_size: int) -> None:
        """Begin a share anew, and make its first calls."""
        actor = self.clients[share.index]
        most_calls = max(2, min(_MOST_CALLS_PER_SHARE, _MOST_CALLS // len(self._actors.seats)))
        size = max(-(-len(share.blocks) // most_calls), -(-_CLIENTS_PER_CALL // block_size))
        share.clients_done = share.calls_done = 0
        share.started, share.answer = time.monotonic(), None
        first, *share.later = [
            share.blocks[at : at + size] for at in range(0, len(share.blocks), size)
        ]
        share.pending = [self._actors.held[share.index], actor.begin.remote(broadcast, first)]
        self._submit_next(share, _CALLS_AHEAD + 1)

    def _submit_next(self, share: _Share, most: int = _CALLS_AHEAD) -> None:
        """Make further calls of a share until so many are pending: for blocks, or to hand over."""
        actor = self.clients[share.index]
        while share.answer is None and len(share.pending) < most:
            if share.later:
                share.pending.append(actor.absorb.remote(share.later.pop(0)))
            else:
                share.answer, finished = actor.hand_over.options(num_returns=2).remote()
                share.pending.append(finished)

    def _work_off(
        self, shares: list[_Share], broadcast: Any, block_size: int, progress: Progress | None
    ) -> list[_Share]:
        """Wait until every share is handed over or an actor is lost; return the lost shares.

        Shares that are asked elsewhere, too, stand in the place of a slow one if they are first.
        """
        slow: _Share | None = None
        beside: list[_Share] = []
        while any(share.pending for share in shares):
            if slow is None and (slow := self._slow_one(shares)) is not None:
                beside = self._divided(slow, shares)
                for share in beside:
                    self._submit(share, broadcast, block_size)
            # In submission order, one result per share at a time.
            heads = {share.pending[0]: share for share in [*shares, *beside] if share.pending}
            done = _all_done(list(heads))
            self._actors.watch.check()
            lost = []
            for reference in done:
                share = heads[reference]
                if not self._received(share, reference):
                    lost.append(share)
                elif share not in beside:
                    self._report(share, share.clients_done, progress)
            if lost:
                return lost
            if slow is not None and not slow.pending:
                slow, beside = None, []
            elif slow is not None and not any(share.pending for share in beside):
                self._report(slow, sum(share.clients_done for share in beside), progress)
                for share in beside:
                    share.clients_reported = share.clients_done
                shares.remove(slow)
                shares.extend(beside)
                slow, beside = None, []
        return []

    def _received(self, share: _Share, reference: Any) -> bool:
        """Take what a call returned; return whether its actor is still there."""
        try:
            clients = ray.get(reference)
        except RayError as error:
            failure = failure_of(error)
            # A lost actor says so, or why it could not be made.
            if not isinstance(error, LOST) or isinstance(failure, InputError):
                raise failure from error
            return False
        share.pending.pop(0)
        share.calls_done += 1
        self._submit_next(share)
        if share.pending:
            share.clients_done += clients
            return True
        share.seconds = time.monotonic() - share.started
        share.answered = clients
        return True

    def _report(self, share: _Share, clients_done: int, progress: Progress | None) -> None:
        """Tell of a share's clients; one that is worked off again counts only once."""
        if progress is not None and clients_done > share.clients_reported:
            progress(clients_done - share.clients_reported)
            share.clients_reported = clients_done

    def _slow_one(self, shares: list[_Share]) -> _Share | None:
        """Return the share that those who are done should be asked for, too; None if none is."""
        busy = [share for share in shares if share.pending]
        done = [share for share in shares if not share.pending]
        idle = len(self._actors.seats) - len({share.index for share in busy})
        if not (done and idle):
            return None
        now = time.monotonic()
        slow = max(busy, key=lambda share: share.seconds_left(now))
        per_block = sum(s.seconds for s in done) / sum(len(s.blocks) for s in done)
        elsewhere = per_block * -(-len(slow.blocks) // idle)
        is_slow = slow.seconds_left(now) > _SLOWER * elsewhere + _SECONDS_LATE
        # An actor with several shares works off one after the other.
        is_alone = sum(share.index == slow.index for share in busy) == 1
        return slow if is_slow and is_alone else None

    def _divided(self, slow: _Share, shares: list[_Share]) -> list[_Share]:
        """Return a share's blocks as shares of the actors that are done."""
        busy = {share.index for share in shares if share.pending}
        idle = [index for index in self._actors.seats if index not in busy]
        return [
            _Share(index=index, blocks=slow.blocks[number :: len(idle)])
            for number, index in enumerate(idle[: len(slow.blocks)])
        ]


def _all_done(references: list[Any]) -> list[Any]:
    """Return what is there, of many workers much at once; nothing if that takes some time.

    So a signal in the main thread is handled soon.
    """
    done: list[Any]
    done, _ = ray.wait(references, num_returns=1, timeout=0.5)
    if done and len(references) > 1:
        done, _ = ray.wait(references, num_returns=len(references), timeout=0)
    return done


def _require_clients(expected: int, found: int) -> None:
    if found != expected:
        raise RuntimeError(f"Expected answers of {expected} clients, got {found}.")
