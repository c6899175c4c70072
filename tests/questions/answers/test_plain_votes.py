"""Plain votes: each client draws one of its own words, or abstains as the dummy."""

from __future__ import annotations

import numpy as np

from fedhh.clients.clients import Clients
from fedhh.questions.channel import Answering
from fedhh.questions.choice import draw_words
from fedhh.questions.clients import ClientBlock
from fedhh.questions.cohort import Cohort
from fedhh.questions.matching import WordMatcher
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie
from tests import questions_of_each_kind as ask


def test_a_client_votes_for_its_own_word_also_by_its_first_occurrence():
    # One occurrence each: a boundary that is off by one draws the neighbor's word.
    rows = ClientBlock(
        clients=np.arange(50),
        offsets=np.arange(51),
        word_ids=np.arange(50, dtype=np.int32)[::-1].copy(),
        counts=np.ones(50, dtype=np.int32),
    )
    drawn = draw_words(rows, np.random.default_rng(0))
    assert drawn.tolist() == list(range(49, -1, -1))


def test_abstentions_are_the_dummys_votes_and_are_diagnosed():
    alphabet = Alphabet(symbols="ab")
    # Clients 0 and 1 hold what can be voted for, 2 holds an unspellable word, 3 holds nothing.
    population = Clients.from_rows(
        name="four",
        lexicon=Lexicon(words=["a", "b", "z"]),
        clients=np.array([0, 1, 2]),
        word_ids=np.array([0, 1, 2]),
        counts=np.array([1, 5, 2]),
        num_clients=4,
    )
    nothing = np.zeros((0, 3), dtype=np.uint16)
    question = ask.word_votes(
        cohort=Cohort(start=0, size=4),
        alphabet=alphabet,
        trie=PrefixTrie(alphabet_size=alphabet.size),
        finished=nothing,
        excluded=nothing,
        max_items=1,
    )
    tally = np.zeros(question.tally_size, dtype=np.int64)
    answerer = Answering(question, WordMatcher(population.lexicon), seed=0)
    counts = answerer.add_block(population.block(np.arange(4)), 0, tally)
    candidates = tally[: question.num_candidates]
    assert sorted(candidates[candidates > 0].tolist()) == [1, 1]
    assert tally[question.names.nothing] == 2
    assert tally.sum() == 4
    assert (counts.num_reports, counts.num_dummies, counts.num_clients_with_items) == (4, 2, 2)
