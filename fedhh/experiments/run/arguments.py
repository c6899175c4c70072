"""Checks of the objects that callers in Python give, with what to write instead."""

from __future__ import annotations

from fedhh.clients.population import Population
from fedhh.protocol import DiscoveryProtocol
from fedhh.validation import InputError, shown


def require_protocol(given: object) -> None:
    """Raise InputError unless this is a protocol with its settings."""
    if isinstance(given, DiscoveryProtocol):
        return
    if isinstance(given, type) and issubclass(given, DiscoveryProtocol):
        raise InputError(
            f"Expected a protocol with its settings, got the class {given.__name__}; write "
            f"{given.__name__}()."
        )
    raise InputError(f"Expected a protocol such as fedhh.AdaptiveTrieHH(), got {shown(given)}.")


def require_population(given: object) -> None:
    """Raise InputError unless this is a population."""
    if not isinstance(given, Population):
        raise InputError(
            'Expected a population such as fedhh.synthetic_population("chat", 50_000, seed=0) or '
            f"fedhh.population_from(dataframe), got a {type(given).__name__}."
        )
