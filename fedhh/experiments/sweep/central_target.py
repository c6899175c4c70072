"""Axes of a sweep that give every protocol the same central guarantee, before the run.

For each protocol, accounting chooses the local epsilon or what stands for it, see
`fedhh.experiments.run.equal_privacy`. A cell's configuration holds what was chosen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

from fedhh.accounting.guarantees import UNITS
from fedhh.experiments.config.schema import Config, PrivacyConfig
from fedhh.experiments.config.section import borrowed_settings
from fedhh.experiments.run.equal_privacy import OutOfReachError, with_chosen_epsilons
from fedhh.server.registry import protocol_class
from fedhh.validation import InputError, shown

TARGETS = {f"{unit}_central_epsilon": unit for unit in UNITS}
"""The axes, and whose guarantee each is about; their values are central epsilons."""

LOCAL_EPSILON = "privacy.local_epsilon"
"""Where a configuration keeps what is chosen for protocols of local privacy."""

_NO_FACTS = {"seed", "metrics", "execution", "output"}
"""Sections of a configuration that no guarantee depends on."""


def check_one_target(paths: Collection[str], origin: str) -> None:
    """Raise InputError if an axis would set what another one varies."""
    targets = [path for path in paths if path in TARGETS]
    if not targets:
        return
    others = [*targets[1:], *(p for p in paths if p not in TARGETS and p.endswith("epsilon"))]
    if others:
        raise InputError(
            f"{origin}: {targets[0]} decides every epsilon of a protocol; leave the axis "
            f"{others[0]} out."
        )


def target_of(settings: dict[str, Any], privacy: PrivacyConfig | None = None) -> dict[str, Any]:
    """Return the value of an axis of `TARGETS`, by the axis; else what `[privacy]` asks for."""
    found = {path: value for path, value in settings.items() if path in TARGETS}
    if found or privacy is None or privacy.central_target is None:
        return found
    unit, epsilon = privacy.central_target
    return {f"{unit}_central_epsilon": epsilon}


def target_named(at: str) -> tuple[str, float]:
    """Return the axis and the central epsilon of ``UNIT-central-epsilon=E``.

    >>> target_named("item-central-epsilon=1")
    ('item_central_epsilon', 1.0)
    """
    name, _, text = at.partition("=")
    axis = name.strip().replace("-", "_")
    try:
        epsilon = float(text)
    except ValueError:
        epsilon = math.nan
    if axis not in TARGETS or not 0 < epsilon < math.inf:
        known = " or ".join(f"{each.replace('_', '-')}=E" for each in TARGETS)
        raise InputError(f"Expected --at {known} with 0 < E < inf, got {shown(at)}.")
    return axis, epsilon


def require_epsilon_of(target: dict[str, Any]) -> float:
    """Return the central epsilon of an axis; InputError if it is no number."""
    ((axis, value),) = target.items()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"Expected 0 < {axis} < inf, got {axis}={shown(value)}.")
    return float(value)


def without_effect(config: Config, target: dict[str, Any]) -> dict[str, None]:
    """Return the local epsilon's path if a protocol with a target has none, to be shown as none."""
    borrowed = borrowed_settings(protocol_class(config.protocol.name))
    return {LOCAL_EPSILON: None} if target and LOCAL_EPSILON not in borrowed.values() else {}


class Choices:
    """Configurations at a central epsilon; cells that differ in their seed alone share a search."""

    def __init__(self) -> None:
        self._known: dict[str, Config | OutOfReachError] = {}

    def chosen(self, config: Config, num_clients: int | None, target: dict[str, Any]) -> Config:
        """Return a configuration with the epsilons that a target asks for.

        Args:
            config: Its cohorts may be "auto".
            num_clients: Clients of its population.
            target: A value of an axis of `TARGETS`, by the axis.

        Raises:
            OutOfReachError: No settings of the protocol have the guarantee.
            InputError: The population is too small for the protocol, or of unknown size.
        """
        epsilon = require_epsilon_of(target)
        ((axis, _),) = target.items()
        if num_clients is None:
            raise InputError(
                f"Expected a population of known size with {axis}, got {config.population.source}."
            )
        privacy = config.privacy.at_local(config.privacy.local_epsilon)
        asked = config.model_copy(update={"privacy": privacy.model_copy(update={axis: epsilon})})
        content = asked.model_dump(mode="json", exclude=_NO_FACTS)
        key = json.dumps([content, num_clients], sort_keys=True)
        if key not in self._known:
            try:
                self._known[key] = with_chosen_epsilons(asked, num_clients)
            except OutOfReachError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, OutOfReachError):
            raise found
        return config.model_copy(update={"privacy": found.privacy, "protocol": found.protocol})
