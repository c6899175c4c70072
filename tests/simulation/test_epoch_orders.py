"""Orders of epochs: uniform over clients, independent of each other, whatever is stored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedhh.questions.cohort import Cohort
from fedhh.simulation import roster
from fedhh.simulation.roster import ClientOrder
from fedhh.testing.statistics import follows_distribution

NUM_CLIENTS, NUM_SEEDS = 3, 500
ORDERS = list(itertools.permutations(range(NUM_CLIENTS)))


def order_of(seed, epoch, **more):
    order = ClientOrder(num_clients=NUM_CLIENTS, seed=seed, **more)
    return tuple(order.clients(Cohort(start=0, size=NUM_CLIENTS, redraw=epoch), 0).tolist())


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
