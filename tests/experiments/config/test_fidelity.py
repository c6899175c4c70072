from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from fedhh.clients.drawn import DrawnClients
from fedhh.experiments.config.load import change_config
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.report.run_tables import summary_rows
from fedhh.experiments.run.directory import result_record, write_result
from fedhh.experiments.run.run import run_config, simulate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.simulation.fidelity import EXACT_TALLY, PER_REPORT, Fidelity
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("virtual_lexicon")

PROTOCOL = LdpTrieHH(
    clients_per_layer=1_000, depth=6, passes=1, eta_max=200, local_epsilon=8.0, max_items=5
)


@pytest.fixture(scope="module")
def chat():
    return DrawnClients("chat", 10_000, seed=0)


TINY = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=100, depth=3, passes=1, eta_max=10, max_items=1
)


@pytest.mark.parametrize(
    ("fidelity", "change", "simulation"),
    [
        (Fidelity(name=PER_REPORT), {}, {"fidelity": "per-report"}),
        (
            Fidelity(name=EXACT_TALLY),
            {},
            {"fidelity": "exact-tally", "layers_without_reports": 3},
        ),
        (Fidelity(), {}, {"fidelity": "per-report"}),
        (
            Fidelity(),
            {"oracle": "oue", "clients_per_layer": 130, "max_items": 2},
            {"fidelity": "exact-tally", "layers_without_reports": 3},
        ),
    ],
    ids=str,
)
def test_a_small_result_says_how_faithful_it_is(fidelity, change, simulation):
    population = small_population(400)
    protocol = replace(TINY, **change)
    result = simulate(protocol, population, seed=0, fidelity=fidelity)
    assert result.simulation == simulation
    assert set(result.layers["fidelity"]) == {simulation["fidelity"]}
    rows = {name: (value, note) for name, value, note in summary_rows(result)}
    if simulation["fidelity"] == PER_REPORT:
        assert "fidelity" not in rows
    else:
        assert "3 layers drawn at once" in rows["fidelity"][1]
        assert "approximate" not in rows["fidelity"][1]
    other = simulate(protocol, population, seed=0, fidelity=Fidelity(name=PER_REPORT))
    assert result.cost["reports"] == other.cost["reports"]
    assert abs(result.metrics.coverage - other.metrics.coverage) < 0.3


def test_few_clients_that_are_drawn_are_said_in_the_result_and_its_files(tmp_path):
    settings = [
        f'population.alphabet="{LETTERS}"', "protocol.clients_per_layer=100", "protocol.depth=3",
        "simulation.fidelity=exact-tally", "simulation.drawn_clients=25",
    ]  # fmt: skip
    config = change_config(Config(), settings, "test")
    config, result = run_config(config, small_population(400))
    assert result.simulation["count_std_error_per_sqrt_count"] == pytest.approx(3**0.5)
    (note,) = (note for name, _, note in summary_rows(result) if name == "fidelity")
    assert "approximate in clients that were not drawn: 25 per layer were, scaled up" in note
    assert result.cost["clients_asked"] == 100 * len(result.layers)
    record = result_record(result, config, {})
    assert (record["fidelity"], record["clients_drawn_per_layer"]) == ("exact-tally", 25)
    write_result(tmp_path, result, config, {})
    for name in ("discoveries", "layers"):
        facts = json.loads(pq.read_schema(tmp_path / f"{name}.parquet").metadata[b"fedhh"])
        assert facts["fidelity"] == "exact-tally"


@pytest.mark.slow("::test_a_small_result_says_how_faithful_it_is")
def test_every_result_says_how_faithful_it_is(chat):
    faithful = simulate(PROTOCOL, chat, seed=0, fidelity=Fidelity(name=PER_REPORT))
    assert faithful.simulation == {"fidelity": "per-report"}
    assert set(faithful.layers["fidelity"]) == {"per-report"}
    assert "fidelity" not in {name for name, _, _ in summary_rows(faithful)}
    at_once = simulate(PROTOCOL, chat, seed=0, fidelity=Fidelity(name=EXACT_TALLY))
    layers = len(at_once.layers)
    assert at_once.simulation == {"fidelity": "exact-tally", "layers_without_reports": layers}
    assert set(at_once.layers["fidelity"]) == {"exact-tally"}
    rows = {name: (value, note) for name, value, note in summary_rows(at_once)}
    assert rows["fidelity"][0] == "exact-tally"
    assert f"{layers} layers drawn at once" in rows["fidelity"][1]
    assert "approximate" not in rows["fidelity"][1]
    assert at_once.cost["reports"] == faithful.cost["reports"]
    assert at_once.cost["clients_asked"] == faithful.cost["clients_asked"]


