"""Fake answers to questions for plain votes and words, against what the protocol checks of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting.noisy_sums import least_modulus
from fedhh.questions.channel import Answering
from fedhh.questions.matching import WordMatcher
from fedhh.questions.noise_shares import DiscreteLaplace
from fedhh.questions.question import Aggregate
from fedhh.testing import follows_distribution
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie
from tests import questions_of_each_kind as ask
from tests.questions_of_each_kind import ALPHABET, LONGEST, Fakes
from tests.zipf_words import everybody_holds

WORDS = ["abc", "acd", "fee", "xyz"]


def crafter_of(question, words=WORDS):
    return Fakes(question, words)


def add(question, targets, num_clients, *, goal="promote", seed=1):
    tally = np.zeros(question.tally_size, dtype=np.int64)
    rng = np.random.default_rng(seed)
    return crafter_of(question).add(targets, num_clients, goal=goal, rng=rng, tally=tally), tally


def candidates(question, words) -> list[int]:
    return (
        WordMatcher(Lexicon(words=words)).prefix_values(question.names, question.alphabet).tolist()
    )


def aggregate(tally) -> Aggregate:
    return Aggregate(tally=tally, num_reports=0, num_clients=0)


# --- One plain vote ---


def test_a_fake_client_has_one_vote_and_targets_take_turns():
    question = ask.word_votes()
    ab, ac, fe = candidates(question, ["abc", "acd", "fee"])
    counts, tally = add(question, [0, 1, 2], 30)
    assert (tally[ab], tally[ac], tally[fe], tally.sum()) == (10, 10, 10, 30)
    assert (counts.num_reports, counts.num_dummies, counts.num_clients_with_items) == (30, 0, 30)


@pytest.mark.parametrize(("targets", "goal"), [([0], "demote"), ([3], "promote")])
def test_it_abstains_where_no_vote_helps(targets, goal):
    question = ask.word_votes()
    _, tally = add(question, targets, 30, goal=goal)
    assert tally[question.names.nothing] == tally.sum() == 30


def test_random_votes_are_one_a_client_and_uniform_over_all_values():
    question = ask.word_votes()
    tally = np.zeros(question.tally_size, dtype=np.int64)
    rng = np.random.default_rng(1)
    sent = crafter_of(question).add_random_reports(20_000, rng=rng, tally=tally)
    assert tally.sum() == sent.num_reports == sent.num_clients == 20_000
    votes = np.repeat(np.arange(len(tally)), tally)
    # Abstaining, the last value, is one of them.
    assert question.names.nothing == len(tally) - 1
    assert follows_distribution(votes, dict.fromkeys(range(len(tally)), 1 / len(tally)))
    # The control: who never abstains does not follow it.
    honest = votes[votes != question.names.nothing]
    assert not follows_distribution(honest, dict.fromkeys(range(len(tally)), 1 / len(tally)))


# --- Secure sums ---


def honest_votes(question, words, num_clients):
    tally = np.zeros(question.tally_size, dtype=np.int64)
    population = everybody_holds(words, num_clients)
    Answering(question, WordMatcher(population.lexicon), 3).add_block(population.items, 0, tally)
    return tally


@pytest.mark.parametrize("modulus", [1 << 12, 1 << 40, 4097])
def test_one_fake_client_fills_a_sum_up_to_the_modulus_and_not_beyond(modulus):
    noise = DiscreteLaplace(std=4.0)
    question = ask.secure_sums(noise=noise, modulus=modulus)
    target, other = candidates(question, ["abc", "fee"])
    # Everybody else of the cohort votes for the target, too.
    tally = honest_votes(question, ["abc"], question.cohort.size - 1)
    _, fake = add(question, [0], 1)
    assert np.flatnonzero(fake).tolist() == [target]
    sums = question.votes(aggregate(tally + fake))
    beyond = least_modulus(noise, num_clients=0, num_sums=question.num_candidates) // 2 - 1
    assert fake[target] == modulus // 2 - 1 - question.cohort.size - beyond + 1
    noise_free = question.cohort.size - 1 + fake[target]
    assert noise_free + beyond == modulus // 2 - 1
    assert sums[target] == tally[target] + fake[target]
    assert abs(sums[target] - noise_free) <= beyond
    assert abs(sums[other]) <= beyond
    # The control: with more, the largest noise wraps the sum around.
    full = np.zeros_like(tally)
    full[target] = noise_free + beyond + (2 if modulus % 2 else 1)
    assert question.votes(aggregate(full))[target] < 0


def test_fake_clients_fill_a_sum_together():
    question = ask.secure_sums(modulus=1 << 12)
    target = candidates(question, ["abc"])[0]
    crafter, rng = crafter_of(question), np.random.default_rng(1)
    room = question.channel.room(1, question.cohort.size)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    for targets, number in (([0], 0), ([0], 7), ([0, 2], 5)):
        crafter.add(targets, number, goal="promote", rng=rng, tally=tally)
    assert room > 1000
    assert tally[target] == room + 12
    assert tally[candidates(question, ["fee"])[0]] == room + 5


def test_a_sum_can_be_made_as_small_as_the_modulus_leaves():
    noise = DiscreteLaplace(std=4.0)
    question = ask.secure_sums(noise=noise, modulus=1 << 12)
    target = candidates(question, ["abc"])[0]
    counts, fake = add(question, [0], 3, goal="demote")
    assert counts.num_reports == 9
    tally = honest_votes(question, ["abc"], 100)
    sums = question.votes(aggregate(tally + fake))
    assert sums[target] == tally[target] + fake[target] < -1500
    beyond = least_modulus(noise, num_clients=0, num_sums=question.num_candidates) // 2 - 1
    assert fake[target] == -(2048 - beyond)
    everything = np.full_like(fake, -2048)
    assert question.votes(aggregate(everything))[target] == -2048
    assert question.votes(aggregate(everything - 1))[target] == 2047


def test_fake_clients_bring_no_noise_and_uniform_vectors_all_of_it():
    question = ask.secure_sums(modulus=1 << 10)
    _, tally = add(question, [0, 3], 400)
    assert np.count_nonzero(tally) == 1
    sums = []
    for seed in range(60):
        tally = np.zeros(question.tally_size, dtype=np.int64)
        crafter_of(question).add_random_reports(2, rng=np.random.default_rng(seed), tally=tally)
        sums.append((question.votes(aggregate(tally)) + 512) // 64)
    assert follows_distribution(np.concatenate(sums), dict.fromkeys(range(16), 1 / 16))


# --- Secret shares ---


def test_each_upload_is_one_target_and_the_servers_noise_is_not_theirs():
    question = ask.uploads(max_items=2, noise=DiscreteLaplace(std=1e4))
    _, tally = add(question, [0, 1, 2, 3], 30)
    # The last one cannot be spelled; the others take turns.
    assert tally[candidates(question, ["abc", "acd", "fee"])].tolist() == [20, 20, 20]
    assert tally.sum() == 60


def test_uploads_answer_every_layer_alike():
    first, second = ALPHABET.encode(["ab"], width=2)[0].tolist()
    levels = (np.array([first]), np.array([second]))
    deeper = ask.uploads(
        layer=2,
        max_items=2,
        trie=PrefixTrie(alphabet_size=ALPHABET.size, levels=levels),
    )
    _, tally = add(deeper, [0, 1, 2], 30)
    # Uploads of words whose prefixes were not kept stay where they are.
    assert tally[candidates(deeper, ["abc"])].tolist() == [20]
    assert tally.sum() == 20


def test_nothing_takes_votes_from_an_upload():
    counts, tally = add(ask.uploads(), [0, 1], 30, goal="demote")
    assert not tally.any()
    assert counts.num_clients_with_items == 0
    assert counts.num_reports == 90


def test_uniform_votes_that_servers_open_are_for_every_candidate_or_none():
    question = ask.opened()
    tally = np.zeros(question.tally_size, dtype=np.int64)
    crafter_of(question).add_random_reports(5000, rng=np.random.default_rng(1), tally=tally)
    each = 15_000 / (question.num_candidates + 1)
    sums = tally[: question.num_candidates]
    assert np.abs(sums - each).max() < 6.2 * math.sqrt(each)
    assert sums.sum() < 15_000


def test_uniform_uploads_fall_under_all_candidates_alike():
    question = ask.uploads()
    tally = np.zeros(question.tally_size, dtype=np.int64)
    crafter_of(question).add_random_reports(5000, rng=np.random.default_rng(1), tally=tally)
    each = 15_000 / ALPHABET.size**2
    sums = tally[: question.num_candidates]
    assert np.abs(sums - each).max() < 6.2 * math.sqrt(each)
    assert sums.sum() < 15_000


# --- Plain words for a trusted aggregator ---


def rows_of(question, messages):
    words = question.alphabet.decode(messages[:, : question.names.length].astype(np.uint16))
    return dict(zip(words, messages[:, question.names.length :].tolist(), strict=True))


def test_a_client_sends_b_targets_at_most():
    question = ask.plain_words(max_items=2)
    counts, _ = add(question, [0, 1, 2, 3], 30)
    assert rows_of(question, counts.messages) == {"abc": [20], "acd": [20], "fee": [20]}
    alone, _ = add(question, [1], 30)
    assert rows_of(question, alone.messages) == {"acd": [30]}


def test_one_target_alone_has_all_of_a_clients_weight():
    question = ask.plain_words(by_size=True)
    counts, _ = add(question, [0, 1, 2], 30)
    assert rows_of(question, counts.messages) == {"abc": [1, 10], "acd": [1, 10], "fee": [1, 10]}


def test_fake_clients_leave_nothing_out_by_chance():
    question = ask.plain_words(inclusion=0.01)
    counts, _ = add(question, [0], 30)
    assert rows_of(question, counts.messages) == {"abc": [30]}


def test_words_that_the_aggregator_does_not_take_are_not_sent():
    excluded = ALPHABET.encode(["abc"], width=LONGEST)
    counts, _ = add(ask.plain_words(excluded=excluded, max_items=1), [0, 2], 30)
    assert counts.messages[:, -1].tolist() == [30]
    against, _ = add(ask.plain_words(), [0, 1], 30, goal="demote")
    assert len(against.messages) == 0
    assert against.num_reports == 90


@pytest.mark.parametrize("by_size", [False, True])
def test_random_words_are_uniform_over_all_there_are(by_size):
    question = ask.plain_words(longest_word=2, by_size=by_size)
    rng, tally = np.random.default_rng(1), np.zeros(0, dtype=np.int64)
    counts = crafter_of(question).add_random_reports(4000, rng=rng, tally=tally)
    words = question.alphabet.decode(counts.messages[:, :2].astype(np.uint16))
    letters = ALPHABET.symbols
    everything = [*letters, *(a + b for a in letters for b in letters)]
    assert follows_distribution(words, dict.fromkeys(everything, 1 / len(everything)))
    assert (counts.messages[:, -1] == 1).all()
    if by_size:
        assert (counts.messages[:, -2] == 3).all()
