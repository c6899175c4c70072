"""`fedhh audit device`, `log`: what they print, find and refuse."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.audit import pipelines
from tests.faulty_devices import RefilledTwice
from tests.thinned import thinned

EMOJI = ("--use-case", "emoji=4:1")
QUICK = ("--days", "4", "--devices", "1500")
LOG = "device,day,use_case\na,0,emoji\na,0,emoji\nb,0,health\na,3,emoji\nb,20,emoji\n"


@pytest.fixture
def device(fedhh):
    return partial(fedhh, "audit", "device")


@pytest.fixture
def log(fedhh):
    return partial(fedhh, "audit", "log")


def found(command, *words: str) -> tuple[int, dict]:
    code, out, err = command(*words, "--format", "json")
    assert err == ""
    return code, json.loads(out)


@pytest.mark.slow("tests/audit/test_verdicts.py::test_devices_of_a_pipeline_keep_to_their_caps")
def test_devices_of_a_pipeline_are_consistent_with_their_caps(device):
    code, result = found(device, *EMOJI, *QUICK)
    assert (code, result["verdict"]) == (0, "consistent")
    (sent,) = result["sent"]
    assert (sent["most_in_a_day"], sent["most_in_lifetime"], sent["loss_of_lifetime"]) == (
        1,
        4,
        16.0,
    )
    day, lifetime = result["findings"]
    assert (day["claimed"], lifetime["claimed"]) == (1, 4)
    assert day["at_least"] == 1
    assert 3 <= lifetime["at_least"] <= 4 < lifetime["detects_from"]
    assert lifetime["epsilon_at_least"] < lifetime["epsilon_claimed"] == pytest.approx(4.0)
    code, table, _ = device(*EMOJI, *QUICK)
    assert code == 0
    assert "verdict: consistent" in table


@pytest.mark.slow(
    "tests/audit/test_device_histories.py::test_few_reports_alone_refute_who_does_not_do_what_is_stated"
)
def test_a_cap_that_is_refilled_twice_ends_with_exit_code_1(device, monkeypatch):
    def broken(*, cap, **more):
        return honest(cap=RefilledTwice.of(cap), **more)

    honest = pipelines.PipelineDevices
    monkeypatch.setattr(pipelines, "PipelineDevices", broken)
    code, result = found(device, *EMOJI, *QUICK)
    assert (code, result["verdict"]) == (1, "refuted")
    assert result["sent"][0]["first"]["sent"] == 2
    assert [part["verdict"] for part in result["findings"]] == ["refuted", "refuted"]
    code, table, _ = device(*EMOJI, *QUICK)
    assert code == 1
    assert "sent 2 in 1 day, stated at most 1 (loss 8, stated 4)" in table


@pytest.mark.slow("tests/audit/test_verdicts.py::test_the_rules_of_a_pipeline_say_how_records_wait")
def test_the_rules_of_a_pipeline_are_those_of_its_file(device, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        "[pipeline]\ndelay_hours = 30.0\n[pipeline.use_cases.taps]\noracle = 'grr'\n"
        "epsilon = 3.0\nrecords_per_day = 2\nrollover = 1\ndomain = {values = 5}\n"
    )
    code, result = found(device, "--pipeline", str(file), "--days", "4", "--devices", "800")
    assert code == 0
    (sent,) = result["sent"]
    assert (sent["use_case"], sent["local_epsilon"], sent["stated_in_a_day"]) == ("taps", 3.0, 3)
    # The first records wait for more than a day, the last ones are still there.
    assert 4 <= sent["most_in_lifetime"] <= 7
    names = [each["use_case"] for each in found(
        device, "--pipeline", "pipeline-small", "--days", "1", "--devices", "8"
    )[1]["sent"]]  # fmt: skip
    assert len(names) > 1


@pytest.mark.slow(
    "tests/audit/test_verdicts.py::test_a_memoized_answer_is_consistent_and_its_control_is_not"
)
def test_a_memoized_answer_is_held_against_its_permanent_bits(device):
    words = ("--answer", "one-bit-mean", "--local-epsilon", "1", "--days", "10")
    code, result = found(device, *words)
    assert code == 0
    always, in_turn = result["findings"]
    assert (always["claimed"], in_turn["claimed"]) == (1, 2)
    assert 0.7 < always["epsilon_at_least"] < 1.0
    assert always["control"]["verdict"] == in_turn["control"]["verdict"] == "refuted"
    assert "drawn again every day, it would be detected" in device(*words)[1]
    few = device(*words[:-1], "2", "--devices", "500")[1]
    assert "drawn again every day, it would not be detected" in few
    one_day = ("--answer", "rappor", "--local-epsilon", "2", "--days", "1", "--devices", "2000")
    assert len(found(device, *one_day, "--bits", "16")[1]["findings"]) == 1


@pytest.mark.slow("tests/audit/test_verdicts.py::test_a_log_is_held_against_caps")
def test_ones_own_log_is_held_against_published_caps(log, tmp_path):
    sent = tmp_path / "log.csv"
    sent.write_text(LOG)
    code, result = found(log, str(sent), "--rules", "apple")
    assert (code, result["verdict"]) == (1, "refuted")
    emoji, health = result["sent"]
    assert health["verdict"] == "consistent"
    assert emoji["first"] == emoji["worst"]
    assert emoji["first"]["device"] == "a"
    assert (emoji["first"]["loss"], emoji["first"]["stated_loss"]) == (8.0, 4.0)
    assert (result["num_devices"], result["num_days"], result["findings"]) == (2, 21, [])
    # What was saved up may be sent at once, where that is stated.
    own = ("--use-case", "emoji=1:2:unlimited", "--use-case", "health=2:2/7")
    assert found(log, str(sent), *own)[0] == 0
    whole = tmp_path / "log.parquet"
    pq.write_table(
        pa.table({"device": [7, 7], "day": [2, 2], "records": [3, 4], "report": ["x", "y"]}), whole
    )
    code, table, _ = log(str(whole), "--use-case", "records=1:5")
    assert code == 1
    assert "device 7 on day 2: sent 7 in 1 day, stated at most 5 (loss 7, stated 5)" in table
    lines = tmp_path / "log.jsonl"
    # What JSON leaves out is one record, also where a later line says how many.
    lines.write_text('{"device": 1, "day": 0}\n{"device": 1, "day": 0, "records": 2}\n')
    assert found(log, str(lines), "--use-case", "records=1:3")[0] == 0
    assert found(log, str(lines), "--use-case", "records=1:2")[0] == 1
    dates = tmp_path / "dates.csv"
    dates.write_text("device,day\na,2024-02-28\na,2024-03-01\n")
    _, result = found(log, str(dates), "--use-case", "records=1:1")
    assert result["num_days"] == 3


@pytest.mark.slow("tests/audit/test_verdicts.py::test_what_an_audit_cannot_show_is_said")
def test_an_audit_says_what_it_cannot_refute(device):
    few = device(*EMOJI, "--days", "2", "--devices", "8")[1]
    assert (
        "no number of records, however large, can be detected in these histories; use more" in few
    )
    words = ("--answer", "one-bit-mean", "--local-epsilon", "30", "--devices", "200")
    large = device(*words)[1]
    assert "no number of permanent bits, however large" in large
    assert "or a smaller --local-epsilon." in large
    assert found(device, *words)[1]["findings"][0]["detects_from"] is None


def test_a_saturating_device_under_an_audited_budget_manager_keeps_its_balances(device):
    code, result = found(device, "--rules", "macos-10.12", "--days", "5")
    assert code == 0
    # 16 a day for the four announced applications (Tang et al. 2017, section 4.2.3).
    losses = {each["use_case"]: each["loss_of_lifetime"] for each in result["sent"]}
    del losses["com.apple.health"]
    assert sum(losses.values()) == 16 * 5


@pytest.mark.parametrize(
    ("content", "message"),
    thinned(
        [
            ("", "Expected a header line"),
            ("device,day,use_case\n", "only a header"),
            ("device,use_case\na,emoji\n", "Expected a column 'day'"),
            ("device,day,use_case\na,3,emoji\na,2,emoji\n", "time goes backwards"),
            (
                "device,day,use_case\na,-1,emoji\n",
                "Expected days from 0, a device's opt-in, got day=-1",
            ),
            ("device,day,use_case\na,100000,emoji\n", "Expected days below 100,000"),
            ("device,day,use_case\na,1.5,emoji\n", "whole number"),
            ("device,day,use_case\na,1,\n", "Expected a use case, got none"),
            ("device,day,use_case\n,1,emoji\n", "Expected a device, got none"),
            ("device,day,use_case\na,1,emjoi\n", "did you mean 'emoji'"),
            ("device,day,use_case,records\na,1,emoji,-2\n", "whole count"),
            ("device,day,use_case\na,1,emoji,7\n", "Expected 3 fields"),
            ("device,day,device\na,1,a\n", "distinct columns"),
            ("device,day,use_case\na,2024-01-03,emoji\na,4,emoji\n", "date like 2024-02-29"),
        ],
        keep=4,
    ),
)
def test_a_log_that_is_none_is_refused_in_one_line(refused, tmp_path, content, message):
    sent = tmp_path / "log.csv"
    sent.write_text(content)
    assert message in refused("audit", "log", str(sent), "--rules", "apple")


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            ((), "Expected one of --rules, --use-case, --pipeline, --answer"),
            (("--rules", "aple"), "did you mean 'apple'"),
            ((*EMOJI, "--rules", "apple"), "Expected one of"),
            (("--pipeline", "smal.toml"), "smal.toml"),
            (("--answer", "rappor", "--pipeline", "pipeline-small"), "it has no caps"),
            (("--use-case", "emoji=4:0"), "amount"),
            (("--use-case", "emoji"), "Expected --use-case NAME=EPSILON:RECORDS"),
            (("--use-case", f"emoji=1:{10**30}"), "Expected at most 100000"),
            ((*EMOJI, *EMOJI), "each use case once"),
            ((*EMOJI, "--days", "0"), "days >= 1"),
            ((*EMOJI, "--devices", "7"), "devices >= 8"),
            ((*EMOJI, "--devices", "100000000"), "use fewer --devices or --days"),
            ((*EMOJI, "--confidence", "1"), "confidence=1.0"),
            ((*EMOJI, "--local-epsilon", "1"), "--local-epsilon only with --answer"),
            ((*EMOJI, "--transcript", "x.csv"), "No such option: --transcript"),
            (("--rules", "macos-10.12", "--devices", "9"), "no --devices with an audited system"),
            (("--answer", "rappor"), "Expected --local-epsilon with --answer"),
            (
                ("--rules", "macos-10.12", "--figure", "a.png"),
                "--figure only where reports are read",
            ),
            (("--answer", "rappor", "--local-epsilon", "1", "--drawn", "2"), "no --drawn"),
            (("--answer", "fresh", "--local-epsilon", "1"), "Expected a memoized answer"),
        ],
        keep=4,
    ),
)
def test_wrong_options_are_refused_in_one_line(refused, words, message):
    assert message in refused("audit", "device", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sent.csv",), "Expected one of --rules, --use-case, --pipeline."),
        (("no-such.csv", *EMOJI), "no-such.csv"),
        (("x.txt", *EMOJI), "known extensions"),
        (("sent.csv", *EMOJI, "--days", "3"), "No such option: --days"),
        (("--transcript", "sent.csv", *EMOJI), "No such option: --transcript"),
    ],
)
def test_wrong_options_of_a_log_are_refused_in_one_line(refused, words, message):
    assert message in refused("audit", "log", *words)
