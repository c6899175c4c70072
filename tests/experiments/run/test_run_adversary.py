"""A run with fake clients: its files, what it records of their votes, and its resume."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedhh.adversary import Adversary
from fedhh.experiments.config.load import load_config
from fedhh.experiments.run.adversary import AdversaryOutcome, Target
from fedhh.experiments.run.directory import new_directory, write_result
from fedhh.experiments.run.privacy import central_before_run, central_epsilon, local_epsilon
from fedhh.experiments.run.run import check_config, run_config, simulate
from fedhh.experiments.run.stored_result import read_result
from fedhh.experiments.sweep.objects import sweep_over
from fedhh.experiments.sweep.sweep import sweep
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.every import every
from tests.experiments.run.test_resume import StoppedError, Stopper

POPULATION = small_population(3_000)
TARGET = "ffefe"
FAKES = Adversary(clients=400, targets=(TARGET,), strategy="input")
LDP = LdpTrieHH(alphabet=LETTERS, depth=5, passes=1, eta_max=20, max_items=2)
PROTOCOLS = [
    LDP,
    AdaptiveTrieHH(alphabet=LETTERS, depth=5, eta_max=30, max_items=2),
    Pem(alphabet=LETTERS, length=5, keep=20, oracle="cms"),
]
CONFIG = load_config(
    preset="small",
    settings=[
        "population.source=zipf",
        "population.clients=4_000",
        "population.known=none",
        "protocol.clients_per_layer=auto",
        "protocol.depth=6",
        "adversary.clients=300",
        "adversary.strategy=input",
    ],
)


def test_what_fake_clients_pushed_is_recorded_and_read_back(tmp_path):
    result = simulate(LDP, POPULATION, seed=4, adversary=FAKES, log_in=tmp_path)
    rows = result.candidates.candidates
    assert (rows["fake_votes"] <= rows["votes"]).all()
    begins = np.array([TARGET.startswith(prefix) for prefix in rows["prefix"]])
    path = rows[begins & (rows["is_word"] == (rows["prefix"] == TARGET)).to_numpy()]
    path = path[path["fate"] != "dropped"]
    assert (path["fake_votes"] > 0).all()
    assert path.loc[path["true_clients"] == 0, "by_fakes"].all()
    assert not rows.loc[rows["true_clients"] > 0, "by_fakes"].any()
    content = json.loads(json.dumps(result.adversary.to_dict()))
    assert AdversaryOutcome.from_dict(content) == result.adversary
    assert content["clients"] == 400


def test_a_round_that_asks_no_fake_client_counts_none():
    alone = Adversary(clients=1, targets=(TARGET,), strategy="input")
    layers = simulate(LDP, POPULATION, seed=4, adversary=alone).layers
    assert sorted(layers["fake_clients"]) == [0] * 4 + [1]
    assert sorted(layers["fake_reports"]) == [0] * 4 + [LDP.max_items]


def test_votes_of_fakes_are_recorded_where_reports_reach_the_server_as_they_are(tmp_path):
    kind = Pem(alphabet=LETTERS, length=4, keep=10, oracle="olh", max_items=1)
    fakes = Adversary(clients=100, targets=("fade",))
    result = simulate(kind, POPULATION, seed=1, adversary=fakes, log_in=tmp_path)
    rows = result.candidates.candidates
    assert (rows["fake_votes"] <= rows["votes"]).all()
    assert rows.loc[rows["prefix"] == "fade", "fake_votes"].max() > 10
    again = simulate(kind, POPULATION, seed=1, adversary=fakes, log_in=tmp_path)
    pd.testing.assert_frame_equal(again.candidates.candidates, rows)


@pytest.mark.slow("::test_what_fake_clients_pushed_is_recorded_and_read_back")
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda each: each.name)
def test_votes_of_fake_clients_are_recorded_and_pushed_prefixes_named(protocol, tmp_path):
    result = simulate(protocol, POPULATION, seed=4, adversary=FAKES, log_in=tmp_path)
    assert result.adversary.targets_found == 1
    rows = result.candidates.candidates
    begins = np.array([TARGET.startswith(prefix) for prefix in rows["prefix"]])
    on_the_way = begins & (rows["is_word"] == (rows["prefix"] == TARGET)).to_numpy()
    path = rows[on_the_way & (rows["fate"] != "dropped")]
    assert (path["fake_votes"] > 0).all()
    assert (rows["fake_votes"] <= rows["votes"]).all()
    unheld = path[path["true_clients"] == 0]
    assert len(unheld)
    assert unheld["by_fakes"].all()
    # Nothing that somebody holds is called pushed, and little of what nobody holds.
    assert not rows.loc[rows["true_clients"] > 0, "by_fakes"].any()
    if protocol.name != "pem":
        # In a sketch a pushed value shares its cells with others.
        assert rows.loc[~on_the_way, "by_fakes"].mean() < 0.02
    ranges = result.candidates.votes
    pushed = ranges["kept_fake"].sum() + ranges["dropped_fake"].sum()
    assert pushed >= len(unheld)
    if protocol.name != "pem":
        everything = ranges.drop(columns=["pass", "layer", "votes_from", "votes_to"])
        honest = simulate(protocol, POPULATION, seed=4, log_in=tmp_path / "honest")
        assert "kept_fake" not in honest.candidates.votes
        assert (everything.to_numpy() >= 0).all()


def test_a_stopped_run_goes_on_with_its_fake_clients_and_with_no_others(tmp_path):
    whole = simulate(LDP, POPULATION, seed=4, adversary=FAKES, log_in=tmp_path / "whole")
    stopped = tmp_path / "stopped"
    with pytest.raises(StoppedError):
        simulate(LDP, POPULATION, seed=4, adversary=FAKES, log_in=stopped, callbacks=[Stopper()])
    for other in (None, replace(FAKES, clients=401), replace(FAKES, strategy="output")):
        with pytest.raises(InputError, match="is of another run"):
            simulate(LDP, POPULATION, seed=4, adversary=other, log_in=stopped)
    again = simulate(LDP, POPULATION, seed=4, adversary=FAKES, log_in=stopped)
    pd.testing.assert_frame_equal(again.discoveries, whole.discoveries)
    pd.testing.assert_frame_equal(again.layers, whole.layers)
    pd.testing.assert_frame_equal(again.candidates.candidates, whole.candidates.candidates)
    assert again.adversary == whole.adversary


@pytest.mark.slow("::test_what_fake_clients_pushed_is_recorded_and_read_back")
def test_a_directory_tells_what_fake_clients_did(tmp_path):
    population = small_population(4_000)
    settled, _ = check_config(CONFIG, population)
    directory = new_directory(settled, tmp_path / "run", name="run")
    settled, result = run_config(CONFIG, population, log_in=lambda _: directory)
    write_result(directory, result, settled, {})
    stored = read_result(directory).result
    assert stored.adversary == result.adversary
    assert stored.protocol.plan == result.protocol.plan
    pd.testing.assert_frame_equal(
        stored.layers[["fake_clients", "fake_reports"]],
        result.layers[["fake_clients", "fake_reports"]],
    )
    assert stored.candidates.candidates["by_fakes"].any()
    record = json.loads((directory / "result.json").read_text())
    assert AdversaryOutcome.from_dict(record["adversary"]) == result.adversary
    assert record["adversary"]["clients"] == 300
    assert record["population"]["clients"] == 4_000


@pytest.mark.slow("::test_protocols_of_python_are_attacked_in_a_sweep_as_alone")
def test_a_sweep_varies_the_number_of_fake_clients(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        CONFIG.to_toml() + '\n[sweep]\n[sweep.axes]\n"adversary.clients" = [1, 600]\n'
    )
    rows = sweep(tmp_path / "sweep.toml")
    assert rows["adversary.clients"].tolist() == rows["fake_clients"].tolist() == [1, 600]
    assert rows["targets_found"].tolist() == [0, 1]
    assert (rows["population_clients"] == 4_000).all()


def test_protocols_of_python_are_attacked_in_a_sweep_as_alone():
    rows = sweep_over(LDP, POPULATION, seeds=[4], adversary=FAKES)
    alone = simulate(LDP, POPULATION, seed=4, adversary=FAKES)
    assert rows["targets_found"].tolist() == [1]
    assert rows["coverage"].tolist() == [alone.metrics.coverage]


@every(
    ("setting", "complaint"),
    [
        ("adversary.clients=0", "adversary.clients"),
        ("adversary.share=1.5", "adversary.share"),
        ("adversary.goal=steal", "adversary.goal"),
        ("adversary.strategie=input", "unknown key adversary.strategie"),
        ("adversary.share=0.5", "adversary: Expected one of adversary.clients"),
        ("adversary.targets=[1]", "adversary.targets.0 = 1: expected a valid string"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(setting, complaint):
    with pytest.raises(InputError, match=complaint) as error:
        load_config(preset="small", settings=["adversary.clients=4", setting])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"clients": 5, "targets": ("ab", "cd")}, "pushed 'ab' and 'cd': 1 of 2 found."),
        ({"clients": 5, "targets": ("ab", "cd"), "goal": "demote"}, "opposed 'ab' and 'cd'"),
        ({"clients": 5, "strategy": "random-reports"}, "sent random reports."),
        ({"clients": 5, "goal": "collude"}, "5 clients (5.00%) collude with the server"),
    ],
)
def test_a_sentence_says_what_they_did(settings, said):
    adversary = Adversary(**settings)
    outcome = AdversaryOutcome(
        goal=adversary.goal,
        strategy=adversary.strategy,
        clients=sum(adversary.fakes(95)),
        colluding=5,
        share=0.05,
        targets=tuple(
            Target(word=word, clients=5, found=word == "ab") for word in adversary.targets
        ),
    )
    assert said in outcome.sentence


@pytest.mark.slow(
    "tests/accounting/test_collusion.py::test_a_plan_claims_what_that_of_the_honest_clients_does"
)
def test_guarantees_are_for_honest_clients_who_alone_amplify():
    kind = replace(LDP, max_items=1, depth=2, local_epsilon=2.0)
    population = small_population(40_000)
    honest = simulate(kind, population, seed=4)
    half = simulate(kind, population, seed=4, adversary=Adversary(share=0.5, goal="collude"))
    assert half.adversary.colluding == 20_000
    # Colluders answer as honest clients do.
    pd.testing.assert_frame_equal(half.discoveries, honest.discoveries)
    for before, after in (
        (central_before_run(honest.privacy, "item"), central_before_run(half.privacy, "item")),
        (central_epsilon(honest.privacy, "item"), central_epsilon(half.privacy, "item")),
    ):
        # Half the reports hide a client by about a factor of sqrt(2) less.
        assert 1.25 * before < after < 1.6 * before
    best = half.privacy.before_run("item")
    assert best.delta == pytest.approx(honest.privacy.before_run("item").delta, rel=1e-12)
    assert "honest clients in each cohort" in best.assumptions
    # Fake clients hide nobody either: theirs are the reports that the adversary knows.
    fake = simulate(kind, population, seed=4, adversary=Adversary(share=0.5, strategy="input"))
    assert central_before_run(fake.privacy, "item") == pytest.approx(
        central_before_run(honest.privacy, "item"), rel=0.05
    )
    assert local_epsilon(half.privacy, "item") == local_epsilon(honest.privacy, "item")
