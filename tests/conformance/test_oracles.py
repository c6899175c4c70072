import inspect
import math

import pytest

import fedhh.oracles
from fedhh.oracles import (
    ORACLES,
    FrequencyOracle,
    OracleSpec,
    ProjectiveGeometryResponse,
    SummedHistogramEncoding,
    make_oracle,
    oracle_class,
)
from fedhh.oracles.hadamard import HadamardSign
from fedhh.testing import ORACLE_CASES, oracle_checks
from tests.thinned import thinned

CASES = [(name, epsilon, size) for name in ORACLES for epsilon, size in ORACLE_CASES]

# Projective geometry in more than two dimensions: a plane over three elements, a space over two. A
# grid that reaches beyond the indicator: entries from -2 to 3, most ends sent often. What Hadamard
# sketches do to a cell.
SPECIAL = [
    ProjectiveGeometryResponse(epsilon=0.7, domain_size=11),
    ProjectiveGeometryResponse(epsilon=0.3, domain_size=13),
    SummedHistogramEncoding(epsilon=1.5, domain_size=2, steps=1, reach=0.5),
    HadamardSign(epsilon=1.2, domain_size=4),
]

# Sketches and grids small enough to enumerate their reports.
PARAMS = {
    "cms": {"num_hashes": 2, "num_cells": 2},
    "hcms": {"num_hashes": 2, "num_cells": 2},
    "hashtogram": {"num_hashes": 2, "num_cells": 2},
    "flh": {"num_hashes": 2},
    "bassily-smith": {"num_hashes": 3},
    "dbitflip": {"num_bits": 3},
    "she": {"steps": 2, "reach": 0.0},
    "the": {"steps": 2, "reach": 0.0},
}


def small_oracle(case: tuple[str, float, int]) -> FrequencyOracle:
    name, epsilon, domain_size = case
    epsilon = math.inf if name == "none" else epsilon
    return make_oracle(
        OracleSpec(name=name, epsilon=epsilon, params=PARAMS.get(name, {})), domain_size
    )


@pytest.mark.parametrize(
    ("case", "check"),
    [
        pytest.param(case, check, marks=[] if case[1:] == ORACLE_CASES[0] else [pytest.mark.slow])
        for case in CASES
        for check in oracle_checks(small_oracle(case))
    ],
    ids=lambda each: "-".join(map(str, each)) if isinstance(each, tuple) else str(each),
)
def test_a_registered_oracle_passes(case, check):
    check(small_oracle(case), seed=11)


@pytest.mark.parametrize(
    ("oracle", "check"),
    thinned([(o, c) for o in SPECIAL for c in oracle_checks(o)], keep=8),
    ids=str,
)
def test_geometries_and_grids_beyond_the_smallest_pass(oracle, check):
    check(oracle)


def test_every_exported_oracle_is_registered():
    exported = [getattr(fedhh.oracles, name) for name in fedhh.oracles.__all__]
    classes = {c for c in exported if inspect.isclass(c) and issubclass(c, FrequencyOracle)}
    assert {c for c in classes if not inspect.isabstract(c)} == {oracle_class(n) for n in ORACLES}
