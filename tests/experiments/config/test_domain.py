"""Alphabets and candidates of a configuration: public, or said not to be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedhh.clients.clients import Clients, Table
from fedhh.experiments.config import domain
from fedhh.experiments.config.domain import (
    CLOSED_DOMAIN,
    NOT_PRIVATE,
    settle_alphabet,
    symbols_of,
)
from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import build_protocol, settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import check_config, run_config
from fedhh.experiments.sweep.sweep import sweep
from fedhh.validation import InputError

SMALL = (
    "population.known=none", "execution.workers=0", "protocol.depth=4",
    "protocol.eta_max=20", "protocol.clients_per_layer=auto", "baseline=none",
    "protocol.name=adaptive-triehh", "protocol.max_items=10", "privacy.local_epsilon=8",
)  # fmt: skip


def reread(config: Config) -> Config:
    """Return the configuration of the file that a run writes."""
    return parse_config(parse_toml(config.to_toml(), "written"), "written")


def run(data: Path, *settings: str) -> tuple[Config, RunResult]:
    config = load_config(data=data, settings=settings)
    return run_config(config, build_population(config.population, seed=0))


@pytest.fixture
def words(tmp_path):
    rows = ["user,word", *(f"{user},{word}" for user in range(400) for word in ("да", "ёж"))]
    (tmp_path / "words.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "words.csv"


def test_auto_takes_the_symbols_of_the_known_words():
    config = load_config(settings=["population.alphabet=auto"])
    assert list(config.population.alphabet) == sorted(set(config.population.alphabet))
    assert set("abcdefghijklmnopqrstuvwxyz'") <= set(config.population.alphabet)
    assert config.population.alphabet_source == "scowl70"


def test_the_cells_of_a_sweep_look_through_a_list_once(monkeypatch, tmp_path):
    (tmp_path / "list.txt").write_text("\n".join(["ab"] * 10_000 + ["cd"]))
    read: list[str] = []
    monkeypatch.setattr(domain, "symbols_of", lambda words: read.append("") or symbols_of(words))
    settings = ["population.alphabet=auto", f"population.known={tmp_path / 'list.txt'}"]
    first, second = (load_config(settings=settings).population.alphabet for _ in range(2))
    assert first == second == "abcd"
    assert len(read) == 1


def test_auto_takes_the_symbols_of_a_file_in_the_order_of_their_points(tmp_path):
    (tmp_path / "list.txt").write_text("ёж\r\nда нет\n\tab\0\n", encoding="utf-8")
    source = f"population.alphabet_source={tmp_path / 'list.txt'}"
    config = load_config(settings=["population.alphabet=auto", source])
    assert config.population.alphabet == "abадежнтё"
    assert build_protocol(config).symbols.size == 10
    # The configuration that a run writes needs the file no more.
    (tmp_path / "list.txt").unlink()
    assert reread(config) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["population.alphabet=auto", "population.known=none"], "name a public file"),
        (["population.alphabet_source=x.txt"], 'expected population.alphabet = "auto"'),
        (
            ["population.alphabet=from-data", "population.alphabet_source=x.txt"],
            'expected population.alphabet = "auto"',
        ),
        (["population.alphabet=auto", "population.alphabet_source=absent"], "existing file"),
        (["population.alphabet=auto", "population.alphabet_source=/dev/zero"], "or a device"),
        (["population.alphabet=auto", "population.alphabet_source=empty"], "got none in empty"),
        (["population.candidates=nowhere"], "candidates = 'nowhere': expected"),
        (["population.candidates=7"], "candidates = 7: expected a file or a list of words"),
        (["population.candidates=[1]"], "candidates = [1]: expected a file or a list of words"),
        (["population.candidates=empty"], "one a line, got an empty file"),
    ],
)
def test_what_is_no_public_source_is_refused_in_one_line(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text(" \n\t\n")
    with pytest.raises(InputError) as caught:
        load_config(settings=settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["from-data", "auto"])
def test_an_alphabet_spells_the_clients_words_and_is_said_to_be_theirs(words, tmp_path, source):
    (tmp_path / "public.txt").write_text("абвгдеёжз\n", encoding="utf-8")
    public = [f"population.alphabet_source={tmp_path / 'public.txt'}"] if source == "auto" else []
    given = [*SMALL, "population.clients=300", f"population.alphabet={source}", *public]
    settled, result = run(words, *given)
    assert set(settled.population.alphabet) == set("аджё" if source == "from-data" else "абвгдеёжз")
    assert {"да", "ёж"} <= set(result.discoveries["word"])
    assert (NOT_PRIVATE in result.privacy.notes) == (source == "from-data")
    assert reread(settled) == settled
    assert (result.population["clients"], result.population["drawn_from_clients"]) == (300, 400)
    assert result.population["name"] == "words.csv, a random 300 of 400 users"


@pytest.mark.slow("::test_an_alphabet_spells_the_clients_words_and_is_said_to_be_theirs")
def test_an_alphabet_from_the_data_is_settled_with_the_clients_and_said_not_to_be_private(words):
    config = load_config(data=words, settings=[*SMALL, "population.alphabet=from-data"])
    build_protocol(config)  # What can be checked without clients is.
    population = build_population(config.population, seed=0)
    settled, result = run_config(config, population)
    assert settled.population.alphabet == "аджё"
    assert settled.population.alphabet_source == "from-data"
    assert {"да", "ёж"} <= set(result.discoveries["word"])
    assert result.privacy.notes[-1] == NOT_PRIVATE
    # A run that goes on from its own file says it, too.
    again, result = run_config(reread(settled), population)
    assert again == settled == reread(settled)
    assert result.privacy.notes[-1] == NOT_PRIVATE


def test_a_public_alphabet_spells_the_clients_words_without_a_note(words, tmp_path):
    (tmp_path / "public.txt").write_text("абвгдеёжз\n", encoding="utf-8")
    source = f"population.alphabet_source={tmp_path / 'public.txt'}"
    _, result = run(words, *SMALL, "population.alphabet=auto", source)
    assert {"да", "ёж"} <= set(result.discoveries["word"])
    assert NOT_PRIVATE not in result.privacy.notes
    assert result.population["drawn_from_clients"] is None


@pytest.mark.slow("::test_an_alphabet_spells_the_clients_words_and_is_said_to_be_theirs")
def test_a_result_says_of_how_many_users_its_clients_were_drawn(words):
    _, result = run(words, *SMALL, "population.clients=300")
    assert result.population["clients"] == 300
    assert result.population["drawn_from_clients"] == 400
    assert result.population["name"] == "words.csv, a random 300 of 400 users"


def test_a_public_alphabet_does_not_depend_on_the_clients(words):
    config = load_config(data=words, settings=[*SMALL, "population.known=scowl70"])
    config = config.model_copy(
        update={"population": config.population.model_copy(update={"alphabet": "auto"})}
    )
    other = Clients(
        Table(
            build_population(config.population, seed=0).lexicon,
            np.zeros(1001, dtype=np.int64),
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
        ),
        name="other",
    )
    population = build_population(config.population, seed=0)
    mine, others = (settle_alphabet(config, each).population for each in (population, other))
    assert mine == others
    assert "д" not in mine.alphabet
    assert check_config(config, population)[0].population == mine


def test_a_sweep_settles_alphabets_in_its_cells(words, tmp_path):
    (tmp_path / "public.txt").write_text("абвгдеёжз\n", encoding="utf-8")
    (tmp_path / "mine.toml").write_text(
        f'[population]\nsource = {json.dumps(str(words))}\nknown = "none"\n'
        f'alphabet_source = {json.dumps(str(tmp_path / "public.txt"))}\nalphabet = "auto"\n'
        "[protocol]\ndepth = 3\npasses = 1\neta_max = 20\n"
        "[sweep.axes]\npopulation.clients = [200, 300]\n"
    )
    table = sweep(tmp_path / "mine.toml")
    assert table["coverage"].tolist() == [1.0, 1.0]
    assert table["population_clients"].tolist() == [200, 300]


CLOSED = (
    "protocol.name=svim", "population.known=none", "baseline=none", "execution.workers=0",
    "protocol.false_discovery_rate=0", "privacy.local_epsilon=8",
)  # fmt: skip


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
    again = reread(config)
    assert again == config
    assert build_protocol(again).candidates.words == ("brb", "lol", "omg")
    assert load_config(settings=[*CLOSED, 'population.candidates=["lol","brb"]']).result_key != (
        config.result_key
    )


def test_the_clients_own_words_are_candidates_only_where_that_is_said(clients):
    given = [*CLOSED, "protocol.keep=2"]
    config = load_config(data=clients, settings=[*given, "population.candidates=from-data"])
    population = build_population(config.population, seed=0)
    settled, protocol = check_config(config, population)
    assert protocol.candidates.words == ("brb", "idk", "lol")
    assert settled.population.candidates == "from-data"
    _, result = run_config(config, population)
    assert list(result.discoveries["word"]) == ["lol", "brb"]
    assert CLOSED_DOMAIN in result.privacy.notes

    _, result = run(clients, *given, 'population.candidates=["lol","brb","zzz"]')
    assert list(result.discoveries["word"]) == ["lol", "brb"]
    assert CLOSED_DOMAIN not in result.privacy.notes
    with pytest.raises(InputError, match="from-data"):
        build_protocol(load_config(settings=given))


def test_before_the_clients_are_known_others_stand_in():
    settings = [*CLOSED, "population.candidates=from-data"]
    assert len(build_protocol(load_config(settings=settings)).candidates) == 2
    assert settle(load_config(settings=settings), 1_000)[1].clients_per_layer == 333


def test_an_open_domain_has_no_use_for_candidates(clients):
    _, result = run(
        clients, "protocol.name=pem", "protocol.oracle=flh", "protocol.num_hashes=16",
        "protocol.length=3", "population.known=none", "population.candidates=from-data",
    )  # fmt: skip
    assert CLOSED_DOMAIN not in result.privacy.notes


@pytest.mark.slow("::test_a_runs_own_file_holds_the_words_of_the_list")
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
