"""Sweeps and comparisons at one central epsilon: what is chosen, where it stands, refusals."""

from __future__ import annotations

import copy
import tomllib
from typing import Any

import pytest

import fedhh
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.report.comparison import comparison_table
from fedhh.experiments.run import equal_privacy
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.run import run_config
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.comparison import comparison_at, comparison_of
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.experiments.sweep.study import SweepStudy
from fedhh.experiments.sweep.sweep import run_sweep
from fedhh.testing import small_population
from fedhh.validation import InputError
from tests.every import every

TABLE: dict[str, Any] = {
    "population": {"source": "chat", "clients": 4_000},
    "protocol": {"depth": 5, "max_items": 1, "eta_max": 20, "passes": 1},
    "privacy": {"delta": 1e-6},
    "metrics": {"top_k": [10]},
    "execution": {"workers": 0},
}
PROTOCOLS: dict[str, Any] = {
    "LDP": {}, "central": {"name": "triehh"}, "mixed": {"name": "blender", "length": 5},
}  # fmt: skip
SECTION: dict[str, Any] = {
    "protocols": PROTOCOLS, "axes": {"item_central_epsilon": [1, 4]}, "seeds": 2,
}  # fmt: skip


def plan_of(section: dict[str, Any]):
    return parse_sweep({**copy.deepcopy(TABLE), "sweep": section}, "test")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    plan = plan_of(SECTION)
    directory = tmp_path_factory.mktemp("equal") / "sweep"
    return plan, directory, run_sweep(plan, directory, workers=0)


@pytest.mark.slow("::test_each_cells_epsilon_is_searched_once_and_it_is_told_how_far_that_is")
def test_every_cell_holds_what_was_chosen_and_the_same_sweep_chooses_the_same(done):
    plan, _, _ = done
    assert [cell.id for cell in plan_of(SECTION).cells] == [cell.id for cell in plan.cells]
    assert len({cell.id for cell in plan.cells}) == 12
    chosen = {
        (cell.protocol, cell.target["item_central_epsilon"]): cell.config for cell in plan.cells
    }
    for label in ("LDP", "mixed"):
        assert 1 < chosen[label, 1].privacy.local_epsilon < chosen[label, 4].privacy.local_epsilon
    for epsilon in (1, 4):
        assert chosen["central", epsilon].protocol.central_epsilon == epsilon
        assert chosen["mixed", epsilon].protocol.opt_in_epsilon == epsilon
    # Seeds differ in what is drawn, and in nothing that was chosen.
    for seeds in zip(plan.cells[::2], plan.cells[1::2], strict=True):
        first, second = ({**cell.config.model_dump(), "seed": 0} for cell in seeds)
        assert first == second


def test_each_cells_epsilon_is_searched_once_and_it_is_told_how_far_that_is(monkeypatch):
    searched: list[Any] = []
    search = equal_privacy.at_central_epsilon

    def counted(protocol: Any, num_clients: int, **target: Any) -> Any:
        searched.append((protocol.title, target["epsilon"]))
        return search(protocol, num_clients, **target)

    class Heard(Callbacks):
        def phase(self, text: str, done: int = 0, of: int = 0) -> None:
            phases.append((text, done, of))

    phases: list[Any] = []
    monkeypatch.setattr(equal_privacy, "at_central_epsilon", counted)
    section = {
        **copy.deepcopy(SECTION),
        "seeds": 3,
        "skip": ["out-of-reach"],
        "protocols": {"LDP": {}, "no randomizer": {"oracle": "none"}},
    }
    table = {**copy.deepcopy(TABLE), "sweep": section}
    request = Request(callbacks=[Heard()])
    study = SweepStudy(Source(kind="sweep", table=table, origin="test"), request, lambda _: "")
    assert len(study.sweep.cells) == 12
    assert len(study.sweep.to_run) == 6
    # Two protocols at two epsilons, whatever the seed, and whether there is an answer or none.
    assert [epsilon for _, epsilon in searched] == [1.0, 4.0] * 2
    assert phases == [("choosing each cell's epsilon", done, 4) for done in range(4)]


def test_a_runs_own_central_epsilon_is_the_axis_of_a_comparison_unless_another_one_is_asked_for():
    table = {**copy.deepcopy(TABLE), "privacy": {"user_central_epsilon": 2, "delta": 1e-6}}
    compared = comparison_of(table, "test")
    assert compared["privacy"] == {"delta": 1e-6}
    assert compared["sweep"]["axes"] == {"user_central_epsilon": [2]}
    # In a sweep's own file it is each cell's target, where no axis gives one.
    section = {"protocols": {"LDP": {}}, "axes": {"protocol.eta_max": [20]}}
    (cell,) = parse_sweep({**table, "sweep": section}, "test").cells
    assert cell.target == {"user_central_epsilon": 2.0}
    assert cell.config.privacy.central_target is None
    by_axis = {**section, "axes": {"privacy.local_epsilon": [3.0]}}
    (cell,) = parse_sweep({**table, "sweep": by_axis}, "test").cells
    assert (cell.target, cell.config.privacy.local_epsilon) == ({}, 3.0)
    wrong = {**section, "axes": {"privacy.user_central_epsilon": [1]}}
    with pytest.raises(InputError, match="is varied by the axis user_central_epsilon; name it so"):
        parse_sweep({**table, "sweep": wrong}, "test")


