from __future__ import annotations

import copy
import tomllib
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import pytest

from fedhh.experiments.config.built_in import SWEEPS, preset_names, preset_text, presets
from fedhh.experiments.run import equal_privacy
from fedhh.experiments.sweep import plan
from fedhh.experiments.sweep.axes import by_path
from fedhh.experiments.sweep.costs import Costs
from fedhh.experiments.sweep.plan import Cell, load_sweep_table, parse_sweep
from fedhh.validation import InputError
from tests.every import every

BASE = """
seed = 3
[population]
source = "chat"
clients = 3_000
[protocol]
depth = 4
passes = 1
eta_max = 50
clients_per_layer = 100
[sweep]
"""


def parse(sweep: str) -> Any:
    return parse_sweep(tomllib.loads(BASE + sweep), "mine.toml")


def varied(sweep: str, *paths: str) -> list[tuple[Any, ...]]:
    return [tuple(cell.varied[path] for path in paths) for cell in parse(sweep).cells]


def test_axes_are_combined_in_order_and_seeds_are_innermost():
    plan = parse("seeds = 2\n[sweep.axes]\nprotocol.eta_max = [20, 30]\nprotocol.depth = [3, 4]\n")
    rows = [
        (cell.varied["protocol.eta_max"], cell.varied["protocol.depth"], cell.config.seed)
        for cell in plan.cells
    ]
    assert rows == [(e, d, s) for e in (20, 30) for d in (3, 4) for s in (3, 4)]
    assert len({cell.id for cell in plan.cells}) == 8
    assert plan.axes == ("protocol.eta_max", "protocol.depth")


@pytest.mark.parametrize(
    ("sweep", "number"),
    [
        ("seeds = 10_001", "10,001"),
        ("seeds = 1_000\nextra = [{ protocol.eta_max = 5 }]\n[sweep.axes]\n"
         "protocol.eta_max = { from = 1, to = 10, step = 1 }", "11,000"),
    ],
)  # fmt: skip
def test_a_sweep_of_too_many_cells_is_refused_before_they_are_made(sweep, number, monkeypatch):
    monkeypatch.setattr(plan, "_cell", lambda *_, **__: pytest.fail("a cell was made"))
    message = f"^mine.toml: expected at most 10,000 cells, .* got {number}; .* fewer sweep.seeds"
    with pytest.raises(InputError, match=message):
        parse(sweep)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("{ from = 1, to = 4, step = 1 }", [1.0, 2.0, 3.0, 4.0]),
        ("{ from = 0.1, to = 0.5, step = 0.1 }", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{ from = 1, to = 4, step = 2 }", [1.0, 3.0]),
        ("[8, 2]", [8.0, 2.0]),
    ],
)
def test_ranges_are_decimal_and_hold_their_end(axis: str, expected: list[float]):
    rows = varied(f'[sweep.axes]\n"privacy.local_epsilon" = {axis}\n', "privacy.local_epsilon")
    assert [value for (value,) in rows] == expected


def test_linked_axes_go_together_and_combine_with_the_others():
    rows = varied(
        """
        [[sweep.linked]]
        "protocol.passes" = [1, 2]
        "protocol.clients_per_layer" = [200, 100]
        [sweep.axes]
        "protocol.sampler" = ["greedy", "random"]
        """,
        "protocol.passes",
        "protocol.clients_per_layer",
        "protocol.sampler",
    )
    assert rows == [(1, 200, "greedy"), (2, 100, "greedy"), (1, 200, "random"), (2, 100, "random")]


def test_auto_cohorts_are_resolved_and_appear_as_a_column():
    table = tomllib.loads(BASE + "[sweep.axes]\nprotocol.passes = [1, 2]\n")
    table["protocol"]["clients_per_layer"] = "auto"
    cells = parse_sweep(table, "mine.toml").cells
    # 3,000 clients, 4 layers in a pass.
    sizes = [cell.varied["protocol.clients_per_layer"] for cell in cells]
    assert sizes == [750, 375]


def test_extra_cells_stand_next_to_the_grid():
    plan = parse(
        '[[sweep.extra]]\n"protocol.oracle" = "none"\n'
        '[sweep.axes]\n"privacy.local_epsilon" = [1, 2]\n'
    )
    rows = [(c.varied["privacy.local_epsilon"], c.varied["protocol.oracle"]) for c in plan.cells]
    assert rows == [(1.0, "ss"), (2.0, "ss"), (8.0, "none")]


