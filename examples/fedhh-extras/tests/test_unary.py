import pytest
from fedhh_extras.unary import SymmetricUnaryEncoding

from fedhh.testing import ORACLE_CASES, oracle_checks

ORACLES = [SymmetricUnaryEncoding(epsilon=e, domain_size=s) for e, s in ORACLE_CASES]


@pytest.mark.parametrize(
    ("oracle", "check"), [(o, c) for o in ORACLES for c in oracle_checks(o)], ids=str
)
def test_symmetric_unary_encoding(oracle, check):
    check(oracle)
