"""Audits of randomizers, layers and runs in one call."""

from __future__ import annotations

import pytest

from fedhh.experiments.run.audit_verdict import audit_configured_run, audit_randomizer
from fedhh.oracles import ORACLES
from fedhh.validation import InputError

SMALL = {"local_epsilon": 1.0, "domain_size": 4, "num_samples": 4_000}


def test_a_randomizer_is_consistent_with_its_epsilon():
    found = audit_randomizer("grr", **SMALL)
    assert not found.refuted
    assert [part.claim for part in found.parts] == [1.0, 1.0]
    assert found.upper_bounds == {"local": 1.0}
    assert 0.5 < found.parts[0].found.epsilon <= 1.0
    assert found.to_dict()["confidence"] == 0.999


def test_a_layer_is_held_against_the_smallest_proven_bound():
    found = audit_randomizer("grr", **{**SMALL, "num_samples": 400}, num_reports=300)
    assert "ss_blanket" not in found.upper_bounds
    # The closed form and clones of 2023 are comparisons for any randomizer but Subset Selection.
    assert found.parts[-1].claim == found.upper_bounds["clones"]
    assert found.parts[-1].found.epsilon <= found.parts[-1].claim


def test_a_randomizer_that_tells_the_truth_is_refuted(monkeypatch):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    found = audit_randomizer("ss", local_epsilon=2.0, domain_size=20, num_samples=4_000)
    assert found.refuted
    assert found.to_dict()["verdict"] == "refuted"


def test_a_run_is_audited_in_its_first_layer_that_decides():
    found = audit_configured_run("small", settings=["population.clients=4000"], num_samples=40)
    assert not found.refuted
    assert found.facts["reports"] > 0
    assert found.parts[-1].claim in found.upper_bounds.values()


def test_a_wrong_confidence_is_refused():
    with pytest.raises(InputError, match=r"confidence=2\.0"):
        audit_randomizer("grr", **SMALL, confidence=2.0)