def test_only_what_makes_the_result_makes_a_cells_id():
    table = tomllib.loads(BASE + "[sweep.axes]\nprotocol.passes = [1, 2]\n")
    faster = copy.deepcopy(table) | {"execution": {"workers": 7}}
    plan, other = parse_sweep(table, "a"), parse_sweep(faster, "b")
    assert [c.id for c in plan.cells] == [c.id for c in other.cells]
    assert plan.key == other.key
    assert plan.to_result_toml() == other.to_result_toml()


def test_an_impossible_cell_is_an_error_unless_a_rule_skips_it():
    axes = "[sweep.axes]\nprotocol.clients_per_layer = [100, 5_000]\n"
    with pytest.raises(InputError) as caught:
        parse(axes)
    message = str(caught.value)
    assert "protocol.clients_per_layer=5000" in message
    assert "The population has 3,000 clients" in message
    assert 'sweep.skip = ["too-few-clients"]' in message
    plan = parse('skip = ["too-few-clients"]\n' + axes)
    assert [cell.skipped for cell in plan.cells] == ["", "too-few-clients"]
    assert "need 20,000" in plan.cells[1].why
    assert len(plan.to_run) == 1


def test_cells_that_repeat_are_an_error_unless_a_rule_skips_them():
    axes = "[sweep.axes]\nprotocol.eta_max = [20, 30, 20]\n"
    with pytest.raises(InputError, match=r"eta_max=20 repeats a cell\. Or leave such cells out: "):
        parse(axes)
    plan = parse('skip = ["duplicate"]\n' + axes)
    assert [cell.skipped for cell in plan.cells] == ["", "", "duplicate"]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("seds = 3", "unknown key sweep.seds; did you mean 'seeds'?"),
        ("eta_max = 3", "unknown key sweep.eta_max; did you mean protocol.eta_max?"),
        ("seeds = 0", "sweep.seeds = 0: expected greater than or equal to 1"),
        ('skip = ["too-few"]', "unknown rule 'too-few' in sweep.skip; did you mean"),
        ("[sweep.axes]\nprotocol.eta_maxx = [1]", "did you mean 'eta_max'?"),
        ("[sweep.axes]\nprotocl.eta_max = [1]", "did you mean 'protocol'?"),
        ("[sweep.axes]\nprotocol.eta_max.x = [1]", "goes below a value"),
        ("[sweep.axes]\nprotocol = [1]", "sweep axis protocol is a table"),
        ("[sweep.axes]\nseed = [1, 2]", "set sweep.seeds"),
        ("[sweep.axes]\nexecution.workers = [1]", "it changes no result"),
        ("[sweep.axes]\nprotocol.eta_max = 3", "expected a list of values or"),
        ("[sweep.axes]\nprotocol.eta_max = []", "expected a list of values or"),
        ("[sweep.axes]\nprotocol.eta_max = {from = 1, to = 3}", "from <= to and step > 0"),
        ("[sweep.axes]\nprotocol.eta_max = {from = 3, to = 1, step = 1}", "from <= to"),
        ("[sweep.axes]\nprotocol.eta_max = {from = 1, to = 3, step = 0}", "step > 0"),
        ("[sweep.axes]\nprotocol.eta_max = {from = 1, to = inf, step = 1}", "finite"),
        ("[sweep.axes]\nprotocol.eta_max = {from = 1, to = 1e9, step = 1e-9}", "at most 10,000"),
        ("[sweep.axes]\nprotocol.eta_max = [20, 0]", "cell protocol.eta_max=0, seed=3: protocol"),
        ("[sweep.axes]\nprotocol.sampler = ['gready']", "expected 'random' or 'greedy'"),
        ("[sweep.axes]\nprotocol.oracle = ['sss']", "did you mean 'ss'"),
        (
            "[[sweep.linked]]\nprotocol.passes = [1, 2]\nprotocol.depth = [1]",
            "protocol.passes has 2, protocol.depth has 1",
        ),
        ("[[sweep.linked]]\n", "got no axis"),
        (
            "[[sweep.linked]]\nprotocol.passes = [1]\n[sweep.axes]\nprotocol.passes = [1]",
            "varies protocol.passes twice",
        ),
        ('[[sweep.extra]]\n"protocol.etamax" = 1', "did you mean 'eta_max'"),
        (
            "[sweep.axes]\npopulation.known = ['none', 'nowhere.txt']",
            "got 'nowhere.txt', which does not exist",
        ),
        (
            "[[sweep.linked]]\npopulation.virtual = [true]\npopulation.known = ['tr']",
            "expected scowl70 or none for a population that is drawn again",
        ),
    ],
)
def test_wrong_sweeps_are_refused_in_one_line(sweep: str, message: str):
    with pytest.raises(InputError) as caught:
        parse(sweep)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mine.toml")


