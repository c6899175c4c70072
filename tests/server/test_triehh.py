from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.questions.choice import draw_words
from fedhh.questions.clients import ClientBlock
from fedhh.questions.question import Aggregate
from fedhh.server.triehh import TrieHH, discovery_probability
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, follows_distribution
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import Recording, answered
from tests.zipf_words import final_state

SMALL = TrieHH(alphabet=LETTERS, clients_per_layer=2_000, threshold=10, depth=6)
ALPHA = 1e-9


def one_word_each(counts: dict[str, int]) -> Clients:
    num_clients = sum(counts.values())
    return Clients.from_rows(
        name="one each",
        lexicon=Lexicon(words=list(counts)),
        clients=np.arange(num_clients),
        word_ids=np.repeat(np.arange(len(counts)), list(counts.values())),
        counts=np.ones(num_clients, dtype=np.int64),
        num_clients=num_clients,
    )


def test_with_all_clients_sampled_words_are_those_with_enough_holders():
    counts = {"a": 9, "ab": 12, "abc": 10, "b": 30, "bcd": 4, "fffff": 11}
    population = one_word_each(counts)
    protocol = replace(SMALL, clients_per_layer=population.num_clients)
    discovered = protocol.discoveries(final_state(protocol, population))
    expected = {word: count for word, count in counts.items() if count >= 10}
    assert dict(zip(discovered.words, discovered.estimate.tolist(), strict=True)) == expected
    assert (discovered.variance == 0).all()


def test_words_are_found_in_the_round_of_their_end_symbol_and_the_run_stops_when_none_is_left():
    population = one_word_each({"ab": 20, "c": 20})
    protocol = replace(SMALL, clients_per_layer=40)
    state = final_state(protocol, population)
    discovered = protocol.discoveries(state)
    rounds_of = dict(zip(discovered.words, discovered.layer.tolist(), strict=True))
    assert rounds_of == {"c": 2, "ab": 3}
    assert len(state.history) == 3
    assert protocol.next_question(state) is None


def test_the_longest_words_are_found_and_longer_ones_are_not():
    population = one_word_each({"abcdef": 30, "abcdefa": 30})
    protocol = replace(SMALL, clients_per_layer=60)
    state = final_state(protocol, population)
    assert protocol.discoveries(state).words == ["abcdef"]
    assert len(state.history) == len(protocol.plan.layers) == 7


def test_every_word_found_has_enough_holders(population):
    discovered = SMALL.discoveries(final_state(SMALL, population))
    ids = population.lexicon.ids(discovered.words)
    assert len(ids) > 5
    assert (ids >= 0).all()
    assert (population.word_counts().holders[ids] >= discovered.estimate).all()
    assert discovered.estimate.min() >= 10


def test_rounds_sample_afresh_from_all_clients(population):
    clients = Recording(population)
    for number, each in enumerate(rounds(SMALL, InProcessExecutor(ClientWorker(clients, seed=0)))):
        assert each.aggregate.num_reports == each.aggregate.num_clients == 2_000
        if number == 0:
            assert each.aggregate.tally.sum() == 2_000
    first, second = clients.asked[:2_000], clients.asked[2_000:4_000]
    assert len(set(first.tolist())) == len(set(second.tolist())) == 2_000
    expected = 2_000**2 / population.num_clients
    assert abs(len(np.intersect1d(first, second)) - expected) < 6 * math.sqrt(expected)


PREFIXES = {"ab": 60, "ac": 25, "b": 40, "bb": 15, "f": 60}
SAMPLE, THRESHOLD, RUNS = 60, 7, 120


def times_found(word: str, *, runs: int = RUNS, **changes: int) -> int:
    population = one_word_each(PREFIXES)
    settings = {"clients_per_layer": SAMPLE, "threshold": THRESHOLD, "depth": 3, **changes}
    protocol = TrieHH(alphabet=LETTERS, **settings)
    found = 0
    for seed in range(runs):
        executor = InProcessExecutor(ClientWorker(population, seed=seed))
        *_, last = rounds(protocol, executor)
        found += word in protocol.discoveries(last.state).words
    return found


