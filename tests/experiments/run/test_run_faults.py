"""A run whose clients answer twice, late or malformed: counted, refused, and accounted for."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.accounting.guarantees import UNITS
from fedhh.clients.populations.population import StoredPopulation
from fedhh.devices import Devices
from fedhh.experiments.config.load import load_config
from fedhh.experiments.report.run_tables import brief_of, summary_rows
from fedhh.experiments.run.intake import HEAVY_FIRST, intake_record
from fedhh.experiments.run.layers import OF_DEVICES, OF_FAULTS, REFUSED
from fedhh.experiments.run.privacy import (
    central_before_run,
    central_epsilon,
    local_epsilon,
    privacy_of_plan,
)
from fedhh.experiments.run.run import simulate
from fedhh.experiments.run.stored_result import read_result
from fedhh.faults import Faults
from fedhh.queries.refusals import Refusal
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.server.two_servers import TwoServers
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.conftest import LETTERS, zipf_population
from tests.experiments.run.test_run_devices import StoppedError, Stopper, digest

POPULATION = zipf_population(3_000)
PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=500, depth=5, passes=1, eta_max=20, max_items=2
)
FAULTS = Faults(second_answers=0.1, stale_answers=0.1, wrong_type=0.05, out_of_domain=0.05)


def test_faults_that_nobody_has_change_no_bit():
    plain = simulate(PROTOCOL, POPULATION, seed=4)
    none = simulate(PROTOCOL, POPULATION, seed=4, faults=Faults())
    twice = simulate(PROTOCOL, POPULATION, seed=4, faults=Faults(second_answers=0.3))
    assert digest(none) == digest(twice) == digest(plain)
    assert plain.intake is None
    assert not set(OF_FAULTS) & set(plain.layers)
    assert none.intake.num_refused == 0
    assert set(none.intake.refused) == set()
    assert list(twice.intake.refused) == [Refusal.SECOND]
    assert twice.intake.accepted == 2_500
    for unit in UNITS:
        for epsilon in (central_before_run, central_epsilon, local_epsilon):
            assert epsilon(twice.privacy, unit) == epsilon(plain.privacy, unit)
    assert digest(simulate(PROTOCOL, POPULATION, seed=4, faults=FAULTS)) != digest(plain)


def test_every_answer_is_accepted_or_refused_and_guarantees_are_for_the_accepted():
    result = simulate(PROTOCOL, POPULATION, seed=4, faults=FAULTS)
    layers, intake = result.layers, result.intake
    refused = layers[list(REFUSED.values())].sum(axis=1)
    assert (layers["num_clients"] + refused == layers["answers_received"]).all()
    assert (layers["num_reports"] == 2 * layers["num_clients"]).all()
    # Each client of the cohort sends one answer, and another one if it answers twice.
    assert (layers["answers_received"] == 500 + layers["refused_second"]).all()
    assert layers["refused_stale"].iloc[0] == 0
    assert (layers["refused_stale"].iloc[1:] > 0).all()
    assert intake.accepted == layers["num_clients"].sum() < 2_500
    assert intake.received == intake.accepted + intake.num_refused
    # Before the run: for as few as a round accepts. After it: for those that it had.
    few = privacy_of_plan(PROTOCOL.settle(num_clients=3_000, seed=4), num_clients=3_000,
                          devices=Devices())  # fmt: skip
    plain = simulate(PROTOCOL, POPULATION, seed=4)
    for unit in UNITS:
        assert central_before_run(result.privacy, unit) == central_before_run(few, unit)
        before, after = (f(result.privacy, unit) for f in (central_before_run, central_epsilon))
        assert before >= after
        assert after > central_epsilon(plain.privacy, unit)
        assert local_epsilon(result.privacy, unit) == local_epsilon(plain.privacy, unit)
    # What is left of the run is as if so many devices had dropped out.
    lost = 1 - layers["num_clients"].min() / 500
    assert 0.15 < lost < 0.3


def test_a_refusal_among_devices_that_come_and_go_is_one_of_those_that_came():
    devices = Devices(eligible=0.8, least_share=0.3)
    result = simulate(PROTOCOL, POPULATION, seed=4, devices=devices, faults=FAULTS)
    layers = result.layers
    there = layers["answers_received"] - layers["refused_second"]
    plain = simulate(PROTOCOL, POPULATION, seed=4, devices=devices)
    assert there.tolist() == plain.layers["num_clients"].tolist()
    assert (layers["num_clients"] < there).all()
    assert (layers["least_clients"] == 150).all()
    assert result.calendar.share_served == there.sum() / 3_000


def test_a_run_ends_where_too_few_answers_are_accepted():
    devices = Devices(least_share=0.75)
    faults = Faults(stale_answers=0.25)
    result = simulate(PROTOCOL, POPULATION, seed=4, devices=devices, faults=faults)
    missed = result.calendar.missed
    assert missed is not None
    assert (missed.asked, missed.eligible, missed.fewest) == (500, 500, 375)
    assert missed.answers < 375
    assert (result.layers["num_clients"] >= 375).all()


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    options = {"seed": 4, "faults": FAULTS}
    with pytest.raises(StoppedError):
        simulate(PROTOCOL, POPULATION, **options, checkpoint_in=tmp_path, callbacks=[Stopper()])
    for other in (None, replace(FAULTS, wrong_type=0.06), replace(FAULTS, order="heavy-first")):
        with pytest.raises(InputError, match="is of another run"):
            simulate(PROTOCOL, POPULATION, seed=4, faults=other, checkpoint_in=tmp_path)
    again = simulate(PROTOCOL, POPULATION, **options, checkpoint_in=tmp_path)
    whole = simulate(PROTOCOL, POPULATION, **options)
    assert again.layers.equals(whole.layers)
    assert again.discoveries.equals(whole.discoveries)
    assert (again.intake, again.privacy) == (whole.intake, whole.privacy)


def test_heavy_typists_first_cost_coverage_and_no_epsilon():
    # A sixth of the clients typed 20 words each, the others one of other words.
    heavy, light = (
        [f"{a}{b}{c}" for a in each for b in "ace" for c in "bdf"] for each in ("ab", "ef")
    )
    rng = np.random.default_rng(1)
    holders = np.concatenate([np.repeat(np.arange(1_000), 20), np.arange(1_000, 6_000)])
    held = np.concatenate([rng.integers(18, size=20_000), 18 + rng.integers(18, size=5_000)])
    population = StoredPopulation.from_rows(
        name="two kinds",
        lexicon=Lexicon(words=heavy + light),
        clients=holders,
        word_ids=held,
        num_clients=6_000,
    )
    protocol = LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=1_000, depth=4, passes=1, eta_max=18, max_items=1
    )
    plain, skewed = (
        simulate(protocol, population, seed=3, faults=Faults(order=order))
        for order in ("random", "heavy-first")
    )
    plain_found, found = (set(each.discoveries["word"]) for each in (plain, skewed))
    assert len(plain_found & set(light)) == 18
    assert len(found & set(light)) < 14
    assert skewed.metrics.coverage < plain.metrics.coverage - 0.03
    for unit in UNITS:
        for epsilon in (central_before_run, local_epsilon):
            assert epsilon(skewed.privacy, unit) == epsilon(plain.privacy, unit)
    assert HEAVY_FIRST in skewed.privacy.notes
    assert HEAVY_FIRST not in plain.privacy.notes


@pytest.mark.parametrize(
    ("protocol", "faults", "message"),
    [
        (PROTOCOL, {"no_such_row": 0.1}, "faults.no_such_row = 0, got 0.1: an answer to a Pre"),
        (replace(PROTOCOL, oracle="oue"), {"repeated_members": 0.1}, "with oracle oue cannot have"),
        (TrieHH(alphabet=LETTERS, depth=3, clients_per_layer=300, threshold=3),
         {"wrong_size": 0.1}, "faults.wrong_size = 0, got 0.1: an answer to a WordVoteQuery"),
        (fedhh.Sfp(alphabet=LETTERS, length=4, max_items=1), {"stale_answers": 0.1},
         "faults.stale_answers = 0, got 0.1: the protocol has one round"),
        (TwoServers(alphabet=LETTERS, depth=5, max_items=2), {"second_answers": 0.1},
         "Expected no shares in the table faults for a protocol whose clients upload once"),
    ],
)  # fmt: skip
def test_faults_that_cannot_be_are_refused_before_the_run(protocol, faults, message):
    with pytest.raises(InputError) as raised:
        simulate(protocol, POPULATION, seed=4, faults=Faults(**faults))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_least_number_that_refusals_rule_out_is_refused():
    devices = Devices(least_share=0.8)
    with pytest.raises(InputError, match=r"least_share <= 0\.7.*not refused 0\.7"):
        simulate(PROTOCOL, POPULATION, seed=4, devices=devices, faults=Faults(wrong_size=0.3))


def test_a_refused_share_of_a_secure_sum_is_missing():
    kind = {"alphabet": LETTERS, "clients_per_layer": 500, "depth": 4, "passes": 1}
    secure = SecAggTrieHH(**kind, max_dropout=0.5)
    result = simulate(secure, POPULATION, seed=4, faults=Faults(stale_answers=0.2))
    assert result.layers["num_clients"].tolist()[0] == 500
    assert (result.layers["num_clients"].iloc[1:] < 450).all()


def test_a_config_has_the_table_and_its_directory_the_counts(tmp_path, command):
    settings = ["faults.second_answers=0.1", "faults.stale_answers=0.05", "faults.wrong_size=0.02"]
    config = load_config(preset="small", settings=settings)
    assert config.faults.faults == Faults(second_answers=0.1, stale_answers=0.05, wrong_size=0.02)
    plain = load_config(preset="small")
    assert "faults" not in plain.to_toml()
    assert plain.result_key != config.result_key
    with pytest.raises(InputError, match="faults: Expected shares of faulty clients below 1"):
        load_config(preset="small", settings=["faults.stale_answers=0.6", "faults.wrong_size=0.5"])
    out = tmp_path / "run"
    flags = [word for each in settings for word in ("--set", each)]
    done = command("run", "--preset", "small", "--workers", "0", *flags, "--out", str(out))
    assert done.returncode == 0, done.stderr
    result = read_result(out).result
    stored = json.loads((out / "result.json").read_text())["intake"]
    assert stored == intake_record(result.intake)
    assert set(stored["refused"]) == {"second answer", "stale", "wrong size"}
    assert stored["accepted"] + sum(stored["refused"].values()) == stored["received"]
    line = f"Refused: {result.intake.text}, of {result.intake.received:,} answers that arrived."
    assert line in done.stdout.replace("\n", " ")
    assert any(getattr(part, "text", "") == line for part in brief_of(result))
    assert ("refused", result.intake.text) in [row[:2] for row in summary_rows(result)]
    assert set(OF_FAULTS) | set(OF_DEVICES) <= set(result.layers)
