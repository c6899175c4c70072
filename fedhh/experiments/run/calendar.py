"""When the rounds of a run took place, where devices are not always there, and who served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fedhh.accounting.plan import Plan
from fedhh.devices import Devices
from fedhh.experiments.run.layers import LayerRow
from fedhh.questions.answer import Attendance
from fedhh.simulation.roster import Roster
from fedhh.validation import InputError

HOURS_PER_DAY = 24.0


def check_devices(devices: Devices | None, plan: Plan) -> None:
    """Raise InputError unless devices can follow a plan, as far as is known before a run."""
    if devices is None:
        return
    if plan.uploads_once:
        raise InputError(
            "Expected no table devices for a protocol whose clients upload once for all layers: "
            "who is there differs from layer to layer; leave it out, or run a protocol of one "
            "round."
        )
    devices.check_cohort(plan.smallest_cohort)


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """How long a run took with its devices.

    Attributes:
        hours: From the first round's beginning to the last one's end, or to where it was given up.
        share_served: Share of all clients that answered in at least one round.
        missed: The round that had fewer answers than it accepts, so that the run ended; None if the
            run came to its end.
    """

    hours: float
    share_served: float
    missed: Attendance | None = None

    @property
    def days(self) -> float:
        """The hours, in days."""
        return self.hours / HOURS_PER_DAY

    @property
    def missed_text(self) -> str:
        """Which round had too few answers, as a sentence; empty if none had."""
        missed = self.missed
        if missed is None:
            return ""
        return (
            f"Pass {missed.pass_index + 1}, layer {missed.layer} had {missed.answers:,} of at "
            f"least {missed.fewest:,} answers after {missed.hours:,.4g} hours: nothing more was "
            "asked (devices.when_missed)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as ``result.json`` has it.

        Columns:
            hours: From the first round's beginning to the last one's end.
            days: The same in days.
            share_served: Share of all clients that answered in at least one round.
            missed: The round that had too few answers, with how many; null if none had.
        """
        return {
            "hours": self.hours,
            "days": self.days,
            "share_served": self.share_served,
            "missed": None if self.missed is None else asdict(self.missed),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Calendar:
        """Return the calendar whose `to_dict` this is."""
        missed = content["missed"]
        return cls(
            hours=float(content["hours"]),
            share_served=float(content["share_served"]),
            missed=None if missed is None else Attendance(**missed),
        )


class Timetable:
    """The hours of a run as it goes on; of a run without devices, nothing.

    Attributes:
        missed: The round that had too few answers; None as long as none had.
    """

    def __init__(
        self,
        roster: Roster,
        devices: Devices | None,
        *,
        num_clients: int,
        plan: Plan,
        rows: Sequence[LayerRow],
    ) -> None:
        """Begin a run, or go on with one.

        Args:
            roster: Says who answers.
            devices: When devices are there; None if all of them always answer at once.
            num_clients: Clients of the population.
            plan: The run's.
            rows: Of its finished rounds; others are appended as it goes on.
        """
        self.missed: Attendance | None = None
        self._roster, self._devices, self._plan, self._rows = roster, devices, plan, rows
        self._num_clients = num_clients

    def opening_hours(self, pass_index: int, layer: int) -> float:
        """Return when the next round begins, in hours since the first one did."""
        if self._devices is None or not self._rows:
            return 0.0
        last = self._rows[-1].opened_hours or 0.0
        if self._plan.planned(pass_index, layer).opens_with_previous:
            return last
        opened = self._closed_hours + self._devices.gap_hours
        if self._plan.reuses_clients:
            opened = max(opened, last + self._devices.hours_between_openings)
        return opened

    @property
    def calendar(self) -> Calendar | None:
        """The run's calendar, once it has ended; None without devices."""
        if self._devices is None:
            return None
        rows, plan = self._rows, self._plan
        hours, missed = self._closed_hours, self.missed
        if missed is not None:
            opened = self.opening_hours(missed.pass_index, missed.layer)
            hours = max(hours, opened + missed.hours)
        if plan.reuses_clients:
            took_place = (plan.planned(row.pass_index, row.layer) for row in rows)
            served = self._roster.share_served(took_place)
        else:
            honest = (row.num_clients - (row.fake_clients or 0) for row in rows)
            served = sum(honest) / self._num_clients
        return Calendar(hours=hours, share_served=served, missed=missed)

    @property
    def _closed_hours(self) -> float:
        """When the last of the rounds has ended."""
        return max((row.closed_hours or 0.0 for row in self._rows), default=0.0)
