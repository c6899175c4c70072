"""Votes in noisy sums: counts are the clients' own, and noise follows its exact distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.questions.noise_shares import NoiseName, Skellam, noise_of
from fedhh.testing.statistics import follows_distribution
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie
from tests import asked_clients
from tests import questions_of_each_kind as ask
from tests.reference import END

SYMBOLS = "abcdef"
ALPHABET = Alphabet(symbols=SYMBOLS)
ALL = PrefixTrie.all_of_length_one(ALPHABET.size)


@dataclass(frozen=True, kw_only=True)
class Silent(Skellam):
    """Noise that is always 0, for tests of what it is added to."""

    name: ClassVar[NoiseName] = "skellam"

    def draw(self, part: float, size: int, *, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)


SMALL = {"cohort": Cohort(start=0, size=600), "alphabet": ALPHABET, "max_items": 2}


def secure_sums(**changes: object):
    return ask.secure_sums(**{**SMALL, "noise": Silent(std=1.0), **changes})


def uploads(**changes: object):
    return ask.uploads(**{**SMALL, "noise": Silent(std=1.0), **changes})


def answered(population: Clients, question, seed: int = 3) -> Answer:
    worker = ClientWorker(population, seed=seed)
    return asked_clients.answered(worker, question)


def one_word_each(num_clients: int, word: str = "fade") -> Clients:
    return Clients.from_rows(
        name="one",
        lexicon=Lexicon(words=[word]),
        clients=np.arange(num_clients),
        word_ids=np.zeros(num_clients, dtype=np.int64),
        counts=np.ones(num_clients, dtype=np.int64),
        num_clients=num_clients,
    )


def test_clients_add_one_to_the_counts_of_their_prefixes(population):
    clients = population.num_clients
    question = secure_sums(cohort=Cohort(start=0, size=clients), max_items=6)
    answer = answered(population, question)
    # With room for all, every distinct prefix of a client has its vote.
    expected = np.zeros(question.num_candidates, dtype=np.int64)
    rows = population.block(np.arange(clients))
    for client in range(clients):
        here = slice(rows.offsets[client], rows.offsets[client + 1])
        words = [population.lexicon.words[word] for word in rows.word_ids[here]]
        for prefix in {(word + END)[:2] for word in words}:
            first, last = (0 if s == END else 1 + SYMBOLS.index(s) for s in prefix)
            place = list(ALL.levels[-1]).index(first)
            expected[place * ALPHABET.size + last] += 1
    assert question.votes(answer.aggregate).tolist() == expected.tolist()
    assert answer.aggregate.num_clients == clients
    assert answer.aggregate.num_reports == 6 * clients
    # What a client does not say is in no sum.
    assert len(answer.aggregate.tally) == question.num_candidates


@pytest.mark.parametrize("name", ["discrete-laplace", "skellam"])
def test_the_shares_of_all_blocks_make_the_noise(name):
    noise = noise_of(name, 2.0)
    # Each of three blocks, of unlike sizes, brings its part; most candidates have no vote.
    question = secure_sums(trie=ALL.extend(np.arange(42)), noise=noise)
    assert question.cohort.num_blocks == 3
    sums = np.concatenate(
        [
            question.votes(answered(one_word_each(600), question, seed).aggregate)
            for seed in range(60)
        ]
    )
    empty = sums[sums < 300]
    masses = noise.distribution().masses
    law = {sign * k: float(mass) for k, mass in enumerate(masses) for sign in (1, -1)}
    assert len(empty) > 15_000
    assert follows_distribution(empty, law)
    # Half the noise is refuted by the same test, and so is more of it.
    for wrong in (1.0, 2.3):
        masses = noise_of(name, wrong).distribution().masses
        law = {sign * k: float(mass) for k, mass in enumerate(masses) for sign in (1, -1)}
        assert not follows_distribution(empty, law)


def test_sums_are_read_modulo_m_and_as_nearest_to_zero():
    whom = Cohort(start=0, size=30)
    noise = noise_of("skellam", 40.0)
    question = secure_sums(modulus=64, noise=noise, cohort=whom)
    plain = secure_sums(modulus=1 << 40, noise=noise, cohort=whom)
    answer = answered(one_word_each(30), question).aggregate
    sums, unreduced = question.votes(answer), plain.votes(answer)
    assert unreduced.max() >= 32
    assert unreduced.min() < -32
    assert ((sums - unreduced) % 64 == 0).all()
    assert sums.min() >= -32
    assert sums.max() <= 31


def test_who_drops_out_takes_votes_and_noise_with_it():
    noise = noise_of("skellam", 3.0)
    question = secure_sums(trie=ALL.extend(np.arange(42)), noise=noise, dropout=0.4)
    answers = [answered(one_word_each(600), question, seed).aggregate for seed in range(60)]
    arrived = np.array([each.num_clients for each in answers])
    # Each client by itself: a binomial number.
    assert abs(arrived.mean() - 360) < 6 * math.sqrt(600 * 0.4 * 0.6 / 60)
    assert 4 < arrived.std() < 25
    for each in answers:
        assert each.num_reports == 2 * each.num_clients
        assert abs(question.votes(each).max() - each.num_clients) < 40
    sums = np.concatenate([question.votes(each) for each in answers])
    empty = sums[sums < 200]
    expected = 9 * arrived.mean() / 600
    assert abs(empty.var() - expected) < 6 * expected * math.sqrt(2 / len(empty))
    assert answers[0].num_clients == answered(one_word_each(600), question, 0).aggregate.num_clients


def test_a_cohort_that_drops_out_as_a_whole_sends_nothing():
    question = secure_sums(
        cohort=Cohort(start=0, size=1), dropout=1 - 1e-12, noise=Skellam(std=9.0)
    )
    aggregate = answered(one_word_each(1), question).aggregate
    assert (aggregate.num_clients, aggregate.num_reports) == (0, 0)
    assert not aggregate.tally.any()


@pytest.mark.parametrize("sampler", ["random", "greedy"])
def test_an_upload_is_chosen_once_for_all_layers(population, sampler):
    clients = population.num_clients
    question = uploads(cohort=Cohort(start=0, size=clients), sampler=sampler)
    trie, ended = ALL, 0
    sums = question.votes(answered(population, question).aggregate)
    number = int(sums.sum())
    # Everybody uploads two of four draws of words, but who has but one.
    assert clients < number <= 2 * clients
    for layer in range(2, 7):
        # Words that have ended are said no more.
        ended = sums.reshape(-1, ALPHABET.size)[:, 0].sum()
        trie = trie.extend(np.arange(question.num_candidates))
        parents = sums
        question = replace(question, layer=layer, names=replace(question.names, trie=trie))
        channel = replace(question.channel, num_candidates=question.num_candidates)
        question = replace(question, channel=channel)
        sums = question.votes(answered(population, question).aggregate)
        assert int(sums.sum()) == int(parents.sum()) - int(ended)
        # The words under a prefix are those under its extensions.
        alive = np.delete(parents.reshape(-1, ALPHABET.size), 0, axis=1).ravel()
        assert sums.reshape(-1, ALPHABET.size).sum(axis=1).tolist() == alive.tolist()


def test_words_of_a_client_that_share_a_prefix_all_count():
    population = Clients.from_rows(
        name="shared",
        lexicon=Lexicon(words=["aab", "aac", "aad", "toolongforit", "a?b"]),
        clients=np.repeat(np.arange(50), 5),
        word_ids=np.tile(np.arange(5), 50),
        counts=np.ones(250, dtype=np.int64),
        num_clients=50,
    )
    question = uploads(cohort=Cohort(start=0, size=50), max_items=5)
    sums = question.votes(answered(population, question).aggregate)
    # What cannot be uploaded is not: it is too long, or has a foreign symbol.
    assert sorted(sums[sums > 0].tolist()) == [150]
    # Votes for prefixes, in contrast, are one for each client.
    votes = secure_sums(cohort=Cohort(start=0, size=50), max_items=5)
    sums = votes.votes(answered(population, votes).aggregate)
    assert sums.max() == 50


def test_the_servers_noise_is_drawn_once_whoever_answers_first():
    noise = noise_of("discrete-laplace", 2.0)
    question = uploads(trie=ALL.extend(np.arange(42)), noise=noise)
    population = one_word_each(600)
    whole = answered(population, question).aggregate.tally
    worker = ClientWorker(population, seed=3)
    parts = [
        asked_clients.answered(worker, question, [block]).aggregate.tally for block in (2, 0, 1)
    ]
    assert sum(parts).tolist() == whole.tolist()
    sums = np.concatenate(
        [question.votes(answered(population, question, seed).aggregate) for seed in range(60)]
    )
    masses = noise.distribution().masses
    law = {sign * k: float(mass) for k, mass in enumerate(masses) for sign in (1, -1)}
    assert follows_distribution(sums[sums < 300], law)
    # Layers draw their own.
    later = answered(population, replace(question, layer=2)).aggregate.tally
    assert later.tolist() != whole.tolist()
