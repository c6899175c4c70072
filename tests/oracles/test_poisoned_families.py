"""Which oracles fake reports are made for, what others get, and which values are refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from fedhh.oracles import ORACLES, FrequencyOracle, OracleSpec, PureOracle, make_oracle
from fedhh.oracles.base import Floats, Reports, Tally, Values
from fedhh.oracles.poisoning import (
    FAMILIES,
    HONEST_REPORTS,
    maximal_gain,
    opposing_reports,
    random_reports,
    supporting_reports,
)
from fedhh.testing import follows_distribution
from fedhh.validation import InputError
from tests.every import every
from tests.wrong_oracles import KeepsItsValueTooOften


def oracle(name: str, *, epsilon: float = 1.0, domain_size: int = 128) -> FrequencyOracle:
    return make_oracle(OracleSpec(name=name, epsilon=epsilon), domain_size)


@dataclass(frozen=True, kw_only=True)
class Foreign(PureOracle):
    """Somebody else's randomized response."""

    @property
    def own(self) -> FrequencyOracle:
        return oracle("grr", epsilon=self.epsilon, domain_size=self.domain_size)

    @property
    def p(self) -> float:
        return self.own.p

    @property
    def q(self) -> float:
        return self.own.q

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        return self.own.privatize(values, rng=rng)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        return self.own.log_prob(reports, value)

    def report_space(self) -> Reports:
        return self.own.report_space()

    @property
    def report_bits(self) -> float:
        return self.own.report_bits

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        self.own.aggregate(reports, out=out)


def test_the_best_of_some_honest_reports_where_no_family_is_known():
    of, rng = Foreign(epsilon=0.5, domain_size=8), np.random.default_rng(18)
    reports = supporting_reports(of, [2], 60, rng=rng)
    # One of 32 honest reports is of the value itself with a chance of 1 - (1 - p)**32.
    missed = np.count_nonzero(reports != 2)
    assert (1 - of.p) ** HONEST_REPORTS < 0.002
    assert missed < 5
    assert not np.isin(opposing_reports(of, [2, 3], 20, rng=rng), [2, 3]).any()
    everything = opposing_reports(of, range(8), 5, rng=rng)
    assert everything.shape == (5,)
    uniform = random_reports(of, 2_000, rng=rng)
    assert follows_distribution(uniform, dict.fromkeys(range(8), 1 / 8))


@every("name", ORACLES)
def test_every_registered_oracle_has_a_family(name):
    of = oracle(name, epsilon=math.inf if name == "none" else 1.0)
    assert any(kind in FAMILIES for kind in type(of).__mro__)


def test_a_subclass_has_the_reports_of_its_family():
    of = KeepsItsValueTooOften(epsilon=1.0, domain_size=20)
    reports = supporting_reports(of, [3, 4], 20, rng=np.random.default_rng(19))
    assert (np.isin(reports, [3, 4]).sum(axis=1) == 2).all()


@pytest.mark.parametrize("make", [supporting_reports, opposing_reports])
def test_values_are_checked(make):
    of, rng = oracle("ss"), np.random.default_rng(0)
    with pytest.raises(InputError, match="at least one value"):
        make(of, [], 3, rng=rng)
    with pytest.raises(InputError, match=r"\[0, 128\)"):
        make(of, [128], 3, rng=rng)
    with pytest.raises(InputError, match="num_functions >= 1"):
        make(of, [1], 3, rng=rng, num_functions=0)
    with pytest.raises(InputError, match="share"):
        maximal_gain(of, [1], share=1.5)


def test_repeated_values_count_once():
    of = oracle("oue")
    assert maximal_gain(of, [4, 4], share=0.1) == maximal_gain(of, [4], share=0.1)
