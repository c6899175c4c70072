from __future__ import annotations

import itertools
import string
from dataclasses import replace

import numpy as np
import pytest

from fedhh.questions.question import Aggregate
from fedhh.server.pem import Pem, extensions
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from tests.zipf_words import final_state, recall_of_top, six_letter_words

SMALL = Pem(alphabet=LETTERS, clients_per_layer=2_000, length=6, step=1, keep=30, max_items=4)


def test_extensions_are_all_words_and_prefixes_that_begin_so():
    # Two live prefixes of two symbols, and a word that has ended.
    kept = np.array([[1, 2, 0, 0], [2, 1, 0, 0], [2, 0, 0, 0]], dtype=np.uint16)
    got = {tuple(row) for row in extensions(kept, 2, 4, alphabet_size=3).tolist()}
    tails = [t for t in itertools.product(range(3), repeat=2) if t[0] or not t[1]]
    expected = {(*p, *t) for p in [(1, 2), (2, 1)] for t in tails} | {(2, 0, 0, 0)}
    assert got == expected
    assert len(extensions(kept, 2, 4, alphabet_size=3)) == len(expected)


def test_first_candidates_are_all_prefixes_but_the_empty_word():
    start = np.zeros((1, 4), dtype=np.uint16)
    got = extensions(start, 0, 3, alphabet_size=3)
    expected = [
        (*t, 0) for t in itertools.product(range(3), repeat=3) if t[0] and not (t[1] == 0 and t[2])
    ]
    assert sorted(tuple(row) for row in got.tolist()) == expected


def test_prefix_lengths_grow_by_a_step_from_the_longest_that_can_be_enumerated():
    # 27^3 prefixes are no more than 100 x 27^2 candidates; 27^4 are more.
    protocol = Pem(
        alphabet=string.ascii_lowercase, keep=100, step=2, length=10, clients_per_layer=20_000
    )
    assert protocol.prefix_lengths == (3, 5, 7, 9, 10)
    assert replace(protocol, length=3).prefix_lengths == (3,)
    assert replace(protocol, length=2).prefix_lengths == (2,)
    assert replace(protocol, keep=1).prefix_lengths == (2, 4, 6, 8, 10)
    assert protocol.plan.most_answers == 5 * protocol.clients_per_layer


def test_values_of_a_fixed_length_have_no_end_before_it():
    # The paper's bits: ceil(log2 k) + eta of them first, then eta more with each group.
    bits = Pem(alphabet="01", fixed_length=True, length=48, keep=16, step=11, oracle="olh")
    assert bits.prefix_lengths == (15, 26, 37, 48)
    assert replace(bits, keep=32, step=4).prefix_lengths == (9, *range(13, 46, 4), 48)
    kept = np.array([[1, 2, 0, 0], [2, 2, 0, 0]], dtype=np.uint16)
    got = extensions(kept, 2, 4, alphabet_size=3, fixed_length=True).tolist()
    tails = list(itertools.product((1, 2), repeat=2))
    assert got == [[*p, *t] for p in ([1, 2], [2, 2]) for t in tails]
    first = extensions(np.zeros((1, 3), np.uint16), 0, 2, alphabet_size=3, fixed_length=True)
    assert first.tolist() == [[a, b, 0] for a, b in tails]
    # 3^step would be too many candidates, 2^step are not.
    with pytest.raises(InputError, match=r"16 x 3\^14"):
        replace(bits, step=14, fixed_length=False)
    assert replace(bits, step=14).prefix_lengths == (18, 32, 46, 48)


def test_no_query_depends_on_an_answer(population):
    state = SMALL.initialize()
    rng = np.random.default_rng(0)
    for group in range(len(SMALL.prefix_lengths)):
        question = SMALL.next_question(state)
        blind = SMALL.next_question(replace(SMALL.initialize(), place=group))
        assert question.channel.oracle == blind.channel.oracle
        assert vars(question.names.keys) == vars(blind.names.keys)
        assert question.names.length == blind.names.length
        assert question.cohort == blind.cohort
        messages = question.channel.pure.privatize(
            rng.integers(question.names.num_keys, size=50), rng=rng
        )
        aggregate = Aggregate(
            tally=np.zeros(0, dtype=np.int64), num_reports=50, num_clients=50, messages=messages
        )
        state = SMALL.finish_round(state, question, aggregate)
    assert SMALL.next_question(state) is None


