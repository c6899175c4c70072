"""Populations with time: words are born, rise and fall, and clients come and go.

The process, over the model of `fedhh.clients.synthetic`. Time is cut into periods of
some days.

* **A client types its words period by period**, each period from a stream of its own. What makes it
  this client stays: how many words it types in a period, which share of them is new, and which new
  words it can use at all.
* **A share of the new words is born** on a uniformly random day of the time that is simulated; the
  others are steady. Day t of a word that is born on day b has the envelope g(t) in [0, 1]: 0 before
  b; then a logistic rise from 1 % on day b to one half ``rise_days`` later and 99 % after as many
  again; from there on, of some words, a fall that halves g every ``half_life_days``. A contribution
  is kept with probability g, each by a coin of its own (thinning): that is exact for the process
  whose rate is g times that of the steady one. g is taken in the middle of a period.
* **Clients come and go.** Of those that are there in the first period and those that arrive later,
  each stays a geometric number of periods. So in each period every client that is there leaves with
  the same probability, whenever it came, and those of the first period have, by the distribution's
  lack of memory, as long to stay as any other.

Which word is born when, who stays how long, and every coin depend on the seed, the word's rank, the
client's number and the period alone (`Stream.CALENDAR`), not on who asks or in which blocks.

Not modelled: topics and communities (a new word comes to all who can use it at the same time),
seasons and days of the week, clients that type more or other words in one period than in another,
clients that pause and come back, words that come back, and words that a client keeps copying from
an earlier period.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.arrays import Bools, Floats, Ints, UInts
from fedhh.clients.clients import Clients
from fedhh.clients.synthetic import (
    CLIENTS_AT_ONCE,
    PopulationModel,
    RankDrawer,
    RankRows,
    stored_population,
)
from fedhh.random import GOLDEN, Stream, generator, scatter
from fedhh.validation import InputError, require_at_least, require_between, require_positive

# Purposes in paths of Stream.CALENDAR; 0 is what clients type, see `RankDrawer`.
_BIRTHS, _STAYS, _THINNING = 1, 2, 3
_LOGIT_OF_START = math.log(99)
MOST_PERIODS = 10_000
_MOST_DEVICES = 2**27


@dataclass(frozen=True, kw_only=True, eq=False)
class Period:
    """The clients of a period and what they typed in it.

    Attributes:
        number: Which period, from 0.
        first_day: Its first day, from 0.
        devices: ``(n,) int64``, ascending: the numbers that clients have in all periods; client i
            of ``population`` is device ``devices[i]``.
        population: The clients, with the true counts of this period.
        born_days: ``(V,) float64``: the day on which each word of the lexicon was new; NaN for
            words that were there from the start.
    """

    number: int
    first_day: int
    devices: Ints
    population: Clients
    born_days: Floats


class PopulationOverTime(ABC):
    """Clients over some periods of equal length.

    Attributes:
        name: What a report calls it.
        unit: What one client stands for.
        every_days: Days of a period.
        num_periods: How many periods there are.
    """

    name: str
    unit: str
    every_days: int
    num_periods: int

    @property
    @abstractmethod
    def arrivals(self) -> Ints:
        """``(num_devices,) int64``: the first period in which each device is there."""

    @property
    @abstractmethod
    def ends(self) -> Ints:
        """``(num_devices,) int64``: the first period in which each is there no more."""

    @property
    def num_devices(self) -> int:
        """Number of devices that are ever there."""
        return len(self.arrivals)

    def devices(self, period: int) -> Ints:
        """Return ``(n,) int64``, ascending: the devices that are there in a period."""
        return np.flatnonzero((self.arrivals <= period) & (period < self.ends))

    def at(self, period: int) -> Period:
        """Return what the devices of a period typed in it.

        Raises:
            InputError: No device is there, or there is no such period.
        """
        require_between(0, self.num_periods - 1, period=period)
        devices = self.devices(period)
        name = f"{self.name}, period {period}"
        if not len(devices):
            raise InputError(f"Expected a {self.unit} in every period, got none: {name}.")
        population, born_days = self._typed(period, devices, name)
        return Period(
            number=period,
            first_day=period * self.every_days,
            devices=devices,
            population=population,
            born_days=born_days,
        )

    @abstractmethod
    def _typed(self, period: int, devices: Ints, name: str) -> tuple[Clients, Floats]:
        """Return the clients of a period, and the day on which each of their words was new."""


@dataclass(frozen=True, kw_only=True)
class WordCalendar:
    """When new words are born, rise and fall.

    Attributes:
        seed: The run's seed.
        days: Days over which births are spread.
        born_share: Share of all new words that is born in these days; the others are steady.
        rise_days: Days from a word's birth to half of its peak.
        fading_share: Share of the words that are born that falls again.
        half_life_days: Of those, from the end of their rise.
    """

    seed: int
    days: int
    born_share: float = 0.3
    rise_days: float = 14.0
    fading_share: float = 0.5
    half_life_days: float = 60.0

    def __post_init__(self) -> None:
        require_at_least(1, days=self.days)
        require_between(0, 1, born_share=self.born_share, fading_share=self.fading_share)
        require_positive(rise_days=self.rise_days, half_life_days=self.half_life_days)

    @cached_property
    def _keys(self) -> UInts:
        return _drawn_keys(3, self.seed, _BIRTHS)

    def is_born(self, ranks: Ints) -> Bools:
        """Return ``(n,) bool``: which ranks are words that are born."""
        return np.asarray(_uniform(_hashed(self._keys[0], ranks)) < self.born_share)

    def born_days(self, ranks: Ints) -> Floats:
        """Return ``(n,) float64``: on which day each rank's word is born, NaN for steady ones."""
        days = self.days * _uniform(_hashed(self._keys[1], ranks))
        return np.asarray(np.where(self.is_born(ranks), days, np.nan))

    def envelope(self, ranks: Ints, day: float) -> Floats:
        """Return ``(n,) float64`` in [0, 1]: how much of its peak each rank's word has on a day."""
        age = day - self.born_days(ranks)
        fades = _uniform(_hashed(self._keys[2], ranks)) < self.fading_share
        with np.errstate(over="ignore"):
            rise = 1 / (1 + np.exp(_LOGIT_OF_START * (1 - age / self.rise_days)))
        halvings = np.maximum(age - 2 * self.rise_days, 0) / self.half_life_days
        envelope = np.where(age < 0, 0.0, rise * np.where(fades, 2.0**-halvings, 1.0))
        return np.asarray(np.where(np.isnan(age), 1.0, envelope))

    def thinned(self, rows: RankRows, clients: Ints, *, period: int, day: float) -> RankRows:
        """Return what ``(n,)`` clients typed, each contribution kept by its word's envelope."""
        born = np.flatnonzero(self.is_born(rows.ranks))
        envelope = self.envelope(rows.ranks[born], day)
        key = _drawn_keys(1, self.seed, _THINNING, period)[0]
        holders = clients[np.searchsorted(rows.offsets, born, side="right") - 1]
        of_row = scatter(_hashed(key, holders) + rows.ranks[born].astype(np.uint64) * GOLDEN)
        sizes = rows.counts[born].astype(np.int64)
        row = np.repeat(np.arange(len(born)), sizes)
        turn = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        coins = _uniform(scatter(of_row[row] + turn.astype(np.uint64) * GOLDEN))
        counts = rows.counts.copy()
        counts[born] = np.bincount(row, weights=coins < envelope[row], minlength=len(born))
        kept = counts > 0
        return RankRows(
            offsets=np.r_[0, np.cumsum(kept)][rows.offsets],
            ranks=rows.ranks[kept],
            counts=counts[kept],
        )


