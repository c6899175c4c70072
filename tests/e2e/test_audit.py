"""`fedhh audit randomizer`, `chosen-trie`, `pool-inference`: what they print and find."""

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
    assert 1.5 < found["at_least"] <= found["claimed"] == 2 < found["largest_detectable"]
    assert found["audited"] == "one report of ss"
    assert found["confidence"] == 0.999
    assert found["verdict"] == "consistent"


@pytest.mark.slow(
    "tests/accounting/inference/test_chosen_trie.py::test_twice_the_stated_epsilon_is_refuted"
)
def test_a_server_that_chooses_the_trie_keeps_to_what_is_stated(answer, fedhh):
    words = ("audit", "chosen-trie", "--local-epsilon", "2", "--domain-size", "3", "--rounds", "2")
    found = answer(*words, "--clients", "4000")
    assert (found["words"], found["verdict"]) == (2, "consistent")
    assert [each["reports"] for each in found["successes"]] == [1, 2] * 3
    for each in found["successes"]:
        assert each["simulated_at_least"] <= each["success"] <= each["allowed"]
        assert each["stated_epsilon"] == 2 * each["reports"]
    assert answer(*words, "--clients", "4000") == found
    code, out, err = fedhh(*words, "--stated-epsilon", "1")
    assert (code, err) == (1, "")
    assert "verdict: refuted at confidence 0.999" in out


@pytest.mark.slow(
    "tests/accounting/inference/test_pool_inference.py::test_simulated_guesses_follow_the_exact_chance"
)
def test_many_reports_of_one_device_tell_its_pool(answer, fedhh):
    words = ("audit", "pool-inference", "--pools", "2", "--pool-size", "3", "--clients", "500")
    found = answer(*words, "--reports", "20", "--reports", "1")
    one, twenty = found["successes"]
    assert (one["reports"], twenty["reports"]) == (1, 20)
    assert one["simulated"] < twenty["simulated"] <= twenty["allowed"]
    assert twenty["simulated"] > 0.9
    assert (found["polarization"], found["verdict"]) == (0.9, "consistent")
    code, out, err = fedhh(*words, "--format", "csv", "--reports", "1", "--seed", "3")
    assert (code, err) == (0, "")
    assert out.startswith("attack,reports,hypotheses")
    code, _, err = fedhh(*words, "--domain-size", "5")
    assert code == 2
    assert "domain_size=5" in err


@pytest.mark.slow(
    "tests/experiments/run/test_audit_verdict.py::test_a_randomizer_of_a_larger_epsilon_is_refuted"
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
