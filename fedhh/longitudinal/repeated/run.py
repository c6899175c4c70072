"""A repeated collection: in each period, every arm asks whom its cap allows."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedhh.clients.known_words import load_known
from fedhh.experiments.config.client_file import layout_of
from fedhh.experiments.config.population import is_synthetic, population_model
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.schema import ExecutionConfig
from fedhh.experiments.run.workers import Workers, choose_workers
from fedhh.experiments.study.callbacks import Callbacks, Several, Work
from fedhh.longitudinal.populations.over_time import (
    Period,
    PopulationOverTime,
    SyntheticOverTime,
    Turnover,
    WordCalendar,
)
from fedhh.longitudinal.repeated import directory as files
from fedhh.longitudinal.repeated.budgets import Asking, DeviceBudgets
from fedhh.longitudinal.repeated.config import Arm, RepeatedPlan, model_days
from fedhh.longitudinal.repeated.directory import PeriodRecord
from fedhh.longitudinal.repeated.one_run import (
    RUN,
    TOO_FEW,
    Found,
    Job,
    Record,
    coverage,
    run_job,
    unanswered,
)
from fedhh.random import Stream, generator
from fedhh.system.files import owned
from fedhh.validation import InputError

RUN_SECONDS = 0.5
"""About what a run takes: some protocols a tenth of it, others twice as much."""

_SEEDS = 4
"""In paths of `Stream.CALENDAR`, after those of `over_time`: the seeds of the runs."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a repeated collection left behind.

    Attributes:
        plan: What was asked for.
        every_days: Days of a period.
        periods: One record each, in order.
        arrivals: ``(devices,) int64``: each device's first period.
        asked: For each arm and period, the devices that were asked.
    """

    plan: RepeatedPlan
    every_days: int
    periods: tuple[PeriodRecord, ...]
    arrivals: np.ndarray
    asked: tuple[tuple[np.ndarray, ...], ...]

    @property
    def days(self) -> int:
        """Days of all periods."""
        return self.every_days * len(self.periods)


def build_over_time(plan: RepeatedPlan) -> PopulationOverTime:
    """Return the clients over time.

    Raises:
        InputError: A file cannot be read, or has no days.
    """
    config, section = plan.config, plan.section
    population = config.population
    days = section.days
    if not is_synthetic(population):
        from fedhh.longitudinal.populations.dated import read_over_time

        return read_over_time(
            population.source,
            every_days=section.every_days,
            num_days=days if isinstance(days, int) else None,
            layout=layout_of(population),
            known=load_known(population.known, population.language),
        )
    assert isinstance(days, int)
    assert population.clients is not None
    model = population_model(population)
    share = section.every_days / model_days(config, section)
    if share != 1:
        # A tenth of the days has a tenth of the words, if not fewer than the model's least.
        model = replace(
            model,
            log_words_mean=model.log_words_mean + math.log(share),
            max_words=max(model.min_words, round(model.max_words * share)),
        )
    periods = days // section.every_days
    stay = math.inf
    if isinstance(section.lifetime_days, float | int):
        stay = max(1.0, section.lifetime_days / section.every_days)
    leaving = 0 if math.isinf(stay) else round(population.clients / stay)
    return SyntheticOverTime(
        model,
        seed=config.seed,
        every_days=section.every_days,
        turnover=Turnover(
            seed=config.seed,
            first_devices=population.clients,
            arrivals=section.arrivals if isinstance(section.arrivals, int) else leaving,
            mean_periods=stay,
            num_periods=periods,
        ),
        calendar=WordCalendar(
            seed=config.seed,
            days=days,
            born_share=section.born_share,
            rise_days=section.rise_days,
            fading_share=section.fading_share,
            half_life_days=section.half_life_days,
        ),
    )


def run_plan(
    plan: RepeatedPlan,
    directory: Path,
    *,
    resume: bool = False,
    callbacks: Sequence[Callbacks] = (),
    over_time: PopulationOverTime | None = None,
) -> Outcome:
    """Run the periods that have no record yet, each written as soon as it is done.

    Args:
        plan: What to run.
        directory: Where its files go.
        resume: Go on with what the directory holds.
        callbacks: Hear how it goes on; a finished period comes with the outcome so far.
        over_time: The clients over time, where they have been made, see `build_over_time`.

    Raises:
        InputError: The directory holds something else, a file cannot be read, the first period's
            devices are too few for a protocol, or no cluster answers.
    """
    listener = Several(callbacks)
    over_time = over_time or build_over_time(plan)
    if not resume:
        first_jobs(plan, over_time)
    arms = [_ArmState(plan, arm, over_time) for arm in plan.arms]
    files.open_directory(directory, plan, resume=resume)
    with owned(directory):
        return _run_missing(plan, directory, over_time, arms, listener)


def _run_missing(
    plan: RepeatedPlan,
    directory: Path,
    over_time: PopulationOverTime,
    arms: Sequence[_ArmState],
    listener: Several,
) -> Outcome:
    records: list[PeriodRecord] = []
    while len(records) < over_time.num_periods:
        record = files.read_period(directory, len(records))
        if record is None:
            break
        devices = over_time.devices(record.number)
        if len(record.arms) != len(arms) or record.devices != len(devices):
            raise InputError(
                f"{directory}: period {record.number} is damaged: expected {len(arms)} protocols "
                f"and {len(devices)} devices; remove its record, and resume."
            )
        for state, of_arm in zip(arms, record.arms, strict=True):
            state.finish(devices, state.choose(devices, record.number), of_arm)
        records.append(record)
    listener.start(Work(noun="periods", total=over_time.num_periods, done=len(records)))

    def so_far() -> Outcome:
        return Outcome(
            plan=plan,
            every_days=over_time.every_days,
            periods=tuple(records),
            arrivals=over_time.arrivals,
            asked=tuple(tuple(state.asked) for state in arms),
        )

    missing = over_time.num_periods - len(records)
    workers = _workers(plan, missing)
    _log.info("protocols of a period run %s", workers.why)
    with _ray(workers, plan.config.execution) if missing else nullcontext():
        for number in range(len(records), over_time.num_periods):
            record = _run_period(plan, over_time, arms, number, workers)
            files.write_period(directory, record)
            records.append(record)
            listener.finish(f"period {number + 1}", so_far())
            words = sum(len(arm["words"]) for arm in record.arms)
            listener.note(f"{words} words published by {len(record.arms)} protocols")
    return so_far()


class _ArmState:
    """Budgets and published words of one arm."""

    def __init__(self, plan: RepeatedPlan, arm: Arm, over_time: PopulationOverTime) -> None:
        self._plan, self.arm = plan, arm
        self._budgets = DeviceBudgets(
            arm.cap,
            arrivals=over_time.arrivals,
            every_days=over_time.every_days,
            cost=arm.cost,
            num_periods=over_time.num_periods,
        )
        self.published: list[str] = []
        self.asked: list[np.ndarray] = []
        self._has_run = False

    def choose(self, devices: np.ndarray, number: int) -> Asking:
        most = self._plan.section.devices_per_run
        return self._budgets.choose(
            devices,
            period=number,
            seed=self._plan.config.seed,
            most=most if isinstance(most, int) else None,
        )

    def job(self, asking: Asking, number: int) -> Job | Found:
        least = self._plan.section.min_devices
        if len(asking.asked) < least:
            return unanswered(
                TOO_FEW,
                f"{len(asking.asked):,} devices, of {asking.with_budget:,} with budget left; "
                f"longitudinal.min_devices = {least:,}",
            )
        rng = generator(self._plan.config.seed, Stream.CALENDAR, _SEEDS, number)
        return Job(
            config=self.arm.config.model_copy(update={"seed": int(rng.integers(2**31))}),
            asked=asking.asked,
            published=tuple(self.published),
            publishes_all=self._plan.section.publish == "all",
            may_refuse=self._has_run,
        )

    def finish(self, devices: np.ndarray, asking: Asking, found: Found) -> None:
        """Take what a run cost and published."""
        asked = devices[asking.asked] if found["status"] == RUN else devices[:0]
        self._has_run |= found["status"] == RUN
        self._budgets.charge(asked)
        self.asked.append(asked)
        self.published += found["words"]


def first_jobs(plan: RepeatedPlan, over_time: PopulationOverTime) -> list[tuple[Arm, Job]]:
    """Return what each arm would run in the first period.

    Raises:
        InputError: An arm cannot even make its first run.
    """
    devices = over_time.devices(0)
    jobs = []
    for arm in plan.arms:
        state = _ArmState(plan, arm, over_time)
        job = state.job(state.choose(devices, 0), 0)
        if not isinstance(job, Job):
            raise InputError(
                f"{arm.name}: the first run would ask {job['reason']}; use more clients, a larger "
                "cap, or a smaller longitudinal.min_devices."
            )
        build_protocol(job.config).settle(num_clients=len(job.asked), seed=job.config.seed)
        jobs.append((arm, job))
    return jobs


def _run_period(
    plan: RepeatedPlan,
    over_time: PopulationOverTime,
    arms: Sequence[_ArmState],
    number: int,
    workers: Workers,
) -> PeriodRecord:
    devices = over_time.devices(number)
    askings = [state.choose(devices, number) for state in arms]
    jobs = [state.job(asking, number) for state, asking in zip(arms, askings, strict=True)]
    period = over_time.at(number) if len(devices) else None
    done = {place: job for place, job in enumerate(jobs) if not isinstance(job, Job)}
    if period is not None:
        open_jobs = {place: job for place, job in enumerate(jobs) if isinstance(job, Job)}
        done |= _run_jobs(open_jobs, period, workers, plan.config.execution)
    records: list[Record] = []
    for place, (state, asking) in enumerate(zip(arms, askings, strict=True)):
        state.finish(devices, asking, done[place])
        records.append(
            {
                **done[place],
                "with_budget": asking.with_budget,
                "wanted": asking.wanted,
                "asked": len(state.asked[-1]),
                "coverage": 0.0 if period is None else coverage(period, state.published),
            }
        )
    return _record(plan, over_time, number, period, records)


def _run_jobs(
    jobs: dict[int, Job], period: Period, workers: Workers, execution: ExecutionConfig
) -> Iterator[tuple[int, Found]]:
    if workers.number == 0:
        for place, job in jobs.items():
            yield place, run_job(job, period)
        return
    from fedhh.simulation.ray.cluster import stored
    from fedhh.simulation.ray.tasks import map_on_ray

    shared = stored(period)
    calls = [(job, shared) for job in jobs.values()]
    places = list(jobs)
    for call, record in map_on_ray(
        run_job, calls, num_workers=workers.number, address=execution.ray_address
    ):
        if isinstance(record, Exception):
            raise record
        yield places[call], record


def _record(
    plan: RepeatedPlan,
    over_time: PopulationOverTime,
    number: int,
    period: Period | None,
    arms: list[Record],
) -> PeriodRecord:
    first_day = number * over_time.every_days
    if period is None:
        return PeriodRecord(
            number=number, first_day=first_day, devices=0, contributions=0, words=[], clients=[],
            born_days=[], arms=arms,
        )  # fmt: skip
    population = period.population
    least = plan.section.classes[0] / 1000 * population.num_clients
    ids = np.flatnonzero(population.word_counts().holders >= least)
    born = [None if math.isnan(day) else day for day in period.born_days[ids].tolist()]
    return PeriodRecord(
        number=number,
        first_day=first_day,
        devices=population.num_clients,
        contributions=int(population.word_counts().typed.sum()),
        words=[population.lexicon.words[i] for i in ids.tolist()],
        clients=population.word_counts().holders[ids].tolist(),
        born_days=born,
        arms=arms,
    )


def _workers(plan: RepeatedPlan, periods: int) -> Workers:
    seconds = periods * len(plan.arms) * RUN_SECONDS
    return choose_workers(plan.config.execution, seconds, most=len(plan.arms))


def _ray(workers: Workers, execution: ExecutionConfig) -> AbstractContextManager[None]:
    if workers.number == 0:
        return nullcontext()
    from fedhh.simulation.ray.cluster import running_ray

    return running_ray(workers.number, execution.ray_address)
