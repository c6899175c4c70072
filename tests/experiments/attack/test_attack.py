"""How many fake clients a protocol survives: `fedhh attack`, from Python and the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fedhh.cli.app import app
from fedhh.experiments.attack.attack import attack
from fedhh.validation import InputError

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


def test_crafted_reports_need_fewer_fakes_than_honest_ones_at_small_epsilon(found):
    honest = attack(
        "small", settings=(*SMALL, "privacy.local_epsilon=4"), strategy="input", runs=2
    ).each[0]
    assert honest.needed(0.5).low > found.each[0].needed(0.5).high


def test_json_and_table_say_the_same(found):
    content = json.loads(json.dumps(found.to_dict()))
    assert [one["needed"]["0.5"]["clients"] for one in content["attacks"]] == [
        one.needed(0.5).clients for one in found.each
    ]
    table = found.table().render("csv")
    assert "LDP TrieHH" in table
    assert str(found.each[0].needed(0.95).clients) in table.replace(",", "")


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


def test_all_means_the_sources_own_and_its_baselines():
    with pytest.raises(InputError, match="runs"):
        attack("small", protocols=("all",), runs=0)