def test_groups_are_disjoint_and_each_client_sends_b_reports(population):
    protocol = replace(SMALL, clients_per_layer=1_000)
    protocol.check_population(population.num_clients)
    state = final_state(protocol, population)
    assert [s.num_reports for s in state.history] == [4_000] * len(protocol.prefix_lengths)
    plan = protocol.plan
    cohorts = [each.cohort for each in plan.layers]
    assert [c.start for c in cohorts] == [1_000 * g for g in range(len(cohorts))]
    assert all(s.num_kept <= 30 for s in state.history)


@pytest.mark.parametrize(("clients", "oracle"), [(125_000, "olh"), (125_001, "flh")])
def test_more_than_half_a_million_reports_of_a_group_are_sketched(clients, oracle):
    settled = replace(SMALL, clients_per_layer=clients).settle(num_clients=10**6, seed=0)
    assert settled.oracle == oracle


@pytest.mark.parametrize("oracle", ["olh", "flh", "cms"])
def test_frequent_words_are_found_by_every_oracle(population, oracle):
    protocol = replace(
        SMALL, clients_per_layer=1_200, oracle=oracle, num_hashes=256, local_epsilon=8.0
    )
    discovered = protocol.discoveries(final_state(protocol, population))
    assert recall_of_top(discovered.words, population, 8) >= 0.75
    assert (np.diff(discovered.estimate) <= 0).all()
    ids = population.lexicon.ids(discovered.words)
    real = ids >= 0
    # A fifth of the clients is in the last group; nearly all clients fit into four items.
    expected = population.word_counts().holders[ids[real]] / 5
    assert (np.abs(discovered.estimate[real] - expected) < 0.2 * expected + 80).all()


def test_words_that_are_too_long_take_no_part(population):
    protocol = replace(SMALL, length=4, clients_per_layer=2_000, keep=60)
    protocol.check_population(population.num_clients)
    words = protocol.discoveries(final_state(protocol, population)).words
    assert max(map(len, words)) == 4
    long = {w[:4] for w in population.lexicon.words if len(w) > 4}
    short = {w for w in population.lexicon.words if len(w) <= 4}
    # Beginnings of long words are found no more often than chance would have it.
    assert len(set(words[:15]) & (long - short)) <= 1


def test_answers_of_another_query_are_refused():
    question = SMALL.next_question(SMALL.initialize())
    with pytest.raises(ValueError, match="Expected 7 messages for pass 1, layer 1, got 0"):
        SMALL.finish_round(
            SMALL.initialize(),
            question,
            Aggregate(tally=np.zeros(0, dtype=np.int64), num_reports=7, num_clients=7),
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"oracle": "ss"}, "Unknown oracle 'ss'"),
        ({"step": 9}, "lower step or keep"),
        ({"local_epsilon": -1.0}, "1e-06 <= local_epsilon"),
        ({"keep": 0}, "keep >= 1"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **changes)


def test_a_population_that_is_too_small_is_refused_with_a_cure():
    needed = SMALL.plan.most_answers
    SMALL.check_population(needed)
    groups = len(SMALL.prefix_lengths)
    with pytest.raises(InputError, match=f"clients_per_layer <= {(needed - 1) // groups:,}"):
        SMALL.check_population(needed - 1)


@pytest.mark.slow("::test_frequent_words_are_found_by_every_oracle")
def test_most_frequent_words_of_a_hundred_thousand_clients_are_found():
    population = six_letter_words(100_000, seed=0)
    protocol = Pem(
        clients_per_layer=20_000, max_items=1, alphabet=string.ascii_lowercase, hash_seed=0
    )
    words = protocol.discoveries(final_state(protocol, population)).words
    assert recall_of_top(words, population, 20) == 1.0
    assert recall_of_top(words, population, 50) >= 0.62
