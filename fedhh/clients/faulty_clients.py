"""Clients with faults: what they send goes through the server's intake, next to honest answers.

Of a client whose answer is refused, the honest one is missing: workers ask those alone that have no
such fault. Of one that answers twice, the honest answer is the first. All of that is decided before
anybody is asked, from the round's cohort, the seed and the settings, so it is the same for any
number of workers and after a resume.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedhh.clients.attendance import MissedRoundError
from fedhh.clients.exact_tally import ScaledProgress
from fedhh.clients.faulty_answers import FaultyAnswers, faults_at
from fedhh.clients.order import ClientOrder
from fedhh.clients.populations.population import Population
from fedhh.devices import Devices
from fedhh.faults import FAULTS, Fault, Faults, FaultyPresence, fault_generator, present
from fedhh.plans.base import Plan
from fedhh.queries.base import Answer, Attendance, Diagnostics, Query
from fedhh.queries.intake import Intake
from fedhh.queries.refusals import IntakeCounts
from fedhh.simulation.executor import Executor, Progress

_AT_ONCE = 64
"""Faulty clients whose answers are held at a time."""


class FaultyClientsExecutor(Executor):
    """Asks the clients of each cohort that have no fault, and takes what the others send."""

    def __init__(
        self,
        executor: Executor,
        population: Population,
        faults: Faults,
        *,
        devices: Devices,
        plan: Plan,
        seed: int,
    ) -> None:
        """Ask clients through this executor.

        Args:
            executor: The way to the clients; closed with this one.
            population: Whose clients they are.
            faults: Who has which fault.
            devices: How many answers a round accepts at least.
            plan: The run's rounds: a stale answer is to the one before.
            seed: The run's seed.
        """
        self._executor = executor
        self._order = ClientOrder(population, seed=seed)
        self._faults = faults
        self._devices = devices
        self._places = [(each.pass_index, each.layer) for each in plan.layers]
        self._seed = seed

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield what the intake made of faulty answers, and then those without a fault.

        Raises:
            MissedRoundError: Fewer are left than a round accepts; nobody is asked.
        """
        before = self._round_before(query)
        made = FaultyAnswers(query, round_before=before)
        possible = tuple(fault for fault in self._faults.configured if made.can_have(fault))
        there, taken, intake = self._taken(query, made, possible)
        fewest = self._devices.fewest_answers(query.cohort.size)
        left = there - taken + intake.counts.accepted
        if left < fewest:
            raise MissedRoundError(_attendance(query, there, left, fewest))
        if progress is not None and taken:
            progress = ScaledProgress(listener=progress, scale=there / (there - taken))
        yield Answer(aggregate=intake.aggregate, diagnostics=Diagnostics(intake=intake.counts))
        missing = tuple(fault for fault in possible if fault is not Fault.SECOND)
        asked = query
        if missing:
            presence = FaultyPresence(
                answers=there - taken,
                faults=self._faults,
                pass_index=query.pass_index,
                layer=query.layer,
                missing=missing,
                inner=query.cohort.presence,
            )
            asked = replace(query, cohort=replace(query.cohort, presence=presence))
        for answer in self._executor.answer(asked, progress):
            number = answer.aggregate.num_clients
            counts = IntakeCounts(received=number, accepted=number)
            yield replace(answer, diagnostics=replace(answer.diagnostics, intake=counts))

    def close(self) -> None:
        self._executor.close()

    def _taken(
        self, query: Query, made: FaultyAnswers, possible: tuple[Fault, ...]
    ) -> tuple[int, int, Intake]:
        """Return how many clients are there, of how many the answer is faulty, and the intake."""
        cohort = query.cohort
        numbers = [FAULTS.index(fault) for fault in possible]
        intake = Intake(query)
        there = taken = 0
        for block in range(cohort.num_blocks):
            clients = self._order.clients(cohort, block)
            is_there = present(cohort.presence, clients, block, seed=self._seed)
            rng = fault_generator(query.pass_index, query.layer, block, seed=self._seed)
            drawn = self._faults.draw(len(clients), rng)
            places = np.flatnonzero(is_there & np.isin(drawn, numbers))
            tokens = places + block * cohort.block_size
            second = drawn[places] == FAULTS.index(Fault.SECOND)
            # The first answer of a client that answers twice is its honest one.
            intake.note_answered(tokens[second].tolist())
            there += int(np.count_nonzero(is_there))
            taken += int(np.count_nonzero(~second))
            for first in range(0, len(places), _AT_ONCE):
                some = slice(first, first + _AT_ONCE)
                faults = faults_at(drawn[places[some]])
                intake.receive(made.envelopes(faults, tokens[some].tolist(), rng=rng))
        return there, taken, intake

    def _round_before(self, query: Query) -> tuple[int, int] | None:
        place = self._places.index((query.pass_index, query.layer))
        return self._places[place - 1] if place else None


class HeavyFirstExecutor(Executor):
    """Asks cohorts in the order of how much clients typed, most first."""

    def __init__(self, executor: Executor) -> None:
        """Ask clients through this executor, which is closed with this one."""
        self._executor = executor

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        cohort = replace(query.cohort, heavy_first=True)
        yield from self._executor.answer(replace(query, cohort=cohort), progress)

    def close(self) -> None:
        self._executor.close()


def _attendance(query: Query, there: int, answers: int, fewest: int) -> Attendance:
    """Return how many answers a round accepts; those who are there count as eligible."""
    return Attendance(
        pass_index=query.pass_index,
        layer=query.layer,
        asked=query.cohort.size,
        eligible=there,
        dropped=0,
        answers=answers,
        fewest=fewest,
        hours=0.0,
    )
