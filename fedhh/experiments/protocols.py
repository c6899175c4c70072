"""From a config's `[protocol]` and `[privacy]` to the server of a run."""

from __future__ import annotations

from fedhh.experiments.config import Config
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.validation import InputError


def build_protocol(config: Config) -> LdpTrieHH:
    """Return the protocol; cohorts of one client stand in for a size that is still "auto"."""
    size = config.protocol.clients_per_layer
    return LdpTrieHH(
        local_epsilon=config.privacy.local_epsilon,
        alphabet=config.population.alphabet,
        clients_per_layer=size if isinstance(size, int) else 1,
        **config.protocol.model_dump(exclude={"name", "clients_per_layer"}),
    )


def resolve_cohorts(config: Config, num_clients: int) -> Config:
    """Return the configuration with "auto" cohorts replaced by the largest that fit.

    Raises:
        InputError: The population is too small for one client per layer.
    """
    if config.protocol.clients_per_layer != "auto":
        return config
    protocol = build_protocol(config)
    asked = 1 if protocol.reuse_clients else protocol.rounds_per_pass * protocol.passes
    size = num_clients // asked
    if size < 1:
        raise InputError(
            f"The population has {num_clients:,} clients, fewer than the {asked} layers that ask "
            "fresh ones; lower protocol.passes or protocol.depth."
        )
    section = config.protocol.model_copy(update={"clients_per_layer": size})
    return config.model_copy(update={"protocol": section})
