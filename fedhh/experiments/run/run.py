"""One run: a protocol over a population, its measures, and its log."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fedhh.adversary import Adversary
from fedhh.clients.populations.population import Population
from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.experiments.config.domain import (
    CLOSED_DOMAIN,
    NOT_PRIVATE,
    is_closed,
    is_from_data,
    settle_alphabet,
)
from fedhh.experiments.config.load import adversary_of, devices_of
from fedhh.experiments.config.protocol import fidelity_of, settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.adversary import FakeClients
from fedhh.experiments.run.arguments import require_population, require_protocol
from fedhh.experiments.run.calendar import Timetable, check_devices
from fedhh.experiments.run.candidates import record
from fedhh.experiments.run.ceiling import ceiling, measured_ceiling
from fedhh.experiments.run.contributors import contributors
from fedhh.experiments.run.cost import cost_of
from fedhh.experiments.run.layers import LayerRow, layers_table
from fedhh.experiments.run.metrics import discoveries_table, measure
from fedhh.experiments.run.observer import Observer
from fedhh.experiments.run.privacy import (
    DEFAULT_ALPHA,
    DEFAULT_DELTA,
    claimed_k,
    measured_anonymity,
    privacy_of_run,
)
from fedhh.experiments.run.result import MetricSettings, RunResult
from fedhh.experiments.run.run_log import run_log
from fedhh.experiments.run.time_left import FinishedRound, TimeLeft, work_of
from fedhh.experiments.run.truth import facts_of
from fedhh.experiments.run.workers import (
    choose_workers,
    counting_worker,
    open_executor,
    open_workers,
    seconds_of_run,
)
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.plans.base import Plan
from fedhh.protocol import AnyProtocol
from fedhh.questions.answer import Answer
from fedhh.simulation import engine
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.roster import MissedRoundError, Roster

_log = logging.getLogger(__name__)


def simulate(
    protocol: AnyProtocol,
    population: Population,
    *,
    seed: int,
    workers: int = 0,
    ray_address: str = "",
    fidelity: Fidelity | None = None,
    devices: Devices | None = None,
    adversary: Adversary | None = None,
    settings: MetricSettings | None = None,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
    callbacks: Sequence[Callbacks] = (),
    log_in: Path | None = None,
) -> RunResult:
    """Run a protocol over a population and measure what it found.

    Args:
        protocol: The server's settings.
        population: The clients; their known words should be removed already.
        seed: The run's seed; the same seed gives the same result with any number of workers.
        workers: Ray actors that hold clients; 0 for this process alone.
        ray_address: ``HOST:PORT`` of a running Ray cluster, or ``auto`` for this machine's; a
            local Ray if empty.
        fidelity: How faithfully to simulate clients; if None, every report, or each layer's
            tally at once where that is cheaper.
        devices: When clients' devices are there; if None, all of them always answer at once.
        adversary: Fake clients, or clients that collude; if None, all are honest.
        settings: What to measure against.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
        callbacks: Hear how it goes on.
        log_in: A folder for the log of the rounds. A log that is there already is where the run
            goes on. Only with it does the result state the outcomes of candidates.

    Raises:
        InputError: The population is too small for the protocol.
        RunFailedError: Ray ended while clients were asked.
    """
    require_protocol(protocol)
    require_population(population)
    num_fakes = 0 if adversary is None else adversary.num_fakes(population.num_clients)
    protocol = protocol.settle(num_clients=population.num_clients + num_fakes, seed=seed)
    fidelity = fidelity or Fidelity()
    fidelity.check(protocol)
    check_devices(devices, protocol.plan)
    worker = counting_worker(population, seed)
    with open_workers(worker, workers, ray_address) as executor:
        return _run(
            protocol,
            population,
            executor,
            seed=seed,
            fidelity=fidelity,
            devices=devices,
            adversary=adversary,
            settings=settings or MetricSettings(),
            delta=delta,
            alpha=alpha,
            callbacks=callbacks,
            log_in=log_in,
        )


def _run(
    protocol: AnyProtocol,
    population: Population,
    executor: Executor,
    *,
    seed: int,
    fidelity: Fidelity,
    devices: Devices | None,
    adversary: Adversary | None,
    settings: MetricSettings,
    delta: float,
    alpha: float,
    callbacks: Sequence[Callbacks],
    log_in: Path | None,
) -> RunResult:
    """Follow the rounds, those of a log first, and measure the end."""
    started = time.perf_counter()
    log, heard = None, []
    if log_in is not None:
        clients = (fidelity, devices, adversary)
        log = run_log(log_in, protocol, population, seed=seed, clients=clients)
        heard = log.read()
    spent = heard[-1].seconds if heard else 0.0
    left = TimeLeft()
    listener = Several([left, *callbacks])
    observer = Observer(
        protocol,
        population,
        resumes=bool(heard),
        records=log is not None,
        progress=partial(listener.phase, "counting true words"),
    )
    plan = protocol.plan
    listener.start(
        work_of(
            protocol,
            population,
            done=len(heard),
            clients_done=sum(each.asked for each in heard),
            seconds_left=left.seconds,
        )
    )
    ready = time.perf_counter()
    rows: list[LayerRow] = []
    fakes = FakeClients(adversary, protocol, population, seed=seed)
    roster = Roster(population.order(seed=seed), devices=devices, fakes=fakes.groups)
    hours = Timetable(roster, devices, num_clients=population.num_clients, plan=plan, rows=rows)
    finished_rounds = engine.rounds(
        protocol,
        executor,
        roster=roster,
        fidelity=fidelity,
        fakes=fakes.answer,
        heard=heard,
        progress=listener.advance,
    )
    follow = _follow(
        finished_rounds,
        plan,
        hours,
        observer,
        has_fakes=bool(fakes.words),
        rows=rows,
        listener=listener,
    )
    state, server_seconds = protocol.initialize(), 0.0
    for finished in follow:
        state = finished.state
        server_seconds += finished.server_seconds
        if log is not None and not finished.was_heard:
            answer = Answer(aggregate=finished.aggregate, diagnostics=finished.diagnostics)
            seconds = spent + time.perf_counter() - started
            log.write(len(rows) - 1, finished.question, answer, seconds)
    asked = time.perf_counter()
    truth = observer.finish(rows)
    found = protocol.discoveries(state if hours.missed is None else protocol.stopped(state))
    table = discoveries_table(
        found,
        truth,
        significance_z=settings.significance_z,
        truncated_at=protocol.longest_word if protocol.truncates_words else None,
        contributing=None
        if observer.validation is None
        else contributors(observer.validation, population, found, truth.holders(found), seed=seed),
    )
    metrics = measure(
        table,
        truth,
        top_k=settings.top_k,
        min_clients=settings.min_clients_of(population.num_clients),
    )
    if settings.ceiling:
        highest = ceiling(protocol, population, truth, executor, seed=seed, fidelity=fidelity)
        metrics = replace(metrics, **measured_ceiling(highest, metrics.coverage))
    measured = time.perf_counter()
    recorded = None
    if observer.records:
        recorded = record(observer.records, truth, truth.ids(found))
    noted = time.perf_counter()
    privacy = privacy_of_run(
        protocol,
        state.history,
        num_clients=population.num_clients + fakes.number,
        delta=delta,
        alpha=alpha,
        devices=devices,
        colluders=fakes.num_colluding,
    )
    metrics = replace(metrics, **measured_anonymity(table, claimed_k(privacy)))
    return RunResult(
        protocol=protocol,
        population=facts_of(population, truth),
        seed=seed,
        simulation=fidelity.facts([row.asked for row in rows], [row.fidelity for row in rows]),
        settings=settings,
        discoveries=table,
        layers=layers_table(rows),
        candidates=recorded,
        metrics=metrics,
        privacy=privacy,
        cost=cost_of(plan, state.history),
        calendar=hours.calendar,
        adversary=fakes.outcome(table),
        timings={
            "prepare": ready - started,
            "rounds": asked - ready,
            "server": server_seconds,
            "measure": measured - asked,
            "candidates": noted - measured,
            "account": time.perf_counter() - noted,
            "before_resume": spent,
        },
    )


def check_config(config: Config, population: Population) -> tuple[Config, AnyProtocol]:
    """Return a configuration with its alphabet and every "auto" settled, and its protocol."""
    settled = settle_alphabet(config, population)
    settled, protocol = settle(settled, population.num_clients, population.lexicon.words)
    check_devices(devices_of(settled), protocol.plan)
    return settled, protocol


def run_config(
    config: Config,
    population: Population,
    *,
    executor: Executor | None = None,
    callbacks: Sequence[Callbacks] = (),
    log_in: Callable[[Config], Path] | None = None,
) -> tuple[Config, RunResult]:
    """Run a configuration over its population, which the caller may use again for another.

    Args:
        config: What to run; "auto" cohorts and an alphabet from data are settled here.
        population: Its clients, see `populations.build_population`.
        executor: See `open_executor`; one is opened, and closed again, if None.
        callbacks: Hear how it goes on.
        log_in: Makes the run's directory, once nothing can be refused any more.

    Returns:
        The settled configuration, and the result.
    """
    config, protocol = check_config(config, population)
    # A directory is made only once Ray has answered: an address may be wrong, too.
    if executor is None:
        seconds = seconds_of_run(config, protocol.plan, population)
        workers = choose_workers(config.execution, seconds)
        opened: AbstractContextManager[Executor] = open_executor(config, population, workers)
    else:
        opened = nullcontext(executor)
    with opened as clients:
        result = _run(
            protocol,
            population,
            clients,
            seed=config.seed,
            fidelity=fidelity_of(config),
            devices=devices_of(config),
            adversary=adversary_of(config),
            settings=MetricSettings(**config.metrics.model_dump()),
            delta=config.privacy.delta,
            alpha=config.privacy.alpha,
            callbacks=callbacks,
            log_in=None if log_in is None else log_in(config),
        )
    possible_notes = ((is_from_data(config), NOT_PRIVATE), (is_closed(config), CLOSED_DOMAIN))
    if notes := tuple(note for holds, note in possible_notes if holds):
        privacy = dataclasses.replace(result.privacy, notes=(*result.privacy.notes, *notes))
        result = dataclasses.replace(result, privacy=privacy)
    return config, result


def rounds(
    protocol: AnyProtocol, population: Population, *, seed: int
) -> Iterator[engine.Round[Any]]:
    """Run in this process and yield after each round, to look inside the interaction.

    Each round has its ``question`` (what the server broadcast) and the protocol's ``state`` after
    it: ``protocol.discoveries(state)`` and ``state.history`` read it.
    """
    require_protocol(protocol)
    require_population(population)
    protocol = protocol.settle(num_clients=population.num_clients, seed=seed)
    yield from engine.rounds(
        protocol,
        InProcessExecutor(ClientWorker(population, seed=seed)),
        roster=Roster(population.order(seed=seed)),
        fidelity=Fidelity(),
    )


def _follow(
    finished_rounds: Iterator[engine.Round[Any]],
    plan: Plan,
    hours: Timetable,
    observer: Observer,
    *,
    has_fakes: bool,
    rows: list[LayerRow],
    listener: Callbacks,
) -> Iterator[engine.Round[Any]]:
    """Yield each round, its row appended to ``rows``; a round that misses its answers ends it."""
    passes, layers = plan.num_passes, plan.layers[-1].layer
    try:
        for finished in finished_rounds:
            observed = observer.observe(finished)
            row = LayerRow.of(
                finished.state.history[-1],
                plan,
                finished.diagnostics,
                observed,
                opened_hours=hours.opening_hours(
                    finished.question.pass_index, finished.question.layer
                ),
                has_fakes=has_fakes,
            )
            rows.append(row)
            if not finished.was_heard:
                unit = f"pass {row.pass_index + 1}/{passes} layer {row.layer}/{layers}"
                listener.finish(unit, FinishedRound(row, observer.last_record))
                listener.note(f"{unit}: {row.note}")
            yield finished
    except MissedRoundError as error:
        hours.missed = error.attendance
        _log.warning("%s: nothing more is asked", error)
        listener.note(f"{error}: nothing more is asked")
