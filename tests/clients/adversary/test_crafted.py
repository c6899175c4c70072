"""What holds for the fake answers to any kind of question."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fedhh.questions.channel import Answering, Channel, in_turn
from fedhh.questions.clients import Sent
from fedhh.questions.matching import WordMatcher
from fedhh.words.lexicon import Lexicon
from tests import questions_of_each_kind as ask
from tests.every import every
from tests.questions_of_each_kind import Fakes
from tests.zipf_words import everybody_holds

TARGETS = ["abc", "abd", "fee"]
WAYS = ["promote", "demote", "random-reports"]


def sent(question, way: str, num_clients: int, *, seed: int = 1, targets=TARGETS):
    """Return the counts and the tally of fake clients."""
    fakes = Fakes(question, targets)
    rng, tally = np.random.default_rng(seed), np.zeros(question.tally_size, dtype=np.int64)
    if way == "random-reports":
        counts = fakes.add_random_reports(num_clients, rng=rng, tally=tally)
    else:
        numbers = range(len(targets))
        counts = fakes.add(numbers, num_clients, goal=way, rng=rng, tally=tally)
    return counts, tally


@every("way", WAYS)
@every("kind", ask.KINDS)
def test_fake_clients_send_as_many_reports_as_honest_ones(kind, way):
    question = ask.KINDS[kind]()
    counts, tally = sent(question, way, 40)
    population = everybody_holds(TARGETS, 40)
    honest = np.zeros(question.tally_size, dtype=np.int64)
    answerer = Answering(question, WordMatcher(population.lexicon), 3)
    expected = answerer.add_block(population.items, 1, honest)
    assert counts.num_reports == expected.num_reports
    assert counts.num_clients == len(population.items.clients)
    assert (counts.messages is None) == (expected.messages is None)
    if counts.messages is not None:
        assert counts.messages.dtype == expected.messages.dtype
        assert counts.messages.shape[1:] == expected.messages.shape[1:]
    assert tally.dtype == np.int64
    assert tally.shape == honest.shape


@every("way", WAYS)
@every("kind", ask.KINDS)
def test_the_same_coins_give_the_same_reports(kind, way):
    question = ask.KINDS[kind]()
    first, tally = sent(question, way, 30)
    again, same = sent(question, way, 30)
    assert np.array_equal(tally, same)
    assert np.array_equal(first.messages, again.messages) or first.messages is None


@every("way", WAYS)
@every("kind", ask.KINDS)
def test_no_fake_clients_change_nothing(kind, way):
    counts, tally = sent(ask.KINDS[kind](), way, 0)
    assert not tally.any()
    assert (counts.num_reports, counts.num_dummies, counts.num_clients_with_items) == (0, 0, 0)
    assert counts.messages is None or len(counts.messages) == 0


@every("kind", ask.KINDS)
def test_words_that_no_alphabet_spells_support_nothing(kind):
    # The alphabet has no "z": no candidate, no string, no upload.
    counts, tally = sent(ask.KINDS[kind](), "promote", 60, targets=["zz", "zzz"])
    _, other = sent(ask.KINDS[kind](), "promote", 60, targets=["zz", "azz"])
    assert np.array_equal(tally, other)
    if counts.messages is not None and kind == "plain_words":
        assert len(counts.messages) == 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Shouts(Channel):
    """Somebody else's channel: all that clients say, added up as it is."""

    size: int

    @property
    def tally_size(self):
        return self.size

    def add(self, question, said, tables, coins, tally):
        values = said.values[said.values >= 0]
        tally += np.bincount(values, minlength=len(tally))
        return Sent.of(said, said.values.size)


def test_a_strangers_channel_is_attacked_by_those_who_claim_to_hold_the_words():
    votes = ask.votes()
    question = replace(votes, channel=Shouts(size=votes.names.num_candidates))
    values = votes.names.known(WordMatcher(Lexicon(words=TARGETS)), votes.alphabet).values
    counts, tally = sent(question, "promote", 30)
    assert (counts.num_reports, counts.num_clients_with_items) == (90, 30)
    # "abc" and "abd" begin alike: whoever holds both says it once.
    assert tally[np.unique(values)].tolist() == [30, 30]
    assert tally.sum() == 60
    for way in ("demote", "random-reports"):
        _, tally = sent(question, way, 30)
        assert not tally.any()
    assert not question.channel.can_sample
    assert math.isinf(question.local_epsilon)


def test_words_take_turns_and_no_client_has_one_twice():
    words = np.array([3, 7, 9])
    assert in_turn(words, 3, 2).tolist() == [[3, 7], [9, 3], [7, 9]]
    assert in_turn(words, 2, 5).tolist() == [[3, 7, 9], [3, 7, 9]]
    assert in_turn(words[:0], 2, 5).shape == (2, 0)
