"""Answers for blocks of devices: a day of one use case, and the records that are sent on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.devices.block import DeviceBlock
from fedhh.longitudinal.devices.model import DeviceModel
from fedhh.longitudinal.devices.records import RecordMaker, record_maker
from fedhh.longitudinal.records import Arrivals, RecordQuery
from fedhh.queries.base import Aggregate, Answer, Diagnostics, Query, merge_messages
from fedhh.random import Stream, generator, scatter
from fedhh.simulation.executor import Progress

Numbers = npt.NDArray[np.int64]

_ADDRESSES = np.uint64(2**32 - 1)
_SECONDS = 86_400


@dataclass(frozen=True, kw_only=True)
class DayDiagnostics(Diagnostics):
    """What only a simulator can know of a day; nothing of it reaches a server.

    Attributes:
        counts: ``(3, p) int64``: events by value on all devices, on those that opted in, and of
            those whose records were sent.
        waiting: Records left on the devices after the sending.
        dropped: Records that had waited too long.
        sent: Of each block the number of its first device and ``(n,)``, records sent by device.
    """

    counts: Numbers = field(compare=False)
    waiting: int = 0
    dropped: int = 0
    sent: tuple[tuple[int, npt.NDArray[np.uint32]], ...] = field(default=(), compare=False)

    def merge(self, other: Diagnostics) -> DayDiagnostics:
        assert isinstance(other, DayDiagnostics)
        return DayDiagnostics(
            counts=self.counts + other.counts,
            waiting=self.waiting + other.waiting,
            dropped=self.dropped + other.dropped,
            sent=self.sent + other.sent,
        )


class DeviceWorker:
    """Holds the devices of the blocks that it is asked about; see `fedhh.simulation.executor`."""

    def __init__(self, model: DeviceModel, *, seed: int) -> None:
        """Prepare to answer for some devices in a run of this seed."""
        self._model = model
        self._seed = seed
        self._blocks: dict[tuple[int, int], DeviceBlock] = {}
        self._makers: dict[int, RecordMaker] = {}

    def answer(
        self,
        query: Query,
        blocks: Iterable[int],
        progress: Progress | None = None,
        *,
        onto: Answer | None = None,
    ) -> Answer:
        """Return what the devices of some blocks send on the query's day.

        Args:
            query: A `RecordQuery`.
            blocks: Numbers of the blocks to answer for.
            progress: Called with the number of devices after each block.
            onto: An earlier answer to the query, see `fedhh.simulation.executor.Worker`.
        """
        assert isinstance(query, RecordQuery)
        before = onto or self._nothing(query)
        tally = before.aggregate.tally
        known = before.diagnostics
        assert isinstance(known, DayDiagnostics)
        counts, sent_by_block = known.counts, list(known.sent)
        waiting, dropped = known.waiting, known.dropped
        messages = [before.aggregate.messages]
        reports, devices = before.aggregate.num_reports, before.aggregate.num_clients
        for block in blocks:
            positions = query.cohort.block(block)
            size = positions.stop - positions.start
            state = self._state(query, block, size)
            sent = state.live()
            state.count_events(counts[:2])
            counts[2] += np.bincount(sent.values, minlength=counts.shape[1])
            waiting += state.waiting
            dropped += sent.dropped
            sent_by_block.append((positions.start, sent.by_device.astype(np.uint32)))
            rng = generator(self._seed, Stream.RANDOMIZER, query.use_case_index, query.day, block)
            maker = self._maker(query)
            if query.tally_size:
                maker.add_sums(sent.values, rng, tally)
            else:
                senders = np.repeat(np.arange(size), sent.by_device)
                # A device connects once; its connection has an address and a time.
                seconds = sent.rng.integers(_SECONDS, size=size)
                arrivals = Arrivals(
                    use_case=query.use_case,
                    addresses=_addresses(positions.start + senders, self._seed),
                    seconds=seconds[senders],
                    reports=maker.reports(sent.values, rng),
                )
                messages.append(arrivals.as_messages())
            reports += len(sent.values)
            devices += size
            if progress is not None:
                progress(size)
        return Answer(
            aggregate=Aggregate(
                tally=tally,
                num_reports=reports,
                num_clients=devices,
                messages=merge_messages(messages),
            ),
            diagnostics=DayDiagnostics(
                counts=counts, waiting=waiting, dropped=dropped, sent=tuple(sent_by_block)
            ),
        )

    def _nothing(self, query: RecordQuery) -> Answer:
        values = len(self._model.use_cases[query.use_case_index].events.weights)
        return Answer(
            aggregate=Aggregate.empty(query.tally_size),
            diagnostics=DayDiagnostics(counts=np.zeros((3, values), dtype=np.int64)),
        )

    def _state(self, query: RecordQuery, block: int, size: int) -> DeviceBlock:
        place = query.use_case_index, block
        state = self._blocks.get(place)
        if state is None or state.next_day > query.day:
            state = DeviceBlock(self._model, *place, size, self._seed)
            self._blocks[place] = state
        while state.next_day < query.day:
            state.live()
        return state

    def _maker(self, query: RecordQuery) -> RecordMaker:
        if query.use_case_index not in self._makers:
            words = self._model.use_cases[query.use_case_index].events.words
            self._makers[query.use_case_index] = record_maker(query.form, words)
        return self._makers[query.use_case_index]


def _addresses(devices: Numbers, seed: int) -> Numbers:
    """Return ``(n,) int64``: an address of 32 bits for each device, the same every day."""
    words = devices.astype(np.uint64) + (np.uint64(seed % 2**32) << np.uint64(32))
    return (scatter(words) & _ADDRESSES).astype(np.int64)
