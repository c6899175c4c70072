"""What holds for the fake answers to any kind of question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fedhh.clients.adversary.crafted import CRAFTERS, make_crafter
from fedhh.clients.adversary.crafter import in_turn
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.answers.registry import ANSWERERS, make_answerer
from fedhh.questions.base import PrefixQuestion, Question
from fedhh.words.lexicon import Lexicon
from tests.questions_of_each_kind import QUERIES, question_of
from tests.zipf_words import everybody_holds

TARGETS = ["abc", "abd", "fee"]
WAYS = ["promote", "demote", "random-reports", "random-values"]


def sent(question: Question, way: str, num_clients: int, *, seed: int = 1, targets=TARGETS):
    """Return the counts and the tally of fake clients."""
    crafter = make_crafter(question, WordMatcher(Lexicon(words=targets)))
    rng, tally = np.random.default_rng(seed), np.zeros(question.tally_size, dtype=np.int64)
    if way == "random-reports":
        counts = crafter.add_random_reports(num_clients, rng=rng, tally=tally)
    elif way == "random-values":
        counts = crafter.add_random_values(num_clients, rng=rng, tally=tally)
    else:
        numbers = range(len(targets))
        counts = crafter.add(numbers, num_clients, goal=way, rng=rng, tally=tally)
    return counts, tally


def test_every_kind_of_query_that_clients_answer_has_a_crafter_and_a_case_here():
    assert set(CRAFTERS) == set(ANSWERERS) == set(QUERIES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", QUERIES)
def test_fake_clients_send_as_many_reports_as_honest_ones(kind, way):
    question = question_of(kind)
    counts, tally = sent(question, way, 40)
    population = everybody_holds(TARGETS, 40)
    honest = np.zeros(question.tally_size, dtype=np.int64)
    answerer = make_answerer(question, WordMatcher(population.lexicon), 3)
    expected = answerer.add_block(population.items, 1, honest)
    assert counts.num_reports == expected.num_reports
    assert counts.num_lost == 0
    assert (counts.messages is None) == (expected.messages is None)
    if counts.messages is not None:
        assert counts.messages.dtype == expected.messages.dtype
        assert counts.messages.shape[1:] == expected.messages.shape[1:]
    assert tally.dtype == np.int64
    assert tally.shape == honest.shape


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", QUERIES)
def test_the_same_coins_give_the_same_reports(kind, way):
    question = question_of(kind)
    first, tally = sent(question, way, 30)
    again, same = sent(question, way, 30)
    assert np.array_equal(tally, same)
    assert np.array_equal(first.messages, again.messages) or first.messages is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", QUERIES)
def test_no_fake_clients_change_nothing(kind, way):
    counts, tally = sent(question_of(kind), way, 0)
    assert not tally.any()
    assert (counts.num_reports, counts.num_dummies, counts.num_clients_with_items) == (0, 0, 0)
    assert counts.messages is None or len(counts.messages) == 0


@pytest.mark.parametrize("kind", QUERIES)
def test_words_that_no_alphabet_spells_support_nothing(kind):
    # The alphabet has no "z": no candidate, no string, no upload.
    counts, tally = sent(question_of(kind), "promote", 60, targets=["zz", "zzz"])
    _, other = sent(question_of(kind), "promote", 60, targets=["zz", "azz"])
    assert np.array_equal(tally, other)
    if counts.messages is not None and kind.__name__ == "PlainWordsQuestion":
        assert len(counts.messages) == 0


def test_a_kind_of_query_that_no_crafter_serves_is_refused():
    @dataclass(frozen=True, kw_only=True, eq=False)
    class OtherQuestion(PrefixQuestion):
        """A kind that nobody registered."""

    question = OtherQuestion(**vars(question_of(PrefixQuestion)))
    with pytest.raises(
        TypeError, match=r"OtherQuestion; register it in .*CRAFTERS. Known: PrefixQ"
    ):
        make_crafter(question, WordMatcher(Lexicon(words=TARGETS)))


def test_words_take_turns_and_no_client_has_one_twice():
    words = np.array([3, 7, 9])
    assert in_turn(words, 3, 2).tolist() == [[3, 7], [9, 3], [7, 9]]
    assert in_turn(words, 2, 5).tolist() == [[3, 7, 9], [3, 7, 9]]
    assert in_turn(words[:0], 2, 5).shape == (2, 0)
