"""Whom rounds ask where clients take part in one, in all, or in one of each epoch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import PlannedRound
from fedhh.validation import InputError


def plan(*sizes, **more):
    rounds = (
        PlannedRound(layer=layer, num_clients=size, smallest_domain=2, largest_domain=2)
        for layer, size in enumerate(sizes, start=1)
    )
    return Plan(layers=tuple(rounds), **more)


def positions(each):
    return {
        (each.cohort.redraw, place)
        for place in range(each.cohort.start, each.cohort.start + each.cohort.size)
    }


def test_in_one_round_no_client_is_asked_twice():
    once = plan(5, 3, 4)
    asked = Counter(place for each in once.layers for place in positions(each))
    assert asked == Counter((None, place) for place in range(12))
    assert (once.most_asked, once.most_rounds_per_client, once.fewest_answers) == (12, 1, 3)


def test_in_every_round_each_asks_by_an_order_of_its_own():
    every = plan(5, 5, 5, participation="every-round")
    assert [each.cohort.redraw for each in every.layers] == [0, 1, 2]
    assert {each.cohort.start for each in every.layers} == {0}
    assert (every.most_asked, every.most_rounds_per_client, every.fewest_answers) == (5, 3, 5)


def test_an_epoch_cuts_one_fresh_order_into_its_rounds():
    epochs = plan(6, 6, 6, 6, 12, participation="epochs", epochs=3, secret_cohorts=True)
    assert [each.cohort.redraw for each in epochs.layers] == [0, 0, 1, 1, 2]
    asked = Counter(place for each in epochs.layers for place in positions(each))
    assert asked == Counter((epoch, place) for epoch in range(3) for place in range(12))
    assert [len(rounds) for rounds in epochs.shuffles] == [2, 2, 1]
    assert (epochs.most_asked, epochs.most_rounds_per_client) == (12, 3)
    assert (epochs.fewest_answers, epochs.smallest_cohort) == (12, 6)


def test_fewest_answers_are_those_of_an_epoch_or_where_cohorts_are_known_of_a_round():
    secret = plan(6, 6, 12, participation="epochs", epochs=2, secret_cohorts=True)
    fewer = secret.accepting(lambda size: size - 2)
    assert fewer.fewest_answers == 8
    assert replace(fewer, secret_cohorts=False).fewest_answers == 4


def test_a_round_is_of_one_epoch():
    with pytest.raises(InputError, match=r"Expected 1 <= epochs <= 2, got epochs=3; .* set epochs"):
        plan(6, 6, participation="epochs", epochs=3)


@pytest.mark.parametrize(
    ("more", "most"),
    [
        ({}, 9),
        ({"participation": "every-round"}, 17),
        ({"participation": "every-round", "uploads_once": True}, 9),
        ({"participation": "epochs", "epochs": 2}, 5 + 9),
    ],
)
def test_a_client_has_the_numbers_of_the_rounds_that_may_ask_it(more, most):
    assert plan(6, 6, 6, 6, **more).most_of_client({0: 3, 1: 5, 3: 9}) == most
