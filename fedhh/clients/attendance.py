"""Which clients of a round answer, where devices are not always there.

That is decided before anybody is asked. It follows from the round's cohort, the run's seed and the
devices' settings alone, so it is the same for any number of workers and after a resume. Workers
draw it again, block by block, and ask those that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from fedhh.clients.exact_tally import ScaledProgress
from fedhh.clients.order import ClientOrder
from fedhh.clients.populations.population import Population
from fedhh.devices import CheckedIn, CheckIns, Devices, Presence, check_ins
from fedhh.questions.answer import Answer, Attendance
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import AnyQuestion
from fedhh.simulation.executor import Executor, Progress


class MissedRoundError(Exception):
    """Fewer clients answered than a round accepts, so that the run ends here.

    Attributes:
        attendance: How many there were.
    """

    def __init__(self, attendance: Attendance) -> None:
        super().__init__(
            f"pass {attendance.pass_index + 1}, layer {attendance.layer}: {attendance.answers:,} "
            f"of at least {attendance.fewest:,} answers"
        )
        self.attendance = attendance


class AttendanceExecutor(Executor):
    """Asks those clients of each cohort whose devices are there."""

    def __init__(
        self, executor: Executor, population: Population, devices: Devices, *, seed: int
    ) -> None:
        """Ask clients through this executor.

        Args:
            executor: The way to the clients; closed with this one.
            population: Whose clients they are.
            devices: When their devices are there.
            seed: The run's seed.
        """
        self._executor = executor
        self._order = ClientOrder(population, seed=seed)
        self._num_clients = population.num_clients
        self._devices = devices
        self._seed = seed

    def answer(self, question: AnyQuestion, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield answers of those that are there; the first says how many they are.

        Raises:
            MissedRoundError: They are fewer than a round accepts; nobody is asked.
        """
        attendance, presence = self.attend(question.cohort, question.pass_index, question.layer)
        if attendance.is_missed:
            raise MissedRoundError(attendance)
        if progress is not None and attendance.answers < attendance.asked:
            scale = attendance.asked / attendance.answers
            progress = ScaledProgress(listener=progress, scale=scale)
        asked = replace(question, cohort=replace(question.cohort, presence=presence))
        known: Attendance | None = attendance
        for answer in self._executor.answer(asked, progress):
            diagnostics = replace(answer.diagnostics, attendance=known)
            yield replace(answer, diagnostics=diagnostics)
            known = None

    def attend(self, cohort: Cohort, pass_index: int, layer: int) -> tuple[Attendance, Presence]:
        """Return how many of a round's cohort are there and for how long it is open, and who."""
        devices, round_ = self._devices, (cohort, pass_index, layer)
        closing = devices.closing_hours
        share, end = devices.share_by(closing), closing
        eligible, dropped, answers = self._counted(*round_, share=share)
        fewest = devices.fewest_answers(cohort.size)
        if answers < fewest and devices.when_missed == "wait":
            share, end = self._waiting(*round_, share=share, missing=fewest - answers)
            eligible, dropped, answers = self._counted(*round_, share=share)
        attendance = Attendance(
            pass_index=pass_index,
            layer=layer,
            asked=cohort.size,
            eligible=eligible,
            dropped=dropped,
            answers=answers,
            fewest=fewest,
            hours=end,
            waited_hours=end - closing,
        )
        presence = CheckedIn(
            devices=devices, pass_index=pass_index, layer=layer, share=share, answers=answers
        )
        return attendance, presence

    def share_served(self, rounds: Iterable[tuple[Cohort, int, int]]) -> float:
        """Return the share of the population that answered in at least one of some rounds.

        Args:
            rounds: Of each, its cohort, pass and layer; cohorts may overlap.
        """
        served = np.zeros(self._num_clients, dtype=np.bool_)
        for cohort, pass_index, layer in rounds:
            _, presence = self.attend(cohort, pass_index, layer)
            for block in range(cohort.num_blocks):
                clients = self._order.clients(cohort, block)
                served[clients[presence.is_there(clients, block, seed=self._seed)]] = True
        return float(served.mean())

    def close(self) -> None:
        self._executor.close()

    def _counted(
        self, cohort: Cohort, pass_index: int, layer: int, *, share: float
    ) -> tuple[int, int, int]:
        """Return how many are eligible, have dropped out, and answer, where the round closes."""
        counts = np.zeros(3, dtype=np.int64)
        for drawn in self._drawn(cohort, pass_index, layer):
            checked_in = drawn.is_eligible & (drawn.place < share)
            each = (drawn.is_eligible, checked_in & drawn.is_lost, checked_in & ~drawn.is_lost)
            counts += [np.count_nonzero(group) for group in each]
        eligible, dropped, answers = counts.tolist()
        return eligible, dropped, answers

    def _waiting(
        self, cohort: Cohort, pass_index: int, layer: int, *, share: float, missing: int
    ) -> tuple[float, float]:
        """Return the curve and the hour at which answers are there that a deadline misses.

        If they never are, those of the last check-in.
        """
        devices = self._devices
        last_share = devices.points[-1][1]
        late = [
            drawn.place[drawn.is_kept & (share <= drawn.place) & (drawn.place < last_share)]
            for drawn in self._drawn(cohort, pass_index, layer)
        ]
        places = np.concatenate(late)
        if len(places) < missing:
            return last_share, devices.end_hours
        last = float(np.partition(places, missing - 1)[missing - 1])
        # Up to and including the device that was missing.
        return float(np.nextafter(last, 1.0)), max(devices.hours_of(last), devices.closing_hours)

    def _drawn(self, cohort: Cohort, pass_index: int, layer: int) -> Iterator[CheckIns]:
        for block in range(cohort.num_blocks):
            clients = self._order.clients(cohort, block)
            yield check_ins(self._devices, pass_index, layer, clients, block, seed=self._seed)
