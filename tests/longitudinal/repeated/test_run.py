"""Repeated collections, from a plan to its tables."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from fedhh.experiments.study.callbacks import Callbacks
from fedhh.longitudinal.repeated.config import load_plan
from fedhh.longitudinal.repeated.directory import read_period
from fedhh.longitudinal.repeated.run import build_over_time, run_plan
from fedhh.longitudinal.repeated.tables import all_tables
from fedhh.validation import InputError

SMALL = (
    "population.clients=3000", "longitudinal.days=35", "longitudinal.min_devices=100",
    "execution.workers=0", "longitudinal.lifetime_days=60",
)  # fmt: skip
SKETCHES = (
    "word_hashes=64", "word_cells=64", "fragment_hashes=64", "fragment_cells=64", "num_puzzles=16",
)  # fmt: skip
TWO = (
    "longitudinal.protocols.ldp-triehh.name=ldp-triehh",
    "longitudinal.protocols.pem.name=pem",
    "longitudinal.protocols.pem.length=4",
)
OTHERS = (
    *TWO,
    "longitudinal.protocols.adaptive-triehh.name=adaptive-triehh",
    "longitudinal.protocols.sfp.name=sfp",
    *(f"longitudinal.protocols.sfp.{value}" for value in SKETCHES),
)


def plan_of(*settings: str):
    return load_plan("weekly-small", settings=[*SMALL, *settings])


def files(directory):
    return {path.name: path.read_bytes() for path in (directory / "periods").iterdir()}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Four protocols over two weeks."""
    directory = tmp_path_factory.mktemp("months") / "out"
    plan = plan_of("longitudinal.days=14", *OTHERS)
    return plan, directory, run_plan(plan, directory)


def test_every_protocol_runs_by_name(done):
    plan, _, outcome = done
    assert [arm.label for arm in plan.arms] == ["ldp-triehh", "pem", "adaptive-triehh", "sfp"]
    assert [arm.run_loss for arm in plan.arms] == [8.0] * 4
    for record in outcome.periods:
        for arm, of_arm in zip(plan.arms, record.arms, strict=True):
            assert of_arm["status"] == "run"
            assert of_arm["run_loss"] == pytest.approx(arm.run_loss)
    assert sum(len(arm["words"]) for arm in outcome.periods[0].arms) > 3


def test_known_words_are_never_found_twice(done):
    *_, outcome = done
    for place in range(4):
        words = [word for record in outcome.periods for word in record.arms[place]["words"]]
        assert len(set(words)) == len(words)


def test_counts_are_those_of_everybody_in_that_period(done):
    plan, _, outcome = done
    over_time = build_over_time(plan)
    for record in outcome.periods:
        population = over_time.at(record.number).population
        lexicon = population.lexicon
        truth = dict(zip(lexicon.words, population.word_counts().holders.tolist(), strict=True))
        for of_arm in record.arms:
            assert of_arm["true_clients"] == [truth.get(word, 0) for word in of_arm["words"]]
        seen = dict(zip(record.words, record.clients, strict=True))
        assert seen == {w: n for w, n in truth.items() if n >= 0.002 * record.devices}
        published = {
            word
            for earlier in outcome.periods[: record.number + 1]
            for word in earlier.arms[0]["words"]
        }
        mass = dict(zip(lexicon.words, population.word_counts().typed.tolist(), strict=True))
        covered = sum(count for word, count in mass.items() if word in published)
        assert record.arms[0]["coverage"] == pytest.approx(covered / sum(mass.values()))


class StopsAfterOne(Callbacks):
    def finish(self, unit, result):
        raise KeyboardInterrupt


def tiny(*settings: str):
    return plan_of(
        "population.clients=600", "longitudinal.days=14", "longitudinal.min_devices=50",
        "protocol.depth=3", "longitudinal.classes=[100]", *settings,
    )  # fmt: skip


def test_a_small_discovery_goes_on_with_the_same_bits(tmp_path):
    plan = tiny()
    run_plan(plan, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path / "out", callbacks=[StopsAfterOne()])
    assert sorted(files(tmp_path / "out")) == ["0000.json"]
    run_plan(plan, tmp_path / "out", resume=True)
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_of_few_devices_those_with_budget_are_asked_and_charged(tmp_path):
    plan = tiny(
        "longitudinal.days=21", "longitudinal.yearly_loss=[]",
        "longitudinal.cap.session_days=21", "longitudinal.devices_per_run=400",
    )  # fmt: skip
    outcome = run_plan(plan, tmp_path / "out")
    tables = all_tables(outcome)
    asked, status = (tables["periods"][name].tolist() for name in ("asked", "status"))
    assert asked[0] == 400
    assert asked[1] == tables["periods"]["with_budget"][1] < 400
    assert status[:2] == ["run", "run"]
    both = np.concatenate(outcome.asked[0])
    assert len(np.unique(both)) == len(both)
    losses = tables["losses"].iloc[0]
    assert (losses["most_runs"], losses["spent_basic"]) == (1, 8)


