"""The privacy loss of devices, by day and in all, from the numbers of records that they sent.

Devices that sent the same numbers are counted, not listed: losses are computed for each distinct
profile, so that 100,000 devices cost little more than one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhh.accounting.bounds.composition import basic_composition, optimal_composition
from fedhh.accounting.guarantees import Unit
from fedhh.arrays import Bools, Floats, Ints
from fedhh.longitudinal.ledger.cap import Charge
from fedhh.longitudinal.ledger.statements import LedgerReport, report_of, reports_of
from fedhh.validation import InputError

_WIDE = 4
"""Profiles are counted in a table of at most so many cells for each device, else sorted."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """How a loss is distributed over devices, or over the days of devices.

    Attributes:
        mean: None where it would need a composition for each of them.
        median: The smallest value that at least half are not above.
        most: The same of 95 %.
        largest: Of the worst.
    """

    mean: float | None
    median: float
    most: float
    largest: float

    def to_dict(self) -> dict[str, float | None]:
        return {"95%" if name == "most" else name: each for name, each in vars(self).items()}


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Epsilons of devices, or of their days, by two compositions.

    Attributes:
        basic: Sums of epsilons, at delta 0.
        pld: Optimal composition of those who have the median, 95 % and largest loss by the sum
            (of several, of the one with the largest sum of squares), at the ledger's delta; no
            mean.
        how_many: Devices, or days of devices.
    """

    basic: Distribution
    pld: Distribution
    how_many: int

    def to_dict(self) -> dict[str, Any]:
        spreads = {name: getattr(self, name).to_dict() for name in ("basic", "pld")}
        return {**spreads, "how_many": self.how_many}


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The privacy loss of devices.

    Attributes:
        num_days: Days of the ledger.
        num_devices: Devices.
        day: Losses of one device in one day, over all days on which a device took part.
        lifetime: Losses of one device in all days.
        lifetime_by_use_case: The same, of each use case alone.
        mean_by_day: ``(days,) float64``: mean basic loss of the devices that took part; 0 where
            none did.
        largest_by_day: ``(days,) float64``: the largest basic loss of a device.
        records: ``(use_cases, devices) int64``: records that each device sent in all.
        worst_device: The device with the largest sum of all days, the first of several.
        worst_day: The day on which a device lost most, the first of several.
        report: Guarantees for every device: the most records of each use case that any sent.
    """

    num_days: int
    num_devices: int
    day: Losses
    lifetime: Losses
    lifetime_by_use_case: dict[str, Losses]
    mean_by_day: Floats
    largest_by_day: Floats
    records: Ints
    worst_device: int
    worst_day: int
    report: LedgerReport

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary; numbers of single devices are left out."""

        def by_use_case(records: Ints) -> dict[str, int]:
            return dict(zip(self.lifetime_by_use_case, records.tolist(), strict=True))

        return {
            "num_days": self.num_days,
            "num_devices": self.num_devices,
            "day": self.day.to_dict(),
            "life": self.lifetime.to_dict(),
            "life_by_use_case": {
                name: each.to_dict() for name, each in self.lifetime_by_use_case.items()
            },
            "mean_by_day": self.mean_by_day.tolist(),
            "largest_by_day": self.largest_by_day.tolist(),
            "records": by_use_case(self.records.sum(axis=1)),
            "worst_device": {
                "device": self.worst_device,
                "records": by_use_case(self.records[:, self.worst_device]),
            },
            "worst_day": self.worst_day,
            "report": self.report.to_dict(),
        }


def tally(
    charges: Sequence[Charge],
    sent: Ints | Iterable[Ints],
    *,
    num_days: int,
    delta: float,
    opt_in: Ints | None,
    opt_out: Ints | None,
) -> Spending:
    """Return what devices spent; see `fedhh.longitudinal.ledger.Ledger.spent`."""
    epsilons = np.array([charge.epsilon for charge in charges])
    lifetime: Ints | None = None
    previous: Ints | None = None
    days: dict[tuple[int, ...], int] = {}
    means, largest = np.zeros(num_days), np.zeros(num_days)
    most: dict[Unit, Ints] = {
        unit: np.zeros(len(charges), dtype=np.int64) for unit in ("day", "24 hours")
    }
    day = -1
    for day, given in enumerate(sent):
        if day >= num_days:
            raise InputError(f"Expected records of {num_days} days, got more.")
        today = _checked(given, day, charges, None if lifetime is None else lifetime.shape[1])
        num_devices = today.shape[1]
        lifetime = np.zeros_like(today) if lifetime is None else lifetime
        here = _taking_part(day, opt_in, opt_out, num_devices)
        if here is not None and (today[:, ~here] > 0).any():
            device = int(np.flatnonzero((today > 0).any(axis=0) & ~here)[0])
            raise InputError(
                f"Expected no records of device {device} on day {day}, on which it does not take "
                f"part, got {int(today[:, device].sum())}."
            )
        lifetime += today
        profiles, counts = distinct_profiles(today if here is None else today[:, here])
        for profile, count in zip(map(tuple, profiles.tolist()), counts.tolist(), strict=True):
            days[profile] = days.get(profile, 0) + count
        if len(counts):
            losses = basic_composition(epsilons.tolist(), profiles)
            means[day] = float(losses @ (counts / counts.sum()))
            largest[day] = losses.max()
            most["day"] = np.maximum(most["day"], profiles.max(axis=0))
        both = today if previous is None else today + previous
        most["24 hours"] = np.maximum(most["24 hours"], both.max(axis=1, initial=0))
        previous = today
    if lifetime is None or day + 1 != num_days:
        raise InputError(f"Expected records of {num_days} days, got {day + 1}.")
    profiles, counts = distinct_profiles(lifetime)
    of_days = np.array(list(days), dtype=np.int64).reshape(-1, len(charges))
    most_in_lifetime = lifetime.max(axis=1, initial=0)
    return Spending(
        num_days=num_days,
        num_devices=lifetime.shape[1],
        day=_losses(charges, of_days, np.array(list(days.values())), delta),
        lifetime=_losses(charges, profiles, counts, delta),
        lifetime_by_use_case={
            charge.use_case: _losses([charge], *distinct_profiles(lifetime[[index]]), delta)
            for index, charge in enumerate(charges)
        },
        mean_by_day=means,
        largest_by_day=largest,
        records=lifetime,
        worst_device=int(np.argmax(basic_composition(epsilons.tolist(), lifetime.T))),
        worst_day=int(np.argmax(largest)),
        report=report_of(
            charges,
            {
                "item": np.minimum(1, most_in_lifetime).tolist(),
                "day": most["day"].tolist(),
                "24 hours": most["24 hours"].tolist(),
                "user": most_in_lifetime.tolist(),
            },
            num_days=num_days,
            delta=delta,
            realised=True,
            note="24 hours in a row lie in two days: the most of any two days in a row counts.",
        ),
    )


