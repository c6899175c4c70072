"""Fake clients take part in rounds, of every protocol, and honest clients answer as ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.adversary import Adversary
from fedhh.clients.fakes import Fakes
from fedhh.clients.population import client_order
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.run import simulate
from fedhh.questions.noise_shares import DiscreteLaplace
from fedhh.simulation.engine import rounds
from fedhh.simulation.roster import Roster
from fedhh.testing import LETTERS, small_population
from tests import questions_of_each_kind as ask
from tests.asked_clients import Recording, answered
from tests.same_bits import assert_same
from tests.simulation.test_roster import PROTOCOLS, TRIE, parts
from tests.thinned import thinned

POPULATION = small_population(6_000)
GROUPS = (150, 60)
TARGETS = ["cdb", "db", "cc", "dc"]
ALL = PROTOCOLS | {
    "secure sum": fedhh.SecAggTrieHH(alphabet=LETTERS, depth=3, passes=1),
    "two servers": fedhh.TwoServers(alphabet=LETTERS, depth=3),
    "trusted histogram": fedhh.TeeHistogram(alphabet=LETTERS, length=4),
    "weights": fedhh.WeightedGaussianSelection(alphabet=LETTERS, length=4),
    "sampled words": fedhh.SampleAndThreshold(alphabet=LETTERS, length=4),
    "unknown dictionary": fedhh.RapporUnknown(alphabet=LETTERS, length=4, max_items=1),
}


def attacked(
    protocol,
    *,
    strategy="output",
    goal="promote",
    workers=1,
    population=POPULATION,
    groups=GROUPS,
):
    """Run a protocol with fake clients."""
    words = TARGETS if len(groups) > 1 else TARGETS[:1]
    fakes = Fakes(words=words, num_groups=len(groups), goal=goal, strategy=strategy, seed=9)
    return rounds(
        protocol,
        parts(workers, population=population),
        roster=Roster(client_order(POPULATION, seed=9), fakes=groups),
        fakes=fakes.answer,
    )


def settled(protocol):
    return protocol.settle(num_clients=POPULATION.num_clients + 210, seed=9)


@pytest.mark.parametrize("strategy", thinned(["output", "input", "random-reports"]))
@pytest.mark.parametrize("name", thinned(ALL, keep=5))
def test_every_protocol_has_the_same_bits_for_any_number_of_workers(name, strategy):
    protocol = settled(ALL[name])
    states = []
    for count in (1, 3):
        last = None
        fakes = 0
        for finished in attacked(protocol, strategy=strategy, workers=count):
            sent = finished.diagnostics.fakes
            fakes += sent.num_clients
            assert 0 < sent.num_clients < finished.question.cohort.size
            assert finished.aggregate.num_clients <= finished.question.cohort.size
            assert finished.aggregate.num_reports >= sent.num_reports
            assert sent.tally.shape == finished.aggregate.tally.shape
            last = finished.state
        states.append(last)
        assert fakes >= 100
    assert_same(*states)


@pytest.mark.parametrize("name", thinned(ALL, keep=6))
def test_demoting_works_or_abstains_for_every_protocol(name):
    protocol = settled(ALL[name])
    for finished in attacked(protocol, goal="demote"):
        assert finished.diagnostics.fakes.num_clients > 0


def test_honest_clients_are_asked_as_a_cohort_of_their_own():
    asked = Recording(POPULATION)
    answer = next(attacked(settled(TRIE), population=asked))
    question, fakes = answer.question, answer.diagnostics.fakes
    assert (
        len(np.unique(asked.asked)) == len(asked.asked) == question.cohort.size - fakes.num_clients
    )
    assert asked.asked.max() < POPULATION.num_clients
    assert answer.aggregate.num_clients == question.cohort.size
    assert answer.aggregate.num_reports == 4 * question.cohort.size
    assert fakes.num_reports == 4 * fakes.num_clients
    # What the fakes sent is all that honest clients did not.
    smaller = replace(question, cohort=replace(question.cohort, size=len(asked.asked)))
    honest = answered(ClientWorker(POPULATION, seed=9), smaller)
    assert np.array_equal(answer.aggregate.tally - fakes.tally, honest.aggregate.tally)


def test_a_cohort_of_fakes_alone_asks_nobody():
    asked = Recording(POPULATION)
    protocol = replace(TRIE, clients_per_layer=2, depth=1).settle(num_clients=300_000, seed=9)
    roster = Roster(client_order(POPULATION, seed=9), fakes=(294_000,))
    fakes = Fakes(words=TARGETS[:1], goal="promote", strategy="output", seed=9)
    (only,) = rounds(protocol, parts(population=asked), roster=roster, fakes=fakes.answer)
    assert only.diagnostics.fakes.num_clients == only.aggregate.num_clients == 2
    assert np.array_equal(only.diagnostics.fakes.tally, only.aggregate.tally)
    assert not asked.blocks


def test_cohorts_of_a_run_hold_every_fake_client_once():
    protocol = fedhh.LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=1_035, depth=6, passes=1, eta_max=20
    ).settle(num_clients=6_210, seed=9)
    sent = [each.diagnostics.fakes.num_clients for each in attacked(protocol)]
    assert len(sent) == 6
    assert sum(sent) == 210


@pytest.mark.slow(
    "tests/clients/adversary/test_crafted_discoveries.py::test_crafted_reports_bring_a_word_in"
)
def test_targets_are_found_with_fakes_and_not_without():
    kind = fedhh.LdpTrieHH(alphabet=LETTERS, depth=3, passes=1, eta_max=12, max_items=2)
    targets = ("dcd", "ddc")
    for strategy, clients, found in (
        ("output", 600, 2),
        ("input", 600, 2),
        ("output", 1, 0),
        ("random-reports", 600, 0),
    ):
        adversary = Adversary(clients=clients, targets=targets, strategy=strategy)
        result = simulate(kind, POPULATION, seed=3, adversary=adversary)
        outcome = result.adversary
        assert outcome.targets_found == found, strategy
        assert [target.found for target in outcome.targets] == [
            word in set(result.discoveries["word"]) for word in targets
        ]
        assert result.population["clients"] == 6_000
        assert result.layers["fake_clients"].sum() <= clients
    honest = simulate(kind, POPULATION, seed=3)
    assert honest.adversary is None
    assert "fake_clients" not in honest.layers
    # Fake clients change what is found, never what is true.
    assert honest.metrics.target_contributions == result.metrics.target_contributions
    assert honest.metrics.words_with_min_clients == result.metrics.words_with_min_clients


@pytest.mark.slow(
    "tests/clients/adversary/test_crafted_reports.py::test_the_servers_estimate_rises_by_the_maximal_gain"
)
def test_crafted_reports_say_more_than_honest_ones():
    kind = fedhh.LdpTrieHH(
        alphabet=LETTERS, depth=3, passes=1, eta_max=12, max_items=2, local_epsilon=1.0
    )
    votes = []
    for strategy in ("input", "output"):
        adversary = Adversary(clients=300, targets=("dcd",), strategy=strategy)
        result = simulate(kind, POPULATION, seed=3, adversary=adversary)
        (target,) = result.adversary.targets
        votes.append(target.estimated_clients or 0.0)
    assert votes[1] > 2 * votes[0]


@pytest.mark.slow("::test_demoting_works_or_abstains_for_every_protocol")
def test_demoted_words_lose_what_they_had():
    kind = fedhh.LdpTrieHH(alphabet=LETTERS, depth=3, passes=1, eta_max=30, max_items=2)
    honest = simulate(kind, POPULATION, seed=3)
    adversary = Adversary(clients=2_500, goal="demote", num_targets=2)
    result = simulate(kind, POPULATION, seed=3, adversary=adversary)
    # Of those that three symbols spell.
    order = np.argsort(-POPULATION.word_counts().holders, kind="stable")
    words = [word for i in order if len(word := POPULATION.lexicon.words[i]) <= 3][:2]
    assert [target.word for target in result.adversary.targets] == words
    before = honest.discoveries.set_index("word")["estimated_clients"]
    for target in result.adversary.targets:
        assert target.word in before
        assert not target.found or target.estimated_clients < 0.9 * before[target.word]


def test_what_cannot_be_spelled_is_refused():
    with pytest.raises(fedhh.InputError, match=r"adversary\.targets of at most 3 symbols"):
        simulate(
            fedhh.LdpTrieHH(alphabet=LETTERS, depth=3, passes=1),
            POPULATION,
            seed=1,
            adversary=Adversary(clients=3, targets=("abcd",)),
        )


@pytest.mark.parametrize("strategy", ["output", "input", "random-reports"])
def test_where_clients_have_one_vote_a_fake_one_has_no_more(strategy):
    votes = {}
    for each in ("all", "one"):
        protocol = settled(
            fedhh.LdpTrieHH(
                alphabet=LETTERS, depth=3, passes=1, eta_max=12, max_items=4, votes_per_client=each
            )
        )
        fakes = next(attacked(protocol, strategy=strategy, groups=(300,))).diagnostics.fakes
        assert fakes.num_reports == 4 * fakes.num_clients
        votes[each] = fakes.tally.max() / fakes.num_clients
    assert votes["one"] <= 1
    if strategy == "output":
        assert votes == {"all": 4, "one": 1}


def test_honest_uploads_of_fakes_bring_no_noise_of_the_servers():
    question = ask.uploads(noise=DiscreteLaplace(std=100.0))
    fakes = Fakes(words=["abc"], goal="promote", strategy="input", seed=0)
    found = fakes.answer(question, (5_000,)).aggregate
    assert sorted(found.tally.tolist())[-2:] == [0, 5_000]
    assert found.num_clients == 5_000
