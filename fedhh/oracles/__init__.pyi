from fedhh.oracles.base import FrequencyOracle as FrequencyOracle
from fedhh.oracles.base import PureOracle as PureOracle
from fedhh.oracles.bits import DBitFlip as DBitFlip
from fedhh.oracles.bits import OptimizedUnaryEncoding as OptimizedUnaryEncoding
from fedhh.oracles.bits import SymmetricUnaryEncoding as SymmetricUnaryEncoding
from fedhh.oracles.codes import HadamardResponse as HadamardResponse
from fedhh.oracles.codes import ProjectiveGeometryResponse as ProjectiveGeometryResponse
from fedhh.oracles.hadamard import HadamardCountMeanSketch as HadamardCountMeanSketch
from fedhh.oracles.hadamard import Hashtogram as Hashtogram
from fedhh.oracles.hashed import SketchOracle as SketchOracle
from fedhh.oracles.histogram_encoding import SummedHistogramEncoding as SummedHistogramEncoding
from fedhh.oracles.histogram_encoding import (
    ThresholdHistogramEncoding as ThresholdHistogramEncoding,
)
from fedhh.oracles.local_hashing import BinaryLocalHashing as BinaryLocalHashing
from fedhh.oracles.local_hashing import OptimizedLocalHashing as OptimizedLocalHashing
from fedhh.oracles.registry import ORACLES as ORACLES
from fedhh.oracles.registry import OracleSpec as OracleSpec
from fedhh.oracles.registry import make_oracle as make_oracle
from fedhh.oracles.registry import make_pure_oracle as make_pure_oracle
from fedhh.oracles.registry import oracle_class as oracle_class
from fedhh.oracles.registry import oracle_names as oracle_names
from fedhh.oracles.sketches import BassilySmith as BassilySmith
from fedhh.oracles.sketches import CountMeanSketch as CountMeanSketch
from fedhh.oracles.sketches import FastLocalHashing as FastLocalHashing
from fedhh.oracles.subset_selection import SubsetSelection as SubsetSelection
from fedhh.oracles.values import GeneralizedRandomizedResponse as GeneralizedRandomizedResponse
from fedhh.oracles.values import Identity as Identity