def distinct_profiles(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the distinct columns, ``(profiles, use_cases)``, and how many there are of each."""
    num_kinds, num_devices = numbers.shape
    if not num_devices:
        return np.zeros((0, num_kinds), dtype=np.int64), np.zeros(0, dtype=np.int64)
    sizes = [int(size) + 1 for size in numbers.max(axis=1)]
    cells = math.prod(sizes)
    if cells >= 1 << 62:
        profiles, counts = np.unique(numbers, axis=1, return_counts=True)
        return profiles.T, counts
    keys = np.ravel_multi_index(tuple(numbers), sizes)
    if cells <= _WIDE * num_devices:
        table = np.bincount(keys, minlength=cells)
        found = np.flatnonzero(table)
        counts = table[found]
    else:
        found, counts = np.unique(keys, return_counts=True)
    profiles = np.stack(np.unravel_index(found, sizes), axis=1)
    return profiles.astype(np.int64), counts.astype(np.int64)


def _losses(charges: Sequence[Charge], profiles: Ints, counts: Ints, delta: float) -> Losses:
    if not len(counts):
        nothing = Distribution(mean=0.0, median=0.0, most=0.0, largest=0.0)
        return Losses(basic=nothing, pld=nothing, how_many=0)
    epsilons, of_charge = reports_of(charges, range(len(charges)))
    parts = profiles[:, of_charge]
    basic = basic_composition(epsilons, parts)
    squares = basic_composition([epsilon**2 for epsilon in epsilons], parts)
    order = np.lexsort((squares, basic))
    at = [int(order[rank]) for rank in _ranks(counts[order])]
    best = [optimal_composition(epsilons, parts[i].tolist(), delta=delta) for i in at]
    return Losses(
        basic=_spread(basic, counts),
        pld=Distribution(mean=None, median=best[0], most=best[1], largest=best[2]),
        how_many=int(counts.sum()),
    )


def _spread(values: Floats, counts: Ints) -> Distribution:
    order = np.argsort(values, kind="stable")
    median, most, largest = (float(values[order[rank]]) for rank in _ranks(counts[order]))
    mean = float(values @ (counts / counts.sum()))
    return Distribution(mean=mean, median=median, most=most, largest=largest)


def _ranks(counts: Ints) -> list[int]:
    """Return where in an ascending table at least half, 95 % and all have been passed."""
    reached = np.cumsum(counts)
    total = int(reached[-1])
    wanted = [-(-total // 2), -(-total * 95 // 100), total]
    return [int(np.searchsorted(reached, each)) for each in wanted]


def _taking_part(
    day: int, opt_in: Ints | None, opt_out: Ints | None, num_devices: int
) -> Bools | None:
    if opt_in is None and opt_out is None:
        return None
    here = np.ones(num_devices, dtype=np.bool_)
    for name, given in (("opt_in", opt_in), ("opt_out", opt_out)):
        if given is None:
            continue
        if np.shape(given) != (num_devices,):
            raise InputError(f"Expected {name} of shape ({num_devices},), got {np.shape(given)}.")
        here &= (given <= day) if name == "opt_in" else (day < given)
    return here


def _checked(given: Ints, day: int, charges: Sequence[Charge], num_devices: int | None) -> Ints:
    """Return a day's records as ``(use_cases, devices) int64``."""
    today = np.asarray(given)
    if today.ndim != 2 or today.shape[0] != len(charges):
        raise InputError(
            f"Expected records of shape ({len(charges)}, devices) on day {day}, got {today.shape}."
        )
    if num_devices is not None and today.shape[1] != num_devices:
        raise InputError(
            f"Expected {num_devices} devices on day {day}, as before, got {today.shape[1]}."
        )
    if not today.shape[1]:
        raise InputError(f"Expected at least one device on day {day}, got none.")
    if not np.issubdtype(today.dtype, np.integer):
        raise InputError(f"Expected integers on day {day}, got {today.dtype}.")
    if (today < 0).any():
        raise InputError(f"Expected records >= 0 on day {day}, got {int(today.min())}.")
    return today.astype(np.int64, copy=False)
