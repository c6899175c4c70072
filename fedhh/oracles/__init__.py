"""Frequency oracles: local randomizers with their estimators."""

from fedhh.oracles.base import FrequencyOracle, PureOracle
from fedhh.oracles.generalized_randomized_response import GeneralizedRandomizedResponse
from fedhh.oracles.identity import Identity
from fedhh.oracles.optimized_local_hashing import OptimizedLocalHashing
from fedhh.oracles.optimized_unary_encoding import OptimizedUnaryEncoding
from fedhh.oracles.registry import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.subset_selection import SubsetSelection

__all__ = [
    "ORACLES",
    "FrequencyOracle",
    "GeneralizedRandomizedResponse",
    "Identity",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "OracleSpec",
    "PureOracle",
    "SubsetSelection",
    "make_oracle",
]
