"""`fedhh audit randomizer`: what it prints and finds."""

from __future__ import annotations

import json

import pytest

from fedhh.oracles import ORACLES
from tests.thinned import thinned


def test_an_audit_of_a_report_stands_next_to_the_stated_epsilon(answer):
    found = answer(
        "audit", "randomizer", "--oracle", "ss", "--local-epsilon", "2", "--domain-size", "20",
        "--samples", "10000",
    )  # fmt: skip
    (finding,) = found["findings"]
    assert 1.5 < finding["at_least"] <= finding["claimed"] == 2 < finding["detects_from"] < 2.5
    assert (found["audited"], found["unit"]) == ("one report of ss", "item")
    assert found["confidence"] == 0.999
    assert found["verdict"] == "consistent"


@pytest.mark.slow(
    "tests/audit/test_randomizer.py::test_a_randomizer_of_a_larger_epsilon_is_refuted"
)
def test_a_randomizer_that_understates_its_epsilon_is_refuted(fedhh, monkeypatch):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:KeepsItsValueTooOften")
    words = ("audit", "randomizer", "--local-epsilon", "1", "--domain-size", "8")
    code, out, err = fedhh(*words, "--samples", "400000", "--format", "json")
    assert (code, err) == (1, "")
    assert json.loads(out)["verdict"] == "refuted"
    code, out, err = fedhh(*words, "--samples", "400000")
    assert (code, err) == (1, "")
    assert "verdict: refuted at confidence 0.999" in out


AUDIT = ("randomizer", "--local-epsilon", "1", "--domain-size", "10")


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            (("randomizer",), "Missing option '--local-epsilon'"),
            ((*AUDIT, "--samples", "2"), "num_samples=2"),
            ((*AUDIT, "--confidence", "1"), "confidence=1.0"),
        ],
        keep=3,
    ),
)
def test_wrong_input_is_refused_in_one_line(refused, words, message):
    assert message in refused("audit", *words)
