from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import OracleSpec, SketchOracle
from fedhh.questions.channel import Answering
from fedhh.questions.clients import ClientBlock
from fedhh.questions.cohort import Cohort
from fedhh.questions.matching import WordMatcher
from fedhh.questions.records import PartsTable
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.puzzle import FragmentPuzzle
from tests import questions_of_each_kind as ask
from tests.zipf_words import everybody_holds

LOWER = Alphabet(symbols="abcdefghijklmnopqrstuvwxyz")
# One row and a great epsilon: sketches are true counts, but for shared cells.
SKETCH = {"num_hashes": 1, "num_cells": 2048, "hash_seed": 5}

WORDS = ["lol", "lolabc", "lolabcd", "lolabzz", "x", "na\u00efve", "zz"]


BLIND = {"cohort": Cohort(start=0, size=600), "alphabet": LOWER, "max_items": 7}


def fragment_question(**changes):
    values = {
        "puzzle": FragmentPuzzle(
            alphabet_size=27, length=6, fragment_length=2, num_puzzles=16, hash_seed=1
        ),
        "word_oracle": OracleSpec(name="cms", epsilon=80.0, params=SKETCH),
        "fragment_oracle": OracleSpec(name="ss", epsilon=40.0),
    }
    return ask.records(**{**BLIND, **values, **changes})


def prefix_question(**changes):
    oracle = OracleSpec(name="cms", epsilon=80.0, params=SKETCH)
    values = {"prefix_length": 4, "longest_word": 6, "oracle": oracle, "hash_seed": 1}
    return ask.strings(**{**BLIND, **values, **changes})


def keys_of(question, words: list[str]) -> np.ndarray:
    return question.channel.puzzle.names.keys(
        question.alphabet.encode(words, width=question.channel.puzzle.length)
    )


def test_a_record_reports_the_padded_or_truncated_string_and_one_of_its_fragments():
    question = fragment_question(pad=False)
    population = everybody_holds(WORDS, 600)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    answerer = Answering(question, WordMatcher(population.lexicon), 3)
    counts = answerer.add_block(population.items, 0, tally)
    # Two words share their first six symbols, so they are one string; one word has a symbol that
    # the alphabet lacks.
    strings = ["lol", "lolabc", "lolabz", "x", "zz"]
    assert counts.num_reports == 600 * len(strings)
    assert counts.num_dummies == 0
    words, fragments, records = question.channel.split(tally)
    support = question.channel.words.support(words, keys_of(question, [*strings, "lo"]))
    assert support.tolist() == [600] * 5 + [0]
    assert records.sum() == counts.num_reports
    # Positions are uniform, and each fragment is counted where its string was cut.
    assert (np.abs(records - 1000) < 6 * np.sqrt(3000 * 2 / 9)).all()
    codes = question.alphabet.encode(strings, width=6)
    pieces = question.channel.puzzle.fragments(codes, keys_of(question, strings))
    for position in range(3):
        assert fragments[position].sum() == records[position]
        for piece in set(pieces[:, position].tolist()):
            holders = np.count_nonzero(pieces[:, position] == piece)
            expected = 200 * holders
            assert abs(fragments[position, piece] - expected) < 6 * math.sqrt(400 / 3 * holders)
        assert set(np.flatnonzero(fragments[position])) == set(pieces[:, position].tolist())


def test_clients_pad_with_uniformly_random_strings_and_fragments():
    question = fragment_question(max_items=10)
    population = everybody_holds(["lol"], num_clients=2000)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    answerer = Answering(question, WordMatcher(population.lexicon), 3)
    counts = answerer.add_block(population.items, 0, tally)
    assert counts.num_reports == 20_000
    assert counts.num_dummies == 18_000
    words, fragments, records = question.channel.split(tally)
    table = words[:2048]
    own = int(question.channel.words.hashes.cells(np.array([0]), keys_of(question, ["lol"]))[0])
    others = np.delete(table, own)
    # 18,000 dummies over 2,048 cells: no cell has many more than another.
    assert others.max() < 8.8 + 8 * math.sqrt(8.8)
    assert abs(others.mean() - 18_000 / 2048) < 1
    assert abs(table[own] - 2000 - 8.8) < 8 * math.sqrt(8.8)
    assert fragments.sum() == records.sum() == 20_000
    assert np.count_nonzero(fragments) > 10_000