@dataclass(frozen=True, kw_only=True)
class Turnover:
    """Which devices are there in which period.

    Attributes:
        seed: The run's seed.
        first_devices: Devices of the first period.
        arrivals: Devices that arrive with each later period.
        mean_periods: Mean number of periods that a device stays, at least 1; infinite for ever.
        num_periods: Periods in all.
    """

    seed: int
    first_devices: int
    arrivals: int
    mean_periods: float
    num_periods: int

    def __post_init__(self) -> None:
        require_at_least(1, first_devices=self.first_devices)
        require_at_least(0, arrivals=self.arrivals)
        require_at_least(1, num_periods=self.num_periods)
        if self.num_periods > MOST_PERIODS:
            raise InputError(
                f"Expected at most {MOST_PERIODS:,} periods, got {self.num_periods:,}; simulate "
                "fewer days, or ask less often."
            )
        if self.num_devices > _MOST_DEVICES:
            raise InputError(
                f"Expected at most {_MOST_DEVICES:,} devices over all periods, got "
                f"{self.num_devices:,}; use fewer clients, or fewer arrivals."
            )
        if not self.mean_periods >= 1:
            raise InputError(f"Expected mean_periods >= 1, got {self.mean_periods!r}.")

    @property
    def num_devices(self) -> int:
        return self.first_devices + self.arrivals * (self.num_periods - 1)

    @cached_property
    def first(self) -> Ints:
        """``(num_devices,) int64``: each device's first period."""
        late = np.arange(self.num_devices - self.first_devices)
        return np.append(np.zeros(self.first_devices, dtype=np.int64), 1 + late // self.arrivals)

    @cached_property
    def end(self) -> Ints:
        """``(num_devices,) int64``: the period in which each device is gone."""
        if math.isinf(self.mean_periods):
            return np.full(self.num_devices, self.num_periods)
        key = _drawn_keys(1, self.seed, _STAYS)[0]
        stays = 1 - _uniform(_hashed(key, np.arange(self.num_devices)))
        with np.errstate(divide="ignore"):
            # P(more than k periods) = (1 - 1 / mean)^k.
            more = np.log(stays) / np.log(1 - 1 / self.mean_periods)
        periods = 1 + np.minimum(np.floor(more), self.num_periods).astype(np.int64)
        return np.asarray(self.first + periods)


class SyntheticOverTime(PopulationOverTime):
    """A synthetic population over time; only the period at hand is in memory.

    ``model`` says how clients type, and how much in one period, ``turnover`` who is there when,
    ``calendar`` when words are born, rise and fall.
    """

    def __init__(
        self,
        model: PopulationModel,
        *,
        seed: int,
        every_days: int,
        turnover: Turnover,
        calendar: WordCalendar,
    ) -> None:
        require_at_least(1, every_days=every_days)
        self.name = f"{model.name}, {turnover.first_devices:,} clients at first, seed {seed}"
        self.unit = model.unit
        self.every_days = every_days
        self.num_periods = turnover.num_periods
        self._model, self._seed = model, seed
        self._turnover, self._calendar = turnover, calendar

    @property
    def arrivals(self) -> Ints:
        return self._turnover.first

    @property
    def ends(self) -> Ints:
        return self._turnover.end

    def rows(self, period: int, devices: Ints) -> RankRows:
        """Return what ``(n,)`` devices, in any order, type in a period, there or not."""
        drawer = RankDrawer(model=self._model, seed=self._seed, period=period)
        day = (period + 0.5) * self.every_days
        return self._calendar.thinned(drawer.draw(devices), devices, period=period, day=day)

    def _typed(self, period: int, devices: Ints, name: str) -> tuple[Clients, Floats]:
        blocks = [
            self.rows(period, devices[first : first + CLIENTS_AT_ONCE])
            for first in range(0, len(devices), CLIENTS_AT_ONCE)
        ]
        population, ranks = stored_population(blocks, self._model, name=name)
        return population, self._calendar.born_days(ranks)


def _drawn_keys(size: int, seed: int, *path: int) -> UInts:
    return generator(seed, Stream.CALENDAR, *path).integers(0, 2**64, size=size, dtype=np.uint64)


def _hashed(key: np.uint64, numbers: Ints) -> UInts:
    return scatter(key + numbers.astype(np.uint64) * GOLDEN)


def _uniform(hashes: UInts) -> Floats:
    return np.asarray((hashes >> np.uint64(11)) * 2.0**-53)