@pytest.mark.slow("::test_few_clients_that_are_drawn_are_said_in_the_result_and_its_files")
def test_clients_that_are_not_drawn_are_said_to_be_approximated(chat):
    result = simulate(PROTOCOL, chat, seed=0, fidelity=Fidelity(drawn_clients=250))
    assert result.simulation["fidelity"] == "exact-tally"
    assert result.simulation["clients_drawn_per_layer"] == 250
    assert result.simulation["count_std_error_per_sqrt_count"] == pytest.approx(3**0.5)
    rows = {name: (value, note) for name, value, note in summary_rows(result)}
    assert (
        "approximate in clients that were not drawn: 250 per layer were, scaled up; "
        "std error of a count c: 1.7 sqrt(c)" in (rows["fidelity"][1])
    )
    # Cost and privacy are those of the whole cohorts, which the plan is about.
    whole = simulate(PROTOCOL, chat, seed=0)
    assert result.cost["reports"] == whole.cost["reports"]
    assert result.cost["clients_asked"] == whole.cost["clients_asked"]


@pytest.mark.slow("::test_a_small_result_says_how_faithful_it_is")
def test_the_default_is_each_layer_s_cheaper_way(chat):
    small = simulate(PROTOCOL, chat, seed=0)
    by_report = simulate(PROTOCOL, chat, seed=0, fidelity=Fidelity(name=PER_REPORT))
    assert small.simulation["fidelity"] == "per-report"
    pd.testing.assert_frame_equal(small.layers, by_report.layers)
    unary = replace(PROTOCOL, oracle="oue")
    assert simulate(unary, chat, seed=0).simulation["fidelity"] == "exact-tally"
    mixed = Fidelity().facts([5, 5], ["exact-tally", "per-report"])
    assert mixed == {"fidelity": "mixed", "layers_without_reports": 1}


@pytest.mark.slow("::test_a_small_result_says_how_faithful_it_is")
@pytest.mark.parametrize("oracle", ["ss", "grr", "oue", "none", "cms"])
def test_a_run_of_tallies_at_once_finds_about_as_much(chat, oracle):
    protocol = replace(PROTOCOL, oracle=oracle, depth=4)
    coverage = [
        simulate(protocol, chat, seed=0, fidelity=Fidelity(name=name)).metrics.coverage
        for name in (PER_REPORT, EXACT_TALLY)
    ]
    assert coverage[0] > 0
    assert abs(coverage[0] - coverage[1]) < 0.02


@pytest.mark.slow("::test_few_clients_that_are_drawn_are_said_in_the_result_and_its_files")
def test_a_configuration_chooses_the_fidelity_and_its_files_say_it(tmp_path):
    settings = ["protocol.clients_per_layer=500", "protocol.depth=4",
                "simulation.fidelity=exact-tally", "simulation.drawn_clients=100"]  # fmt: skip
    population = DrawnClients("chat", 4_000, seed=0, counted_clients=500)
    config, result = run_config(change_config(Config(), settings, "test"), population)
    record = result_record(result, config, {})
    assert (record["fidelity"], record["clients_drawn_per_layer"]) == ("exact-tally", 100)
    write_result(tmp_path, result, config, {})
    for name, table in (("discoveries", result.discoveries), ("layers", result.layers)):
        path = tmp_path / f"{name}.parquet"
        facts = json.loads(pq.read_schema(path).metadata[b"fedhh"])
        assert facts["fidelity"] == "exact-tally"
        assert facts["count_std_error_per_sqrt_count"] == 2.0
        assert facts["counted_clients"] == 500
        error = facts["coverage_std_error_at_most"]
        assert error == result.population["coverage_std_error_at_most"] > 0
        pd.testing.assert_frame_equal(pd.read_parquet(path), table)


def test_unknown_fidelities_are_refused():
    with pytest.raises(InputError, match="fidelity 'exact'"):
        Fidelity(name="exact")
    with pytest.raises(
        InputError, match=r"simulation\.fidelity = .approximate-tally.: expected .*'exact-tally'"
    ):
        change_config(Config(), ["simulation.fidelity=approximate-tally"], "test")


@pytest.mark.parametrize(
    ("fidelity", "message"),
    thinned(
        [
            (Fidelity(name=EXACT_TALLY), "triehh: .*'auto' or 'per-report' for PlainVotes"),
            (Fidelity(drawn_clients=50), "triehh: .*drawn_clients = 'all' for PlainVotes"),
            (Fidelity(name=PER_REPORT, drawn_clients=50), "drawn_clients = 'all' with fidelity"),
        ],
        keep=2,
    ),
)
def test_what_cannot_be_simulated_so_is_refused_at_once(fidelity, message):
    population = small_population(500)
    protocol = TrieHH(alphabet=LETTERS, clients_per_layer=100, threshold=3)
    with pytest.raises(InputError, match=message):
        simulate(protocol, population, seed=0, fidelity=fidelity)
    simulate(protocol, population, seed=0, fidelity=Fidelity(drawn_clients=100))


def test_a_configuration_is_checked_with_its_protocol():
    settings = ["protocol.name=sfp", "protocol.word_oracle=hcms", "simulation.fidelity=exact-tally"]
    config = change_config(Config(), settings, "test")
    with pytest.raises(InputError, match=r"sfp: Expected simulation\.fidelity 'auto' or"):
        settle(config, 2_000_000)
