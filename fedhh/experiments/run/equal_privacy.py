"""Settings by the central guarantee that they give, so that protocols compare at equal privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fedhh.accounting.before_run import epsilon_before_run
from fedhh.accounting.bounds.shuffle_bound import LOCAL_EPSILON_RANGE, check_delta
from fedhh.accounting.guarantees import Unit
from fedhh.experiments.run.privacy import DEFAULT_DELTA
from fedhh.mechanisms.base import Mechanism
from fedhh.mechanisms.opt_in import OptInBlend
from fedhh.protocol import AnyProtocol
from fedhh.settings import config_path, settings_of
from fedhh.validation import InputError, require_choice, require_positive

UNITS: tuple[Unit, Unit] = ("item", "user")

TOLERANCE = 1e-3
"""How far below the target a guarantee may stay, relative."""

_LOCAL_EPSILON, _DELTA = "privacy.local_epsilon", "privacy.delta"
_DIGITS = 5
"""Significant digits of an epsilon that is chosen; `_MOST_DIGITS` where that is too coarse."""
_MOST_DIGITS = 12
_AMPLIFICATION = 4.0
"""Central epsilons are about so many times sinh(epsilon / 2) sqrt(ln(4 / delta) / reports)."""
_GROUP = 1.1
"""User-level epsilons are about so many times the item-level ones, for each contribution."""
_SECANTS, _MOST_STEPS = 6, 100
"""Steps without any halving, and in all."""
_LINEAR = 1e-6
"""Relative difference of a central epsilon's ratio to the local one where nothing is amplified."""
_SAME = 1e-10
"""Relative difference of local epsilons that need not be told apart."""


class OutOfReachError(InputError):
    """No settings of a protocol have a central epsilon."""


_Point = tuple[float, float]
"""A local epsilon, and the central one that it gives."""


def at_central_epsilon(
    protocol: AnyProtocol,
    num_clients: int,
    *,
    unit: Unit,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
) -> AnyProtocol:
    """Return a protocol's settings with a central guarantee of (epsilon, delta) before the run.

    Accounting chooses the local epsilon, for neighbors that swap one item or one user, such that
    the guarantee is at most ``epsilon`` and at least (1 - `TOLERANCE`) times that. Where shuffling
    amplifies nothing, the local guarantee is ``epsilon`` itself. Protocols with a trusted
    aggregator get ``epsilon`` as their central epsilon, of which the integers that follow from it
    may leave a little; for those with two groups of clients, both hold.

    Args:
        protocol: The settings; "auto" ones stay so.
        num_clients: Clients of the population.
        unit: "item" or "user".
        epsilon: The target, above 0.
        delta: Of the guarantee, from 1e-14 to 0.1.

    Raises:
        OutOfReachError: No settings of the protocol have the guarantee.
        InputError: The population is too small for the protocol, or a value is out of range.

    >>> import fedhh
    >>> protocol = fedhh.at_central_epsilon(
    ...     fedhh.Pem(max_items=1), 100_000, unit="item", epsilon=1.0, delta=1e-6
    ... )
    >>> 3 < protocol.local_epsilon < 6
    True
    """
    require_choice(UNITS, unit=unit)
    require_positive(epsilon=epsilon)
    check_delta(delta)
    name = _field(protocol, _LOCAL_EPSILON)
    settings: Any = protocol.with_central_epsilon(float(epsilon))
    if (of_delta := _field(protocol, _DELTA)) is not None:
        settings = replace(settings, **{of_delta: delta})

    if name is None:
        mechanism = settings.settle(num_clients=num_clients, seed=0).mechanism
        found = epsilon_before_run(mechanism, num_clients=num_clients, unit=unit, delta=delta)
        _refuse_above(found, settings, unit, epsilon)
        return _as_protocol(settings)

    def at(local: float) -> Any:
        return replace(settings, **{name: local})

    def mechanism_at(local: float) -> Mechanism:
        settled = at(local).settle(num_clients=num_clients, seed=0)
        return _searched(settled.mechanism)

    def search_for(unit: Unit, target: float) -> _Search:
        return _Search(
            target=target,
            central=lambda local: epsilon_before_run(
                mechanism_at(local), num_clients=num_clients, unit=unit, delta=delta
            ),
        )

    mechanism = mechanism_at(1.0)
    share = mechanism.local_epsilon
    if math.isinf(share):
        _refuse_above(math.inf, settings, unit, epsilon)
    low, high = (end / share for end in LOCAL_EPSILON_RANGE)
    of_item = epsilon
    if unit == "user" and mechanism.max_items > 1:
        of_item /= _GROUP * mechanism.max_items
    start = _guess(mechanism, of_item, delta) / share
    if unit == "user":
        # The item's guarantee takes a tenth of the time.
        start = search_for("item", of_item).between(low, high, start=start) or start
    search = search_for(unit, epsilon)
    found = search.between(low, high, start=start)
    if found is None:
        found = search.proportional(low * (1 - 1e-6) if search.central_at(low) > epsilon else high)
    if found is None:
        raise OutOfReachError(
            f"{protocol.title}: expected an {unit} central epsilon that some {name} gives, got "
            f"{epsilon:g}: {name} = {high:g}, the largest with amplification, gives "
            f"{search.central_at(high):.3g} on {num_clients:,} clients; compare at a smaller one."
        )
    return _as_protocol(at(found))


