"""Settings of who takes part when: plans, refusals, and a run of each protocol that has them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

import fedhh
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates

NUM_CLIENTS = 900
POPULATION = fedhh.synthetic_population("chat", NUM_CLIENTS, seed=3)
SHARED = {"local_epsilon": 6.0, "max_items": 1, "false_discovery_rate": 0.1}
TRIE = fedhh.LdpTrieHH(depth=4, eta_max=40, passes=2, **SHARED)
RECORDS = {"length": 4, "num_hashes": 16, "num_cells": 64, **SHARED}
KNOWN = {
    "candidates": Candidates(
        ("lol", "im", "dont"),
    )
}
PROTOCOLS = [
    TRIE,
    fedhh.AdaptiveTrieHH(depth=4, eta_max=40, **SHARED),
    fedhh.Pem(length=4, step=1, keep=20, oracle="cms", num_hashes=16, **SHARED),
    fedhh.TreeHist(**RECORDS),
    fedhh.Bitstogram(**RECORDS),
    fedhh.Rappor(**KNOWN, bloom_bits=32, bloom_cohorts=8, **SHARED),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_every_protocol_that_asks_rounds_has_its_clients_take_part_so(protocol, epochs):
    more = {"participation": "every-round"}
    if epochs:
        more = {"participation": "epochs", "epochs": epochs, "cohorts": "secret"}
    settled = replace(protocol, **more).settle(num_clients=NUM_CLIENTS, seed=0)
    plan = settled.plan
    assert plan.most_rounds_per_client == (epochs or len(plan.layers))
    asked = {}
    for each in plan.layers:
        asked[each.cohort.redraw] = asked.get(each.cohort.redraw, 0) + each.num_clients
    assert all(NUM_CLIENTS - len(plan.layers) < each <= NUM_CLIENTS for each in asked.values())
    answered = [each.question.cohort for each in fedhh.rounds(settled, POPULATION, seed=1)]
    assert answered == [each.cohort for each in plan.layers][: len(answered)]
    assert answered


@pytest.mark.parametrize("protocol", PROTOCOLS[3:], ids=lambda protocol: protocol.name)
def test_the_answers_to_a_repeated_question_are_decoded_together(protocol):
    more = {"participation": "every-round", "clients_per_layer": NUM_CLIENTS, "hash_seed": 1}
    asked = replace(protocol, repeats=3, **more).settle(num_clients=NUM_CLIENTS, seed=0)
    assert asked.rounds_in_turn == 2
    assert asked.plan.local_guarantee("user").epsilon == 4 * protocol.local_epsilon
    first, second, third = itertools.islice(fedhh.rounds(asked, POPULATION, seed=1), 3)
    assert not len(first.state.found.codes)
    assert not len(second.state.found.codes)
    assert (first.aggregate.tally != second.aggregate.tally).any()
    once = replace(protocol, **more).settle(num_clients=NUM_CLIENTS, seed=0)
    merged = first.aggregate.merge(second.aggregate).merge(third.aggregate)
    together = once.finish_round(once.initialize(), first.question, merged)
    assert third.state.found.codes.tolist() == together.found.codes.tolist()
    assert third.state.found.estimate.tolist() == together.found.estimate.tolist()
    assert (third.state.found.num_clients == 3 * NUM_CLIENTS).all()


@pytest.mark.parametrize("kind", [fedhh.SecAggTrieHH, fedhh.TwoServers])
def test_sums_ask_everybody_in_every_layer_in_a_fresh_order(kind):
    protocol = kind(depth=4, eta_max=40, max_items=1, participation="every-round")
    plan = protocol.settle(num_clients=NUM_CLIENTS, seed=0).plan
    assert [each.num_clients for each in plan.layers] == [NUM_CLIENTS] * len(plan.layers)
    assert [each.cohort.redraw for each in plan.layers] == list(range(len(plan.layers)))
    asked = [each.question.cohort for each in fedhh.rounds(protocol, POPULATION, seed=1)]
    assert asked == [each.cohort for each in plan.layers][: len(asked)]


@pytest.mark.parametrize(
    "more",
    [
        {"participation": "every-round"},
        {"participation": "epochs", "epochs": 2, "cohorts": "secret"},
    ],
    ids=["every round", "epochs"],
)
def test_a_run_that_lost_answers_realises_the_claim_of_those_that_came(more):
    protocol = replace(TRIE, eta_max=10, local_epsilon=2.0, **more)
    devices = fedhh.Devices(dropout=0.1, least_share=0.5)
    result = fedhh.simulate(protocol, POPULATION, seed=2, devices=devices)
    plan = result.protocol.plan
    came = result.layers["num_clients"].tolist()
    least = [each.fewest_clients for each in plan.layers]
    answers = [*came, *least[len(came) :]]
    half = len(answers) // 2 + len(answers) % 2
    fewest = min(answers)
    if plan.hides_epochs:
        fewest = min(sum(answers[:half]), sum(answers[half:]))
    best = result.privacy.best("user", "central")
    assert best.smallest_cohort == fewest
    assert best.realised
    assert best.epsilon < result.privacy.before_run("user").epsilon


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"participation": "epochs", "max_items": 3},
            "Expected max_items=1 with participation='epochs', one report of a client in each, got "
            "max_items=3; set max_items=1, or participation='every-round'.",
        ),
        (
            {"epochs": 2},
            "Expected epochs=1 with participation='one-round', got epochs=2; set epochs=1, or "
            "participation='epochs'.",
        ),
        (
            {"participation": "every-round", "cohorts": "secret"},
            "Expected cohorts=known with participation='every-round', got cohorts=secret; set "
            "cohorts=known, or participation='epochs'.",
        ),
        (
            {"participation": "epochs", "cohorts": "secret", "pad": False},
            "Expected pad=true with cohorts='secret', since who sends nothing hides nobody, got "
            "pad=false; set pad=true, or cohorts='known'.",
        ),
        (
            {"participation": "twice"},
            "Unknown participation 'twice'. Known: epochs, every-round, one-r",
        ),
        (
            {"participation": "epochs", "epochs": 0},
            "Expected an integer epochs >= 1, got epochs=0",
        ),
    ],
)
def test_what_makes_no_epoch_is_refused_in_one_line(changes, message):
    with pytest.raises(InputError, match=message) as refused:
        replace(TRIE, **changes)
    assert "\n" not in str(refused.value)


def test_more_epochs_than_rounds_are_refused():
    with pytest.raises(InputError) as refused:
        replace(TRIE, participation="epochs", epochs=50).settle(num_clients=NUM_CLIENTS, seed=0)
    assert str(refused.value) == (
        "Expected 1 <= epochs <= 9, got epochs=50; the plan has 9 rounds, one epoch for each at "
        "most: set epochs <= 9, or participation='every-round'."
    )


@pytest.mark.parametrize("kind", [fedhh.Blender, fedhh.LdpMiner])
def test_protocols_whose_groups_mean_something_else_say_so(kind):
    more = KNOWN if kind is fedhh.LdpMiner else {"delta": 1e-6, "alphabet": LETTERS}
    with pytest.raises(InputError) as refused:
        kind(participation="every-round", **more)
    said = str(refused.value)
    assert re.match(r"Expected participation='one-round' of .*, (whose|which) ", said)
    assert said.endswith(
        "got participation='every-round'; set participation='one-round', or take another protocol, "
        "such as ldp-triehh."
    )