def test_prefixes_are_padded_and_words_that_are_too_long_take_no_part():
    question = prefix_question(pad=False)
    population = everybody_holds(WORDS, 600)
    answerer = Answering(question, WordMatcher(population.lexicon), 3)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    counts = answerer.add_block(population.items, 0, tally)
    prefixes = ["lol", "lola", "x", "zz"]
    assert counts.num_reports == 600 * len(prefixes)
    candidates = question.names.keys_of(question.alphabet.encode([*prefixes, "lob"], width=4))
    assert isinstance(question.channel.pure, SketchOracle)
    assert question.channel.pure.support(tally, candidates).tolist() == [600] * 4 + [0]


def test_reports_themselves_reach_the_server_where_the_oracle_is_no_sketch():
    question = prefix_question(pad=False, oracle=OracleSpec(name="olh", epsilon=8.0))
    population = everybody_holds(WORDS, 600)
    answerer = Answering(question, WordMatcher(population.lexicon), 3)
    counts = answerer.add_block(population.items, 0, np.zeros(0, dtype=np.int64))
    assert question.tally_size == 0
    assert counts.messages is not None
    assert len(counts.messages) == counts.num_reports == 2400
    candidates = question.names.keys_of(question.alphabet.encode(["lol", "x", "lob"], width=4))
    oracle = question.channel.pure
    estimates = oracle.estimate(
        oracle.support(reports=counts.messages, candidates=candidates), 2400
    )
    deviations = np.sqrt(oracle.variance(np.array([600, 600, 0]), 2400))
    assert (np.abs(estimates - [600, 600, 0]) < 6 * deviations).all()


def test_a_sketch_of_prefixes_adds_up_without_messages():
    oracle = OracleSpec(name="flh", epsilon=8.0, params={"num_hashes": 4})
    question = prefix_question(oracle=oracle)
    population = everybody_holds(WORDS, 600)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    answerer = Answering(question, WordMatcher(population.lexicon), 3)
    counts = answerer.add_block(population.items, 0, tally)
    assert counts.messages is None
    assert tally.sum() == counts.num_reports == 600 * 7


def test_a_table_fills_in_fragments_of_its_own_strings_only():
    puzzle = fragment_question().channel.puzzle
    words = ["lolabc", "zz", "lolabc", "x"]
    codes = LOWER.encode(words, width=6)
    keys = puzzle.names.keys(codes)
    table = PartsTable(puzzle, codes, np.where([True, True, True, False], keys, -1))
    out = np.full(6, 99)
    table.fill(np.array([keys[1], keys[0], keys[3], keys[2], -1, keys[0]]), np.arange(6) % 3, out)
    pieces = puzzle.fragments(codes, keys)
    assert out.tolist() == [pieces[1, 0], pieces[0, 1], 99, pieces[0, 0], 99, pieces[0, 2]]
    empty = PartsTable(puzzle, codes[:0], keys[:0])
    empty.fill(keys, np.zeros(4, dtype=np.int64), out)
    assert out[2] == 99


@pytest.mark.parametrize("kind", ["fragments", "prefixes"])
def test_a_greedy_clients_ties_do_not_depend_on_words_that_others_hold(kind):
    held = ["lol", "zz", "x", "imo", "brb", "ttyl"]
    others = [f"{letter}ab" for letter in "abcdefgh"]
    if kind == "fragments":
        question = fragment_question(max_items=3, sampler="greedy")
    else:
        question = prefix_question(max_items=3, sampler="greedy")
    tallies = []
    for lexicon in (held, others[:4] + held + others[4:]):
        rows = ClientBlock(
            clients=np.arange(200),
            offsets=np.arange(201) * len(held),
            word_ids=np.tile([lexicon.index(word) for word in held], 200).astype(np.int32),
            counts=np.ones(200 * len(held), dtype=np.int32),
        )
        tally = np.zeros(question.tally_size, dtype=np.int64)
        Answering(question, WordMatcher(Lexicon(words=lexicon)), 3).add_block(rows, 0, tally)
        tallies.append(tally)
    assert np.array_equal(*tallies)


def test_whole_strings_need_a_sketch():
    with pytest.raises(InputError, match="'ss'; use cms, hcms or hashtogram"):
        _ = fragment_question(word_oracle=OracleSpec(name="ss", epsilon=1.0)).channel.words
