"""Frequency oracles by name: what a config holds, and the oracle made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from fedhh import plugins
from fedhh.oracles.base import FrequencyOracle, PureOracle
from fedhh.validation import InputError, did_you_mean

ORACLES: Mapping[str, str] = {
    "ss": "fedhh.oracles.subset_selection:SubsetSelection",
    "grr": "fedhh.oracles.values:GeneralizedRandomizedResponse",
    "sue": "fedhh.oracles.bits:SymmetricUnaryEncoding",
    "oue": "fedhh.oracles.bits:OptimizedUnaryEncoding",
    "blh": "fedhh.oracles.local_hashing:BinaryLocalHashing",
    "she": "fedhh.oracles.histogram_encoding:SummedHistogramEncoding",
    "the": "fedhh.oracles.histogram_encoding:ThresholdHistogramEncoding",
    "olh": "fedhh.oracles.local_hashing:OptimizedLocalHashing",
    "hr": "fedhh.oracles.codes:HadamardResponse",
    "pgr": "fedhh.oracles.codes:ProjectiveGeometryResponse",
    "dbitflip": "fedhh.oracles.bits:DBitFlip",
    "cms": "fedhh.oracles.sketches:CountMeanSketch",
    "hcms": "fedhh.oracles.hadamard:HadamardCountMeanSketch",
    "hashtogram": "fedhh.oracles.hadamard:Hashtogram",
    "flh": "fedhh.oracles.sketches:FastLocalHashing",
    "bassily-smith": "fedhh.oracles.sketches:BassilySmith",
    "none": "fedhh.oracles.values:Identity",
}
"""The oracles of fedhh, and where each is defined; a module is imported when it is asked for."""


@dataclass(frozen=True, kw_only=True)
class OracleSpec:
    """A frequency oracle before its domain is known; plain types only.

    Attributes:
        name: A key of `ORACLES`, an entry point's name in ``fedhh.oracles``, or "module:Class".
        epsilon: Local privacy of one report; ``math.inf`` for the null mechanism.
        params: The oracle's further parameters, by field name.
    """

    name: str
    epsilon: float
    params: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        known = {f.name for f in fields(oracle_class(self.name))} - {"epsilon", "domain_size"}
        for name in self.params:
            if name not in known:
                tail = did_you_mean(name, known) if known else "; it takes none."
                raise InputError(f"Unknown parameter {name!r} of oracle {self.name!r}{tail}")


def oracle_class(name: str) -> type[FrequencyOracle]:
    """Return the oracle of a name: a key of `ORACLES`, an entry point, or "module:Class".

    Raises:
        InputError: Nothing has the name, or what has it is no frequency oracle.
    """
    found = plugins.find("oracles", name, ORACLES)
    if not issubclass(found, FrequencyOracle):
        raise InputError(
            f"Expected a subclass of fedhh.oracles.FrequencyOracle as oracle {name!r}, got "
            f"{found.__module__}.{found.__qualname__}."
        )
    return found


def oracle_names() -> list[str]:
    """Return all names known without a module: those of `ORACLES`, then of entry points."""
    return plugins.names("oracles", ORACLES)


def make_oracle(spec: OracleSpec, domain_size: int) -> FrequencyOracle:
    """Return the oracle that ``spec`` describes, over ``domain_size`` values.

    >>> make_oracle(OracleSpec(name="ss", epsilon=10.0), 1_000_001).d
    46
    """
    return oracle_class(spec.name)(epsilon=spec.epsilon, domain_size=domain_size, **spec.params)


def make_pure_oracle(spec: OracleSpec, domain_size: int) -> PureOracle:
    """Return `make_oracle`'s oracle for a server that needs its p and q.

    Raises:
        InputError: It is not a `PureOracle`.
    """
    oracle = make_oracle(spec, domain_size)
    if not isinstance(oracle, PureOracle):
        raise InputError(
            f"Expected an oracle whose reports support values with chances p and q, a PureOracle, "
            f"got oracle={spec.name!r}; use ss."
        )
    return oracle
