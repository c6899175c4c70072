"""From a config's `[protocol]` and what it keeps elsewhere to the server of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from fedhh.experiments.config.domain import (
    CANDIDATES,
    alphabet_or_stand_in,
    candidates_of,
    known_or_stand_in,
)
from fedhh.experiments.config.load import adversary_of
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import (
    ProtocolSection,
    borrowed_settings,
    section_class,
    switch_protocol,
)
from fedhh.protocol import DiscoveryProtocol
from fedhh.server.registry import protocol_class
from fedhh.settings import AUTO
from fedhh.simulation.fidelity import Fidelity
from fedhh.validation import InputError


def build_protocol(config: Config, words: Sequence[str] | None = None) -> DiscoveryProtocol:
    """Return the protocol, its "auto" settings not decided yet.

    Args:
        config: A configuration.
        words: The clients' own words, which may be candidates; None while they are not known.
    """
    section = config.protocol
    kind = protocol_class(section.name)
    values = {key: value for key, value in section if key != "name"}
    for key, path in borrowed_settings(kind).items():
        value = _at(config, path)
        # An alphabet from data is known with the population; until then others are checked.
        if path == "population.alphabet":
            value = alphabet_or_stand_in(value)
        elif path == CANDIDATES:
            value = candidates_of(config, words)
        elif path == "population.known":
            value = known_or_stand_in(config.population)
        values[key] = value
    return kind(**values)


def settle(
    config: Config, num_clients: int, words: Sequence[str] | None = None
) -> tuple[Config, DiscoveryProtocol]:
    """Return a configuration with every "auto" of its protocol decided, and the protocol.

    Args:
        config: A configuration.
        num_clients: Clients of its population, to which those of its adversary are added.
        words: The clients' own words, see `build_protocol`.

    Raises:
        InputError: The population is too small for the protocol, or its clients cannot be
            simulated as configured.
    """
    if (adversary := adversary_of(config)) is not None:
        num_clients += sum(adversary.fakes(num_clients))
    protocol = build_protocol(config, words).settle(num_clients=num_clients, seed=config.seed)
    fidelity_of(config).check(protocol)
    section = config.protocol.changed(vars(protocol))
    return config.model_copy(update={"protocol": section}), protocol


def with_protocols(config: Config, protocols: Sequence[str | ProtocolSection]) -> list[Config]:
    """Return a configuration with each of some protocols, its cohorts chosen anew.

    Args:
        config: A configuration, perhaps with baselines.
        protocols: Each a table, or a name: the first of the configuration and its baselines with
            this name, or one that shares what a client contributes and by what rule words are
            returned. One that stands here twice is returned once.
    """
    known = {each.name: each for each in (*(config.baseline or ())[::-1], config.protocol)}
    table = config.protocol.model_dump(mode="json", exclude_unset=True)
    configs: list[Config] = []
    for each in protocols:
        section = known.get(each) if isinstance(each, str) else each
        if section is None:
            name = str(each)
            section = section_class(name).model_validate(switch_protocol(table, name))
        if "clients_per_layer" in type(section).model_fields:
            section = section.changed({"clients_per_layer": AUTO})
        changed = config.model_copy(update={"protocol": section, "baseline": None})
        if changed not in configs:
            configs.append(changed)
    return configs


def fidelity_of(config: Config) -> Fidelity:
    """Return how faithfully a configuration simulates clients."""
    simulation = config.simulation
    drawn = simulation.drawn_clients
    return Fidelity(
        name=simulation.fidelity, drawn_clients=drawn if isinstance(drawn, int) else None
    )


def _at(config: Config, path: str) -> Any:
    try:
        return reduce(getattr, path.split("."), config)
    except AttributeError:
        raise InputError(
            f"Expected a key of the configuration, got FromConfig({path!r})."
        ) from None
