from __future__ import annotations

import json

import pytest

from fedhh.experiments.config.domain import CLOSED_DOMAIN
from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import build_protocol, settle
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.experiments.run.run import check_config, run_config
from fedhh.validation import InputError

CLOSED = ("protocol.name=svim", "population.known=none", "baseline=none", "execution.workers=0")


@pytest.fixture
def listed(tmp_path):
    (tmp_path / "list.txt").write_text("lol\nbrb\r\n\n omg\nlol\n", encoding="utf-8")
    return tmp_path / "list.txt"


@pytest.fixture
def clients(tmp_path):
    words = {"lol": 300, "brb": 200, "idk": 10}
    rows = [f"{user},{word}" for word, holders in words.items() for user in range(holders)]
    (tmp_path / "words.csv").write_text("user,word\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "words.csv"


def test_a_runs_own_file_holds_the_words_of_the_list(listed):
    config = load_config(settings=[*CLOSED, f"population.candidates={listed}"])
    listed.unlink()
    assert config.population.candidates == ("brb", "lol", "omg")
    again = parse_config(parse_toml(config.to_toml(), "written"), "written")
    assert again == config
    assert build_protocol(again).candidates.words == ("brb", "lol", "omg")
    assert load_config(settings=[*CLOSED, 'population.candidates=["lol","brb"]']).result_key != (
        config.result_key
    )


def test_the_clients_own_words_are_candidates_only_where_that_is_said(clients):
    given = [*CLOSED, "protocol.keep=2"]
    config = load_config(data=clients, settings=[*given, "population.candidates=from-data"])
    population, _ = build_population(config.population, seed=0)
    settled, protocol = check_config(config, population)
    assert protocol.candidates.words == ("brb", "idk", "lol")
    assert settled.population.candidates == "from-data"
    _, result = run_config(config, population)
    assert list(result.discoveries["word"]) == ["lol", "brb"]
    assert CLOSED_DOMAIN in result.privacy.notes

    told = [*given, 'population.candidates=["lol","brb","zzz"]']
    listed = load_config(data=clients, settings=told)
    _, result = run_config(listed, population)
    assert list(result.discoveries["word"]) == ["lol", "brb"]
    assert CLOSED_DOMAIN not in result.privacy.notes
    with pytest.raises(InputError, match="from-data"):
        build_protocol(load_config(settings=given))


def test_before_the_clients_are_known_others_stand_in():
    settings = [*CLOSED, "population.candidates=from-data"]
    assert len(build_protocol(load_config(settings=settings)).candidates) == 2
    assert settle(load_config(settings=settings), 1_000)[1].clients_per_layer == 333


def test_an_open_domain_has_no_use_for_candidates(clients):
    settings = ["protocol.name=pem", "protocol.oracle=flh", "baseline=none"]
    settings += ["population.known=none", "protocol.num_hashes=16", "protocol.length=3"]
    settings += ["population.candidates=from-data"]
    config = load_config(data=clients, settings=settings)
    population, _ = build_population(config.population, seed=0)
    _, result = run_config(config, population)
    assert CLOSED_DOMAIN not in result.privacy.notes


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nowhere.txt", r"population.candidates = 'nowhere.txt': expected .* does not exist"),
        ("7", r"population.candidates = 7: expected a file or a list of words"),
        ("[1]", r"population.candidates = \[1\]: expected a file or a list of words"),
    ],
)
def test_what_is_no_list_of_words_is_refused_in_one_line(value, message):
    with pytest.raises(InputError, match=message) as refused:
        load_config(settings=[*CLOSED, f"population.candidates={value}"])
    assert "\n" not in str(refused.value)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "none.txt").write_text("\n \n")
    with pytest.raises(InputError, match="one a line, got an empty file"):
        load_config(settings=[*CLOSED, f"population.candidates={tmp_path / 'none.txt'}"])


def test_a_run_of_a_list_goes_on_without_the_list(tmp_path, listed, clients, command):
    done = command(
        "run", "--data", str(clients), "--out", "mine", "--set", "protocol.keep=2",
        "--set", f"population.candidates={listed}",
        *(part for each in CLOSED for part in ("--set", each)), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed.unlink()
    (tmp_path / "mine" / "result.json").unlink()
    again = command("run", "--resume", "--out", "mine", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    privacy = json.loads((tmp_path / "mine" / "result.json").read_text())["privacy"]
    local = [each for each in privacy["guarantees"] if each["trust"] == "local"]
    assert {(each["unit"], each["epsilon"]) for each in local} == {("item", 8.0), ("user", 8.0)}
