"""Frequency oracles: local randomizers with their estimators."""

from fedhh.oracles.base import FrequencyOracle, PureOracle
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.fast_local_hashing import FastLocalHashing
from fedhh.oracles.generalized_randomized_response import GeneralizedRandomizedResponse
from fedhh.oracles.hadamard_count_mean_sketch import HadamardCountMeanSketch
from fedhh.oracles.identity import Identity
from fedhh.oracles.optimized_local_hashing import OptimizedLocalHashing
from fedhh.oracles.optimized_unary_encoding import OptimizedUnaryEncoding
from fedhh.oracles.registry import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.sketch import SketchOracle
from fedhh.oracles.subset_selection import SubsetSelection

__all__ = [
    "ORACLES",
    "CountMeanSketch",
    "FastLocalHashing",
    "FrequencyOracle",
    "GeneralizedRandomizedResponse",
    "HadamardCountMeanSketch",
    "Identity",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "OracleSpec",
    "PureOracle",
    "SketchOracle",
    "SubsetSelection",
    "make_oracle",
]
