"""Protocols by name: what a configuration asks for, and the class that is it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from fedhh import plugins
from fedhh.protocol import DiscoveryProtocol
from fedhh.validation import InputError, did_you_mean

PROTOCOLS: Mapping[str, str] = {
    "ldp-triehh": "fedhh.server.ldp_triehh:LdpTrieHH",
    "adaptive-triehh": "fedhh.server.adaptive.adaptive_triehh:AdaptiveTrieHH",
    "opt-prefix-tree": "fedhh.server.opt_prefix_tree:OptPrefixTree",
    "sfp": "fedhh.server.sfp:Sfp",
    "pem": "fedhh.server.pem:Pem",
    "treehist": "fedhh.server.treehist:TreeHist",
    "bitstogram": "fedhh.server.bitstogram:Bitstogram",
    "blender": "fedhh.server.blender:Blender",
    "rappor": "fedhh.server.rappor:Rappor",
    "rappor-unknown": "fedhh.server.rappor_unknown:RapporUnknown",
    "ldpminer": "fedhh.server.ldpminer:LdpMiner",
    "svim": "fedhh.server.svim:Svim",
    "svsm": "fedhh.server.svsm:Svsm",
    "triehh": "fedhh.server.triehh:TrieHH",
    "secagg-triehh": "fedhh.server.secagg_triehh:SecAggTrieHH",
    "two-servers": "fedhh.server.two_servers:TwoServers",
    "tee-histogram": "fedhh.server.tee_histogram:TeeHistogram",
    "weighted-gaussian": "fedhh.server.weighted_gaussian:WeightedGaussianSelection",
    "dp-sips": "fedhh.server.weighted_gaussian:DpSips",
    "sample-and-threshold": "fedhh.server.sample_and_threshold:SampleAndThreshold",
}
"""The protocols of fedhh, and where each is defined; a module is imported when it is asked for."""


def protocol_class(name: Any) -> type[DiscoveryProtocol]:
    """Return the protocol of a name: one of `PROTOCOLS`, an entry point's, or "module:Class".

    Raises:
        InputError: There is no such protocol, or it lacks a method.
    """
    if not isinstance(name, str):
        raise InputError(f"Unknown protocol {name!r}{did_you_mean(str(name), protocol_names())}")
    found = plugins.find("protocols", name, PROTOCOLS)
    is_dataclass: bool = dataclasses.is_dataclass(found)
    if not (is_dataclass and issubclass(found, DiscoveryProtocol)):
        raise InputError(
            f"{name!r} is no protocol: expected a dataclass below fedhh.protocol.DiscoveryProtocol."
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise InputError(f"{name!r} is no whole protocol: it lacks {missing}.")
    return found


def protocol_names() -> list[str]:
    """Return the names that need no file: the built-in ones, then those of installed packages."""
    return plugins.names("protocols", PROTOCOLS)
