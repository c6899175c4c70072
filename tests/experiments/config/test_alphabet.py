from __future__ import annotations

import json

import numpy as np
import pytest

from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.config.domain import NOT_PRIVATE, settle_alphabet
from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.experiments.run.run import check_config, run_config
from fedhh.validation import InputError

SMALL = (
    "population.known=none", "execution.workers=0", "protocol.passes=1", "protocol.depth=4",
    "protocol.eta_max=20", "protocol.clients_per_layer=auto", "baseline=none",
)  # fmt: skip


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


def test_auto_takes_the_symbols_of_a_file_in_the_order_of_their_points(tmp_path):
    (tmp_path / "list.txt").write_text("ёж\r\nда нет\n\tab\0\n", encoding="utf-8")
    source = f"population.alphabet_source={tmp_path / 'list.txt'}"
    config = load_config(settings=["population.alphabet=auto", source])
    assert config.population.alphabet == "abадежнтё"
    assert build_protocol(config).symbols.size == 10
    # The configuration that a run writes needs the file no more.
    (tmp_path / "list.txt").unlink()
    assert parse_config(parse_toml(config.to_toml(), "x"), "x") == config


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
        (["population.alphabet=auto", "population.alphabet_source=/dev/zero"], "is a device"),
        (["population.alphabet=auto", "population.alphabet_source=empty"], "got none in empty"),
    ],
)
def test_an_alphabet_without_a_source_is_refused(tmp_path, monkeypatch, settings, message: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text(" \n\t\n")
    with pytest.raises(InputError) as caught:
        load_config(settings=settings)
    assert message in str(caught.value)


def test_an_alphabet_from_the_data_is_settled_with_the_clients_and_said_not_to_be_private(words):
    config = load_config(data=words, settings=[*SMALL, "population.alphabet=from-data"])
    build_protocol(config)  # What can be checked without clients is.
    population, _ = build_population(config.population, seed=0)
    settled, result = run_config(config, population)
    assert settled.population.alphabet == "аджё"
    assert settled.population.alphabet_source == "from-data"
    assert {"да", "ёж"} <= set(result.discoveries["word"])
    assert result.privacy.notes[-1] == NOT_PRIVATE
    # A run that goes on from its own file says it, too.
    stored = parse_config(parse_toml(settled.to_toml(), "x"), "x")
    again, result = run_config(stored, population)
    assert again == settled == stored
    assert result.privacy.notes[-1] == NOT_PRIVATE


def test_a_public_alphabet_spells_the_clients_words_without_a_note(words, tmp_path):
    (tmp_path / "public.txt").write_text("абвгдеёжз\n", encoding="utf-8")
    config = load_config(
        data=words,
        settings=[
            *SMALL, "population.alphabet=auto",
            f"population.alphabet_source={tmp_path / 'public.txt'}",
        ],
    )  # fmt: skip
    population, _ = build_population(config.population, seed=0)
    _, result = run_config(config, population)
    assert {"да", "ёж"} <= set(result.discoveries["word"])
    assert NOT_PRIVATE not in result.privacy.notes
    assert result.population["drawn_from_clients"] is None


def test_a_result_says_of_how_many_users_its_clients_were_drawn(words):
    config = load_config(data=words, settings=[*SMALL, "population.clients=300"])
    _, result = run_config(config, build_population(config.population, seed=0)[0])
    assert result.population["clients"] == 300
    assert result.population["drawn_from_clients"] == 400
    assert result.population["name"] == "words.csv, a random 300 of 400 users"


def test_a_public_alphabet_does_not_depend_on_the_clients(words):
    config = load_config(data=words, settings=[*SMALL, "population.known=scowl70"])
    config = config.model_copy(
        update={"population": config.population.model_copy(update={"alphabet": "auto"})}
    )
    other = StoredPopulation(
        name="other",
        lexicon=build_population(config.population, seed=0)[0].lexicon,
        offsets=np.zeros(1001, dtype=np.int64),
        word_ids=np.zeros(0, dtype=np.int32),
        counts=np.zeros(0, dtype=np.int32),
    )
    population, _ = build_population(config.population, seed=0)
    mine, others = (settle_alphabet(config, each).population for each in (population, other))
    assert mine == others
    assert "д" not in mine.alphabet
    assert check_config(config, population)[0].population == mine


def test_a_sweep_settles_alphabets_in_its_cells(words, tmp_path):
    from fedhh.experiments.sweep.sweep import sweep

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