def test_too_few_of_few_devices_are_no_run(tmp_path):
    plan = tiny(
        "longitudinal.yearly_loss=[8]",
        "longitudinal.min_devices=300",
        "longitudinal.devices_per_run=600",
    )
    table = all_tables(run_plan(plan, tmp_path / "out"))["periods"]
    assert table["status"].tolist() == ["run", "too few devices"]
    assert table["asked"][1] == 0
    assert "min_devices = 300" in table["reason"][1]


def test_a_small_plans_losses_are_sums_of_its_runs(tmp_path):
    plan = tiny(
        "longitudinal.yearly_loss=[40, 100]",
        "protocol.max_items=2",
        "longitudinal.devices_per_run=200",
    )
    assert [arm.cap.amount for arm in plan.arms] == [2, 6]
    table = all_tables(run_plan(plan, tmp_path / "out"))["losses"]
    assert table["run_epsilon"].tolist() == [16, 16]
    assert table["year_basic"].tolist() == [32, 96]
    assert table["any_year_basic"].tolist() == [64, 192]
    assert (table["year_pld"] <= table["year_basic"]).all()
    assert (table["spent_basic"] == 16 * table["most_runs"]).all()


@pytest.mark.slow("::test_a_small_discovery_goes_on_with_the_same_bits")
def test_a_killed_discovery_goes_on_with_the_same_bits(done, tmp_path):
    plan, whole, _ = done
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path / "out", callbacks=[StopsAfterOne()])
    assert sorted(files(tmp_path / "out")) == ["0000.json"]
    outcome = run_plan(plan, tmp_path / "out", resume=True)
    assert files(tmp_path / "out") == files(whole)
    assert len(outcome.asked[0]) == 2


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
def test_workers_change_nothing(tmp_path, ray_here):
    run_plan(tiny(), tmp_path / "whole")
    assert ray_here == []
    run_plan(tiny("execution.workers=2"), tmp_path / "two")
    assert files(tmp_path / "two") == files(tmp_path / "whole")
    assert set(ray_here) == {("cells", 2, "")}


@pytest.mark.slow("::test_of_few_devices_those_with_budget_are_asked_and_charged")
def test_only_devices_with_budget_are_asked_and_each_is_charged(tmp_path):
    plan = plan_of(
        "longitudinal.yearly_loss=[]", "longitudinal.cap.session_days=21",
        "longitudinal.devices_per_run=2000",
    )  # fmt: skip
    outcome = run_plan(plan, tmp_path / "out")
    table = all_tables(outcome)["periods"]
    # Two thirds in the first week, the rest and the newcomers in the next; then nearly nobody.
    assert table["asked"].tolist()[:2] == [2_000, table["with_budget"][1]]
    assert table["with_budget"][1] < 1_500
    assert table["status"].tolist()[2] == "run"
    assert (table["asked"] <= table["with_budget"]).all()
    for asked in outcome.asked[0]:
        assert len(np.unique(asked)) == len(asked)
    counts = np.bincount(np.concatenate(outcome.asked[0]), minlength=len(outcome.arrivals))
    assert counts.max() <= 2
    for first in range(5):
        window = np.concatenate(outcome.asked[0][first : first + 3])
        late = outcome.arrivals <= first
        assert np.bincount(window, minlength=len(outcome.arrivals))[late].max() <= 2
    losses = all_tables(outcome)["losses"].iloc[0]
    assert losses["most_runs"] == counts.max()
    assert losses["spent_basic"] == 8 * counts.max()


