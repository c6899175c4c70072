"""Numbers that papers print, from their formulas and from fedhh's oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.oracles.bloom import BitResponse
from tests.every import every


def test_rappors_epsilons_and_the_variance_of_a_bit():
    """Erlingsson, Pihur, Korolova (2014): h = 2, f = 0.5, p = 0.5, q = 0.75."""
    response = BitResponse(f=0.5, p=0.5, q=0.75)
    assert round(response.epsilon_of_all_reports(2), 3) == 4.394
    assert response.epsilon_of_all_reports(2) == pytest.approx(4 * math.log(3))
    assert round(response.epsilon_of_one_report(2), 4) == 1.0743
    assert response.bit_variance == pytest.approx(15.75)
    assert (response.zero, response.one) == pytest.approx((0.5625, 0.6875))


def test_rappors_two_steps_have_the_chances_of_one():
    response, rng = BitResponse(f=0.5, p=0.5, q=0.75), np.random.default_rng(0)
    for bit, chance in ((False, response.zero), (True, response.one)):
        coin = rng.random((200, 200))
        kept = np.where(coin < response.f / 2, True, np.where(coin < response.f, False, bit))
        sent = rng.random(kept.shape) < np.where(kept, response.q, response.p)
        assert sent.mean() == pytest.approx(chance, abs=5 * 0.5 / 200)
        if not bit:
            estimates = (sent.sum(axis=1) - 200 * response.zero) / (response.one - response.zero)
            # 200 squares of relative variance 2.
            assert (estimates**2).mean() / 200 == pytest.approx(15.75, rel=5 * math.sqrt(2 / 200))


def stated_delta(threshold: int) -> float:
    return (threshold - 2) / ((threshold - 3) * math.factorial(threshold))


@pytest.mark.parametrize(
    ("clients", "sample", "published"),
    [
        (650_000, 14_286, 14_286),
        (123_831_776, 2_721_656, 2_721_656),
        # The nearest number is published, above the formula.
        (1_781_400, 39_152, 39_153),
    ],
)
def test_triehhs_batches(clients, sample, published):
    """Zhu et al. (2020), corollary: central epsilon 4, L = 10, delta 2.3e-12."""
    assert stated_delta(15) <= 2.3e-12 < stated_delta(14)
    exact = clients * -math.expm1(-4.0 / 10) / 15
    assert math.floor(exact) == sample
    assert published in (math.floor(exact), round(exact))
    epsilon = -10 * math.log1p(-published * 15 / clients)
    assert (epsilon <= 4) is (published == sample)
    assert epsilon < 4.0001


@pytest.mark.parametrize("growth", [2, 4, 9, 54])
def test_grr_is_as_good_as_oue_and_olh_at_3_e_to_the_epsilon_and_2_values(growth):
    """Wang, Blocki, Li, Jha (2017), section 5."""
    crossover = 3 * growth + 2

    def noise_of(name: str, domain_size: int) -> float:
        spec = OracleSpec(name=name, epsilon=math.log(growth))
        return float(make_pure_oracle(spec, domain_size).variance(0, 1))

    v0 = [noise_of(name, crossover) for name in ("grr", "olh", "oue")]
    assert v0 == pytest.approx([4 * growth / (growth - 1) ** 2] * 3, rel=1e-12)
    assert noise_of("grr", crossover - 1) < v0[0] < noise_of("grr", crossover + 1)


@every(("epsilon", "last"), [(0.5, 7), (1.0, 10), (2.0, 24), (3.0, 62), (4.0, 165), (5.0, 447)])
def test_olhs_whole_cells_move_its_crossover_by_one_value_at_most(epsilon, last):
    sizes = [last - 1, last, last + 1]
    grr, olh = (
        [
            float(make_pure_oracle(OracleSpec(name=name, epsilon=epsilon), s).variance(0, 1))
            for s in sizes
        ]
        for name in ("grr", "olh")
    )
    assert last - math.floor(3 * math.exp(epsilon) + 2) == (epsilon == 0.5)
    assert [a <= b for a, b in zip(grr, olh, strict=True)] == [True, True, False]
