"""Settings by the central guarantee that they give, so that protocols compare at equal privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.guarantees import UNITS, NotApplicable, Unit
from fedhh.accounting.plan import Plan
from fedhh.accounting.plan_search import local_epsilon_of_plan
from fedhh.accounting.terms import PrivacyTerms
from fedhh.devices import Devices
from fedhh.experiments.config.load import devices_of
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.privacy import DEFAULT_DELTA, accepted_plan
from fedhh.protocol import DiscoveryProtocol
from fedhh.settings import AUTO, config_path, settings_of
from fedhh.validation import InputError, require_choice, require_positive

_LOCAL_EPSILON, _DELTA = "privacy.local_epsilon", "privacy.delta"


class OutOfReachError(InputError):
    """No settings of a protocol have a central epsilon."""


def at_central_epsilon(
    protocol: DiscoveryProtocol,
    num_clients: int,
    *,
    unit: Unit,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    devices: Devices | None = None,
) -> DiscoveryProtocol:
    """Return a protocol's settings with a central guarantee of (epsilon, delta) before the run.

    Accounting chooses the local epsilon, for neighbors that replace one item or one user, such that
    the guarantee is at most ``epsilon`` and at least (1 - 1e-3) times that. Where shuffling
    amplifies nothing, the local guarantee is ``epsilon`` itself. Protocols with a trusted
    aggregator get ``epsilon`` as their central epsilon, of which the integers that follow from it
    may leave a little; where the guarantee of an item is stronger than a user's, they get that of a
    user with which an item's is ``epsilon``. For those with two groups of clients, both hold.

    Args:
        protocol: The settings; "auto" ones stay so.
        num_clients: Clients of the population.
        unit: "item" or "user".
        epsilon: The target, above 0.
        delta: Of the guarantee, from 1e-14 to 0.1.
        devices: When clients' devices are there; the guarantee is for the fewest answers that
            rounds accept of them. None if all of them always answer at once.

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
    settings: Any = protocol
    if (of_delta := _field(protocol, _DELTA)) is not None:
        settings = replace(settings, **{of_delta: delta})
    of_unit: Literal["item", "user"] = "item" if unit == "item" else "user"
    settings = settings.with_central_epsilon(float(epsilon), unit=of_unit)

    def plan_at(changed: Any) -> Plan:
        settled: DiscoveryProtocol = changed.settle(num_clients=num_clients, seed=0)
        return accepted_plan(settled, devices)

    if name is None:
        plan = plan_at(settings)
        found = plan.central_epsilon(unit, PrivacyTerms(num_clients=num_clients, delta=delta))
        if found > epsilon:
            raise _refusal(protocol, unit, epsilon, f"its settings give {found:.3g}")
        return _as_protocol(settings)
    local = local_epsilon_of_plan(
        lambda local: plan_at(replace(settings, **{name: local})),
        num_clients=num_clients,
        unit=unit,
        epsilon=epsilon,
        delta=delta,
    )
    if isinstance(local, NotApplicable):
        raise _refusal(protocol, unit, epsilon, local.reason)
    return _as_protocol(replace(settings, **{name: local}))


def with_chosen_epsilons(config: Config, num_clients: int) -> Config:
    """Return a configuration with the epsilons with which it has the central one that it asks for.

    Args:
        config: Its cohorts may be "auto"; one that gives a local epsilon stays as it is.
        num_clients: Clients of its population.

    Raises:
        OutOfReachError: No settings of the protocol have the guarantee.
        InputError: The population is too small for the protocol.
    """
    if (target := config.privacy.central_target) is None:
        return config
    protocol = build_protocol(config)
    unit, epsilon = target
    found = at_central_epsilon(
        protocol,
        num_clients,
        unit=unit,
        epsilon=epsilon,
        delta=config.privacy.delta,
        devices=devices_of(config),
    )
    chosen = chosen_settings(protocol, found)
    local = _field(protocol, _LOCAL_EPSILON)
    given = config.privacy.local_epsilon if local is None else getattr(found, local)
    return config.model_copy(
        update={
            "privacy": config.privacy.at_local(given),
            "protocol": config.protocol.changed(chosen),
        }
    )


def plans_of(protocol: DiscoveryProtocol) -> Callable[[int, float], Plan]:
    """Return a protocol's plans, for `fedhh.accounting.account_plan`.

    Args:
        protocol: The settings; all clients are shared out among its layers.

    Returns:
        The plan of so many clients in all at a local epsilon.
    """
    settings: Any = protocol
    if not {"clients_per_layer", "local_epsilon"} <= vars(protocol).keys():
        raise InputError(
            f"Expected a protocol with a local epsilon and cohorts, got {protocol.title}; its "
            "settings follow from its central epsilon."
        )

    def plan_at(clients: int, local_epsilon: float) -> Plan:
        changed = replace(settings, clients_per_layer=AUTO, local_epsilon=local_epsilon)
        plan: Plan = changed.settle(num_clients=clients, seed=0).plan
        return plan

    return plan_at


def chosen_settings(before: DiscoveryProtocol, after: DiscoveryProtocol) -> dict[str, Any]:
    """Return the fields in which settings differ, with their values after."""
    return {
        name: getattr(after, name)
        for name in settings_of(type(after))
        if getattr(after, name) != getattr(before, name)
    }


def _field(protocol: DiscoveryProtocol, path: str) -> str | None:
    """Return the field that a configuration keeps at a path."""
    annotations = settings_of(type(protocol))
    return next((name for name, each in annotations.items() if config_path(each) == path), None)


def _refusal(protocol: DiscoveryProtocol, unit: Unit, epsilon: float, why: str) -> OutOfReachError:
    return OutOfReachError(
        f"{protocol.title}: expected settings with {unit} central epsilon {epsilon:g} before the "
        f"run, got none: {why}."
    )


def _as_protocol(settings: Any) -> DiscoveryProtocol:
    protocol: DiscoveryProtocol = settings
    return protocol