def chosen_settings(before: AnyProtocol, after: AnyProtocol) -> dict[str, Any]:
    """Return the fields in which settings differ, with their values after."""
    return {
        name: getattr(after, name)
        for name in settings_of(type(after))
        if getattr(after, name) != getattr(before, name)
    }


class _Search:
    """Looks for the local epsilon at which a central one, which rises with it, meets a target.

    Logarithms of the central epsilon and of sinh(local / 2) are nearly on a line: secants between
    them take a few steps, halving is for cliffs. Local epsilons are rounded before they are asked,
    so that what is returned was asked.
    """

    def __init__(self, *, central: Callable[[float], float], target: float) -> None:
        self._ask = central
        self._target = target
        self._known: dict[float, float] = {}

    def central_at(self, local: float) -> float:
        """Return the central epsilon that a local one gives."""
        if local not in self._known:
            self._known[local] = self._ask(local)
        return self._known[local]

    def between(self, low: float, high: float, *, start: float) -> float | None:
        """Return a local epsilon of a range that meets the target; None if none does.

        Args:
            low: The least.
            high: The largest.
            start: A guess.
        """
        lower: _Point | None = None
        upper: _Point | None = None
        last: list[_Point] = []
        local = min(max(_rounded(start), low), high)
        for step in range(_MOST_STEPS):
            point = local, self.central_at(local)
            last = [*last[-1:], point]
            if self._fits(point[1]):
                return local
            if point[1] <= self._target:
                lower = point
            else:
                upper = point
            if (lower and lower[0] == high) or (upper and upper[0] == low):
                return None
            asked = self._next(last, lower, upper, halve=step > _SECANTS and step % 2 == 0)
            local = min(max(_rounded(asked), low), high)
            if lower and upper and not lower[0] < local < upper[0]:
                # So steep that more digits are needed.
                local = _rounded((lower[0] + upper[0]) / 2, digits=_MOST_DIGITS)
                if upper[0] - lower[0] < _SAME * upper[0]:
                    break
        # A cliff: the central epsilon jumps past the target.
        return None if lower is None else lower[0]

    def proportional(self, local: float) -> float | None:
        """Return the local epsilon that meets the target where nothing is amplified; else None.

        Args:
            local: One just below, or the largest of, the range with amplification.
        """
        is_above = self.central_at(local) <= self._target
        probe = local * (1 + 1e-6) if is_above else local
        found = probe * self._target / self.central_at(probe)
        for each in (found, found * (1 - 1e-12)):
            if (each > local if is_above else each <= local) and self._fits(self.central_at(each)):
                return each
        return None

    def _fits(self, central: float) -> bool:
        return self._target * (1 - TOLERANCE) <= central <= self._target

    def _next(
        self, last: list[_Point], lower: _Point | None, upper: _Point | None, *, halve: bool
    ) -> float:
        """Return where to ask next."""
        aim = math.log(self._target * (1 - TOLERANCE / 2))
        (local, central) = last[-1]
        if len(last) == 2 and math.isclose(
            central / local, last[0][1] / last[0][0], rel_tol=_LINEAR
        ):
            # Nothing is amplified here.
            return local * self._target / central
        if lower and upper and halve:
            return (lower[0] + upper[0]) / 2
        place, height = _place(local), math.log(max(central, 1e-300))
        slope = 1.0
        if len(last) == 2:
            other = _place(last[0][0]), math.log(max(last[0][1], 1e-300))
            if other[0] != place and (height - other[1]) / (place - other[0]) > 0.1:
                slope = (height - other[1]) / (place - other[0])
        return _local_at(place + (aim - height) / slope)


def _place(local: float) -> float:
    """Return ln sinh(local / 2)."""
    half = local / 2
    return half + math.log(-math.expm1(-2 * half) / 2)


def _local_at(place: float) -> float:
    """Return the local epsilon of a `_place`."""
    return 2 * math.asinh(math.exp(min(place, 300.0)))


def _rounded(local: float, *, digits: int = _DIGITS) -> float:
    return float(f"{local:.{digits}g}")


def _guess(mechanism: Mechanism, of_item: float, delta: float) -> float:
    """Return about the local epsilon at which a mechanism has an item-level central one."""
    reports = mechanism.max_items * min(each.num_clients for each in mechanism.layers)
    amplified = _AMPLIFICATION * math.sqrt(math.log(4 / delta) / reports)
    return 2 * math.asinh(of_item / mechanism.most_rounds_per_client / amplified)


def _searched(mechanism: Mechanism) -> Mechanism:
    """Return what depends on the local epsilon: of two groups, those who randomize."""
    return mechanism.local if isinstance(mechanism, OptInBlend) else mechanism


def _field(protocol: AnyProtocol, path: str) -> str | None:
    """Return the field that a configuration keeps at a path."""
    annotations = settings_of(type(protocol))
    return next((name for name, each in annotations.items() if config_path(each) == path), None)


def _refuse_above(found: float, protocol: AnyProtocol, unit: Unit, epsilon: float) -> None:
    if found > epsilon:
        raise OutOfReachError(
            f"{protocol.title}: expected settings that can have an {unit} central epsilon of "
            f"{epsilon:g}, got {found:g} whatever their epsilons; leave the protocol out."
        )


def _as_protocol(settings: Any) -> AnyProtocol:
    protocol: AnyProtocol = settings
    return protocol