def test_of_few_runs_a_word_is_found_in_as_many_as_expected():
    rare = discovery_probability(
        [85, 25, 25], num_clients=200, sample_size=SAMPLE, threshold=THRESHOLD
    )
    assert rare == pytest.approx(
        hypergeom.sf(6, 200, 85, SAMPLE) * hypergeom.sf(6, 200, 25, SAMPLE) ** 2
    )
    found = times_found("ac", runs=25)
    assert binom.cdf(found, 25, rare) > 0.05
    assert binom.sf(found - 1, 25, rare) > 0.05


@pytest.mark.slow("::test_of_few_runs_a_word_is_found_in_as_many_as_expected")
def test_a_word_is_found_as_often_as_the_hypergeometric_distribution_says():
    # "ab" passes "a" (85 holders), "ab" (60) and its end (60) in three independent samples.
    probability = discovery_probability(
        [85, 60, 60], num_clients=200, sample_size=SAMPLE, threshold=THRESHOLD
    )
    assert math.isclose(
        probability,
        hypergeom.sf(6, 200, 85, 60) * hypergeom.sf(6, 200, 60, 60) ** 2,
    )
    rare = discovery_probability(
        [85, 25, 25], num_clients=200, sample_size=SAMPLE, threshold=THRESHOLD
    )
    assert 0.05 < rare < 0.95
    found = times_found("ac")
    assert binom.cdf(found, RUNS, rare) > ALPHA
    assert binom.sf(found - 1, RUNS, rare) > ALPHA
    # The control: other thresholds show.
    assert binom.sf(times_found("ac", threshold=THRESHOLD - 2) - 1, RUNS, rare) < ALPHA
    assert binom.cdf(times_found("ac", threshold=THRESHOLD + 2), RUNS, rare) < ALPHA


def drawn_words(counts: list[int]) -> list[int]:
    runs = 30_000
    rows = ClientBlock(
        clients=np.arange(runs),
        offsets=np.arange(runs + 1) * len(counts),
        word_ids=np.tile(np.arange(len(counts), dtype=np.int32) + 5, runs),
        counts=np.tile(np.array(counts, dtype=np.int32), runs),
    )
    return draw_words(rows, np.random.default_rng(1)).tolist()


def test_a_client_votes_for_a_word_by_its_share_of_the_typing():
    distribution = {5: 1 / 10, 6: 6 / 10, 7: 3 / 10}
    assert follows_distribution(drawn_words([1, 6, 3]), distribution)
    # Neither by distinct words, nor always for the top one.
    assert not follows_distribution(drawn_words([1, 1, 1]), distribution)
    assert not follows_distribution(drawn_words([1, 600, 3]), distribution)


def test_clients_without_words_abstain():
    rows = ClientBlock(
        clients=np.arange(4),
        offsets=np.array([0, 0, 1, 1, 3]),
        word_ids=np.array([4, 2, 2], dtype=np.int32),
        counts=np.array([3, 1, 1], dtype=np.int32),
    )
    assert draw_words(rows, np.random.default_rng(0)).tolist() == [-1, 4, -1, 2]


def test_votes_of_a_round_are_those_of_the_sampled_clients_words():
    population = one_word_each(PREFIXES)
    protocol = TrieHH(alphabet=LETTERS, clients_per_layer=80, threshold=4, depth=3)
    clients = Recording(population)
    question = protocol.next_question(protocol.initialize())
    answer = answered(ClientWorker(clients, seed=5), question)
    assert len(clients.asked) == 80
    words = [population.lexicon.words[w] for w in population.block(clients.asked).word_ids]
    expected = Counter(word[0] for word in words)
    tally = answer.aggregate.tally
    got = {LETTERS[i - 1]: int(tally[i]) for i in range(1, 7) if tally[i]}
    assert got == expected
    assert tally[question.names.nothing] == 0


def test_bad_settings_and_small_populations_are_refused():
    with pytest.raises(InputError, match='threshold >= 1 or "auto", got threshold=0'):
        replace(SMALL, threshold=0)
    with pytest.raises(InputError, match="clients_per_layer <= 1,999"):
        SMALL.check_population(1_999)
    question = SMALL.next_question(SMALL.initialize())
    with pytest.raises(ValueError, match="tally of 8 numbers for pass 1, layer 1, got 3"):
        SMALL.finish_round(SMALL.initialize(), question, Aggregate.empty(3))