def test_a_sweep_needs_its_table_and_one_source():
    with pytest.raises(InputError, match=r"expected a table \[sweep\]"):
        parse_sweep({"seed": 1}, "mine.toml")
    with pytest.raises(InputError, match="Expected a sweep: a TOML file, or a preset"):
        load_sweep_table("")
    with pytest.raises(InputError, match="Unknown sweep 'epsilonn'"):
        preset_text("epsilonn", SWEEPS)


def test_what_is_set_varies_no_more(tmp_path: Path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[sweep.axes]\n"population.clients" = [1_000, 2_000]\nprivacy.local_epsilon = [2, 8]\n'
        '[[sweep.linked]]\n"protocol.max_items" = [1, 2]\n"protocol.sampler" = '
        '["greedy", "random"]\n'
    )
    table, _ = load_sweep_table(file, settings=["population.clients=5_000", "seed=3"])
    sweep = parse_sweep(table, "test")
    assert sweep.axes == ("privacy.local_epsilon", "protocol.max_items", "protocol.sampler")
    assert [cell.config.population.clients for cell in sweep.cells] == [5_000] * 4
    with pytest.raises(InputError, match=r"no --set protocol.max_items, .* with protocol.sampler;"):
        load_sweep_table(file, settings=["protocol.max_items=5"])


def test_a_file_of_clients_takes_the_place_of_all_populations(tmp_path: Path):
    file = tmp_path / "words.csv"
    file.write_text("user,word,count\n1,lol,2\n")
    table, _ = load_sweep_table("field", data=file)
    assert table["population"]["source"] == str(file)
    assert "clients" not in table["population"]
    assert table["sweep"]["linked"] == []
    assert table["sweep"]["axes"] == {"privacy": {"local_epsilon": [1, 2, 4, 8]}}
    # Other links stay, and an axis of its own goes alone.
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[sweep.axes]\n"population.source" = ["chat", "zipf"]\nprotocol.depth = [3, 4]\n'
        "[[sweep.linked]]\nprotocol.passes = [1, 2]\nprotocol.eta_max = [8, 9]\n"
    )
    table, _ = load_sweep_table(mine, data=file)
    assert table["sweep"]["axes"] == {"protocol.depth": [3, 4]}
    assert len(table["sweep"]["linked"]) == 1


SLOW = {
    "epsilon-n", "field", "field-central", "field-published", "field-quick",
    "gboard-figure1", "languages", "small-populations", "trust-models", "user-level",
}  # fmt: skip
"""Built-in sweeps of many words, many cells or many searches."""
SLOW_ANYWAY = {"epsilon-n", "gboard-figure1"}
"""Those of which a single cell has many words."""


def sweeps(slow: Container[str]) -> list[Any]:
    """Return the names of all built-in sweeps as parameters, some of them marked slow."""
    marks = pytest.mark.slow
    return [pytest.param(x, marks=[marks] if x in slow else []) for x in preset_names(SWEEPS)]


