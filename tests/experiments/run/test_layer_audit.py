"""Audits of layers and runs: below what is claimed of right code, above it for wrong code."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fedhh.accounting import shuffle_epsilon
from fedhh.audit import clopper_pearson
from fedhh.oracles import ORACLES, OracleSpec, SubsetSelection
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.testing import LETTERS, small_population
from tests.audited_run import audit_run
from tests.audited_votes import audit_layer

# One audit in 1e9 of right code may exceed its epsilon.
SURE = 1 - 1e-9
LAYER = {"domain_size": 12, "num_reports": 10, "delta": 1e-2, "seed": 1}
LOCAL_EPSILON = 3.0


def upper_bounds(oracle: str) -> dict[str, float]:
    common = {"local_epsilon": LOCAL_EPSILON, "num_reports": LAYER["num_reports"]}
    found = {"clones": shuffle_epsilon("clones", **common, delta=LAYER["delta"])}
    if oracle == "ss":
        found["blanket"] = shuffle_epsilon(
            "blanket", **common, delta=LAYER["delta"], domain_size=LAYER["domain_size"]
        )
    return found


def audited(oracle: str, epsilon: float = LOCAL_EPSILON, num_runs: int = 3_000):
    spec = OracleSpec(name=oracle, epsilon=epsilon)
    return audit_layer(spec, **LAYER, num_runs=num_runs, confidence=SURE)


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("grr", "oue")]


@pytest.mark.parametrize(("epsilon", "detected"), [(1.0, False), (6.0, True)])
def test_the_audit_of_a_layer_of_two_reports_detects_what_is_understated(epsilon, detected):
    # Reports of this epsilon that claim to be of epsilon 1.
    small = {"domain_size": 4, "num_reports": 2, "delta": 1e-2, "seed": 1}
    found = audit_layer(
        OracleSpec(name="ss", epsilon=epsilon), **small, num_runs=300, confidence=SURE
    )
    bound = shuffle_epsilon("clones", local_epsilon=1.0, num_reports=2, delta=1e-2)
    assert (found.at_least > bound) == detected
    assert found.at_least <= epsilon


def test_the_audit_of_a_run_of_few_clients_detects_what_is_understated(monkeypatch):
    few = replace(PROTOCOL, local_epsilon=0.5, clients_per_layer=2, depth=2, eta_max=2)
    right = audited_run(few, num_runs=8)
    assert right.found.at_least <= min(claims(right).values())
    assert (right.decided.question.layer, right.decided.question.domain_size) == (1, 43)
    monkeypatch.setitem(ORACLES, "ss", f"{__name__}:_UnderstatesItsEpsilonBySixteen")
    wrong = audited_run(few, num_runs=120)
    assert claims(wrong) == claims(right)
    assert wrong.found.at_least > min(claims(wrong).values())


@pytest.mark.slow("::test_the_audit_of_a_layer_of_two_reports_detects_what_is_understated")
@pytest.mark.parametrize("oracle", ["ss", *OTHERS])
def test_a_layers_audit_stays_below_every_bound_and_says_something(oracle):
    found = audited(oracle)
    assert 0.15 * min(upper_bounds(oracle).values()) < found.at_least
    assert found.at_least <= min(upper_bounds(oracle).values())
    # The votes of a layer reveal less than one report does.
    assert found.at_least < LOCAL_EPSILON


@pytest.mark.slow("::test_the_audit_of_a_layer_of_two_reports_detects_what_is_understated")
@pytest.mark.parametrize("oracle", ["ss", OTHERS[0]])
def test_a_layer_whose_epsilon_is_understated_is_detected(oracle):
    # Reports of epsilon 6 that claim to be of epsilon 3.
    found = audited(oracle, epsilon=2 * LOCAL_EPSILON)
    assert found.at_least > min(upper_bounds(oracle).values())


def test_the_same_seed_finds_the_same():
    assert audited("ss", num_runs=100) == audited("ss", num_runs=100)


@dataclass(frozen=True, kw_only=True)
class _UnderstatesItsEpsilon(SubsetSelection):
    """Subset Selection whose fused path draws its reports with twice the epsilon."""

    times = 2

    def _add_values(self, values, out, *, rng):
        honest = SubsetSelection(
            epsilon=self.times * self.epsilon,
            domain_size=self.domain_size,
            subset_size=self.subset_size,
        )
        honest.aggregate(values=values, rng=rng, out=out)


class _UnderstatesItsEpsilonBySixteen(_UnderstatesItsEpsilon):
    times = 16


POPULATION = small_population(200)
PROTOCOL = LdpTrieHH(
    local_epsilon=3.0, clients_per_layer=12, depth=6, eta_max=10, max_items=1, passes=1,
    alphabet=LETTERS, subset_size="paper",
)  # fmt: skip


def audited_run(protocol=PROTOCOL, *, num_runs: int = 4):
    return audit_run(protocol, POPULATION, num_runs=num_runs, delta=1e-2, confidence=SURE, seed=4)


def claims(audit) -> dict[str, float]:
    """What the run claims, before it and realised."""
    return {each.method: each.epsilon for each in audit.claims}


@pytest.mark.slow("::test_the_audit_of_a_run_of_few_clients_detects_what_is_understated")
def test_a_runs_audit_stays_below_what_the_run_claims():
    # Few reports of a large epsilon: a difference is seen in few runs.
    few = replace(PROTOCOL, local_epsilon=5.0, clients_per_layer=6, eta_max=4)
    audit = audited_run(few, num_runs=300)
    assert audit.decided.state.history[-1].num_reports == 6
    assert (audit.decided.question.layer, audit.decided.question.domain_size) == (1, 43)
    assert set(claims(audit)) == {"blanket", "blanket, any domain"}
    assert 0.1 * min(claims(audit).values()) < audit.found.at_least
    assert audit.found.at_least <= min(claims(audit).values())


@pytest.mark.slow("::test_the_audit_of_a_run_of_few_clients_detects_what_is_understated")
def test_a_run_whose_randomizer_understates_its_epsilon_is_detected(monkeypatch):
    right = claims(audited_run())
    monkeypatch.setitem(ORACLES, "ss", f"{__name__}:_UnderstatesItsEpsilon")
    audit = audited_run(num_runs=1_250)
    assert claims(audit) == right
    assert audit.found.at_least > min(right.values())


def test_a_run_without_a_randomizer_shows_its_clients_word():
    audit = audited_run(replace(PROTOCOL, oracle="none"), num_runs=40)
    # All 30 runs that test the event had it under one input, and none under the other.
    often = float(clopper_pearson(30, 30, error=(1 - SURE) / 2)[0])
    assert (audit.found.power, audit.found.false_alarm) == pytest.approx((often, 1 - often))
    assert {each.epsilon for each in audit.claims} == {np.inf}


@pytest.mark.slow("::test_the_audit_of_a_run_of_few_clients_detects_what_is_understated")
def test_layers_that_decide_nothing_are_passed_over():
    protocol = replace(PROTOCOL, skip_free_layers=False, eta_max=60)
    audit = audited_run(protocol, num_runs=40)
    assert audit.decided.question.layer == 2
    assert audit.found.at_least <= min(claims(audit).values())
