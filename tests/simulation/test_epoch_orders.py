"""Orders of epochs: uniform over clients, independent of each other, whatever is stored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from fedhh.clients.clients import Clients, Table
from fedhh.clients.worker import ClientWorker
from fedhh.questions.cohort import Cohort
from fedhh.simulation import roster
from fedhh.simulation.roster import ClientOrder
from fedhh.testing.statistics import follows_distribution
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import answered
from tests.questions_of_each_kind import votes

NUM_CLIENTS, NUM_SEEDS = 3, 500
EVERYBODY = Cohort(start=0, size=600, redraw=0)
ORDERS = list(itertools.permutations(range(NUM_CLIENTS)))


def order_of(seed, epoch, **more):
    order = ClientOrder(num_clients=NUM_CLIENTS, seed=seed, **more)
    # Two cohorts: one of all clients has no order.
    cohorts = (Cohort(start=0, size=2, redraw=epoch), Cohort(start=2, size=1, redraw=epoch))
    return tuple(np.concatenate([order.clients(each, 0) for each in cohorts]).tolist())


@pytest.mark.parametrize("more", [{}, {"arrangement": "independent"}, {"arrangement": "random"}])
@pytest.mark.parametrize("largest_shuffled", [2**24, 1])
def test_two_epochs_have_uniform_orders_of_clients_that_are_independent(
    monkeypatch, largest_shuffled, more
):
    monkeypatch.setattr(roster, "LARGEST_SHUFFLED", largest_shuffled)
    both = [(order_of(seed, 0, **more), order_of(seed, 1, **more)) for seed in range(NUM_SEEDS)]
    law = dict.fromkeys(itertools.product(ORDERS, ORDERS), 1 / 36)
    assert follows_distribution(both, law)
    assert not follows_distribution([(one, one) for one, _ in both], law)


def test_an_epoch_asks_each_client_once_in_its_rounds():
    order = ClientOrder(num_clients=1_000, seed=5)
    cohorts = [Cohort(start=start, size=250, redraw=2) for start in range(0, 1_000, 250)]
    asked = [order.clients(each, block) for each in cohorts for block in range(each.num_blocks)]
    assert np.array_equal(np.sort(np.concatenate(asked)), np.arange(1_000))
    other = Cohort(start=0, size=250, redraw=3)
    assert not np.array_equal(order.clients(other, 0), asked[0])


@pytest.mark.parametrize("arrangement", ["any", "random", "independent"])
def test_a_fresh_order_of_which_one_cohort_is_everybody_is_that_of_numbers(arrangement):
    order = ClientOrder(num_clients=1_000, seed=5, arrangement=arrangement)
    everybody = Cohort(start=0, size=1_000, redraw=3)
    blocks = [order.clients(everybody, block) for block in range(everybody.num_blocks)]
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate(blocks), np.arange(1_000))
    fewer = order.clients(Cohort(start=0, size=999, redraw=3), 0)
    assert (np.diff(fewer) != 1).sum() > len(fewer) // 2


def said_of_ab(stored, seed):
    """Return how many of 600 clients say the word "ab" when all are asked for one word each."""
    sizes = [len(words) for words in stored]
    population = Clients(
        Table(
            Lexicon(words=("ab", "cd", "ef")),
            np.r_[0, np.cumsum(sizes)],
            np.concatenate(stored),
            np.ones(sum(sizes), dtype=np.int32),
        ),
        name="n",
    )
    question = votes(cohort=EVERYBODY, max_items=1, counts_only=True)
    tally = answered(ClientWorker(population, seed=seed), question).aggregate.tally
    of_ab, *_ = tally[np.flatnonzero(tally)]
    return int(of_ab)


def test_what_all_clients_say_has_one_law_however_they_are_stored():
    two, one = [[0, 1]] * 300, [[2]] * 300
    mixed = [each for pair in zip(two, one, strict=True) for each in pair]
    law = dict(enumerate(binom.pmf(np.arange(301), 300, 0.5).tolist()))
    shifted = dict(enumerate(binom.pmf(np.arange(301), 300, 0.45).tolist()))
    for stored in (two + one, one + two, mixed):
        said = [said_of_ab(stored, seed) for seed in range(40)]
        assert follows_distribution(said, law)
        assert not follows_distribution(said, shifted)
