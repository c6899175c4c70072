"""A run followed round by round, and what is measured of it."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

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
from fedhh.experiments.run.time_left import FinishedRound, TimeLeft, work_of
from fedhh.experiments.run.truth import facts_of
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.answer import Answer
from fedhh.simulation.engine import Round, Walk
from fedhh.simulation.executor import Executor
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.log import LOG, Log, LoggedRound
from fedhh.simulation.roster import MissedRoundError, Roster
from fedhh.version import __version__

_log = logging.getLogger(__name__)


class FollowedRun:
    """A run that goes on: its walk through the plan, and what is measured of it."""

    def __init__(
        self,
        protocol: DiscoveryProtocol,
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
        self._log = None
        if log_in is not None:
            # All that decides how the run goes on.
            clients = (population.fingerprint(), fidelity, devices, adversary)
            parts = repr((__version__, protocol, seed, *clients))
            self._log = Log(log_in / LOG, run=hashlib.sha256(parts.encode()).hexdigest())
        heard = self._logged()
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
        self._walk: Walk = Walk(
            protocol=protocol, roster=roster, fidelity=fidelity, fakes=self._fakes.answer
        )

    def finish(self, executor: Executor) -> RunResult:
        """Ask the clients, and return what the run found.

        Args:
            executor: The way to the clients.
        """
        missed = False
        try:
            for finished in executor.rounds(self._walk, self._logged, self._listener.advance):
                self._observe(finished)
        except MissedRoundError as error:
            missed, self._hours.missed = True, error.attendance
            _log.warning("%s: nothing more is asked", error)
            self._listener.note(f"{error}: nothing more is asked")
        return self._result(executor, missed=missed)

    def _logged(self) -> Sequence[LoggedRound]:
        return () if self._log is None else self._log.read()

    def _observe(self, finished: Round) -> None:
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

    def _result(self, executor: Executor, *, missed: bool) -> RunResult:
        """Return what the run found; ``missed``: a round had too few answers."""
        asked = time.perf_counter()
        protocol, population, seed = self._protocol, self._population, self._seed
        state, rows, settings = self._state, self._rows, self._settings
        observer, fidelity, fakes = self._observer, self._fidelity, self._fakes
        truth = observer.truth
        found = protocol.discoveries(protocol.stopped(state) if missed else state)
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
