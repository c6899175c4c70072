"""Runs followed round by round: several at a time, whose clients are drawn once for all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fedhh.adversary import Adversary
from fedhh.clients.population import Population, client_order
from fedhh.devices import Devices
from fedhh.experiments.run.adversary import FakeClients
from fedhh.experiments.run.calendar import Timetable
from fedhh.experiments.run.candidates import record
from fedhh.experiments.run.ceiling import ceiling, measured_ceiling
from fedhh.experiments.run.contributors import contributors
from fedhh.experiments.run.cost import cost_of
from fedhh.experiments.run.layers import LayerRow, layers_table
from fedhh.experiments.run.metrics import discoveries_table, measure
from fedhh.experiments.run.observer import Observer
from fedhh.experiments.run.privacy import claimed_k, measured_anonymity, privacy_of_run
from fedhh.experiments.run.result import MetricSettings, RunResult
from fedhh.experiments.run.run_log import run_log
from fedhh.experiments.run.time_left import FinishedRound, TimeLeft, work_of
from fedhh.experiments.run.truth import facts_of
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.protocol import AnyProtocol
from fedhh.questions.answer import Answer
from fedhh.simulation.engine import Ended, Round, Walk, attempt, together
from fedhh.simulation.executor import Executor
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.roster import MissedRoundError, Roster

_log = logging.getLogger(__name__)


class FollowedRun:
    """A run that goes on: its walk through the plan, and what is measured of it."""

    def __init__(
        self,
        protocol: AnyProtocol,
        population: Population,
        *,
        seed: int,
        fidelity: Fidelity,
        devices: Devices | None,
        adversary: Adversary | None,
        settings: MetricSettings,
        delta: float,
        alpha: float,
        callbacks: Sequence[Callbacks] = (),
        log_in: Path | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Begin a run, or go on with one; see `fedhh.experiments.run.run.simulate`.

        ``notes`` are told with its privacy.
        """
        self._started = time.perf_counter()
        self._protocol, self._population, self._seed = protocol, population, seed
        self._fidelity, self._devices, self._settings = fidelity, devices, settings
        self._delta, self._alpha, self._notes = delta, alpha, notes
        self._log, heard = None, []
        if log_in is not None:
            clients = (fidelity, devices, adversary)
            self._log = run_log(log_in, protocol, population, seed=seed, clients=clients)
            heard = self._log.read()
        self._spent = heard[-1].seconds if heard else 0.0
        left = TimeLeft()
        self._listener = Several([left, *callbacks])
        self._observer = Observer(
            protocol,
            population,
            records=self._log is not None,
            progress=partial(self._listener.phase, "counting true words"),
        )
        self._listener.start(
            work_of(
                protocol,
                population,
                done=len(heard),
                clients_done=sum(each.asked for each in heard),
                seconds_left=left.seconds,
            )
        )
        self._ready = time.perf_counter()
        self._server_seconds = 0.0
        self._rows: list[LayerRow] = []
        self._fakes = FakeClients(adversary, protocol, population, seed=seed)
        roster = Roster(
            client_order(population, seed=seed), devices=devices, fakes=self._fakes.groups
        )
        self._hours = Timetable(
            roster,
            devices,
            num_clients=population.num_clients,
            plan=protocol.plan,
            rows=self._rows,
        )
        self._state = protocol.initialize()
        self.walk: Walk[Any] = Walk(
            protocol,
            roster=roster,
            fidelity=fidelity,
            fakes=self._fakes.answer,
            heard=heard,
            log=self._log,
            progress=self._listener.advance,
        )

    def observe(self, finished: Round[Any]) -> None:
        """Note a round; one that was asked now is logged."""
        plan, place = self._protocol.plan, (finished.question.pass_index, finished.question.layer)
        observed = self._observer.observe(finished)
        row = LayerRow.of(
            finished.state.history[-1],
            plan,
            finished.diagnostics,
            observed,
            opened_hours=self._hours.opening_hours(*place),
            has_fakes=bool(self._fakes.words),
        )
        self._rows.append(row)
        self._state = finished.state
        self._server_seconds += finished.server_seconds
        if finished.was_heard:
            return
        unit = (
            f"pass {row.pass_index + 1}/{plan.num_passes} layer {row.layer}/{plan.layers[-1].layer}"
        )
        self._listener.finish(unit, FinishedRound(row, self._observer.last_record))
        self._listener.note(f"{unit}: {row.note}")
        if self._log is not None:
            answer = Answer(aggregate=finished.aggregate, diagnostics=finished.diagnostics)
            seconds = self._spent + time.perf_counter() - self._started
            self._log.write(len(self._rows) - 1, finished.question, answer, seconds)

    def result(self, executor: Executor, ended: Ended) -> RunResult:
        """Return what the run found, measured against the truth.

        Args:
            executor: The way to the clients.
            ended: What ended the run: None, or what went wrong, which is raised, unless a round
                missed its answers.
        """
        if isinstance(ended, MissedRoundError):
            self._hours.missed = ended.attendance
            _log.warning("%s: nothing more is asked", ended)
            self._listener.note(f"{ended}: nothing more is asked")
        elif ended is not None:
            raise ended
        asked = time.perf_counter()
        protocol, population, seed = self._protocol, self._population, self._seed
        state, rows, settings = self._state, self._rows, self._settings
        observer, fidelity, fakes = self._observer, self._fidelity, self._fakes
        truth = observer.truth
        found = protocol.discoveries(state if ended is None else protocol.stopped(state))
        table = discoveries_table(
            found,
            truth,
            significance_z=settings.significance_z,
            truncated_at=protocol.longest_word if protocol.truncates_words else None,
            contributing=None
            if observer.validation is None
            else contributors(
                observer.validation, population, found, truth.holders(found), seed=seed
            ),
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
            delta=self._delta,
            alpha=self._alpha,
            devices=self._devices,
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
            privacy=replace(privacy, notes=(*privacy.notes, *self._notes)),
            cost=cost_of(protocol.plan, state.history),
            calendar=self._hours.calendar,
            adversary=fakes.outcome(table),
            timings={
                "prepare": self._ready - self._started,
                "rounds": asked - self._ready,
                "server": self._server_seconds,
                "measure": measured - asked,
                "candidates": noted - measured,
                "account": time.perf_counter() - noted,
                "before_resume": self._spent,
            },
        )


def follow(runs: Sequence[FollowedRun], executor: Executor) -> list[RunResult | BaseException]:
    """Return the results of runs over the same clients, in lockstep; or what went wrong in each."""
    results: dict[int, RunResult | BaseException] = {}
    walks = [run.walk for run in runs]
    for number, finished in executor.serve(walks) or together(walks, executor):
        run = runs[number]
        if isinstance(finished, Round):
            outcome = attempt(partial(run.observe, finished))
            if outcome is not None:
                run.walk.stop(outcome)
        else:
            results[number] = attempt(partial(run.result, executor, finished))
    return [results[number] for number in range(len(runs))]
