from __future__ import annotations

import itertools
import string
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fedhh.accounting.terms import PrivacyTerms
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.server.rappor_unknown import RapporUnknown
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from tests.asked_clients import answered
from tests.every import every
from tests.zipf_words import everybody_holds, final_state, recall_of_top, six_letter_words

SMALL = RapporUnknown(
    alphabet=LETTERS,
    clients_per_layer=6_000,
    max_items=2,
    local_epsilon=15.0,
    ngram_bits=4,
    ngram_cohorts=16,
    bloom_cohorts=16,
)


def test_without_noise_tables_hold_the_bits_of_both_ngrams():
    protocol = replace(SMALL, local_epsilon=240.0, clients_per_layer=3_000, max_items=1)
    question = protocol.next_question(protocol.initialize())
    population = everybody_holds(["abcd"], 3_000)
    answer = answered(ClientWorker(population, seed=0), question)
    words, tables = question.channel.split(answer.aggregate.tally)
    _, by_cohort = question.channel.words.split(words)
    assert by_cohort.sum() == tables.sum() == 3_000
    # Each pair is as likely as the others.
    assert np.abs(tables.sum(axis=(1, 2, 3)) - 1_000).max() < 6 * np.sqrt(3_000 * 2 / 9)
    texts = question.channel.puzzle.texts(protocol.symbols.encode(["abcd"], width=6))[0]
    filters = question.channel.ngrams.filters
    expected: Counter[tuple[int, ...]] = Counter()
    for (index, pair), cohort in itertools.product(enumerate(question.channel.pairs), range(16)):
        keys = question.channel.ngram_keys(pair, texts[pair])
        bits = filters.positions(np.full(2, cohort), keys).ravel()
        expected[index, cohort, 1 << int(bits[0]), 1 << int(bits[1])] = 1
    assert {tuple(place) for place in np.argwhere(tables).tolist()} == set(expected)


def test_dummies_are_random_strings_and_ngrams():
    protocol = replace(SMALL, local_epsilon=240.0, clients_per_layer=3_000, max_items=4)
    question = protocol.next_question(protocol.initialize())
    population = everybody_holds(["abcd"], 3_000)
    answer = answered(ClientWorker(population, seed=0), question)
    assert answer.aggregate.num_reports == 12_000
    assert answer.diagnostics.num_dummies == 9_000
    _, tables = question.channel.split(answer.aggregate.tally)
    # In each cohort, three quarters of the records have bits as random n-grams have them.
    for table in tables.sum(axis=1):
        assert np.count_nonzero(table) == 16
        assert table.max() < 0.3 * table.sum()


def test_frequent_words_are_found_and_counted(population):
    found = SMALL.discoveries(final_state(SMALL, population))
    ids = population.lexicon.ids(found.words)
    assert len(found) >= 3
    assert (ids >= 0).all()
    assert (np.diff(found.estimate) <= 0).all()


@pytest.mark.slow("::test_frequent_words_are_found_and_counted")
def test_estimates_are_within_their_errors_and_none_is_invented():
    population = six_letter_words(100_000, seed=0)
    protocol = RapporUnknown(alphabet=string.ascii_lowercase, max_items=1)
    settled = protocol.settle(num_clients=100_000, seed=0)
    state = final_state(settled, population)
    found = settled.discoveries(state)
    assert recall_of_top(found.words, population, 3) == 1.0
    ids = population.lexicon.ids(found.words)
    assert (ids >= 0).all()
    errors = np.abs(found.estimate - population.word_counts().typed[ids])
    assert (errors < 5 * np.sqrt(found.variance) + 0.05 * population.word_counts().typed[ids]).all()


def test_without_edges_nothing_is_found(population):
    protocol = replace(SMALL, local_epsilon=0.3)
    state = final_state(protocol, population)
    assert len(protocol.discoveries(state)) == 0
    assert len(state.history) == 1


def test_a_plan_claims_the_sum_of_a_records_three_reports():
    plan = SMALL.plan
    assert plan.epsilons_of_contribution == (15.0,)
    question = SMALL.next_question(SMALL.initialize())
    assert question.channel.words.epsilon + 2 * question.channel.ngrams.epsilon == pytest.approx(
        15.0
    )
    report = plan.report(PrivacyTerms(num_clients=6_000, delta=1e-6, alpha=0.95))
    best = report.best("item", "local")
    assert (best.epsilon, best.delta) == (15.0, 0.0)
    assert "a record's 3 reports" in best.theorem
    assert report.best("user", "local").epsilon == 30.0


@pytest.mark.slow("::test_a_plan_claims_the_sum_of_a_records_three_reports")
def test_a_record_costs_the_sum_of_its_three_reports(population):
    plan = SMALL.plan
    assert plan.epsilons_of_contribution == (15.0,)
    assert plan.local_epsilon == 15.0
    question = SMALL.next_question(SMALL.initialize())
    assert question.channel.words.epsilon <= 5.0
    assert question.channel.ngrams.epsilon <= 5.0
    assert question.channel.words.epsilon + 2 * question.channel.ngrams.epsilon == pytest.approx(
        15.0
    )
    state = final_state(SMALL, population)
    report = privacy_of_run(SMALL, state.history, num_clients=6_000)
    best = report.best("item", "local")
    assert (best.epsilon, best.delta) == (15.0, 0.0)
    assert "a record's 3 reports" in best.theorem
    assert report.best("user", "local").epsilon == 30.0


@every(
    ("changes", "message"),
    [
        ({"length": 2}, "can be linked to each other, got length=2 and ngram_length=2"),
        ({"length": 7}, "multiple of ngram_length, .* got length=7 and ngram_length=2"),
        (
            {"ngram_bits": 11},
            r"tally of at most 16,777,216 numbers, got 201,3\d\d,\d\d\d of 3 pairs",
        ),
        ({"alphabet": "printable", "ngram_length": 3, "ngram_cohorts": 128}, "67,108,864"),
        ({"em_iterations": 100_000}, "lower max_ngrams, em_iterations"),
        ({"noise_edges": 0.0}, "0 < noise_edges"),
        ({"ngram_bits": 1}, "ngram_bits >= 2, got ngram_bits=1"),
        ({"local_epsilon": 1e-6}, "epsilon"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **changes)