@pytest.mark.slow("::test_too_few_of_few_devices_are_no_run")
def test_too_few_devices_are_no_run_and_say_so(tmp_path):
    plan = plan_of(
        "longitudinal.yearly_loss=[8]", "longitudinal.devices_per_run=3000",
        "longitudinal.min_devices=800",
    )  # fmt: skip
    outcome = run_plan(plan, tmp_path / "out")
    table = all_tables(outcome)["periods"]
    # After the first week only newcomers have budget, until they are enough.
    assert table["status"].tolist() == ["run", *["too few devices"] * 2, "run", "too few devices"]
    assert table["with_budget"].tolist()[1:3] == [350, pytest.approx(650, abs=40)]
    skipped = table[table["status"] != "run"]
    assert (skipped["asked"] == 0).all()
    assert skipped["reason"].str.contains("min_devices = 800").all()
    with pytest.raises(InputError, match=r"longitudinal.min_devices = 5,000"):
        run_plan(plan_of("longitudinal.min_devices=5000"), tmp_path / "few")
    assert not (tmp_path / "few").exists()


def test_words_are_classed_by_their_best_period_and_timed_from_the_first(done):
    plan, _, outcome = done
    tables = all_tables(outcome)
    words = tables["words"][tables["words"]["protocol"] == "ldp-triehh"].set_index("word")
    for word, row in words.iterrows():
        shares = {
            record.number: 1000 * record.clients[record.words.index(word)] / record.devices
            for record in outcome.periods
            if word in record.words
        }
        assert row["best_per_1000"] == pytest.approx(max(shares.values()))
        bound = row["per_1000_at_least"]
        assert bound <= row["best_per_1000"]
        assert bound == max(each for each in plan.section.classes if each <= row["best_per_1000"])
        assert row["start_day"] == 7 * min(shares)
        found = [r.number for r in outcome.periods if word in r.arms[0]["words"]]
        assert row["is_found"] == bool(found)
        until = 7 * (found[0] + 1) - row["start_day"] if found else 14 - row["start_day"]
        assert row["days"] == max(until, 0)
    classes = tables["classes"]
    assert classes.groupby("protocol")["words"].sum().eq(len(words)).all()
    assert (classes["found"] <= classes["words"]).all()
    false = tables["published"]["is_false"]
    assert false.sum() == tables["periods"]["false"].sum()


@pytest.mark.slow("::test_a_small_plans_losses_are_sums_of_its_runs")
def test_losses_are_sums_of_runs_and_no_more_than_asked_for(tmp_path):
    plan = plan_of(
        "longitudinal.yearly_loss=[40, 100]", "protocol.max_items=2", "longitudinal.days=14"
    )
    assert [arm.cap.amount for arm in plan.arms] == [2, 6]
    table = all_tables(run_plan(plan, tmp_path / "out"))["losses"]
    assert table["run_epsilon"].tolist() == [16, 16]
    assert table["year_runs"].tolist() == [2, 6]
    assert table["year_basic"].tolist() == [32, 96]
    assert table["any_year_basic"].tolist() == [64, 192]
    assert (table["year_pld"] <= table["year_basic"]).all()
    assert (table["spent_basic"] == 16 * table["most_runs"]).all()


def test_a_file_with_days_has_its_words_in_their_periods(tmp_path):
    path = tmp_path / "words.csv"
    rows = [(u, "brb" if day > 13 else "lol", day) for day in range(21) for u in range(60)]
    pd.DataFrame(rows, columns=["user", "word", "when"]).to_csv(path, index=False)
    settings = ["longitudinal.days=all", "population.columns.day=when", "population.known=none"]
    over_time = build_over_time(load_plan("weekly-small", data=path, settings=settings))
    for number, word in enumerate(("lol", "lol", "brb")):
        population = over_time.at(number).population
        assert population.num_clients == 60
        assert [
            population.lexicon.words[i] for i in np.flatnonzero(population.word_counts().typed)
        ] == [word]


@pytest.mark.slow("::test_a_file_with_days_has_its_words_in_their_periods")
def test_a_file_with_days_runs_too(tmp_path):
    rng = np.random.default_rng(0)
    words = ["lol", "im", "gonna", "brb"]
    rows = []
    for day in range(21):
        for user in range(400):
            word = words[min(rng.geometric(0.5), 3) - 1] if day < 14 else "brb"
            rows.append((user, word, day))
    path = tmp_path / "words.csv"
    pd.DataFrame(rows, columns=["user", "word", "when"]).to_csv(path, index=False)
    plan = load_plan(
        "weekly-small",
        data=path,
        settings=[
            "longitudinal.days=all", "population.columns.day=when", "population.known=none",
            "longitudinal.min_devices=50", "protocol.depth=5", "execution.workers=0",
            # A validation round of so few devices could hold 20 holders by chance.
            "protocol.anonymity_k=0", "longitudinal.classes=[100]",
        ],
    )  # fmt: skip
    outcome = run_plan(plan, tmp_path / "out")
    assert [record.devices for record in outcome.periods] == [400] * 3
    found = {word: record.number for record in outcome.periods for word in record.arms[0]["words"]}
    assert found["brb"] == 2
    assert {"lol", "im"} <= {word for word, number in found.items() if number < 2}
    tables = all_tables(outcome)
    row = tables["words"].set_index("word").loc["brb"]
    assert row["is_new"]
    assert row["days"] == 7
    first = read_period(tmp_path / "out", 0)
    assert first is not None
    assert set(first.words) == {"lol", "im", "gonna"}


