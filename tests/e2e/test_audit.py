"""`fedhh audit randomizer`, `run`: what they print and find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedhh.oracles import ORACLES


def test_an_audit_of_a_report_stands_next_to_the_stated_epsilon(answer):
    found = answer(
        "audit", "randomizer", "--oracle", "ss", "--local-epsilon", "2", "--domain-size", "20",
        "--samples", "10000",
    )  # fmt: skip
    assert 1.5 < found["at_least"] <= 2
    assert found["upper_bounds"] == {"local": 2}
    assert found["confidence"] == 0.999
    assert found["verdict"] == "consistent"
    messages, tallies = found["parts"]
    assert "message" in messages["audited"]
    assert "worker's tally" in tallies["audited"]
    for part in (messages, tallies):
        assert 1.5 < part["at_least"] <= part["claimed"] == 2 < part["largest_detectable"]
        assert part["verdict"] == "consistent"


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


@pytest.mark.slow
def test_a_tally_that_always_tells_the_truth_is_refuted_by_default(fedhh, monkeypatch):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    words = ("audit", "randomizer", "--local-epsilon", "1", "--domain-size", "20")
    code, out, err = fedhh(*words, "--format", "json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert found["verdict"] == "refuted"
    # Its messages are honest; a run would never send them.
    assert [part["verdict"] for part in found["parts"]] == ["consistent", "refuted"]
    # In a layer of 1,000 reports chance hides the error, but not the verdict.
    code, out, err = fedhh(*words, "--reports", "1000", "--samples", "1000")
    assert (code, err) == (1, "")
    assert "verdict: refuted at confidence 0.999" in out
    assert out.count(", refuted (") == 1


def test_a_run_on_a_wrong_tally_is_refuted(fedhh, monkeypatch, tmp_path):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    code, out, err = fedhh(
        "audit", "run", str(small_run(tmp_path)), "--set", "privacy.local_epsilon=1",
        "--samples", "150", "--delta", "0.01", "--format", "json",
    )  # fmt: skip
    assert (code, err) == (1, "")
    assert json.loads(out)["verdict"] == "refuted"


def test_an_audit_of_a_layer_stands_next_to_the_bounds(answer):
    found = answer(
        "audit", "randomizer", "--local-epsilon", "3", "--domain-size", "12", "--reports", "8",
        "--samples", "1000", "--delta", "0.01",
    )  # fmt: skip
    assert list(found["upper_bounds"]) == ["closed_form", "clones", "clones_2023", "ss_blanket"]
    assert found["at_least"] <= found["upper_bounds"]["ss_blanket"]
    assert "8 reports of ss" in found["audited"]


def small_run(tmp_path: Path) -> Path:
    """The config of a run of a few clients."""
    rows = [f"{user},{'abcdefgh'[user % 8]}{'xyz'[user % 3]}" for user in range(60)]
    (tmp_path / "said.csv").write_text("user,word\n" + "\n".join(rows) + "\n")
    (tmp_path / "run.toml").write_text(
        f'[population]\nsource = "{tmp_path / "said.csv"}"\nknown = "none"\n'
        "[protocol]\nclients_per_layer = 8\ndepth = 2\neta_max = 5\nmax_items = 1\npasses = 1\n"
    )
    return tmp_path / "run.toml"


def test_an_audit_of_a_run_stands_next_to_its_claims(answer, tmp_path):
    found = answer(
        "audit", "run", str(small_run(tmp_path)), "--set", "privacy.local_epsilon=3",
        "--samples", "100", "--delta", "0.01",
    )  # fmt: skip
    assert found["reports"] == 8
    assert found["local_epsilon"] == 3
    assert found["at_least"] <= found["upper_bounds"]["blanket"] <= 3
    assert "one client holds" in found["neighbors"]
    assert found["verdict"] == "consistent"


AUDIT = ("randomizer", "--local-epsilon", "1", "--domain-size", "10")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("randomizer",), "Missing option '--local-epsilon'"),
        ((*AUDIT, "--samples", "2"), "num_samples=2"),
        ((*AUDIT, "--confidence", "1"), "confidence=1.0"),
        ((*AUDIT, "--reports", "1"), "num_reports=1"),
        ((*AUDIT, "--run", "small"), "fedhh audit run SOURCE"),
        (("run",), "Missing argument 'SOURCE'"),
        (("run", "no-such-preset"), "no-such-preset"),
        (("run", "small", "--set", "protocol.etamax=3"), "did you mean 'eta_max'"),
    ],
)
def test_wrong_input_is_refused_in_one_line(refused, words, message):
    assert message in refused("audit", *words)
