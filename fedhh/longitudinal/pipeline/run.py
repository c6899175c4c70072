"""A pipeline's days, one after the other: devices, ingestor, aggregators, and what they are worth.

Each day asks one question per use case. A day is a pure function of the seed, so a run that was
stopped goes on with the same bits from its servers' sums, which are stored. Devices are not;
workers let their days happen again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Bools, Floats, Ints
from fedhh.experiments.study.callbacks import Callbacks, Several, Work
from fedhh.longitudinal.aggregation.aggregator import Publication
from fedhh.longitudinal.aggregation.ingestor import Ingestor
from fedhh.longitudinal.devices.model import DeviceModel
from fedhh.longitudinal.devices.worker import DayDiagnostics
from fedhh.longitudinal.ledger import Ledger, LedgerReport, Spending
from fedhh.longitudinal.pipeline import measures
from fedhh.longitudinal.pipeline.build import UseCase, build_model, fingerprint
from fedhh.longitudinal.pipeline.config import PipelineConfig
from fedhh.longitudinal.pipeline.measures import (
    ALL,
    OPTED_IN,
    SENT,
    PipelineResult,
    Row,
    ShuffledDays,
    Tables,
)
from fedhh.longitudinal.records import Arrivals, Batch, DayQuestion
from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.simulation.executor import Executor
from fedhh.system.archive import of_another_run, part, read_archive, within, write_archive
from fedhh.validation import InputError
from fedhh.version import __version__

SECONDS_BETWEEN = 60.0

_SECONDS_PER_EVENT, _SECONDS_PER_RECORD = 1e-7, 1.5e-6
"""On one core; a record's are mostly its noise."""


def ledger_of(config: PipelineConfig, use_cases: tuple[UseCase, ...]) -> Ledger:
    """Return what adds up the losses of a pipeline's devices."""
    days = config.pipeline
    charges = tuple(each.charge for each in use_cases)
    return Ledger(charges=charges, num_days=days.days, delta=days.delta)


def seconds_of_devices(config: PipelineConfig) -> float:
    """Return about how long devices take on one core, which is what workers share."""
    days = config.pipeline
    per_day = sum(
        _SECONDS_PER_EVENT * each.events_per_day
        + _SECONDS_PER_RECORD * days.opt_in * min(each.events_per_day, each.records_per_day)
        for each in days.use_cases.values()
    )
    return days.days * days.devices * per_day


def opted_in(model: DeviceModel, seed: int) -> Bools:
    """Return ``(devices,) bool``; InputError if nobody has opted in."""
    cohort = Cohort(start=0, size=model.num_devices)
    parts = [
        model.is_in(block, positions.stop - positions.start, seed=seed)
        for block, positions in ((b, cohort.block(b)) for b in range(cohort.num_blocks))
    ]
    found = np.concatenate(parts)
    if not found.any():
        raise InputError(
            f"Of pipeline.devices = {model.num_devices} none has opted in with pipeline.opt_in = "
            f"{model.opt_in:g}; raise one of them."
        )
    return found