@pytest.mark.slow(
    "tests/longitudinal/test_repeated_figures.py::test_a_cell_says_the_median_its_interval_and_how_many_were_never_found"
)
@pytest.mark.usefixtures("drawn_figures")
def test_the_command_ends_with_a_table_and_a_figure(tmp_path, command):
    words = ["longitudinal", "run", "--preset", "weekly-small", "--workers", "0", "--out", "mine"]
    settings = [word for value in SMALL for word in ("--set", value)]
    more = ["--protocol", "ldp-triehh", "--protocol", "pem", "--set", "longitudinal.days=14"]
    finished = command(*words, *settings, *more, "--format", "json", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(finished.stdout)["protocols"]
    assert [row["protocol"] for row in rows] == ["ldp-triehh", "pem"]
    assert rows[0]["year_runs"] == 26
    for name in ("days-until-found.png", "by-week.svg"):
        assert (tmp_path / "mine" / "figures" / name).stat().st_size > 1_000
    for name in ("periods", "published", "words", "classes", "losses"):
        assert len(pd.read_csv(tmp_path / "mine" / f"{name}.csv")) > 0
    again = command("longitudinal", "run", "--resume", "--out", "mine", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "days-until-found.png" in again.stdout
    assert command("show", "mine", cwd=tmp_path).stdout == again.stdout
    as_json = command("show", "mine", "--format", "json", cwd=tmp_path)
    assert json.loads(as_json.stdout)["protocols"] == rows
    (tmp_path / "mine" / "result.json").unlink()
    unfinished = command("show", "mine", cwd=tmp_path)
    assert "fedhh longitudinal run --resume" in unfinished.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["longitudinal.weeks=3"], "unknown key longitudinal.weeks"),
        (["longitudinal.cap.amounts=3"], "unknown key longitudinal.cap.amounts; did you mean"),
        (["longitudinal.cap.amount=0"], "longitudinal.cap.amount = 0: expected"),
        (["longitudinal.days=-7"], "longitudinal.days = -7: expected"),
        (["longitudinal.days=5"], "at least one period of longitudinal.every_days = 7"),
        (["longitudinal.days=all"], "expected a number for a synthetic population"),
        (["longitudinal.every_days=0"], "longitudinal.every_days = 0: expected"),
        (["longitudinal.born_share=2"], "longitudinal.born_share = 2: expected"),
        (["longitudinal.cap.amount=2"], "yearly_loss: expected it or .longitudinal.cap., got both"),
        (["longitudinal.classes=[5, 2]"], "longitudinal.classes: expected rising"),
        (["longitudinal.yearly_loss=[1e99]"], "yearly_loss = 1e.99: expected at most 2920, what"),
        (["longitudinal.publish=some"], "longitudinal.publish"),
        (["population.columns.day=when"], "expected a file as population.source"),
        (["privacy.local_epsilon=0"], "privacy.local_epsilon = 0: expected"),
        (["protocol.name=triehh"], "expected a protocol whose devices all randomize"),
        (["protocol.name=ldp"], "Unknown protocol 'ldp'"),
        (["population.source=chatt"], "chatt"),
        (["longitudinal.protocols.sfp.nam=1"], "protocol sfp: unknown key protocol.nam; did you"),
        (["baseline.name=sfp"], "belongs to fedhh run"),
        (["devices.eligible=0.5"], ": devices: expected no such table, .* within a period; remove"),
        (["longitudinal.yearly_loss=[7]"], "expected at least 8, what one run"),
    ],
)  # fmt: skip
def test_wrong_settings_are_one_line(settings, message):
    with pytest.raises(InputError, match=message) as refused:
        load_plan("weekly-small", settings=settings)
    assert "\n" not in str(refused.value)


def test_infinite_medians_are_those_of_words_not_found(done):
    *_, outcome = done
    classes = all_tables(outcome)["classes"]
    some = classes[classes["words"] > 0]
    rare = some["found"] * 2 < some["words"]
    assert (some.loc[rare, "median_days"] == math.inf).all()
