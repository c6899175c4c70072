"""The roster of a run: which clients answer in a round, which are fake, how many drop out and why.

It follows from the round's cohort, the population's size, the devices, the fake clients and the
seed alone, before anybody is asked; so it is the same for any number of workers and after a resume.
Workers draw who answers again, block by block.

Fake clients stand at random positions among the others. Without those between a round's first
position and its last, honest clients are again a cohort, of the same clients in their own order, so
who asks them knows nothing of fakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fedhh.adversary import FakePositions
from fedhh.devices import CheckIns, Devices, check_ins
from fedhh.questions.answer import Attendance
from fedhh.questions.cohort import Cohort
from fedhh.random import KeyedPermutation, Stream, generator

if TYPE_CHECKING:  # Accounting loads scipy, which a population does not need.
    from fedhh.accounting.rounds import PlannedRound

ClientNumbers = npt.NDArray[np.int64]

Arrangement = Literal["any", "random", "independent"]
"""In which order clients are stored: one that somebody gave; a random one, so that those who follow
each other are a random sample; or as independent draws of one distribution, so that asking them in
their own order is as good as asking them in a random one."""

LARGEST_SHUFFLED = 2**24
"""Clients whose random order is a shuffle that is held; of more, a keyed permutation."""

CHUNK = 2**12
"""Clients that are asked together where a population of more is stored in a random order."""

_POSITIONS = 1
"""First number of the path of fake clients' positions; 0 is that of their targets, 2 of coins."""


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

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.attendance,)


@dataclass(frozen=True, kw_only=True)
class ClientOrder:
    """The order in which a population's clients are asked in a run of some seed: a random one.

    It says who is in a cohort, and in which block: clients of a block draw alike, each by itself.
    So a fresh order is not drawn where one cohort is all clients: they are read where they lie.

    Of a large population that is stored in a random order, chunks of clients that follow each other
    are permuted, from a random first client on: a cohort is as random a sample as any, and is read
    piece by piece. A fresh order is one of clients, however they are stored: privacy rests on it.

    Attributes:
        num_clients: Clients of the population.
        seed: The run's seed.
        arrangement: Which order clients are stored in.
    """

    num_clients: int
    seed: int
    arrangement: Arrangement = "any"

    def clients(self, cohort: Cohort, block: int) -> ClientNumbers:
        """Return ``(n,) int64``: the numbers of a block's clients."""
        place = cohort.block(block)
        positions = np.arange(place.start, place.stop)
        if self.is_their_own(cohort):
            return positions
        if self.num_clients <= LARGEST_SHUFFLED:
            order = _shuffled(self.num_clients, self.seed, cohort.redraw)
            return order[place].astype(np.int64)
        rng = _order_rng(self.seed, cohort.redraw)
        if self.arrangement == "random" and cohort.redraw is None:
            return self._by_chunks(positions, rng)
        return KeyedPermutation.draw(self.num_clients, rng=rng).at(positions)

    def is_their_own(self, cohort: Cohort) -> bool:
        """Return whether clients are asked by their numbers, which is as good as a random order."""
        if cohort.redraw is None:
            return self.arrangement == "independent"
        return cohort.size == self.num_clients

    def _by_chunks(self, positions: ClientNumbers, rng: np.random.Generator) -> ClientNumbers:
        """Return the clients at positions; those beyond the last whole chunk come last."""
        whole = self.num_clients // CHUNK
        start = int(rng.integers(self.num_clients))
        order = KeyedPermutation.draw(whole, rng=rng)
        chunks = positions // CHUNK
        is_whole = chunks < whole
        chunks[is_whole] = order.at(chunks[is_whole])
        return (chunks * CHUNK + positions % CHUNK + start) % self.num_clients