def first_of(table: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep's file with the first value of each axis, and the first two protocols."""
    sweep = dict(table["sweep"])
    axes = [
        (path, [values["from"]] if isinstance(values, dict) else values[:1])
        for path, values in by_path(sweep.get("axes", {}))
    ]
    linked = [
        {path: values[:1] for path, values in by_path(group)} for group in sweep.get("linked", [])
    ]
    protocols = dict(list(sweep.get("protocols", {}).items())[:2])
    kept = {"axes": dict(axes), "linked": linked, "protocols": protocols}
    return {**table, "sweep": {**sweep, **kept, "extra": [], "seeds": 1}}


@pytest.mark.parametrize("name", sweeps(SLOW_ANYWAY))
def test_every_built_in_sweep_has_a_title_and_cells_that_are_valid(name: str, monkeypatch):
    # How an epsilon is searched is tested where that is; here it is the target itself.
    monkeypatch.setattr(
        equal_privacy, "local_epsilon_of_plan", lambda plan_at, *, epsilon, **_: epsilon
    )
    table, origin = load_sweep_table(name)
    table = first_of(table)
    plan = parse_sweep(table, origin)
    assert plan.title
    assert plan.to_run == list(plan.cells) != []
    assert tomllib.loads(plan.to_toml()) == table


@pytest.mark.parametrize("name", sweeps(SLOW))
def test_every_built_in_sweep_is_valid_and_takes_as_long_as_is_said(name: str):
    table, origin = load_sweep_table(name)
    # All seeds have the same cells, which take as long.
    seeds, table["sweep"]["seeds"] = table["sweep"].get("seeds", 1), 1
    plan = parse_sweep(table, origin)
    assert seeds >= 1
    assert plan.title
    assert len(plan.to_run) == len(plan.cells)
    assert tomllib.loads(plan.to_toml()) == table
    (preset,) = (each for each in presets() if each.name == name)
    if preset.basis == "derived":
        on_two_cores = seeds * Costs(plan.to_run).seconds_left / 2
        assert 0.8 * on_two_cores - 1 <= preset.seconds <= 1.25 * on_two_cores + 1
    if name.startswith("field"):
        asks_for_one_word_of_everybody(plan.to_run)


def asks_for_one_word_of_everybody(all_cells: Sequence[Cell]) -> None:
    for source in ("chat", "zipf"):
        cells = [cell for cell in all_cells if cell.config.population.source == source]
        assert len({cell.config.population for cell in cells}) == 1
        one_word = [cell for cell in cells if hasattr(cell.config.protocol, "max_items")]
        assert {cell.config.protocol.max_items for cell in one_word} == {1}
        others = {cell.protocol for cell in cells} - {cell.protocol for cell in one_word}
        assert {label.partition(",")[0] for label in others} == {"TrieHH", "SVIM", "LDPMiner"}
        for cell in cells:
            if cell.asked is None:  # before the words are known
                assert cell.protocol.endswith("closed domain")
            elif cell.protocol.startswith("LDPMiner"):
                # A tenth says the size of its set; the others answer twice. A validation round asks
                # a tenth of what it leaves them.
                share = 1.8 if cell.config.protocol.false_discovery_rate else 1.9
                answers = share * cell.config.population.clients
                assert cell.asked.clients == pytest.approx(answers, abs=2)
            elif cell.protocol.startswith("OptPrefixTree"):  # asks everybody in each round
                assert cell.asked.clients == cell.config.population.clients * cell.asked.layers
            elif not cell.protocol.startswith("TrieHH, central"):
                assert 0 <= cell.config.population.clients - cell.asked.clients <= cell.asked.layers


@every(
    ("axis", "message"),
    [
        ("privacy.delta = 1979-05-27", 'privacy.delta = "1979-05-27": expected a list of values'),
        ("privacy.delta = [1979-05-27]", 'cell privacy.delta="1979-05-27", seed=3: privacy.delta'),
        ("seed = 1979-05-27", 'sweep axis seed = "1979-05-27"'),
        ("privacy.delta = {from = 1979-05-27, to = 2, step = 1}", '"from": "1979-05-27"'),
        ("privacy.delta = {from = 0.1, to = 07:32:00, step = 1}", '"to": "07:32:00"'),
        ("privacy.delta = {from = 0.1, to = 0.2, step = nan}", '"step": NaN'),
        ("population.source = [1979-05-27T07:32:00Z]", 'source = "1979-05-27 07:32:00+00:00"'),
    ],
)
def test_dates_and_what_is_no_number_make_no_axis(axis: str, message: str):
    with pytest.raises(InputError) as caught:
        parse(f"[sweep.axes]\n{axis}\n")
    assert message in str(caught.value)
