"""A run with devices that are not always there: its bits, its calendar, and how it ends."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.accounting.guarantees import UNITS
from fedhh.clients.drawn import DrawnClients
from fedhh.devices import Devices
from fedhh.experiments.config.load import load_config
from fedhh.experiments.run.equal_privacy import at_central_epsilon
from fedhh.experiments.run.layers import OF_DEVICES
from fedhh.experiments.run.preflight import preflight
from fedhh.experiments.run.privacy import central_before_run, central_epsilon, privacy_of_run
from fedhh.experiments.run.run import check_config, simulate
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.server.two_servers import TwoServers
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError, RunFailedError
from tests.thinned import thinned

POPULATION = small_population(3_000)
PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=500, depth=5, passes=1, eta_max=20, max_items=2
)
DEVICES = Devices(
    check_in="papaya",
    eligible=0.8,
    dropout=0.1,
    deadline_hours=16.0,
    gap_hours=2.0,
    least_share=0.61,
)
STOPPING = replace(DEVICES, when_missed="stop")


def test_one_upload_for_all_layers_has_no_devices_that_come_and_go():
    servers = TwoServers(alphabet=LETTERS, depth=5, max_items=2)
    with pytest.raises(InputError, match="Expected no table devices for a protocol whose clients"):
        simulate(servers, POPULATION, seed=4, devices=DEVICES)


def test_a_secure_sum_counts_devices_that_are_missing_among_its_missing_shares():
    kind = {"alphabet": LETTERS, "clients_per_layer": 500, "depth": 2, "passes": 1}
    with pytest.raises(RunFailedError, match="of 500 clients dropped out"):
        simulate(SecAggTrieHH(**kind, max_dropout=0.1), POPULATION, seed=4, devices=DEVICES)
    done = simulate(SecAggTrieHH(**kind, max_dropout=0.5), POPULATION, seed=4, devices=DEVICES)
    assert (done.layers["num_clients"] < 500).all()


def digest(result) -> str:
    """Of what the server counted and found; not of floats, whose last digits machines may set."""
    found = hashlib.sha256()
    for column in ("num_reports", "num_clients", "threshold", "num_kept", "dummies"):
        found.update(np.asarray(result.layers[column], dtype="<i8").tobytes())
    found.update("\0".join(result.discoveries["word"]).encode())
    return found.hexdigest()[:16]


def test_without_devices_there_is_no_calendar_and_the_bits_are_the_same():
    plain = simulate(PROTOCOL, POPULATION, seed=4)
    assert digest(plain) == "5392218a53d438f4"
    assert plain.calendar is None
    assert not set(OF_DEVICES) & set(plain.layers)


def test_without_devices_the_bits_are_those_that_they_always_were():
    plain = simulate(PROTOCOL, POPULATION, seed=4)
    assert digest(plain) == "5392218a53d438f4"
    assert plain.calendar is None
    assert not set(OF_DEVICES) & set(plain.layers)
    # The same where all of them always answer; only then is there a calendar.
    always = simulate(PROTOCOL, POPULATION, seed=4, devices=Devices(least_share=1.0))
    assert digest(always) == digest(plain)
    assert always.discoveries.equals(plain.discoveries)
    for unit in UNITS:
        assert central_before_run(always.privacy, unit) == central_before_run(plain.privacy, unit)
        assert central_epsilon(always.privacy, unit) == central_epsilon(plain.privacy, unit)
    assert (always.calendar.hours, always.calendar.share_served) == (0.0, 2_500 / 3_000)
    other = simulate(PROTOCOL, POPULATION, seed=4, devices=Devices(eligible=0.9))
    assert digest(other) != digest(plain)


class StoppedError(Exception):
    pass


class Stopper(Callbacks):
    def __init__(self) -> None:
        self.layers = 0

    def finish(self, unit, result) -> None:
        self.layers += 1
        if self.layers == 3:
            raise StoppedError


def test_an_interrupted_run_goes_on_to_the_same_bits_and_calendar(tmp_path):
    with pytest.raises(StoppedError):
        simulate(
            PROTOCOL,
            POPULATION,
            seed=4,
            devices=DEVICES,
            log_in=tmp_path,
            callbacks=[Stopper()],
        )
    # What devices do is part of whose the log is.
    for other in (None, replace(DEVICES, eligible=0.79, least_share=0.5)):
        with pytest.raises(InputError, match="is of another run"):
            simulate(PROTOCOL, POPULATION, seed=4, devices=other, log_in=tmp_path)
    again = simulate(PROTOCOL, POPULATION, seed=4, devices=DEVICES, log_in=tmp_path)
    whole = simulate(PROTOCOL, POPULATION, seed=4, devices=DEVICES)
    assert again.layers.equals(whole.layers)
    assert again.discoveries.equals(whole.discoveries)
    assert again.calendar == whole.calendar
    assert again.privacy == whole.privacy


def test_the_calendar_is_of_rounds_that_follow_each_other():
    result = simulate(PROTOCOL, POPULATION, seed=4, devices=DEVICES)
    layers = result.layers
    assert layers["opened_hours"].iloc[0] == 0
    hours = layers["closed_hours"] - layers["opened_hours"]
    assert np.allclose(hours, 16 + layers["waited_hours"])
    assert np.allclose(layers["opened_hours"].iloc[1:], layers["closed_hours"].iloc[:-1] + 2)
    waited = layers["waited_hours"] > 0
    assert 0 < waited.sum() < len(layers)
    assert (layers.loc[waited, "num_clients"] == layers.loc[waited, "least_clients"]).all()
    assert (layers["least_clients"] == 305).all()
    assert (layers["num_clients"] >= 305).all()
    calendar = result.calendar
    assert calendar.hours == layers["closed_hours"].iloc[-1]
    assert calendar.days == calendar.hours / 24
    assert calendar.share_served == layers["num_clients"].sum() / 3_000
    assert calendar.missed is None
    # One round takes one waiting.
    once = fedhh.Sfp(alphabet=LETTERS, length=4, max_items=1)
    assert simulate(once, POPULATION, seed=4, devices=DEVICES).calendar.hours < 20


@pytest.mark.parametrize(
    ("protocol", "together"),
    thinned(
        [
            (fedhh.Pem(alphabet=LETTERS, length=4, max_items=1, step=1, keep=4), (2, 3, 4)),
            (fedhh.Blender(alphabet=LETTERS, length=4, opt_in_share=0.4, max_items=1), (3,)),
            (
                fedhh.Pem(
                    alphabet=LETTERS,
                    length=4,
                    max_items=1,
                    step=1,
                    keep=4,
                    false_discovery_rate=0.05,
                ),
                (2, 3, 4),
            ),
        ],
        keep=2,
    ),
    ids=["pem", "blender", "pem, validated"],
)
def test_rounds_whose_questions_need_no_earlier_answer_are_open_at_the_same_time(
    protocol, together
):
    settled = protocol.settle(num_clients=3_000, seed=4)
    assert tuple(x.layer for x in settled.plan.layers if x.opens_with_previous) == together
    result = simulate(protocol, POPULATION, seed=4, devices=replace(DEVICES, least_share=0.5))
    opened = result.layers.set_index("layer")["opened_hours"]
    for layer in opened.index[1:]:
        assert opened[layer] == opened[layer - 1] + (0 if layer in together else 18)
    assert result.calendar.hours == result.layers["closed_hours"].max()


def test_such_a_question_is_the_same_whatever_was_answered():
    pem = fedhh.Pem(alphabet=LETTERS, length=4, max_items=1, step=1, keep=4)
    pem = pem.settle(num_clients=3_000, seed=4)
    before = pem.initialize()
    last, asked = before, []
    for finished in fedhh.rounds(pem, POPULATION, seed=4):
        asked.append((finished.question, last))
        last = finished.state
    for planned, (question, _) in zip(pem.plan.layers, asked, strict=True):
        same = pem.ask(planned, before)
        assert same.names.length == question.names.length
        assert same.channel.oracle == question.channel.oracle
        assert planned.cohort == question.cohort


def test_rounds_that_ask_devices_again_begin_as_far_apart_as_they_answer():
    protocol = TrieHH(alphabet=LETTERS, depth=4, clients_per_layer=900, threshold=3)
    quick = replace(DEVICES, deadline_hours=4.0, gap_hours=0.0, least_share=None)
    twice = simulate(protocol, POPULATION, seed=4, devices=quick)
    assert np.allclose(np.diff(twice.layers["opened_hours"]), 12.0)
    often = simulate(protocol, POPULATION, seed=4, devices=replace(quick, answers_per_day=12))
    assert np.allclose(np.diff(often.layers["opened_hours"]), 4.0)
    share = twice.calendar.share_served
    answers = twice.layers["num_clients"].sum() / 3_000
    assert 0.15 < share < answers
    # Without overlaps, nobody waits for a device's next answer.
    once = simulate(PROTOCOL, POPULATION, seed=4, devices=quick)
    assert np.allclose(np.diff(once.layers["opened_hours"]), 4.0)


def test_a_run_that_stops_returns_what_it_found_and_says_where(caplog, monkeypatch):
    # Commands that ran in this process may have their own handler.
    monkeypatch.setattr(logging.getLogger("fedhh"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="fedhh")
    whole = simulate(PROTOCOL, POPULATION, seed=4, devices=replace(DEVICES, least_share=0.5))
    (number,) = np.flatnonzero(whole.layers["num_clients"] < 305)[:1]
    stopped = simulate(PROTOCOL, POPULATION, seed=4, devices=STOPPING)
    missed = stopped.calendar.missed
    assert (missed.pass_index, missed.layer) == (0, number + 1)
    assert missed.answers == whole.layers["num_clients"][number]
    assert missed.fewest == 305
    assert len(stopped.layers) == number > 0
    assert set(stopped.discoveries["word"]) <= set(whole.discoveries["word"])
    assert (stopped.discoveries["layer"] <= number).all()
    assert stopped.calendar.hours == 16 * (number + 1) + 2 * number
    assert f"pass 1, layer {number + 1}" in caplog.text
    assert "nothing more is asked" in caplog.text
    # What was claimed before it began still holds; what is realised is of the rounds it had.
    before = privacy_of_run(PROTOCOL, num_clients=3_000, devices=STOPPING)
    for unit in UNITS:
        assert central_before_run(stopped.privacy, unit) == central_before_run(before, unit)


def test_words_that_were_not_validated_are_not_returned():
    validated = replace(PROTOCOL, false_discovery_rate=0.05, clients_per_layer=400)
    result = simulate(validated, POPULATION, seed=8, devices=STOPPING)
    assert result.calendar.missed.layer == 4
    assert result.layers["num_finished"].sum() > 0
    assert result.discoveries.empty
    assert result.metrics.coverage == 0.0


def test_a_run_that_stops_at_once_has_tables_without_rows():
    result = simulate(PROTOCOL, POPULATION, seed=3, devices=STOPPING)
    assert result.layers.empty
    whole = simulate(PROTOCOL, POPULATION, seed=4)
    assert list(result.layers) == list(whole.layers)
    assert result.layers["num_clients"].dtype == whole.layers["num_clients"].dtype
    assert result.calendar.share_served == 0.0
    assert result.calendar.hours == 16.0
    assert "Pass 1, layer 1 had" in str(result)


def test_claims_before_a_run_are_for_the_least_answers_everywhere():
    target = {"unit": "item", "epsilon": 1.5, "delta": 1e-6}
    chosen = at_central_epsilon(PROTOCOL, 3_000, **target, devices=DEVICES)
    found = privacy_of_run(chosen, num_clients=3_000, delta=1e-6, devices=DEVICES)
    assert 1.5 * (1 - 2e-3) <= central_before_run(found, "item") <= 1.5
    assert chosen.local_epsilon < at_central_epsilon(PROTOCOL, 3_000, **target).local_epsilon
    known = preflight(PROTOCOL, POPULATION, delta=1e-6, devices=DEVICES)
    assert known.plans[0].fewest_answers == 305
    same = privacy_of_run(PROTOCOL, num_clients=3_000, delta=1e-6, devices=DEVICES)
    assert known.plans[0].central_epsilon == central_before_run(same, "item")
    none = preflight(PROTOCOL, POPULATION, delta=1e-6, devices=replace(DEVICES, least_share=None))
    assert none.plans[0].fewest_answers == 2
    assert any("set devices.least_clients or devices.least_share" in each for each in none.advice)
    assert not any("devices.least" in each for each in known.advice)


@pytest.mark.slow("tests/clients/test_drawn.py::test_counts_do_not_depend_on_chunks_or_cores")
def test_clients_that_are_drawn_when_asked_are_counted_all_the_same(virtual_lexicon):
    protocol = LdpTrieHH(clients_per_layer=300, depth=3, passes=1, eta_max=20)
    found = [
        simulate(protocol, DrawnClients("chat", 1_500, seed=0), seed=1, devices=devices)
        for devices in (None, Devices(eligible=0.5))
    ]
    assert found[0].metrics.target_contributions == found[1].metrics.target_contributions
    assert (found[1].layers["num_clients"] < 200).all()


def test_a_sweep_over_objects_runs_with_devices():
    table = fedhh.sweep_over(
        PROTOCOL, POPULATION, axes={"local_epsilon": [4.0, 8.0]}, devices=DEVICES
    )
    alone = simulate(PROTOCOL, POPULATION, seed=0, devices=DEVICES)
    row = table[table["privacy.local_epsilon"] == 8.0].iloc[0]
    assert (row["days"], row["coverage"]) == (alone.calendar.days, alone.metrics.coverage)
    with pytest.raises(InputError, match=r"devices\.least_share <= "):
        fedhh.sweep_over(PROTOCOL, POPULATION, devices=replace(DEVICES, least_share=0.9))


def test_what_cannot_be_met_is_refused_before_anything_runs():
    few = Devices(check_in="papaya", eligible=0.8, dropout=0.1, least_clients=400)
    with pytest.raises(InputError, match="least_clients <= 345, got least_clients=400"):
        simulate(PROTOCOL, POPULATION, seed=4, devices=few)
    config = load_config(
        preset="small", settings=["devices.eligible=0.5", "devices.least_share=0.6"]
    )
    with pytest.raises(InputError, match=r"devices.least_share <= 0.5, got least_share=0.6"):
        check_config(config, fedhh.synthetic_population("chat", 40_000, seed=0))
