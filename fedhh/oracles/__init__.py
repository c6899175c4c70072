"""Frequency oracles: local randomizers with their estimators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedhh.oracles.base import FrequencyOracle, PureOracle
from fedhh.oracles.registry import (
    ORACLES,
    OracleSpec,
    make_oracle,
    make_pure_oracle,
    oracle_class,
    oracle_names,
)

if TYPE_CHECKING:
    from fedhh.oracles.bits import (
        DBitFlip,
        OptimizedUnaryEncoding,
        SymmetricUnaryEncoding,
    )
    from fedhh.oracles.codes import HadamardResponse, ProjectiveGeometryResponse
    from fedhh.oracles.hadamard import HadamardCountMeanSketch, Hashtogram
    from fedhh.oracles.hashed import SketchOracle
    from fedhh.oracles.histogram_encoding import SummedHistogramEncoding, ThresholdHistogramEncoding
    from fedhh.oracles.local_hashing import BinaryLocalHashing, OptimizedLocalHashing
    from fedhh.oracles.sketches import BassilySmith, CountMeanSketch, FastLocalHashing
    from fedhh.oracles.subset_selection import SubsetSelection
    from fedhh.oracles.values import GeneralizedRandomizedResponse, Identity

__all__ = [
    "ORACLES",
    "BassilySmith",
    "BinaryLocalHashing",
    "CountMeanSketch",
    "DBitFlip",
    "FastLocalHashing",
    "FrequencyOracle",
    "GeneralizedRandomizedResponse",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "Hashtogram",
    "Identity",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "OracleSpec",
    "ProjectiveGeometryResponse",
    "PureOracle",
    "SketchOracle",
    "SubsetSelection",
    "SummedHistogramEncoding",
    "SymmetricUnaryEncoding",
    "ThresholdHistogramEncoding",
    "make_oracle",
    "make_pure_oracle",
    "oracle_class",
    "oracle_names",
]

_MODULES = {place.split(":")[1]: place.split(":")[0] for place in ORACLES.values()} | {
    "SketchOracle": "fedhh.oracles.hashed"
}


def __getattr__(name: str) -> Any:
    # Kernels take a second to load, so a class is imported when somebody asks for it.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
