"""Devices that are not always there: which are eligible, when they check in, and which drop out.

A round opens, and the devices of its cohort check in one after the other, as the curve of check-ins
says; some never do. A device that has checked in may drop out before its answer is there. The round
closes at its deadline, or later if it waits for a least number of answers. None of this depends on
what a device holds: that is an assumption, on which every guarantee of a run with devices rests.

Curves are functions of hours to the share of eligible devices that have checked in by then. They
rise linearly between their points, from no device at hour 0 if their first point is later, and stay
at their last share: whoever has not checked in by the last point never does. A first point at hour
0 is a share that checks in at once. A device's place on the curve is one uniform number in [0, 1):
it has checked in by hour t if its number is below the curve at t. So numbers are compared and not
hours, and who answers is the same to the bit wherever it is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from fedhh.arrays import Bools, Floats, Ints
from fedhh.random import GOLDEN, Stream, generator, scatter
from fedhh.settings import Count, Settings, ShareOrAll, ShareOrNone
from fedhh.validation import InputError, did_you_mean, shown

MOST_HOURS = 24.0 * 365
"""Of a curve, a deadline, or a gap between rounds."""

FEWEST_ANSWERS = 2
"""Of a round, whatever is configured: one answer has no estimate with a variance."""

Points = tuple[tuple[float, float], ...]

CURVES: dict[str, Points] = {
    "always": ((0.0, 1.0),),
    "papaya": ((16.0, 0.85), (24.0, 0.90), (96.0, 0.96)),
}
"""Curves by name. "always": every device at once. "papaya": of Meta's PAPAYA, as a third party
reports it: 85 % of the devices within 16 hours, 90 % within 24, 96 % within 96."""

ANSWERS_PER_DAY = {"papaya": 2}
"""Most answers of a device in a day, by the curve whose source states it."""

_HOURS_PER_DAY = 24.0


@dataclass(frozen=True, kw_only=True)
class Devices(Settings):
    """When devices are there to answer, and how long rounds wait for them.

    Attributes:
        check_in: The curve of check-ins: "always", "papaya" (Meta's PAPAYA, as a third party
            reports it: 85 % of the devices in 16 hours, 90 % in 24, 96 % in 96), or points
            [hours, share], between which the share of eligible devices that have checked in rises
            linearly.
        eligible: Share of devices that ever answer (charging, idle, opted in), the same ones in all
            rounds of a run.
        dropout: Share of the devices that check in whose answer is lost.
        deadline_hours: When a round closes, after it opened; if left out, at the end of the curve.
        least_clients: Fewest clients whose answers a round accepts. Central guarantees before the
            run are for so many; if it and ``least_share`` are left out, for two.
        least_share: The same as a share of the round's cohort.
        when_missed: What a round does whose deadline finds fewer answers: "wait" until they are
            there, at most to the end of the curve; or "stop": nothing more is asked.
        gap_hours: Of the server, between the end of a round and the beginning of the next.
        answers_per_day: Most answers of a device in a day: where a protocol may ask a device again,
            rounds begin at least 24 hours over this apart. "auto": 2 for "papaya", no limit
            otherwise.
    """

    check_in: str | Points = "always"
    eligible: ShareOrAll = 1.0
    dropout: ShareOrNone = 0.0
    deadline_hours: Annotated[float, Gt(0), Le(MOST_HOURS)] | None = None
    least_clients: Count | None = None
    least_share: ShareOrAll | None = None
    when_missed: Literal["wait", "stop"] = "wait"
    gap_hours: Annotated[float, Ge(0), Le(MOST_HOURS)] = 0.0
    answers_per_day: Count | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.check_in, str):
            if self.check_in not in CURVES:
                raise InputError(
                    f"Unknown check_in {shown(self.check_in)}"
                    f"{did_you_mean(self.check_in, CURVES)} Or give points [hours, share]."
                )
        else:
            _check_points(self.check_in)
        if self.least_clients is not None and self.least_share is not None:
            raise InputError("Expected least_clients or least_share, got both; remove one.")

    @cached_property
    def points(self) -> Points:
        """The points of the curve."""
        return CURVES[self.check_in] if isinstance(self.check_in, str) else self.check_in

    @property
    def end_hours(self) -> float:
        """When the last device checks in."""
        return self.points[-1][0]

    @property
    def closing_hours(self) -> float:
        """When a round closes that has enough answers: at its deadline, or the curve's end."""
        return min(self.deadline_hours or math.inf, self.end_hours)

    @property
    def hours_between_openings(self) -> float:
        """Fewest hours between the beginnings of two rounds that may ask the same device."""
        most = self.answers_per_day
        if most == "auto":
            most = ANSWERS_PER_DAY.get(str(self.check_in), 0)
        return _HOURS_PER_DAY / most if most else 0.0

    def share_by(self, hours: float) -> float:
        """Return the share of eligible devices that have checked in by some hour.

        >>> Devices(check_in="papaya").share_by(20.0)
        0.875
        """
        times, shares = self._curve
        return float(np.interp(hours, times, shares)) if hours >= times[0] else 0.0

    def hours_of(self, share: float) -> float:
        """Return the first hour by which a share of eligible devices has checked in; or infinity.

        >>> Devices(check_in="papaya").hours_of(0.425)
        8.0
        """
        times, shares = self._curve
        return float(np.interp(share, shares, times)) if share <= shares[-1] else math.inf

    def fewest_answers(self, cohort: int) -> int:
        """Return the fewest answers that a round accepts which asks so many clients."""
        if self.least_share is not None:
            # A share such as 0.7 of 10 is 7, not 8 by a last digit.
            return max(FEWEST_ANSWERS, math.ceil(self.least_share * cohort * (1 - 1e-12)))
        return max(FEWEST_ANSWERS, self.least_clients or 0)

    def check_cohort(self, cohort: int) -> None:
        """Raise InputError, with the nearest number, if a round cannot expect its least answers.

        Args:
            cohort: Clients that it asks.
        """
        waits = self.when_missed == "wait"
        by = self.end_hours if waits else self.closing_hours
        expected = cohort * self._answering(by)
        fewest = self.fewest_answers(cohort)
        if fewest <= expected * (1 + 1e-12):
            return
        share = math.floor(expected / cohort * 1e4) / 1e4
        if self.least_share is not None:
            bound, got = f"least_share <= {share:g}", f"least_share={self.least_share:g}"
        else:
            bound = f"least_clients <= {math.floor(expected * (1 + 1e-12)):,}"
            got = f"least_clients={self.least_clients or FEWEST_ANSWERS:,}"
        at = "the last check-in" if by == self.end_hours else "the deadline"
        most = self.eligible * (1 - self.dropout)
        needed = self.hours_of(fewest / cohort / max(most, 1e-300))
        later = "" if waits or math.isinf(needed) else f"; or deadline_hours >= {needed:.4g}"
        raise InputError(
            f"Expected devices.{bound}{later}, got {got}: of a cohort of {cohort:,} clients "
            f"{math.floor(expected):,} answers can be expected by {at} at {by:g} hours (eligible "
            f"{self.eligible:g}, checked in {self.share_by(by):g}, not dropped out "
            f"{1 - self.dropout:g})."
        )

    def is_eligible(self, clients: Ints, *, seed: int) -> Bools:
        """Return ``(n,) bool``: which clients, by their numbers, are eligible in a run.

        A client's coin is SplitMix64's output at its number, from a start that the seed draws.
        """
        start = generator(seed, Stream.ELIGIBILITY).integers(2**64, dtype=np.uint64)
        words = scatter(start + (clients.astype(np.uint64) + np.uint64(1)) * GOLDEN)
        return np.asarray((words >> np.uint64(11)) * 2.0**-53 < self.eligible)

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        points = self.points if self.points[0][0] == 0 else ((0.0, 0.0), *self.points)
        times, shares = np.array(points, dtype=np.float64).T
        return times, shares

    def _answering(self, hours: float) -> float:
        """Return the expected share of a cohort whose answers are there by some hour."""
        return self.eligible * self.share_by(hours) * (1 - self.dropout)


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckIns:
    """What a block's devices draw in a round; one entry for each.

    Attributes:
        is_eligible: Whether it ever answers.
        place: Its number on the curve, see the module's text.
        is_lost: Whether it drops out once it has checked in.
    """

    is_eligible: Bools
    place: Floats
    is_lost: Bools

    @property
    def is_kept(self) -> Bools:
        """Whether it answers if it checks in before the round closes."""
        return self.is_eligible & ~self.is_lost


