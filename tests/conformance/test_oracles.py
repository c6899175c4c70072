import inspect
import math

import pytest

import fedhh.oracles
from fedhh.oracles import ORACLES, FrequencyOracle, OracleSpec, make_oracle
from tests.conformance.oracle_suite import OracleSuite

CASES = [
    (name, epsilon, domain_size)
    for name in ORACLES
    for epsilon, domain_size in ((0.5, 4), (2.0, 5), (4.0, 3))
]

# Sketches small enough to enumerate their reports.
PARAMS = {
    "cms": {"num_hashes": 2, "num_cells": 2},
    "hcms": {"num_hashes": 2, "num_cells": 2},
    "flh": {"num_hashes": 2},
}


class TestRegisteredOracles(OracleSuite):
    @pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
    def oracle(self, request):
        name, epsilon, domain_size = request.param
        epsilon = math.inf if name == "none" else epsilon
        spec = OracleSpec(name=name, epsilon=epsilon, params=PARAMS.get(name, {}))
        return make_oracle(spec, domain_size)


def test_every_exported_oracle_is_registered():
    exported = [getattr(fedhh.oracles, name) for name in fedhh.oracles.__all__]
    classes = {c for c in exported if inspect.isclass(c) and issubclass(c, FrequencyOracle)}
    assert {c for c in classes if not inspect.isabstract(c)} == set(ORACLES.values())
