"""A run goes on from its log to the same result, and from no other run's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.clients import Clients, Table
from fedhh.experiments.run.directory import resumed_config
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.directory import CONFIG
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.log import LOG
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=300, depth=5, passes=1, eta_max=20, max_items=2
)
POPULATION = small_population(2_000)


class StoppedError(Exception):
    pass


class Stopper(Callbacks):
    """Stops a run in its third layer, when two are in the log."""

    def __init__(self) -> None:
        self.layers = 0

    def finish(self, unit, result) -> None:
        self.layers += 1
        if self.layers == 3:
            raise StoppedError


def content(directory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / LOG).iterdir()}


@pytest.fixture
def stopped(tmp_path):
    with pytest.raises(StoppedError):
        simulate(PROTOCOL, POPULATION, seed=4, log_in=tmp_path, callbacks=[Stopper()])
    assert sorted(content(tmp_path)) == ["0.arrays", "1.arrays"]
    return tmp_path


def test_the_same_run_goes_on_to_the_same_words(stopped):
    again = simulate(PROTOCOL, POPULATION, seed=4, log_in=stopped)
    whole = simulate(PROTOCOL, POPULATION, seed=4)
    assert again.discoveries.equals(whole.discoveries)
    assert again.timings["before_resume"] > 0


def other_population() -> Clients:
    rows = POPULATION.block(np.arange(2_000))
    counts = rows.counts.copy()
    counts[-1] += 1
    return Clients(
        Table(POPULATION.lexicon, rows.offsets, rows.word_ids, counts),
        name=POPULATION.name,
    )


@pytest.mark.parametrize(
    ("protocol", "population", "seed"),
    [
        (PROTOCOL, POPULATION, 5),
        (replace(PROTOCOL, local_epsilon=4.0), POPULATION, 4),
        (replace(PROTOCOL, eta_max=21), POPULATION, 4),
        (replace(PROTOCOL, alphabet=LETTERS[::-1]), POPULATION, 4),
        (PROTOCOL, small_population(2_001), 4),
        (PROTOCOL, other_population(), 4),
    ],
    ids=["seed", "epsilon", "eta", "alphabet", "clients", "one count"],
)
def test_whatever_differs_is_refused_and_nothing_is_lost(stopped, protocol, population, seed):
    before = content(stopped)
    with pytest.raises(InputError, match="is of another run") as caught:
        simulate(protocol, population, seed=seed, log_in=stopped)
    assert "\n" not in str(caught.value)
    assert content(stopped) == before


def test_a_log_of_another_version_is_refused(stopped, monkeypatch):
    monkeypatch.setattr("fedhh.experiments.run.follow.__version__", "0.0.1")
    with pytest.raises(InputError, match="is of another run"):
        simulate(PROTOCOL, POPULATION, seed=4, log_in=stopped)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"seed = [", b"seed = 'x'"])
def test_a_damaged_configuration_is_one_line(tmp_path, content):
    (tmp_path / CONFIG).write_bytes(content)
    with pytest.raises(InputError, match=r"config\.toml") as caught:
        resumed_config(tmp_path)
    assert "\n" not in str(caught.value)
