"""What happens on devices: who takes part, how often, about what, and how long records wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedhh.kernels.device_days import ValueLaw, value_law
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.records import RecordForm
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_between, require_choice

_Floats = npt.NDArray[np.float64]

DELAYS = ("fixed", "geometric")
_HOURS = 24
_EVERYBODY = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class EventLaw:
    """How often something happens on a device, and what it is about.

    A device's number of events in a day is Poisson with a mean of its own; that mean is the same
    every day, and over devices it has a gamma distribution. What events are about is drawn from one
    distribution for all devices, independently. So heavy devices differ in how much they say, not
    in what: a cap then costs records and adds no bias, which it would where the two go together.

    Attributes:
        mean: Events of a device in a day, in expectation over devices.
        spread: Standard deviation over devices of a device's own mean, in units of ``mean``.
        weights: ``(p,) float64``: of the values.
        words: The values' names, for records of words; None where they are numbers.
    """

    mean: float
    spread: float
    weights: _Floats
    words: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_between(1e-6, 1e4, mean=self.mean)
        require_between(0, 100, spread=self.spread)
        if self.words is not None and len(self.words) != len(self.weights):
            raise InputError(
                f"Expected a weight per word, got {len(self.weights)} for {len(self.words)} words."
            )

    @cached_property
    def values(self) -> ValueLaw:
        return value_law(self.weights)

    def draw_rates(self, size: int, rng: np.random.Generator) -> _Floats:
        """Return ``(size,) float64``: each device's mean."""
        if not self.spread:
            return np.full(size, self.mean)
        shape = self.spread**-2
        return np.asarray(rng.gamma(shape, self.mean / shape, size=size))


@dataclass(frozen=True, kw_only=True)
class Delay:
    """How long a record waits on its device until it may be sent; devices send once a day.

    "fixed": an event happens at a uniform time of its day, and its record may be sent in the first
    sending, at the end of a day, that comes ``hours`` later. "geometric": each sending finds it
    ready with the same chance, so that the mean wait is ``hours``. The source states neither:
    "after a delay based on device conditions" (Apple 2017, section 3.2.1).

    Attributes:
        law: "fixed" or "geometric".
        hours: At least 0.
    """

    law: Literal["fixed", "geometric"] = "fixed"
    hours: float = 12.0

    def __post_init__(self) -> None:
        require_choice(DELAYS, law=self.law)
        require_between(0, 24 * 365, hours=self.hours)

    def ready_chances(self, ages: int) -> _Floats:
        """Return ``(ages,) float64``: chance that a record, so many days old, gets ready."""
        if self.law == "geometric":
            return np.full(ages, 1 / (1 + self.hours / _HOURS))
        whole, part = divmod(self.hours / _HOURS, 1)
        chances = (np.arange(ages) > whole).astype(np.float64)
        if whole < ages:
            chances[int(whole)] = 1 - part
        return chances


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceUseCase:
    """One use case as devices know it: how an event becomes a record, the cap, what happens."""

    name: str
    form: RecordForm
    cap: Cap
    events: EventLaw


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceModel:
    """All devices.

    Attributes:
        num_devices: How many.
        opt_in: Chance that a device takes part; for the others "the system remains inactive"
            (Apple 2017, section 3.2.1).
        delay: How long records wait.
        store_days: A record that was not sent so many days after its event is dropped.
        use_cases: What is collected.
    """

    num_devices: int
    opt_in: float
    delay: Delay
    store_days: int
    use_cases: tuple[DeviceUseCase, ...]

    def __post_init__(self) -> None:
        require_at_least(1, num_devices=self.num_devices, store_days=self.store_days)
        require_between(0, 1, opt_in=self.opt_in)

    def is_in(self, block: int, size: int, *, seed: int) -> npt.NDArray[np.bool_]:
        """Return ``(size,) bool``: which devices of a block have opted in, for all use cases."""
        rng = generator(seed, Stream.POPULATION, _EVERYBODY, block)
        return np.asarray(rng.random(size) < self.opt_in)

    def rates(self, use_case: int, block: int, size: int, *, seed: int) -> _Floats:
        """Return ``(size,) float64``: expected events in a day of a block's devices."""
        rng = generator(seed, Stream.POPULATION, 1 + use_case, block)
        return self.use_cases[use_case].events.draw_rates(size, rng)
