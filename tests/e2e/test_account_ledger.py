"""`fedhh account ledger`: what it prints, draws and refuses."""

from __future__ import annotations

import math
import shutil
from functools import partial
from typing import Any

import pytest
from dp_accounting import dp_event

from tests.thinned import thinned


@pytest.fixture
def answer(answer):
    return partial(answer, "account", "ledger")


def epsilon(found: dict[str, Any], unit: str, method: str = "basic") -> float:
    chosen = [each for each in found["together"]["guarantees"] if each["unit"] == unit]
    return next((each for each in chosen if each["method"] == method), chosen[0])["epsilon"]


@pytest.mark.parametrize(
    ("words", "announced", "busy_day"),
    thinned(
        [
            (("macos-10.12",), 16, 16 + 2),
            (("macos-10.12", "--without", "AppDeepLink"), 6, 6 + 2),
            (("macos-10.12.1",), 14, 14),
            (("ios-10.1.1",), 14, 14),
            (("ios-11-beta",), 33, 14 + 29),
        ],
        keep=2,
    ),
)
def test_audited_systems_permit_what_the_paper_says(answer, words, announced, busy_day):
    # 20 events, since ten records of a name go out in a report of the iOS 11 beta.
    found = answer("--rules", *words, "--days", "9", "--events", "20")
    busy = found["saturating_device"]
    assert busy["permitted_per_day"]["announced in 2016"] == announced
    assert max(busy["loss_by_day"]) == busy_day
    assert busy["loss_by_day"][0] == busy_day
    assert busy["spent"]["life"]["basic"]["largest"] == epsilon(found, "user")
    assert {each["neighboring"] for each in found["together"]["guarantees"]} == {"replace-one"}
    assert any("SubmissionPriorities" in note for note in found["notes"])


def test_the_worked_example_of_the_paper(answer):
    only_emoji = [
        word
        for name in ("AppDeepLink", "NewWords", "Search", "health")
        for word in ("--without", name)
    ]
    found = answer(
        "--rules", "macos-10.12", *only_emoji, "--days", "30", "--idle-days", "20",
        "--busy-days", "1", "--events", "2", "--key-names", "10",
    )  # fmt: skip
    busy = found["saturating_device"]
    assert busy["loss_by_day"] == [0] * 20 + [10, 10] + [0] * 8
    assert busy["largest_in_24_hours"] == 20


def test_published_caps(answer):
    found = answer("--rules", "apple", "--days", "30", "--delta", "1e-6")
    assert [epsilon(found, unit) for unit in ("item", "day", "24 hours", "user")] == [
        8, 54, 108, 1620,
    ]  # fmt: skip
    assert found["saturating_device"] is None
    assert found["use_cases"]["quicktype"]["reports"] == [2, 6]
    assert found["curve"]["days"][-1] == 30
    assert found["curve"]["together"]["basic"][-1] == 1620
    assert {each["delta"] for each in found["together"]["guarantees"]} == {0.0, 1e-6}


@pytest.mark.slow("tests/longitudinal/test_ledger.py::test_each_level_by_hand")
def test_rules_of_ones_own(answer):
    found = answer(
        "--use-case", "a=1:2/7:unlimited:30", "--use-case", "b=0.5+0.25:1:3",
        "--permanent", "memo=4:3", "--days", "60",
    )  # fmt: skip
    assert found["use_cases"]["a"] == {
        "epsilon": 1.0, "reports": [1.0], "once_per_value": False, "amount": 2, "session_days": 7,
        "rollover": None, "lifetime": 30,
    }  # fmt: skip
    assert found["use_cases"]["b"]["reports"] == [0.5, 0.25]
    assert found["use_cases"]["b"]["rollover"] == 3
    # 18 records of a, 60 of b, 3 values.
    assert epsilon(found, "user") == pytest.approx(18 + 45 + 12)
    assert {each["neighboring"] for each in found["together"]["guarantees"]} >= {
        "replace-one of values"
    }


@pytest.mark.slow("tests/longitudinal/test_ledger.py::test_each_level_by_hand")
def test_a_run_that_is_repeated(answer):
    found = answer("small", "--every", "7", "--days", "365")
    (name, rule), *others = found["use_cases"].items()
    assert not others
    assert found["rules"].endswith("every 7 days")
    assert rule["session_days"] == 7
    assert epsilon(found, "user") == pytest.approx(53 * rule["amount"] * rule["epsilon"])
    changed = answer("small", "--set", "privacy.local_epsilon=2", "--days", "7")
    assert changed["use_cases"][name]["epsilon"] == 2
    assert epsilon(changed, "user") == 2 * rule["amount"]