class Run:
    """A pipeline that runs day by day."""

    def __init__(
        self,
        config: PipelineConfig,
        use_cases: tuple[UseCase, ...],
        executor: Executor,
        *,
        stored_in: Path | None = None,
        seconds_between: float = SECONDS_BETWEEN,
    ) -> None:
        """Start, or go on from stored sums.

        Args:
            config: The configuration.
            use_cases: Made of it.
            executor: The way to workers with its devices.
            stored_in: A file to keep the sums in; None for none.
            seconds_between: At least so many pass before they are stored again.

        Raises:
            InputError: The file is damaged, or of another run.
        """
        self._config, self._use_cases, self._executor = config, use_cases, executor
        self._stored_in, self._pause = stored_in, seconds_between
        days = config.pipeline
        model = build_model(config, use_cases)
        self._is_in = opted_in(model, config.seed)
        self._ingestor = Ingestor(seed=config.seed)
        self._aggregators = [each.aggregator(days.top) for each in use_cases]
        self._tops = [each.top(days.top) for each in use_cases]
        sizes = [len(each.device.events.weights) for each in use_cases]
        self._window = [np.zeros((3, size), dtype=np.int64) for size in sizes]
        self._total = [np.zeros((3, size), dtype=np.int64) for size in sizes]
        self._sent: list[npt.NDArray[np.unsignedinteger[Any]]] = []
        self._shuffled = ShuffledDays(delta=days.delta)
        self._seconds = {"devices": 0.0, "servers": 0.0, "publications": 0.0}
        self._tables = Tables()
        self._listener = Callbacks()
        self._run = hashlib.sha256(
            repr((__version__, config.result_key, fingerprint(use_cases))).encode()
        ).hexdigest()
        if stored_in is not None and stored_in.exists():
            self._resume(stored_in)

    @property
    def days_done(self) -> int:
        """How many days have happened."""
        return len(self._sent)

    def finish(self, callbacks: Sequence[Callbacks] = ()) -> PipelineResult:
        """Let all days happen that are left, and return the result.

        Steps that callbacks get are days of a device in one use case; phases are what servers
        do while no device is busy: some publications take as long as many days of their devices.
        A finished day comes with the list of the rows of all days, see `_live`, which grows.
        """
        days = self._config.pipeline
        self._listener = Several(callbacks)
        a_day = days.devices * len(self._use_cases)
        self._listener.start(
            Work(
                noun="days",
                total=days.days,
                done=self.days_done,
                steps=days.days * a_day,
                steps_done=self.days_done * a_day,
            )
        )
        saved = time.monotonic()
        while self.days_done < days.days:
            day = self.days_done
            today = [self._live(index, day) for index in range(len(self._use_cases))]
            most = max(int(sent.max(initial=0)) for sent in today)
            self._sent.append(np.stack(today).astype(np.min_scalar_type(most)))
            if self.days_done % days.window == 0 or self.days_done == days.days:
                self._publish()
            if self._stored_in is not None and time.monotonic() - saved >= self._pause:
                self._listener.phase("storing the sums")
                self._save()
                saved = time.monotonic()
            self._listener.finish(f"day {self.days_done}", self._tables.days)
        return self._result()

    def _live(self, index: int, day: int) -> Ints:
        """Let a day of one use case happen; return ``(devices,)`` records sent.

        Columns:
            use_case: The use case.
            day: From 1.
            events: On all devices.
            events_opted_in: On devices that opted in, each of which makes a record.
            sent: Records sent.
            senders: Devices that sent one.
            waiting: Records left on devices at the end of the day.
            dropped: Records that had waited for too long.
            loss_per_device: Sum of the epsilons of the records sent, per device that opted in.
            central_epsilon: Of one record in the day's permuted batch, see
                ``central_epsilons_are`` in result.json.
        """
        use_case = self._use_cases[index]
        started = time.perf_counter()
        question = self._question(use_case, index, day)
        answer = self._executor.answer(question, self._listener.advance)
        answered = time.perf_counter()
        diagnostics = answer.diagnostics
        assert isinstance(diagnostics, DayDiagnostics)
        counts = diagnostics.counts
        estimates = self._aggregate(index, answer, use_case, day)
        self._window[index] += counts
        self._total[index] += counts
        sent = np.zeros(question.cohort.size, dtype=np.int64)
        for start, records in diagnostics.sent:
            sent[start : start + len(records)] = records
        rows = measures.value_rows(use_case, day + 1, self._tops[index], estimates, counts)
        self._tables.values += rows
        num_sent = answer.aggregate.num_reports
        self._tables.days.append(
            {
                "use_case": use_case.name,
                "day": day + 1,
                "events": int(counts[ALL].sum()),
                "events_opted_in": int(counts[OPTED_IN].sum()),
                "sent": num_sent,
                "senders": int((sent > 0).sum()),
                "waiting": diagnostics.waiting,
                "dropped": diagnostics.dropped,
                **measures.errors_of(rows, counts),
                "loss_per_device": num_sent * use_case.charge.epsilon / int(self._is_in.sum()),
                "central_epsilon": self._shuffled.epsilon(use_case.charge.epsilon, num_sent),
            }
        )
        self._seconds["devices"] += answered - started
        self._seconds["servers"] += time.perf_counter() - answered
        return sent

    def _aggregate(
        self, index: int, answer: Answer, use_case: UseCase, day: int
    ) -> tuple[Floats, Floats]:
        """Pass a day's reports through the servers; return what they say of watched values."""
        aggregator, aggregate = self._aggregators[index], answer.aggregate
        if aggregate.messages is None:
            if aggregate.num_reports:
                aggregator.add_sums(aggregate)
                return aggregator.estimates_of_day(aggregate)
            nothing = np.zeros(len(self._tops[index]))
            return nothing, nothing
        arrivals = Arrivals.of(use_case.name, aggregate.messages)
        batch: Batch = self._ingestor.ingest([arrivals], day=day)[use_case.name]
        aggregator.add(batch)
        return aggregator.estimates_of_day(batch)

    def _question(self, use_case: UseCase, index: int, day: int) -> DayQuestion:
        return DayQuestion(
            cohort=Cohort(start=0, size=self._config.pipeline.devices),
            use_case=use_case.name,
            use_case_index=index,
            day=day,
            form=use_case.device.form,
        )

    def _publish(self) -> None:
        """End a window in all use cases."""
        started = time.perf_counter()
        window = -(-self.days_done // self._config.pipeline.window)
        for index, use_case in enumerate(self._use_cases):
            self._listener.phase(
                f"publishing {use_case.name} ({index + 1} of {len(self._use_cases)})"
            )
            publication = self._aggregators[index].close()
            self._note(use_case, window, publication, self._window[index])
            self._window[index] = np.zeros_like(self._window[index])
        self._seconds["publications"] += time.perf_counter() - started

    def _note(self, use_case: UseCase, window: int, publication: Publication, counts: Ints) -> Row:
        quality = measures.publication_quality(use_case, publication, counts)
        row = {"use_case": use_case.name, "window": window, **quality}
        self._tables.publications.append(row)
        self._tables.published += measures.published_rows(use_case, window, publication, counts)
        return quality

    def _result(self) -> PipelineResult:
        days = self._config.pipeline
        self._listener.phase("adding up losses")
        started = time.perf_counter()
        ledger = ledger_of(self._config, self._use_cases)
        before = ledger.before([each.device.cap for each in self._use_cases])
        spent = ledger.spent(day[:, self._is_in].astype(np.int64) for day in self._sent)
        rows = [
            self._row(index, use_case, before, spent)
            for index, use_case in enumerate(self._use_cases)
        ]
        self._seconds["ledger"] = time.perf_counter() - started
        assert self.days_done == days.days
        return PipelineResult(
            config=self._config,
            tables=self._tables,
            use_cases=rows,
            num_opted_in=int(self._is_in.sum()),
            before=before,
            spent=spent,
            seconds=dict(self._seconds),
        )

    def _row(self, index: int, use_case: UseCase, before: LedgerReport, spent: Spending) -> Row:
        """Return the outcome of a use case in all."""
        of_all = f"({index + 1} of {len(self._use_cases)})"
        self._listener.phase(f"publishing {use_case.name}, all days {of_all}")
        counts, aggregator = self._total[index], self._aggregators[index]
        values = measures.value_rows(
            use_case, 0, self._tops[index], aggregator.estimates_of_all_days(), counts
        )
        self._tables.values += values
        quality = self._note(use_case, 0, aggregator.overall(), counts)
        days = [row for row in self._tables.days if row["use_case"] == use_case.name]
        by_device = np.stack([day[index, self._is_in] for day in self._sent])
        epsilon = use_case.charge.epsilon
        return {
            "use_case": use_case.name,
            "by": use_case.title,
            "epsilon": epsilon,
            "records_per_day": use_case.config.records_per_day,
            "session_days": use_case.config.session_days,
            "report_bits": use_case.device.form.report_bits,
            "events": int(counts[ALL].sum()),
            "events_opted_in": int(counts[OPTED_IN].sum()),
            "sent": int(counts[SENT].sum()),
            "waiting": days[-1]["waiting"],
            "dropped": sum(row["dropped"] for row in days),
            **measures.errors_of(values, counts),
            "error_by_day": measures.mean(
                row["error"] for row in days if not np.isnan(row["error"])
            ),
            **quality,
            "loss_per_day_allowed": _basic(before, "day", use_case.name),
            "loss_per_day_largest": float(by_device.max(initial=0)) * epsilon,
            "loss_of_life_allowed": _basic(before, "user", use_case.name),
            "loss_of_life_mean": spent.lifetime_by_use_case[use_case.name].basic.mean,
            "loss_of_life_largest": spent.lifetime_by_use_case[use_case.name].basic.largest,
            "central_epsilon_day_largest": max(row["central_epsilon"] for row in days),
        }

    def _save(self) -> None:
        assert self._stored_in is not None
        arrays = within("sent", {str(day): sent for day, sent in enumerate(self._sent)})
        for index, aggregator in enumerate(self._aggregators):
            counts = np.stack([self._window[index], self._total[index]])
            arrays |= within(str(index), {**aggregator.state(), "counts": counts})
        notes = {"run": self._run, "seconds": self._seconds, **vars(self._tables)}
        write_archive(self._stored_in, arrays, notes)

    def _resume(self, path: Path) -> None:
        arrays, notes = read_archive(path)
        if notes.get("run") != self._run:
            raise of_another_run(path)
        for index, aggregator in enumerate(self._aggregators):
            state = part(str(index), arrays)
            aggregator.restore(state)
            self._window[index], self._total[index] = state["counts"]
        self._sent = list(part("sent", arrays).values())
        self._seconds = dict(notes["seconds"])
        self._tables = Tables(**{name: notes[name] for name in vars(Tables())})


def _basic(report: LedgerReport, unit: Any, use_case: str) -> float:
    """Return the plain sum of epsilons."""
    epsilon = report.guarantee(unit, "basic", use_case).epsilon
    assert isinstance(epsilon, float | int)
    return float(epsilon)
