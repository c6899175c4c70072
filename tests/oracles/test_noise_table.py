"""Variance per report of a value without holders, V0, against numbers computed independently."""

from __future__ import annotations

from fedhh.oracles import OracleSpec, make_oracle
from tests.every import every

# The field's table of V0, computed by hand from the papers' p and q (Wang et al. 2017, sections 3
# and 4; Ye and Barg 2017; Apple 2017), to four digits: not from this package. "oue" is the formula
# 4 e / (e - 1)**2, e = exp(epsilon).
COLUMNS = ("grr", "sue", "oue", "blh", "she", "the", "ss")
TABLE = [
    (0.5, 10**2, 236.8, 15.92, 15.67, 16.67, 32.00, 17.83, 15.34),
    (1, 10**2, 34.11, 3.918, 3.683, 4.683, 8.000, 4.807, 3.590),
    (1, 10**6, 338700, 3.918, 3.683, 4.683, 8.000, 4.807, 3.683),
    (2, 10**4, 245.1, 0.9207, 0.7241, 1.724, 2.000, 1.284, 0.7237),
    (4, 10**2, 0.05312, 0.1810, 0.07602, 1.076, 0.5000, 0.2852, 0.05588),
    (4, 10**6, 348.1, 0.1810, 0.07602, 1.076, 0.5000, 0.2852, 0.07602),
    (8, 10**4, 0.001462, 0.01901, 0.001343, 1.001, 0.1250, 0.03178, 0.001169),
    (8, 10**6, 0.1129, 0.01901, 0.001343, 1.001, 0.1250, 0.03178, 0.001341),
    (10, 10**4, 6.601e-5, 0.00683, 1.816e-4, 1.000, 0.08000, 0.01149, 6.601e-5),
    (10, 10**6, 0.002107, 0.00683, 1.816e-4, 1.000, 0.08000, 0.01149, 1.796e-4),
]
CELLS = [
    (name, epsilon, domain_size, v0)
    for epsilon, domain_size, *row in TABLE
    for name, v0 in zip(COLUMNS, row, strict=True)
]
# One bit is one bit, whoever chooses its hash function.
CELLS += [("bassily-smith", *cell) for name, *cell in CELLS if name == "blh"]


def noise(name: str, epsilon: float, domain_size: int) -> float:
    oracle = make_oracle(OracleSpec(name=name, epsilon=epsilon), domain_size)
    return float(oracle.variance(0, 1))


@every(("name", "epsilon", "domain_size", "v0"), CELLS)
def test_noise_is_that_of_the_table_to_four_digits(name, epsilon, domain_size, v0):
    # One number of the table is given to three digits.
    digits = 2 if v0 == 0.00683 else 3
    assert f"{noise(name, epsilon, domain_size):.{digits}e}" == f"{v0:.{digits}e}"


@every(("epsilon", "domain_size", "oue"), [(e, s, row[2]) for e, s, *row in TABLE])
def test_local_hashing_has_a_whole_number_of_cells_and_the_table_the_best_real_one(
    epsilon, domain_size, oue
):
    assert oue * 0.9995 < noise("olh", epsilon, domain_size) < oue * 1.01
