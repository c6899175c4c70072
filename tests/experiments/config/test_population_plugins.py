"""Somebody else's population: found by name, run, refused in one line."""

from __future__ import annotations

import pytest

from fedhh.clients.known_words import removal_facts
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population, population_class
from fedhh.experiments.config.schema import PopulationConfig
from fedhh.experiments.run.run import run_config
from fedhh.validation import InputError

pytestmark = pytest.mark.usefixtures("own_modules")

MODULE = """
import numpy as np
from fedhh.clients.clients import Clients, Table
from fedhh.clients.population import Population
from fedhh.words.lexicon import Lexicon

class Same(Clients):
    def __init__(self, num_clients, *, seed):
        table = Table(
            Lexicon(words=["aa", "zz"]), np.arange(num_clients + 1),
            np.arange(num_clients) % 2, np.full(num_clients, 1 + seed),
        )
        super().__init__(table, name="same")

class NoPopulation:
    pass

class Half(Population):
    lexicon = None
"""

CONFIG = """
seed = 2
[population]
source = "theirs:Same"
clients = 3_000
known = "none"
[protocol]
depth = 3
passes = 1
eta_max = 5
[execution]
workers = 0
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs.py").write_text(MODULE)
    (tmp_path / "run.toml").write_text(CONFIG)
    return load_config(file=tmp_path / "run.toml")


def test_a_class_next_to_the_config_is_the_population(config):
    population = build_population(config.population, seed=config.seed)
    assert removal_facts(population, "none")["tokens"] == 3_000 * 3
    assert population.name == "same"
    assert population.num_clients == 3_000


@pytest.mark.slow("::test_a_class_next_to_the_config_is_the_population")
def test_a_class_next_to_the_config_gives_the_clients(config):
    population = build_population(config.population, seed=config.seed)
    assert removal_facts(population, "none")["tokens"] == 3_000 * 3
    _, result = run_config(config, population)
    assert set(result.discoveries["word"].head(2)) == {"aa", "zz"}
    assert result.population["name"] == "same"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": None}, "population.clients is missing"),
        ({"source": "theirs:Nobody"}, "has no class 'Nobody'"),
        ({"source": "absent_module:Same"}, "absent_module"),
        ({"source": "theirs:NoPopulation"}, "expected a subclass of fedhh's Population"),
        ({"source": "theirs:Half"}, "Half lacks block, num_clients"),
    ],
)
def test_what_is_no_population_is_one_line(config, changes, message):
    wrong = config.population.model_copy(update=changes)
    with pytest.raises(InputError, match=message) as caught:
        build_population(wrong, seed=0)
    assert "\n" not in str(caught.value)


def test_our_own_sources_and_files_are_no_classes(tmp_path):
    odd = tmp_path / "a:b.csv"
    odd.write_text("user,word\nu,w\n")
    for source in ("chat", "zipf", "words.csv", str(odd)):
        assert population_class(source) is None
    assert PopulationConfig(source="chat").clients is None
