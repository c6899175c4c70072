"""An audit of a randomizer in one call."""

from __future__ import annotations

import pytest

from fedhh.audit import audit_randomizer
from fedhh.oracles import ORACLES
from fedhh.validation import InputError

SMALL = {"local_epsilon": 1.0, "domain_size": 4, "num_samples": 4_000}


def test_a_randomizer_is_consistent_with_its_epsilon():
    found = audit_randomizer("grr", **SMALL)
    assert not found.refuted
    (finding,) = found.findings.values()
    assert finding.claim.epsilon == 1.0
    assert 0.5 < finding.at_least <= 1.0
    assert found.to_dict()["confidence"] == 0.999


def test_a_randomizer_of_a_larger_epsilon_is_refuted(monkeypatch):
    monkeypatch.setitem(ORACLES, "grr", "tests.testing.test_oracles:UnderstatesItsEpsilon")
    found = audit_randomizer("grr", local_epsilon=2.0, domain_size=4, num_samples=40_000)
    assert found.refuted
    assert found.to_dict()["verdict"] == "refuted"


@pytest.mark.slow("::test_a_randomizer_of_a_larger_epsilon_is_refuted")
def test_a_randomizer_that_keeps_its_value_too_often_is_refuted(monkeypatch):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:KeepsItsValueTooOften")
    found = audit_randomizer("ss", local_epsilon=1.0, domain_size=8, num_samples=400_000)
    assert found.refuted
    assert found.to_dict()["verdict"] == "refuted"


def test_a_wrong_confidence_is_refused():
    with pytest.raises(InputError, match=r"confidence=2\.0"):
        audit_randomizer("grr", **SMALL, confidence=2.0)
