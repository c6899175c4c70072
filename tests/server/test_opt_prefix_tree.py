"""The prefix tree of several symbols a round: its budget, its domains, its threshold, its runs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import fedhh
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.server.opt_prefix_tree import OptPrefixTree
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from fedhh.words.alphabet import END

CLIENTS = 3_000
SMALL = OptPrefixTree(alphabet=LETTERS, depth=6, eta_max=60, rounds=3, local_epsilon=24.0)
VALIDATED = {"false_discovery_rate": 0.1, "validation_share": 0.2}


def questions(protocol, population, seed=0):
    return [
        (each.question, each.state.history[-1])
        for each in fedhh.rounds(protocol, population, seed=seed)
    ]


@pytest.mark.parametrize(
    ("changes", "rounds", "answers"),
    [
        ({}, 3, 3),
        ({"passes": 2, **VALIDATED}, 7, 7),
        ({"rounds": 99}, 6, 6),
        ({"participation": "one-round"}, 3, 1),
        ({"participation": "epochs", "epochs": 2}, 3, 2),
        ({"max_items": 3}, 3, 3),
    ],
)
def test_a_client_divides_its_budget_among_its_rounds(changes, rounds, answers):
    settled = replace(SMALL, **changes).settle(num_clients=CLIENTS, seed=0)
    plan = settled.plan
    assert (len(plan.layers), plan.most_rounds_per_client) == (rounds, answers)
    assert {each.local_epsilon for each in plan.layers} == {24.0 / answers}
    assert plan.local_guarantee("user").epsilon == pytest.approx(24.0 * settled.max_items)
    budget = fedhh.at_central_epsilon(
        replace(SMALL, **changes), CLIENTS, unit="user", epsilon=1.0, delta=1e-6
    )
    budget = budget.settle(num_clients=CLIENTS, seed=0)
    report = privacy_of_run(budget, num_clients=CLIENTS, delta=1e-6)
    assert 0.99 <= report.before_run("user").epsilon <= 1


def test_a_round_extends_as_far_as_its_domain_allows():
    population = small_population(CLIENTS)
    size = SMALL.symbols.size
    for seed in range(2):
        asked = questions(SMALL, population, seed)
        assert len(asked) == 3
        lengths = []
        for question, _ in asked:
            names = question.names
            lengths.append(names.trie.length)
            # One symbol more would have been too many, unless words are no longer.
            waiting = names.trie.width * size + len(names.finished)
            assert names.trie.width + len(names.finished) <= SMALL.eta_max
            assert waiting > SMALL.eta_max or names.trie.length == SMALL.depth
        assert lengths == sorted(set(lengths))
    # With few prefixes kept, several symbols are added at once.
    few = questions(replace(SMALL, false_positive_rate=1e-9, local_epsilon=9.0), population)
    steps = np.diff([question.names.trie.length for question, _ in few])
    assert steps.max() > 1
    # Words that ended on the way are asked about, each of them once.
    for question, _ in few[1:]:
        finished = question.names.finished
        assert len(finished) == len(np.unique(finished, axis=0))
        lengths = (finished != END).sum(axis=1)
        assert (lengths < question.names.trie.length).all()


def test_prefixes_that_are_left_after_the_last_round_are_given_up():
    population = small_population(CLIENTS)
    whole = fedhh.simulate(replace(SMALL, rounds=6), population, seed=0)
    cut = fedhh.simulate(replace(SMALL, rounds=1), population, seed=0)
    assert len(cut.layers) == 1 < len(whole.layers)
    assert cut.discoveries["word"].str.len().max() < whole.discoveries["word"].str.len().max()


def test_a_second_run_leaves_out_what_the_first_found():
    result = fedhh.simulate(
        replace(SMALL, passes=2, local_epsilon=60.0), small_population(CLIENTS), seed=0
    )
    words = result.discoveries
    assert not words["word"].duplicated().any()
    assert set(words["pass"]) == {1, 2}
    assert result.metrics.precision > 0.9


def kept_by_chance(rate, num_runs=40):
    """How many first rounds keep a candidate that nobody holds, since nobody holds any."""
    # All words have symbols that the alphabet has not.
    held = pd.DataFrame({"user": [f"user {i}" for i in range(60)], "word": "zz"})
    clients = fedhh.population_from(held, known="none")
    protocol = replace(SMALL, false_positive_rate=rate, rounds=1, local_epsilon=2.0)
    kept = [questions(protocol, clients, seed)[0][1].num_kept for seed in range(num_runs)]
    return int(np.count_nonzero(kept))


def test_where_nobody_holds_anything_a_round_keeps_something_as_often_as_its_rate():
    # The chance is the rate where nothing is held, by Benjamini and Hochberg's rule, but for what
    # integer votes leave.
    assert binom.sf(kept_by_chance(0.1) - 1, 40, 0.1) > 1e-9
    assert binom.sf(kept_by_chance(0.9) - 1, 40, 0.1) < 1e-9


def test_a_laxer_threshold_keeps_more():
    population = small_population(CLIENTS)
    protocol = replace(SMALL, local_epsilon=12.0)
    kept = [
        questions(replace(protocol, false_positive_rate=rate), population)[0][1].num_kept
        for rate in (1e-6, 0.05, 0.5)
    ]
    assert all(one < other for one, other in itertools.pairwise(kept))


def test_a_round_keeps_no_more_than_its_limit():
    asked = questions(replace(SMALL, eta_max=9, local_epsilon=60.0), small_population(CLIENTS))
    assert {decision.kept_by for _, decision in asked} >= {"votes"}
    assert max(decision.num_kept for _, decision in asked) <= 9


def test_where_nothing_stands_out_the_run_ends():
    result = fedhh.simulate(
        replace(SMALL, local_epsilon=1e-4, false_positive_rate=1e-6),
        small_population(CLIENTS),
        seed=0,
    )
    assert result.metrics.discovered == 0
    assert len(result.layers) == 1


def test_without_noise_the_held_words_are_found():
    population = small_population(CLIENTS)
    result = fedhh.simulate(
        replace(SMALL, oracle="none", rounds=6, eta_max=400), population, seed=0
    )
    assert result.metrics.precision == 1
    assert result.metrics.coverage > 0.8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"false_positive_rate": 1.0}, "0 < false_positive_rate < 1, got false_positive_rate=1.0"),
        ({"rounds": 0}, "rounds >= 1, got rounds=0"),
        ({"local_epsilon": 1e-6}, "epsilon_of_a_round"),
    ],
)
def test_bad_settings_are_refused_in_one_line(changes, message):
    with pytest.raises(InputError, match=message) as refused:
        replace(SMALL, **changes)
    assert "\n" not in str(refused.value)
