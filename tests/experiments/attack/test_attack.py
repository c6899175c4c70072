"""How many fake clients a protocol survives: `fedhh attack`, from Python and the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fedhh.cli.app import app
from fedhh.experiments.attack.attack import AttackResult, _cells, attack
from fedhh.experiments.attack.survival import LayerCut, survival
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.run.run import run_config
from fedhh.oracles import OracleSpec, make_pure_oracle

SMALL = (
    "population.source=zipf",
    "population.clients=20_000",
    "population.known=none",
    "protocol.depth=6",
    "protocol.clients_per_layer=auto",
)


@pytest.fixture(scope="module")
def found():
    return attack("small", settings=SMALL, vary=("privacy.local_epsilon=4,8",), runs=2)


FEW = (
    "population.source=zipf", "population.clients=500", "population.known=none",
    "protocol.depth=2", "protocol.clients_per_layer=auto",
)  # fmt: skip


def test_a_small_attack_finds_how_many_fakes_a_word_takes():
    found = attack("small", settings=FEW, vary=("privacy.local_epsilon=8",), runs=1)
    (one,) = found.each
    assert one.settings == {"privacy.local_epsilon": "8"}
    assert 1 <= one.needed(0.5).clients <= one.needed(0.95).clients <= one.most
    assert one.num_clients == 500
    doses = sorted(one.doses, key=lambda dose: dose.clients)
    few, many = doses[0], doses[-1]
    assert few.found < few.targets / 2
    assert many.found == many.targets
    content = json.loads(json.dumps(found.to_dict()))
    assert content["attacks"][0]["needed"]["0.5"]["clients"] == one.needed(0.5).clients
    assert str(one.needed(0.95).clients) in found.table().render("csv").replace(",", "")


EVERY, ONE = "LDP TrieHH, every round", "LDP TrieHH, one round"


@pytest.mark.parametrize(
    ("protocols", "labels"),
    [
        (["all"], [EVERY, ONE, "SFP"]),
        (["pem", "all", "sfp"], ["PEM", EVERY, ONE, "SFP"]),
        # A name is the first of this name, which counts once.
        (["ldp-triehh"], ["LDP TrieHH"]),
        (["ldp-triehh", "all"], [EVERY, ONE, "SFP"]),
    ],
)
def test_all_stands_for_every_protocol_of_the_source_labelled_as_there(protocols, labels):
    base = load_config(settings=["population.clients=3000"])
    tables = {EVERY: base.protocol, ONE: base.baseline[0], "SFP": base.baseline[1]}
    tables["LDP TrieHH"] = base.protocol
    cells = list(_cells(base, protocols, ()))
    assert [label for _, _, label in cells] == labels
    for config, _, label in cells:
        if label in tables:
            assert config.protocol == tables[label].changed({"clients_per_layer": "auto"})


def test_labels_of_two_protocols_of_one_name_tell_what_varies_in_them():
    base = load_config()
    cells = list(_cells(base, ["all"], ("privacy.local_epsilon=4,8", "protocol.max_items=1,2")))
    assert [label for _, _, label in cells] == [EVERY] * 4 + [ONE] * 4 + ["SFP"] * 4
    assert [(varied, config.privacy.local_epsilon) for config, varied, _ in cells[4:8]] == [
        ({"privacy.local_epsilon": epsilon, "protocol.max_items": items}, float(epsilon))
        for epsilon in "48"
        for items in "12"
    ]
    # Both have the same participation, so it no more tells them apart.
    cells = list(_cells(base, ["all"], ("protocol.participation=one-round",)))
    assert [label for _, _, label in cells] == ["LDP TrieHH", "LDP TrieHH (2)", "SFP"]


@pytest.mark.slow("::test_a_small_attack_finds_how_many_fakes_a_word_takes")
def test_more_privacy_needs_more_fake_clients_for_the_same_noise(found):
    at_4, at_8 = found.each
    assert (at_4.settings, at_8.settings) == (
        {"privacy.local_epsilon": "4"},
        {"privacy.local_epsilon": "8"},
    )
    # Votes at epsilon 4 have more noise, and a crafted report says as much.
    assert at_4.needed(0.5).clients > at_8.needed(0.5).clients >= 1
    for one in found.each:
        assert one.needed(0.5).clients <= one.needed(0.95).clients
        assert one.num_clients == 20_000
        assert sum(dose.targets for dose in one.doses) > 50


@pytest.mark.slow("::test_a_small_attack_finds_how_many_fakes_a_word_takes")
def test_crafted_reports_need_fewer_fakes_than_honest_ones_at_small_epsilon(found):
    honest = attack(
        "small", settings=(*SMALL, "privacy.local_epsilon=4"), strategy="input", runs=2
    ).each[0]
    crafted = found.each[0]
    half = honest.needed(0.5)
    assert half is None or half.low > 4 * crafted.needed(0.5).high
    # A run has at most a tenth of all clients for its targets, of which one has half.
    assert honest.needed(0.95) is None
    assert crafted.needed(0.5).high < honest.most == crafted.most == 1_000
    assert "above 1,000" in AttackResult(population="p", each=(honest,)).table().render("csv")


@pytest.mark.slow("::test_a_small_attack_finds_how_many_fakes_a_word_takes")
def test_json_and_table_say_the_same(found):
    content = json.loads(json.dumps(found.to_dict()))
    assert [one["needed"]["0.5"]["clients"] for one in content["attacks"]] == [
        one.needed(0.5).clients for one in found.each
    ]
    table = found.table().render("csv")
    assert "LDP TrieHH" in table
    assert str(found.each[0].needed(0.95).clients) in table.replace(",", "")


@pytest.mark.slow("::test_a_small_attack_finds_how_many_fakes_a_word_takes")
def test_the_same_seed_finds_the_same(found):
    again = attack("small", settings=SMALL, vary=("privacy.local_epsilon=8",), runs=2)
    assert again.each[0].doses == found.each[1].doses


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--vary", "privacy.local_epsilon"], "Expected --vary section.key=V1,V2"),
        (["--strategy", "demote"], "strategy"),
        (["--runs", "0"], "runs"),
        (["--set", "adversary.clients=3"], "Expected no table adversary"),
        (["--protocol", "nothing"], "nothing"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(words, complaint):
    result = CliRunner().invoke(app, ["attack", "small", *words])
    assert result.exit_code != 0
    assert complaint in f"{result.output}{result.exception}"


@pytest.mark.slow("::test_all_stands_for_every_protocol_of_the_source_labelled_as_there")
def test_every_protocol_of_the_source_is_attacked_and_has_its_row():
    two = (*FEW, "baseline.name=ldp-triehh", "baseline.0.participation=every-round",
           "baseline.0.depth=2")  # fmt: skip
    found = attack("small", settings=two, protocols=("all",), runs=1)
    assert [one.label for one in found.each] == [ONE, EVERY]
    assert [one["label"] for one in found.to_dict()["attacks"]] == [ONE, EVERY]
    assert [row[0] for row in found.table().rows] == [ONE, EVERY]
    assert [one.config.protocol.participation for one in found.each] == ["one-round", "every-round"]


@pytest.mark.slow(
    "tests/experiments/attack/test_survival.py::test_gboards_layers_let_three_fake_devices_through"
)
def test_a_trie_gives_way_to_as_many_fake_clients_as_its_layers_cuts_say():
    settings = (*SMALL, "privacy.local_epsilon=6")
    measured = attack("small", settings=settings, runs=3).each[0]
    config = load_config(preset="small", settings=list(settings))
    population = build_population(config.population, seed=config.seed)
    config, honest = run_config(config, population)
    spec = OracleSpec(name="ss", epsilon=6.0, params={"subset_size": config.protocol.subset_size})
    cuts = [
        LayerCut(
            num_clients=row.num_clients,
            max_items=config.protocol.max_items,
            q=make_pure_oracle(spec, row.domain_size).q,
            threshold=row.threshold,
        )
        for row in honest.layers.itertuples()
    ]
    assert honest.layers["decides"].all()
    for chance in (0.5, 0.95):
        needed = measured.needed(chance)
        # Cuts of other runs differ by a vote or two, and targets take places of each other.
        low, high = (
            survival(cuts, fakes=fakes, num_clients=20_000 + fakes)
            for fakes in (round(0.8 * needed.low), round(1.2 * needed.high))
        )
        assert low < chance < high
    half = measured.needed(0.5).clients
    assert survival(cuts, fakes=half // 2, num_clients=20_000) < 0.1


@pytest.mark.slow("::test_a_small_attack_finds_how_many_fakes_a_word_takes")
def test_several_words_take_more_fake_clients_than_one():
    settings = (*SMALL, "privacy.local_epsilon=8")
    one, three = (
        attack("small", settings=settings, targets=targets, runs=2).each[0] for targets in (1, 3)
    )
    # A report of Subset Selection has room for a few values here, but all words have to be found.
    assert three.needed(0.5).low > one.needed(0.5).low
    assert three.num_targets == 3
    assert sum(dose.targets for dose in three.doses) > 20
    table = AttackResult(population="p", each=(three,)).table()
    assert "push 3 words which no client holds, and which all have to be found" in table.note
