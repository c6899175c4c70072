"""Frequency oracles by name: what a config holds, and the oracle made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from fedhh.oracles.base import FrequencyOracle
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.fast_local_hashing import FastLocalHashing
from fedhh.oracles.generalized_randomized_response import GeneralizedRandomizedResponse
from fedhh.oracles.hadamard_count_mean_sketch import HadamardCountMeanSketch
from fedhh.oracles.identity import Identity
from fedhh.oracles.optimized_local_hashing import OptimizedLocalHashing
from fedhh.oracles.optimized_unary_encoding import OptimizedUnaryEncoding
from fedhh.oracles.subset_selection import SubsetSelection
from fedhh.validation import InputError, did_you_mean, require_choice

ORACLES: dict[str, type[FrequencyOracle]] = {
    "ss": SubsetSelection,
    "grr": GeneralizedRandomizedResponse,
    "oue": OptimizedUnaryEncoding,
    "olh": OptimizedLocalHashing,
    "cms": CountMeanSketch,
    "hcms": HadamardCountMeanSketch,
    "flh": FastLocalHashing,
    "none": Identity,
}


@dataclass(frozen=True, kw_only=True)
class OracleSpec:
    """A frequency oracle before its domain is known; plain types only.

    Attributes:
        name: A key of `ORACLES`.
        epsilon: Local privacy of one report; ``math.inf`` for the null mechanism.
        params: The oracle's further parameters, by field name.
    """

    name: str
    epsilon: float
    params: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_choice(ORACLES, oracle=self.name)
        known = {f.name for f in fields(ORACLES[self.name])} - {"epsilon", "domain_size"}
        for name in self.params:
            if name not in known:
                tail = did_you_mean(name, known) if known else "; it takes none."
                raise InputError(f"Unknown parameter {name!r} of oracle {self.name!r}{tail}")


def make_oracle(spec: OracleSpec, domain_size: int) -> FrequencyOracle:
    """Return the oracle that ``spec`` describes, over ``domain_size`` values.

    >>> make_oracle(OracleSpec(name="ss", epsilon=10.0), 1_000_001).d
    46
    """
    return ORACLES[spec.name](epsilon=spec.epsilon, domain_size=domain_size, **spec.params)