@pytest.mark.slow(
    "tests/experiments/run/test_equal_privacy.py::test_the_chosen_local_epsilon_gives_the_target_and_no_more"
)
def test_results_have_the_target_what_was_chosen_and_what_it_gives(done):
    _, _, frame = done
    assert frame["status"].eq("done").all()
    stated = frame["central_epsilon_before_run"].astype(float)
    assert (stated <= frame["item_central_epsilon"]).all()
    near = stated >= frame["item_central_epsilon"] * (1 - 2e-3)
    # A sample of TrieHH is a whole number of clients.
    assert near[frame["protocol"] != "central"].all()
    local = frame.set_index("protocol")["privacy.local_epsilon"]
    assert local["central"].isna().all()
    assert local[["LDP", "mixed"]].notna().all()


@pytest.mark.slow(
    "tests/experiments/config/test_protocol_section.py::test_every_protocol_has_a_table_that_comes_back_from_its_own_file"
)
def test_a_cells_file_gives_its_result_again(done):
    plan, directory, _ = done
    for cell in plan.cells[::2]:
        text = (directory / "cells" / f"{cell.id}.toml").read_text()
        config = parse_config(tomllib.loads(text), "cell")
        assert config.result_key == cell.id
        _, again = run_config(config, fedhh.synthetic_population("chat", 4_000, seed=0))
        record = results.read_record(directory, cell)
        assert record is not None
        assert flat_result(again, delta=config.privacy.delta) == record["result"]


@pytest.mark.slow(
    "tests/experiments/report/test_comparison.py::test_a_comparison_is_at_the_epsilon_that_is_given"
)
def test_the_comparison_says_what_is_equal(done):
    _, directory, _ = done
    table = comparison_table(*results.read_results(directory))
    labels = [row[1] for row in table.rows]
    assert {"local epsilon, chosen", "delta"} <= set(labels)
    assert "neighbors replace one item" in table.note
    assert "at most 1 or 4 at delta 1e-06" in table.note
    ordinary = {"protocols": {"LDP": {}, "twice": {"passes": 2}}, "axes": {}}
    frame = run_sweep(plan_of(ordinary), directory.parent / "ordinary", workers=0)
    ordinary_table = comparison_table(frame, {"title": "", "axes": ["protocol"]})
    assert "local epsilon, chosen" not in [row[0] for row in ordinary_table.rows]
    assert "Equal privacy" not in ordinary_table.note


@pytest.mark.slow(
    "tests/experiments/report/test_comparison.py::test_an_epsilon_in_the_place_of_an_axis_leaves_the_others"
)
def test_compare_replaces_the_axis_over_local_epsilons():
    table = {**TABLE, "sweep": {"protocols": PROTOCOLS, "axes": {"privacy.local_epsilon": [2, 4]}}}
    plan = parse_sweep(comparison_at(table, "user-central-epsilon=2"), "test")
    # An axis over another central epsilon gives way as well.
    again = comparison_at(comparison_at(table, "item-central-epsilon=1"), "user-central-epsilon=2")
    assert again == comparison_at(table, "user-central-epsilon=2")
    assert plan.axes == ("protocol", "user_central_epsilon")
    assert [cell.target for cell in plan.cells] == [{"user_central_epsilon": 2.0}] * 3
    for wrong in ("central-epsilon=2", "item-central-epsilon", "item-central-epsilon=0", "x=1"):
        with pytest.raises(InputError, match="Expected --at item-central-epsilon=E or user-"):
            comparison_at(table, wrong)


@every(
    ("section", "message"),
    [
        ({"axes": {"item_central_epsilon": ["x"]}}, "item_central_epsilon='x'"),
        ({"axes": {"item_central_epsilon": [True]}}, "item_central_epsilon=True"),
        ({"axes": {"item_central_epsilon": [-1]}}, "epsilon=-1.0"),
        (
            {"axes": {"item_central_epsilon": [1], "user_central_epsilon": [1]}},
            "leave the axis user_central_epsilon out",
        ),
        (
            {"axes": {"item_central_epsilon": [1], "privacy.local_epsilon": [1]}},
            "leave the axis privacy.local_epsilon out",
        ),
        ({"axes": {"item_central": [1]}}, "did you mean 'item_central_epsilon'"),
    ],
)
def test_wrong_axes_are_refused(section: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        plan_of(section)


def test_a_protocol_out_of_reach_is_refused_or_left_out():
    section: dict[str, Any] = {
        "protocols": {"LDP": {}, "true counts": {"oracle": "none"}},
        "axes": {"item_central_epsilon": [1]},
    }
    with pytest.raises(
        InputError, match=r"true counts.*got none: without .*sweep\.skip = ..out-of-reach"
    ):
        plan_of(section)
    plan = plan_of({**section, "skip": ["out-of-reach"]})
    assert [(cell.protocol, cell.skipped) for cell in plan.cells] == [
        ("LDP", ""), ("true counts", "out-of-reach"),
    ]  # fmt: skip


@pytest.mark.slow(
    "tests/experiments/run/test_equal_privacy.py::test_the_chosen_local_epsilon_gives_the_target_and_no_more"
)
def test_objects_are_swept_over_the_same_axis():
    population = small_population(4_000)
    protocols = {
        "LDP": fedhh.LdpTrieHH(depth=5, passes=1, max_items=1, eta_max=20),
        "PEM": fedhh.Pem(max_items=1),
    }
    frame = fedhh.sweep_over(
        protocols, population, axes={"user_central_epsilon": [2.0]}, delta=1e-6
    )
    stated = frame["central_epsilon_user_before_run"].astype(float)
    assert stated.between(2.0 * (1 - 2e-3), 2.0).all()
    with pytest.raises(InputError, match="leave the axis local_epsilon out"):
        fedhh.sweep_over(
            protocols, population, axes={"user_central_epsilon": [2.0], "local_epsilon": [2.0]}
        )
