"""Protocols in a configuration: distinguished by name, switched, and compared."""

from __future__ import annotations

import json
import pickle
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from fedhh.accounting.sampled_threshold import triehh_parameters
from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.config.protocol import build_protocol, settle
from fedhh.experiments.config.schema import json_schema
from fedhh.experiments.config.section import own_settings, section_class, switch_protocol
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.bitstogram import Bitstogram
from fedhh.server.blender import Blender
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.ldpminer import LdpMiner
from fedhh.server.local_discovery import CohortProtocol
from fedhh.server.opt_prefix_tree import OptPrefixTree
from fedhh.server.pem import Pem
from fedhh.server.rappor import Rappor
from fedhh.server.rappor_unknown import RapporUnknown
from fedhh.server.sample_and_threshold import SampleAndThreshold
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.server.sfp import Sfp
from fedhh.server.svim import Svim
from fedhh.server.svsm import Svsm
from fedhh.server.tee_histogram import TeeHistogram
from fedhh.server.treehist import TreeHist
from fedhh.server.triehh import TrieHH
from fedhh.server.two_servers import TwoServers
from fedhh.server.weighted_gaussian import DpSips, WeightedGaussianSelection
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.known_words import named_list
from tests.every import every
from tests.thinned import thinned

CLASSES = {
    "ldp-triehh": LdpTrieHH, "adaptive-triehh": AdaptiveTrieHH, "sfp": Sfp, "pem": Pem,
    "triehh": TrieHH, "treehist": TreeHist, "bitstogram": Bitstogram,
    "opt-prefix-tree": OptPrefixTree,
    "blender": Blender, "rappor-unknown": RapporUnknown,
    "secagg-triehh": SecAggTrieHH, "two-servers": TwoServers,
    "ldpminer": LdpMiner, "rappor": Rappor, "svim": Svim, "svsm": Svsm,
    "tee-histogram": TeeHistogram, "weighted-gaussian": WeightedGaussianSelection,
    "dp-sips": DpSips, "sample-and-threshold": SampleAndThreshold,
}  # fmt: skip

KNOWN = ("brb", "lol")
CLOSED = {LdpMiner, Rappor, Svim, Svsm}
"""Protocols that get their candidates."""


def built(*settings: str, num_clients: int = 1_000_000):
    config = load_config(settings=settings)
    return settle(config, num_clients)[1]


@pytest.mark.parametrize("name", thinned(CLASSES))
def test_every_protocol_has_a_table_that_comes_back_from_its_own_file(name):
    settings = [f"protocol.name={name}", 'protocol.clients_per_layer="auto"']
    config = load_config(settings=[*settings, 'population.candidates=["lol", "brb"]'])
    assert parse_config(tomllib.loads(config.to_toml()), "written") == config
    resolved, protocol = settle(config, 1_000_000)
    assert type(protocol) is CLASSES[name]
    assert "auto" not in dict(resolved.protocol).values()
    written = parse_config(tomllib.loads(resolved.to_toml()), "written")
    assert written == resolved
    assert build_protocol(written) == protocol
    assert pickle.loads(pickle.dumps(resolved)) == resolved


@pytest.mark.parametrize("name", CLASSES)
def test_a_protocols_defaults_are_those_of_its_class(name):
    table = {"protocol": {"name": name}, "population": {"candidates": KNOWN}}
    protocol = build_protocol(parse_config(table, "defaults"))
    sizes = {"num_clients": 1_000_000, "seed": 0}
    told = {"candidates": Candidates(KNOWN)} if CLASSES[name] in CLOSED else {}
    if issubclass(CLASSES[name], CohortProtocol):
        # Words are known to whoever is told them.
        told["known_words"] = named_list("scowl70")
    assert protocol.settle(**sizes) == CLASSES[name](**told).settle(**sizes)


@every("name", CLASSES)
def test_a_table_has_the_settings_of_its_class_but_for_those_that_stand_elsewhere(name):
    table = section_class(name).model_fields
    assert list(table) == ["name", *own_settings(CLASSES[name])]
    elsewhere = {"local_epsilon", "alphabet", "delta", "hash_seed", "noise_seed", "candidates"}
    elsewhere |= {"known_words", "language"}
    assert {field.name for field in fields(CLASSES[name])} - set(table) <= elsewhere


