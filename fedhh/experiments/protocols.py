"""From a config's `[protocol]` and `[privacy]` to the server of a run."""

from __future__ import annotations

from typing import Any

from fedhh.accounting import triehh_parameters
from fedhh.experiments.config import Config
from fedhh.experiments.fidelity import APPROXIMATE_TALLY, PER_REPORT
from fedhh.experiments.protocol_config import (
    LdpTrieHHConfig,
    PemConfig,
    ProtocolConfig,
    SfpConfig,
    TrieHHConfig,
)
from fedhh.protocol import DiscoveryProtocol
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.server.triehh import TrieHH
from fedhh.validation import InputError

_MOST_OLH_REPORTS = 500_000
"""Of one group: scoring takes candidates times reports, about 0.1 ns each."""

AnyProtocol = DiscoveryProtocol[Any, Any]


def build_protocol(config: Config) -> AnyProtocol:
    """Return the protocol; the least that it takes stands in for cohorts that are still "auto".

    Raises:
        InputError: The settings contradict each other.
    """
    section = config.protocol
    if config.simulation.fidelity == APPROXIMATE_TALLY and section.name != "ldp-triehh":
        raise InputError(
            f"Expected simulation.fidelity = {PER_REPORT!r} for {section.name}, got "
            f"{APPROXIMATE_TALLY!r}, which draws the votes of ldp-triehh alone."
        )
    epsilon, alphabet = config.privacy.local_epsilon, config.population.alphabet
    size = section.clients_per_layer if isinstance(section.clients_per_layer, int) else 1
    match section:
        case LdpTrieHHConfig():
            return LdpTrieHH(
                local_epsilon=epsilon, alphabet=alphabet, clients_per_layer=size, **_rest(section)
            )
        case SfpConfig():
            return Sfp(
                word_epsilon=epsilon * section.word_share,
                fragment_epsilon=epsilon * (1 - section.word_share),
                alphabet=alphabet,
                num_clients=size,
                hash_seed=config.seed,
                **_rest(section, "word_share"),
            )
        case PemConfig():
            return Pem(
                local_epsilon=epsilon,
                alphabet=alphabet,
                clients_per_group=size,
                hash_seed=config.seed,
                oracle=_pem_oracle(section),
                **_rest(section, "oracle"),
            )
        case TrieHHConfig():
            if (section.threshold == "auto") != (section.clients_per_layer == "auto"):
                raise InputError(
                    "Expected protocol.threshold and protocol.clients_per_layer both as numbers "
                    f'or both "auto", got {section.threshold!r} and {section.clients_per_layer!r}.'
                )
            threshold = section.threshold if isinstance(section.threshold, int) else 1
            return TrieHH(
                clients_per_layer=size, threshold=threshold, depth=section.depth, alphabet=alphabet
            )


def resolve_cohorts(config: Config, num_clients: int) -> Config:
    """Return the configuration with every "auto" of the protocol settled.

    Cohorts are the largest that fit; PEM's oracle follows from their size.

    Raises:
        InputError: The population is too small for one client per layer, or for the privacy that
            is asked for.
    """
    if config.protocol.clients_per_layer == "auto":
        config = _with(config, **_cohorts(config, num_clients))
    section = config.protocol
    if isinstance(section, PemConfig) and section.oracle == "auto":
        return _with(config, oracle=_pem_oracle(section))
    return config


def _cohorts(config: Config, num_clients: int) -> dict[str, int]:
    """Return the settings that say how many clients are asked in a layer."""
    protocol = build_protocol(config)
    if isinstance(config.protocol, TrieHHConfig):
        assert isinstance(protocol, TrieHH)
        found = triehh_parameters(
            num_clients=num_clients,
            epsilon=config.protocol.central_epsilon,
            delta=config.privacy.delta,
            num_rounds=protocol.num_rounds,
        )
        return {"clients_per_layer": found.sample_size, "threshold": found.threshold}
    asked = 1 if protocol.reuses_clients else protocol.rounds_expected
    size = num_clients // asked
    if size < 1:
        raise InputError(
            f"The population has {num_clients:,} clients, fewer than the {asked} layers that ask "
            "fresh ones; ask for fewer passes or layers."
        )
    return {"clients_per_layer": size}


def _pem_oracle(section: PemConfig) -> str:
    """Return "olh" as in the paper, "flh" where its server would be too slow."""
    if section.oracle != "auto":
        return section.oracle
    size = section.clients_per_layer if isinstance(section.clients_per_layer, int) else 1
    return "olh" if size * section.max_items <= _MOST_OLH_REPORTS else "flh"


def _with(config: Config, **changes: int | str) -> Config:
    section = config.protocol.model_copy(update=changes)
    return config.model_copy(update={"protocol": section})


def _rest(section: ProtocolConfig, *without: str) -> dict[str, Any]:
    """Return the settings whose names the protocol shares."""
    return section.model_dump(exclude={"name", "clients_per_layer", *without})
