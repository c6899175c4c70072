from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedhh.validation import InputError
from fedhh.words.puzzle import FragmentPuzzle

PUZZLE = FragmentPuzzle(alphabet_size=4, length=6, fragment_length=2, num_puzzles=8, hash_seed=3)


def test_fragments_are_the_puzzle_number_and_the_symbols_at_each_position():
    codes = np.array([[1, 2, 3, 0, 0, 0], [3, 3, 3, 3, 3, 3]], dtype=np.uint16)
    assert PUZZLE.texts(codes).tolist() == [[1 * 4 + 2, 3 * 4 + 0, 0], [15, 15, 15]]
    keys = PUZZLE.names.keys(codes)
    puzzles = PUZZLE.puzzles(keys)
    expected = puzzles[:, None] * 16 + PUZZLE.texts(codes)
    assert (PUZZLE.fragments(codes, keys) == expected).all()
    assert PUZZLE.num_fragments == 8 * 16


def test_the_symbols_of_a_text_are_those_that_make_its_number():
    assert (PUZZLE.texts(np.tile(PUZZLE.text_codes, (1, 3)))[:, 1] == np.arange(16)).all()


def test_possible_texts_have_no_symbol_after_a_blank():
    expected = [not (a == 0 and b != 0) for a, b in itertools.product(range(4), repeat=2)]
    assert PUZZLE.is_possible.tolist() == expected


def test_puzzle_numbers_spread_strings_evenly():
    codes = np.array(list(itertools.product(range(4), repeat=6)), dtype=np.uint16)
    counts = np.bincount(PUZZLE.puzzles(PUZZLE.names.keys(codes)), minlength=8)
    # 4,096 strings over 8 numbers: 512 each, with a deviation of 21 for a random function.
    assert np.abs(counts - 512).max() < 6 * 21


def test_names_depend_on_the_seed_only_where_strings_do_not_fit():
    other = FragmentPuzzle(alphabet_size=4, length=6, fragment_length=2, num_puzzles=8, hash_seed=4)
    codes = np.array(list(itertools.product(range(4), repeat=6)), dtype=np.uint16)
    assert (PUZZLE.names.keys(codes) == np.arange(4**6)).all()
    assert (PUZZLE.puzzles(np.arange(4**6)) != other.puzzles(np.arange(4**6))).any()


def test_sizes_that_do_not_fit_are_refused():
    sizes = {"alphabet_size": 4, "fragment_length": 2, "num_puzzles": 8, "hash_seed": 0}
    with pytest.raises(InputError, match="multiple of fragment_length, got length=5"):
        FragmentPuzzle(length=5, **sizes)
    with pytest.raises(InputError, match="lower num_puzzles or fragment_length"):
        FragmentPuzzle(length=6, **{**sizes, "alphabet_size": 100, "fragment_length": 6})
    with pytest.raises(InputError, match="num_puzzles >= 1, got num_puzzles=0"):
        FragmentPuzzle(length=6, **{**sizes, "num_puzzles": 0})