@pytest.mark.parametrize(
    ("known", "expected"), [("scowl70", 168_580), ("none", 0), ("absent.txt", 0), ("words.txt", 2)]
)
def test_a_protocol_is_told_what_devices_know(known, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("lol\nbrb\n")
    table = {"protocol": {"name": "adaptive-triehh"}, "population": {"known": known}}
    told = build_protocol(parse_config(table, "known")).known_words
    assert (told.name, len(told.words)) == (known, expected)


def test_the_json_schema_has_every_protocol_with_bounds_and_texts():
    schema = json.loads(json.dumps(json_schema(), allow_nan=False))
    tables = {
        each["properties"]["name"]["const"]: each["properties"]
        for each in schema["$defs"].values()
        if "const" in each["properties"].get("name", {})
    }
    assert set(tables) >= set(CLASSES)  # and those of whatever plug-ins are installed
    depth = tables["ldp-triehh"]["depth"]
    assert (depth["minimum"], depth["default"]) == (1, 15)
    assert depth["description"].startswith("D, layers per pass")
    assert tables["sfp"]["sampler"]["enum"] == ["random", "greedy"]
    assert tables["pem"]["clients_per_layer"]["anyOf"][0]["minimum"] == 1
    assert tables["sfp"]["word_share"]["exclusiveMaximum"] == 1
    assert schema["properties"]["seed"]["description"] == "Of everything that is drawn."


def test_sfp_splits_the_epsilon_of_a_contribution():
    protocol = built("protocol.name=sfp", "protocol.word_share=0.5", "privacy.local_epsilon=6")
    assert (protocol.word_epsilon, protocol.part_epsilon) == (3.0, 3.0)
    apple = built("protocol.name=sfp")
    assert (apple.word_epsilon, apple.part_epsilon) == (2.0, 6.0)


@pytest.mark.parametrize("name", ["sfp", "pem", "treehist", "bitstogram", "rappor-unknown"])
def test_hash_functions_are_drawn_anew_by_each_seed(name):
    first, second = (built(f"protocol.name={name}", f"seed={seed}") for seed in (0, 1))
    assert first.hash_seed != second.hash_seed


def test_automatic_cohorts_use_the_whole_population():
    assert built("protocol.name=sfp").plan.most_answers == 1_000_000
    pem = built("protocol.name=pem").plan
    assert 0 <= 1_000_000 - pem.most_answers < len(pem.layers)


def test_pems_oracle_follows_from_the_reports_of_a_group():
    pem = ("protocol.name=pem", "protocol.false_discovery_rate=0")
    assert built(*pem, "protocol.max_items=10", num_clients=200_000).oracle == "olh"
    assert built(*pem, "protocol.max_items=10", num_clients=2_000_000).oracle == "flh"
    settings = ["protocol.clients_per_layer=100", "protocol.max_items=3"]
    assert built(*pem, *settings).oracle == "olh"
    assert built(*settings, "protocol.oracle=cms").oracle == "cms"


def test_central_triehh_gets_sample_and_threshold_from_its_privacy():
    protocol = built("protocol.name=triehh", "protocol.central_epsilon=2", "privacy.delta=1e-9")
    expected = triehh_parameters(num_clients=1_000_000, epsilon=2, delta=1e-9, num_rounds=11)
    assert protocol.threshold == expected.threshold
    assert protocol.clients_per_layer == expected.sample_size
    given = built("protocol.name=triehh", "protocol.threshold=20", "protocol.clients_per_layer=500")
    assert (given.threshold, given.clients_per_layer) == (20, 500)


@every(
    ("settings", "message"),
    [
        (["protocol.name=sfpp"], "Unknown protocol 'sfpp'; did you mean 'sfp'?"),
        (["protocol.name=sfp", "protocol.eta_max=3"], "unknown key protocol.eta_max"),
        (["protocol.name=sfp", "protocol.lenght=3"], "did you mean 'length'?"),
        (["protocol.name=sfp", "protocol.length=0"], "protocol.length = 0: expected greater"),
        (["protocol.name=sfp", "protocol.length=9"], "length"),
        (["protocol.name=sfp", "protocol.word_share=1.0"], "protocol.word_share = 1.0: expected"),
        (["protocol.name=pem", "protocol.oracle=ss"], 'protocol.oracle = "ss": expected'),
        (["protocol.name=triehh", "protocol.threshold=20"], "both as numbers"),
        (["protocol.name=[1]"], "Unknown protocol [1]"),
        (["baseline={name=[1]}"], "Unknown protocol [1]"),
        (["baseline.name=sfp", "baseline.length=0"], "baseline.length = 0"),
        (["baseline.name=pem", "baseline.keeep=0"], "unknown key baseline.keeep"),
    ],
)
def test_wrong_protocols_are_refused_with_path_and_value(settings, message):
    with pytest.raises(InputError) as caught:
        build_protocol(load_config(settings=settings))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ".sfp." not in str(caught.value)


def test_switching_keeps_contributions_and_the_rule_for_words_and_nothing_else():
    settings = ["protocol.max_items=3", "protocol.sampler=greedy", "protocol.depth=4"]
    for order in (["protocol.name=sfp", *settings[:2]], [*settings[:2], "protocol.name=sfp"]):
        sfp = load_config(settings=order).protocol
        assert (sfp.max_items, sfp.sampler, sfp.clients_per_layer) == (3, "greedy", "auto")
    triehh = parse_config({"protocol": {"name": "triehh"}}, "x").protocol
    assert triehh.clients_per_layer == "auto"
    rule = {"false_discovery_rate": 0.2, "anonymity_k": 3, "validation_share": 0.15}
    given = [f"protocol.{key}={value}" for key, value in rule.items()]
    pem = load_config(settings=[*given, "protocol.name=pem"]).protocol
    assert {key: getattr(pem, key) for key in rule} == rule
    # A threshold alone says which words central TrieHH returns.
    table = {"sampler": "random"} | rule
    assert switch_protocol(table, "triehh") == {"name": "triehh"}


def test_a_baseline_contributes_as_the_protocol_does_unless_it_says_so():
    config = load_config(settings=["protocol.max_items=4", "baseline.name=sfp"])
    (baseline,) = config.of_baselines
    assert baseline.protocol.name == "sfp"
    assert baseline.protocol.max_items == 4
    assert baseline.of_baselines == ()
    config = load_config(settings=["baseline.name=sfp", "baseline.max_items=2"])
    assert [each.protocol.max_items for each in config.of_baselines] == [2]


def test_there_is_no_baseline_of_itself_or_of_none():
    assert load_config(settings=["baseline=none"]).of_baselines == ()
    same = load_config(settings=["protocol.name=sfp", "baseline.name=sfp"])
    assert same.of_baselines == ()


def test_baselines_are_a_list_of_tables_or_names_and_one_table_is_one():
    default = load_config()
    assert [each.protocol.name for each in default.of_baselines] == ["ldp-triehh", "sfp"]
    assert [each.protocol.eta_max for each in default.of_baselines[:1]] == [10_000]
    assert [each.protocol.participation for each in default.of_baselines] == [
        "one-round", "every-round",
    ]  # fmt: skip
    names = load_config(
        settings=['baseline=["pem", "sfp", "adaptive-triehh"]', "protocol.max_items=3"]
    )
    assert [each.protocol.name for each in names.of_baselines] == ["pem", "sfp", "adaptive-triehh"]
    assert {each.protocol.max_items for each in names.of_baselines} == {3}
    # What is one table in a file, as in earlier results, is a list of one.
    one = parse_config({"baseline": {"name": "pem", "keep": 7}}, "x")
    assert [each.protocol.keep for each in one.of_baselines] == [7]
    assert parse_config(tomllib.loads(one.to_toml()), "x") == one
    assert parse_config(tomllib.loads(default.to_toml()), "x") == default


def test_one_of_several_baselines_is_changed_by_its_number():
    config = load_config(settings=["baseline.1.max_words=9", "baseline.0.passes=1"])
    assert config.baseline[1].max_words == 9
    assert config.baseline[0].passes == 1
    added = load_config(settings=["baseline.2.name=pem", "baseline.2.keep=8"])
    assert [each.name for each in added.baseline] == ["ldp-triehh", "sfp", "pem"]
    assert added.baseline[2].keep == 8


@every(
    ("setting", "message"),
    [
        ("baseline.max_words=9", r"Expected --set baseline.NUMBER.KEY=VALUE, NUMBER from 0 to 1"),
        ("baseline.7.name=pem", "Expected a baseline from 0 to 2"),
        ("baseline.x.name=pem", "Expected --set baseline.NUMBER.KEY"),
        ("baseline.0.x.y=3", "Expected a baseline from 0 to 2, a key of it"),
        ("baseline.1.keep=3", r"unknown key baseline.1.keep"),
        ("baseline=7", "baseline = 7: expected a table"),
        ('baseline=["sfpp"]', r"baseline.name = .sfpp.: .*did you mean 'sfp'"),
        ("baseline=[[]]", "expected a table"),
    ],
)
def test_a_wrong_baseline_is_refused_in_one_line(setting, message):
    with pytest.raises(InputError, match=message) as caught:
        load_config(settings=[setting])
    assert "\n" not in str(caught.value)


SWEEP = """
[population]
source = "chat"
clients = 50_000

[protocol]
max_items = 4
passes = 1

[sweep]
seeds = 2

[sweep.protocols."one pass"]
sampler = "greedy"

[sweep.protocols.two]
passes = 2

[sweep.protocols.Apple]
name = "sfp"

[sweep.axes]
"privacy.local_epsilon" = [4, 8]
"""


def test_a_sweep_lists_whole_protocols():
    plan = parse_sweep(tomllib.loads(SWEEP), "mine.toml")
    assert plan.axes == ("protocol", "privacy.local_epsilon")
    assert len(plan.to_run) == 12
    labels = [cell.varied["protocol"] for cell in plan.to_run]
    assert labels == ["one pass"] * 4 + ["two"] * 4 + ["Apple"] * 4
    greedy, two, apple = (plan.to_run[i].config.protocol for i in (0, 4, 8))
    assert (greedy.sampler, greedy.passes, greedy.max_items) == ("greedy", 1, 4)
    assert (two.sampler, two.passes) == ("random", 2)
    assert (apple.name, apple.max_items, apple.clients_per_layer) == ("sfp", 4, 50_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('[sweep.protocols.x]\nname = "sf"', "Unknown protocol 'sf'"),
        ("[sweep.protocols.x]\netamax = 3", "unknown key protocol.etamax"),
        ('[baseline]\nname = "sfp"', r"\[baseline\] belongs to fedhh run"),
        ("[sweep.axes.protocol]\npasses = [1, 2]", r"Apple.*unknown key protocol\.passes"),
    ],
)
def test_wrong_lists_of_protocols_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        parse_sweep(tomllib.loads(f"{SWEEP}\n{change}"), "mine.toml")