@lru_cache(maxsize=2)
def _shuffled(
    num_clients: int, seed: int, redraw: int | None
) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the run's order of clients, or the cohort's own if it is redrawn.

    Whoever asks for it in this process shares it. Four bytes are enough: at most 64 MiB. Two are
    kept, since fake clients have an order besides that of the honest ones.
    """
    order = np.arange(num_clients, dtype=np.min_scalar_type(-num_clients))
    _order_rng(seed, redraw).shuffle(order)
    return order


def _order_rng(seed: int, redraw: int | None) -> np.random.Generator:
    return generator(seed, Stream.COHORT, *(() if redraw is None else (redraw,)))


@dataclass(frozen=True, kw_only=True)
class RoundRoster:
    """Who answers in a round.

    Attributes:
        cohort: The honest clients that are asked.
        fakes: Fake clients by group, besides them.
        devices: When devices are there; None if all answer.
        attendance: How many devices are there; None if all answer.
        share: The curve of check-ins where the round closes: devices answer whose number is below.
    """

    cohort: Cohort
    fakes: tuple[int, ...] = ()
    devices: Devices | None = None
    attendance: Attendance | None = None
    share: float = 1.0

    @property
    def num_answers(self) -> int:
        """Honest clients that answer."""
        return self.cohort.size if self.attendance is None else self.attendance.answers

    def clients(self, order: ClientOrder, block: int) -> ClientNumbers:
        """Return ``(n,) int64``: the numbers of those of a block that answer."""
        clients = order.clients(self.cohort, block)
        if self.devices is None or self.attendance is None:
            return clients
        place = self.attendance.pass_index, self.attendance.layer
        drawn = check_ins(self.devices, *place, clients, block, seed=order.seed)
        return clients[drawn.is_kept & (drawn.place < self.share)]

    def first(self, most: int | None) -> RoundRoster:
        """Return the roster of the first so many positions alone; of all if None."""
        size = min(self.cohort.size, most or self.cohort.size)
        return replace(self, cohort=replace(self.cohort, size=size))


@dataclass(frozen=True)
class Roster:
    """Says of each round of a run who answers, by what is known of its clients before it begins.

    Attributes:
        order: The honest clients, in the order in which they are asked.
        devices: When their devices are there; None if all always answer.
        fakes: Fake clients by group.
    """

    order: ClientOrder
    devices: Devices | None = None
    fakes: tuple[int, ...] = ()

    def round(self, planned: PlannedRound) -> RoundRoster:
        """Return who answers in a planned round; its pass and layer address what is drawn.

        Raises:
            MissedRoundError: Fewer answer than the round accepts.
        """
        honest, fakes = self._split(planned.cohort)
        if self.devices is None or not honest.size:
            return RoundRoster(cohort=honest, fakes=fakes)
        attendance, share = self._attendance(self.devices, honest, planned)
        if attendance.is_missed:
            raise MissedRoundError(attendance)
        return RoundRoster(
            cohort=honest, fakes=fakes, devices=self.devices, attendance=attendance, share=share
        )

    def share_served(self, rounds: Iterable[PlannedRound]) -> float:
        """Return the share of honest clients that answered in at least one of some rounds."""
        served = np.zeros(self.order.num_clients, dtype=np.bool_)
        for planned in rounds:
            who = self.round(planned)
            for block in range(who.cohort.num_blocks):
                served[who.clients(self.order, block)] = True
        return float(served.mean())

    def _split(self, cohort: Cohort) -> tuple[Cohort, tuple[int, ...]]:
        """Return the honest clients of a cohort as one of their own, and its fakes by group."""
        if not self.fakes:
            return cohort, ()
        order = self.order
        positions = _fake_positions(self.fakes, order.num_clients, order.seed, cohort.redraw)
        start, stop = cohort.start, cohort.start + cohort.size
        before, behind = positions.before(start), positions.before(stop)
        honest = replace(cohort, start=start - before, size=cohort.size - behind + before)
        return honest, tuple(positions.numbers(start, stop, len(self.fakes)).tolist())

    def _attendance(
        self, devices: Devices, cohort: Cohort, planned: PlannedRound
    ) -> tuple[Attendance, float]:
        """Return how many of a cohort's devices answer, and the curve where the round closes."""
        place = planned.pass_index, planned.layer

        def drawn() -> Iterator[CheckIns]:
            for block in range(cohort.num_blocks):
                clients = self.order.clients(cohort, block)
                yield check_ins(devices, *place, clients, block, seed=self.order.seed)

        closing = devices.closing_hours
        share, end = devices.share_by(closing), closing
        eligible, dropped, answers = _counted(drawn(), share)
        fewest = devices.fewest_answers(cohort.size)
        if answers < fewest and devices.when_missed == "wait":
            share, end = _waiting(devices, drawn(), share, fewest - answers)
            eligible, dropped, answers = _counted(drawn(), share)
        attendance = Attendance(
            pass_index=planned.pass_index,
            layer=planned.layer,
            asked=cohort.size,
            eligible=eligible,
            dropped=dropped,
            answers=answers,
            fewest=fewest,
            hours=end,
            waited_hours=end - closing,
        )
        return attendance, share


@lru_cache(maxsize=1)
def _fake_positions(
    fakes: tuple[int, ...], num_honest: int, seed: int, redraw: int | None
) -> FakePositions:
    """Return where groups of fakes stand in an order of clients."""
    path = (_POSITIONS, 0 if redraw is None else 1 + redraw)
    rng = generator(seed, Stream.ADVERSARY, *path)
    return FakePositions.draw(fakes, num_honest, rng=rng)


def _counted(drawn: Iterable[CheckIns], share: float) -> tuple[int, int, int]:
    """Return how many are eligible, have dropped out, and answer, where the round closes."""
    counts = np.zeros(3, dtype=np.int64)
    for each in drawn:
        checked_in = each.is_eligible & (each.place < share)
        groups = (each.is_eligible, checked_in & each.is_lost, checked_in & ~each.is_lost)
        counts += [np.count_nonzero(group) for group in groups]
    eligible, dropped, answers = counts.tolist()
    return eligible, dropped, answers


def _waiting(
    devices: Devices, drawn: Iterable[CheckIns], share: float, missing: int
) -> tuple[float, float]:
    """Return the curve and the hour at which answers are there that a deadline misses.

    If they never are, those of the last check-in.
    """
    last_share = devices.points[-1][1]
    late = [
        each.place[each.is_kept & (share <= each.place) & (each.place < last_share)]
        for each in drawn
    ]
    places = np.concatenate(late)
    if len(places) < missing:
        return last_share, devices.end_hours
    last = float(np.partition(places, missing - 1)[missing - 1])
    # Up to and including the device that was missing.
    return float(np.nextafter(last, 1.0)), max(devices.hours_of(last), devices.closing_hours)
