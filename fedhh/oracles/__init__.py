"""Frequency oracles: local randomizers with their estimators."""

from fedhh.oracles.base import FrequencyOracle, PureOracle
from fedhh.oracles.registry import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.subset_selection import SubsetSelection

__all__ = [
    "ORACLES",
    "FrequencyOracle",
    "OracleSpec",
    "PureOracle",
    "SubsetSelection",
    "make_oracle",
]