def test_tables_name_units_and_deltas(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    done = command("account", "ledger", "--rules", "macos-10.12", "--days", "365")
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("5946", "replace-one; delta 0 for the sum, else 1e-10", "24 hours", "AppDeepLink",
                 "16.28571", "of NewWords, in its lifetime"):  # fmt: skip
        assert text in " ".join(done.stdout.split())


@pytest.mark.slow(
    "tests/cli/test_safe_text.py::test_a_console_shows_words_as_they_are_wherever_it_prints_them"
)
@pytest.mark.usefixtures("drawn_figures")
def test_names_of_use_cases_are_shown_as_they_are(command, tmp_path):
    done = command(
        "account", "ledger", "--use-case", "$_a^{b}$=1:1", "--use-case", "_[/]\x1b[2J=1:1",
        "--days", "3", "--figure", str(tmp_path / "names.png"),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "$_a^{b}$" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    thinned([
        ((), "one of SOURCE, --rules, and rules of your own"),
        (("--rules", "apple", "--use-case", "a=1:1"), "one of SOURCE"),
        (("--rules", "appel"), "did you mean 'apple'"),
        (("--rules", "apple", "--days", "0"), "days >= 1, got days=0"),
        (("--rules", "apple", "--days", "99999"), "days <= 3650"),
        (("--rules", "apple", "--delta", "0.5"), "delta=0.5"),
        (("--rules", "apple", "--events", "3"), "--events only with --rules"),
        (("--rules", "apple", "--set", "seed=1"), "--set and --every only with SOURCE"),
        (("--rules", "apple", "--without", "emojis"), "did you mean 'emoji'"),
        (("--rules", "macos-10.12", "--idle-days", "9", "--days", "8"), "idle_days <= num_days=8"),
        (("--rules", "macos-10.12", "--events", "1000"), "events <= 100"),
        (
            ("--rules", "macos-10.12", "--events", "100", "--key-names", "5"),
            "events * key_names <= 400",
        ),
        (("--rules", "macos-10.12", "--key-names", "0"), "key_names >= 1"),
        (("--rules", "macos-10.12", "--without", "Emojis"), "Unknown BudgetKeyName 'Emojis'"),
        (("--use-case", "a=1"), "got 'a=1'"),
        (("--use-case", "a=0:2"), "0 < epsilon of a"),
        (("--use-case", "a=e:2"), "a number as epsilon"),
        (("--use-case", "a=1:0"), "amount >= 1, got amount=0"),
        (("--use-case", "a=1:2:x"), "an integer for 'x'"),
        (("--use-case", "a=1:2:0:0"), "lifetime >= 1"),
        (("--use-case", "a=1:1", "--use-case", "a=2:1"), "several of 'a'"),
        (("--use-case", "a=1:99999999999999999999999"), "at most 100000"),
        (("--use-case", "a=1e-9:1"), "1e-06 <= epsilon of a"),
        (("--permanent", "a=1"), "--permanent NAME=EPSILON:VALUES"),
        (("--permanent", "a=1+2:3"), "one epsilon in --permanent"),
        (("no-such-preset",), "no-such-preset"),
        (("small", "--every", "0"), "every >= 1"),
    ], keep=4),
)  # fmt: skip
def test_wrong_input_is_refused_in_one_line(refused, tmp_path, words, message):
    assert message in refused("account", "ledger", *words)
    assert not list(tmp_path.iterdir())


def test_an_event_is_python_that_evaluates_to_it(command):
    rules = ("--use-case", "emoji=1:2", "--use-case", "words=2+6:1", "--days", "3")
    done = command("account", "ledger", *rules, "--format", "dp-event")
    assert (done.returncode, done.stderr) == (0, "")
    comment, line = done.stdout.splitlines()
    assert comment.startswith("# ")
    assert "REPLACE_ONE" in comment
    event = eval(done.stdout, vars(dp_event))
    assert event == eval(line, vars(dp_event))
    found = [math.log(2 / each.noise_parameter - 1) for each in event.events]
    assert found == pytest.approx([1.0] * 6 + [2.0] * 3 + [6.0] * 3)


def test_what_has_no_event_is_refused(refused):
    lifetime = ("account", "ledger", "--use-case", "emoji=1:1000", "--days", "365")
    assert "365,000" in refused(*lifetime, "--format", "dp-event")
    assert "--figure" in refused(*lifetime, "--format", "dp-event", "--figure", "life.png")


def test_a_finished_runs_directory_is_taken(answer, refused, once, tmp_path):
    small = ("--set", "population.clients=500", "--set", "protocol.depth=2", "--workers", "0")
    finished, _ = once("run", "--preset", "small", *small)
    shutil.copytree(finished, tmp_path / "run")
    run = str(tmp_path / "run")
    found = answer(run, "--every", "30")
    assert found["num_days"] == 365
    for same in ("layers.parquet", "result.json", "config.toml"):
        assert answer(f"{run}/{same}", "--every", "30") == found
    assert "--set" in refused("account", "ledger", run, "--set", "protocol.depth=4")
    (tmp_path / "run" / "discoveries.parquet").unlink()
    assert answer(run, "--every", "30") == found
    (tmp_path / "run" / "result.json").unlink()
    assert refused("account", "ledger", run) == refused("show", run)
