"""Answers for blocks of devices: a day of one use case, and the records that are sent on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints
from fedhh.longitudinal.devices.model import DeviceBlock, DeviceModel
from fedhh.longitudinal.records import (
    Arrivals,
    DayQuestion,
    FragmentRecords,
    OracleRecords,
    RecordForm,
)
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Aggregate, merge_messages
from fedhh.random import Stream, generator, scatter
from fedhh.simulation.executor import Progress
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon

_ADDRESSES = np.uint64(2**32 - 1)
_SECONDS = 86_400


class RecordMaker:
    """Makes records of values that are numbers of an oracle's domain."""

    def __init__(self, form: OracleRecords) -> None:
        self._form = form

    def reports(self, values: Ints, rng: np.random.Generator) -> Ints:
        """Return ``(n, width) int64``: a report for each value."""
        return _rows(self._form.oracle.privatize(values, rng=rng))

    def add_sums(self, values: Ints, rng: np.random.Generator, out: Ints) -> None:
        """Add reports to their sums, where they do not cross one by one."""
        self._form.oracle.aggregate(values=values, rng=rng, out=out)


class FragmentRecordMaker(RecordMaker):
    """Makes records of words for SFP: position, report of the word, report of a fragment."""

    def __init__(self, form: FragmentRecords, words: Sequence[str]) -> None:
        question, self._records = form.question, form.question.channel
        known = question.names.known(WordMatcher(Lexicon(words=words)), question.alphabet)
        assert known.codes is not None
        codes, self._keys = known.codes, known.values
        if (self._keys < 0).any():
            bad = words[int(np.argmin(self._keys))]
            raise InputError(f"Expected words of the alphabet's symbols, got {bad!r}.")
        self._fragments = self._records.puzzle.fragments(codes, self._keys)

    def reports(self, values: Ints, rng: np.random.Generator) -> Ints:
        positions = rng.integers(self._records.puzzle.num_positions, size=len(values))
        words = self._records.words.privatize(self._keys[values], rng=rng)
        fragments = self._records.fragments.privatize(self._fragments[values, positions], rng=rng)
        return np.concatenate([_rows(part) for part in (positions, words, fragments)], axis=1)


def _rows(reports: npt.NDArray[Any]) -> Ints:
    """Return reports as ``(n, width) int64``, also if there are none."""
    width = math.prod(reports.shape[1:])
    return reports.reshape(len(reports), width).astype(np.int64)


def record_maker(form: RecordForm, words: Sequence[str] | None) -> RecordMaker:
    """Return what makes records of a form."""
    if isinstance(form, FragmentRecords):
        assert words is not None
        return FragmentRecordMaker(form, words)
    if isinstance(form, OracleRecords):
        return RecordMaker(form)
    raise TypeError(f"No records of {type(form).__name__}.")


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

    counts: Ints = field(compare=False)
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

    remembers = True

    def __init__(self, model: DeviceModel, *, seed: int) -> None:
        self._model = model
        self._seed = seed
        self._blocks: dict[tuple[int, int], DeviceBlock] = {}
        self._makers: dict[int, RecordMaker] = {}

    def answer(
        self,
        question: DayQuestion,
        blocks: Iterable[int],
        progress: Progress | None = None,
    ) -> Answer:
        """Return what the devices of some blocks send on a `DayQuestion`'s day.

        See `fedhh.simulation.executor.Worker`.
        """
        tally = np.zeros(question.tally_size, dtype=np.int64)
        values = len(self._model.use_cases[question.use_case_index].events.weights)
        counts = np.zeros((3, values), dtype=np.int64)
        messages: list[Ints] = []
        sent_by_block: list[tuple[int, npt.NDArray[np.uint32]]] = []
        reports = devices = waiting = dropped = 0
        for block in blocks:
            positions = question.cohort.block(block)
            size = positions.stop - positions.start
            state = self._state(question, block, size)
            sent = state.simulate()
            state.count_events(counts[:2])
            counts[2] += np.bincount(sent.values, minlength=counts.shape[1])
            waiting += state.waiting
            dropped += sent.dropped
            sent_by_block.append((positions.start, sent.by_device.astype(np.uint32)))
            rng = generator(
                self._seed, Stream.RANDOMIZER, question.use_case_index, question.day, block
            )
            maker = self._maker(question)
            if question.tally_size:
                maker.add_sums(sent.values, rng, tally)
            else:
                senders = np.repeat(np.arange(size), sent.by_device)
                # A device connects once; its connection has an address and a time.
                seconds = sent.rng.integers(_SECONDS, size=size)
                arrivals = Arrivals(
                    use_case=question.use_case,
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

    def _state(self, question: DayQuestion, block: int, size: int) -> DeviceBlock:
        place = question.use_case_index, block
        state = self._blocks.get(place)
        if state is None or state.next_day > question.day:
            state = DeviceBlock(self._model, *place, size, self._seed)
            self._blocks[place] = state
        while state.next_day < question.day:
            state.simulate()
        return state

    def _maker(self, question: DayQuestion) -> RecordMaker:
        if question.use_case_index not in self._makers:
            words = self._model.use_cases[question.use_case_index].events.words
            self._makers[question.use_case_index] = record_maker(question.form, words)
        return self._makers[question.use_case_index]


def _addresses(devices: Ints, seed: int) -> Ints:
    """Return ``(n,) int64``: an address of 32 bits for each device, the same every day."""
    words = devices.astype(np.uint64) + (np.uint64(seed % 2**32) << np.uint64(32))
    return (scatter(words) & _ADDRESSES).astype(np.int64)
