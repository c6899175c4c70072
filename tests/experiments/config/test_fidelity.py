from __future__ import annotations

import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from fedhh.cli.run_tables import summary_rows
from fedhh.clients.populations.virtual import VirtualPopulation
from fedhh.experiments.config.fidelity import APPROXIMATE_TALLY, Fidelity
from fedhh.experiments.config.schema import Config, change_config
from fedhh.experiments.run.directory import result_record, write_result
from fedhh.experiments.run.run import run_config, simulate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.validation import InputError
from tests.conftest import LETTERS, zipf_population

PROTOCOL = LdpTrieHH(
    clients_per_layer=1_000, depth=6, passes=1, eta_max=200, local_epsilon=8.0, max_items=5
)


@pytest.fixture(scope="module")
def chat():
    return VirtualPopulation("chat", 10_000, seed=0)


def test_every_result_says_how_faithful_it_is(chat):
    faithful = simulate(PROTOCOL, chat, seed=0)
    assert faithful.simulation == {"fidelity": "per-report"}
    approximate = simulate(
        PROTOCOL, chat, seed=0, fidelity=Fidelity(name=APPROXIMATE_TALLY, drawn_clients=250)
    )
    assert approximate.simulation["fidelity"] == "approximate-tally"
    assert approximate.simulation["clients_drawn_per_layer"] == 250
    assert approximate.simulation["count_std_error_per_sqrt_count"] == pytest.approx(3**0.5)
    rows = {name: (value, note) for name, value, note in summary_rows(approximate)}
    assert rows["fidelity"][0] == "approximate-tally"
    assert (
        "250 clients per layer, scaled up; std error of a count c: 1.7 sqrt(c)"
        in (rows["fidelity"][1])
    )
    assert "fidelity" not in {name for name, _, _ in summary_rows(faithful)}
    # Cost and privacy are those of the whole cohorts, which the plan is about.
    assert approximate.cost["reports"] == faithful.cost["reports"]
    assert approximate.cost["clients_asked"] == faithful.cost["clients_asked"]


def test_a_run_of_approximate_tallies_finds_about_as_much(chat):
    coverage = [
        simulate(PROTOCOL, chat, seed=0, fidelity=fidelity).metrics.coverage
        for fidelity in (None, Fidelity(name=APPROXIMATE_TALLY))
    ]
    assert coverage[0] > 0.02
    assert abs(coverage[0] - coverage[1]) < 0.02


def test_a_configuration_chooses_the_fidelity_and_its_record_names_it(chat):
    config = change_config(
        Config(),
        [
            "population.clients=10000",
            "protocol.clients_per_layer=500",
            "protocol.depth=5",
            "protocol.passes=1",
            "simulation.fidelity=approximate-tally",
            "simulation.drawn_clients=100",
            "execution.workers=0",
        ],
        "test",
    )
    config, result = run_config(config, chat)
    record = result_record(result, config, {})
    assert record["fidelity"] == "approximate-tally"
    assert record["clients_drawn_per_layer"] == 100


def test_parquet_files_say_how_faithful_their_numbers_are(tmp_path):
    population = VirtualPopulation("chat", 4_000, seed=0, counted_clients=500)
    config = change_config(
        Config(),
        [
            "protocol.clients_per_layer=500",
            "protocol.depth=4",
            "protocol.passes=1",
            "simulation.fidelity=approximate-tally",
            "simulation.drawn_clients=100",
            "execution.workers=0",
        ],
        "test",
    )
    config, result = run_config(config, population)
    write_result(tmp_path, result, config, {})
    for name, table in (("discoveries", result.discoveries), ("layers", result.layers)):
        path = tmp_path / f"{name}.parquet"
        facts = json.loads(pq.read_schema(path).metadata[b"fedhh"])
        assert facts["fidelity"] == "approximate-tally"
        assert facts["count_std_error_per_sqrt_count"] == 2.0
        assert facts["counted_clients"] == 500
        error = facts["coverage_std_error_at_most"]
        assert error == result.population["coverage_std_error_at_most"] > 0
        pd.testing.assert_frame_equal(pd.read_parquet(path), table)


def test_unknown_fidelities_are_refused():
    with pytest.raises(InputError, match="fidelity 'exact'"):
        Fidelity(name="exact")


def test_protocols_without_true_counts_refuse_approximate_tallies_from_python():
    population = zipf_population(500)
    protocol = TrieHH(alphabet=LETTERS, clients_per_layer=100, threshold=3)
    with pytest.raises(InputError, match="for triehh, got 'approximate-tally'"):
        simulate(protocol, population, seed=0, fidelity=Fidelity(name="approximate-tally"))