def check_ins(
    devices: Devices,
    pass_index: int,
    layer: int,
    clients: Ints,
    block: int,
    *,
    seed: int,
) -> CheckIns:
    """Return what the devices of a block draw in a round, whatever their clients hold."""
    rng = generator(seed, Stream.CHECK_IN, pass_index, layer, block)
    place, dropout = rng.random((2, len(clients)))
    return CheckIns(
        is_eligible=devices.is_eligible(clients, seed=seed),
        place=place,
        is_lost=dropout < devices.dropout,
    )


def _check_points(points: Points) -> None:
    """Raise InputError unless points are those of a curve that rises."""
    if not points:
        raise InputError(f"Expected check_in as points [hours, share], got {shown(points)}.")
    hours, shares = zip(*points, strict=True)
    if not all(math.isfinite(x) and 0 <= x <= MOST_HOURS for x in hours):
        raise InputError(
            f"Expected hours of check_in from 0 to {MOST_HOURS:g}, got {shown(hours)}."
        )
    if not all(0 < x <= 1 for x in shares):
        raise InputError(f"Expected shares of check_in in (0, 1], got {shown(shares)}.")
    for name, values in (("hours", hours), ("shares", shares)):
        if any(later <= sooner for sooner, later in pairwise(values)):
            raise InputError(f"Expected rising {name} in check_in, got {shown(values)}.")
