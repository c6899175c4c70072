from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhh.questions import matching
from fedhh.questions.matching import WordMatcher
from fedhh.questions.names import TrieNames
from fedhh.words import trie as trie_module
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon, LexiconWalk
from fedhh.words.trie import ABSENT, PrefixTrie, match_rows

ALPHABET = Alphabet(symbols="abc")
words_of_abc = st.lists(st.text(alphabet="abcx", min_size=1, max_size=5), min_size=1, unique=True)


def grow(kept_by_level: list[set[str]]) -> PrefixTrie:
    """Return a trie with these prefixes; each level's must extend the level before."""
    trie = PrefixTrie(alphabet_size=ALPHABET.size)
    above = [""]
    for level in kept_by_level:
        numbers = [
            above.index(prefix[:-1]) * ALPHABET.size + ALPHABET.symbols.index(prefix[-1]) + 1
            for prefix in level
        ]
        trie = trie.extend(np.array(numbers, dtype=np.int64))
        above = sorted(level)
    return trie


LEVELS = [{"a", "b", "c"}, {"ab", "ac", "ca"}, {"abc", "caa", "cab"}]


def test_a_walk_of_a_few_words_ends_at_their_prefixes():
    words = ["abc", "abca", "ab", "acb", "caab", "cabx", "cax", "x", "c"]
    at = {prefix: number for number, prefix in enumerate(sorted(LEVELS[2]))}
    nodes = grow(LEVELS).walk(ALPHABET.encode(words, width=6))
    assert nodes.tolist() == [at.get(word[:3], ABSENT) for word in words]
    lexicon = Lexicon(words=sorted(words))
    walk = LexiconWalk(lexicon, ALPHABET, 6)
    for depth in (1, 2, 3, 1):
        trie = grow(LEVELS[:depth])
        assert walk.nodes(trie).tolist() == trie.walk(walk.codes).tolist()


@pytest.mark.slow("::test_a_walk_of_a_few_words_ends_at_their_prefixes")
@given(words_of_abc)
def test_a_walk_ends_at_the_prefix_that_the_word_begins_with(words: list[str]):
    trie = grow(LEVELS)
    nodes = trie.walk(ALPHABET.encode(words, width=6))
    expected = [
        sorted(LEVELS[2]).index(word[:3]) if word[:3] in LEVELS[2] else ABSENT for word in words
    ]
    assert nodes.tolist() == expected


def test_spelling_candidates_gives_their_symbols():
    trie = grow(LEVELS)
    codes = trie.spell(np.array([0 * 4 + 0, 1 * 4 + 2]))
    assert ALPHABET.decode(codes) == ["abc", "caab"]


def test_finished_words_do_not_enter_the_next_level():
    trie = PrefixTrie.all_of_length_one(4).extend(np.array([0, 1, 4, 7]))
    assert trie.levels[1].tolist() == [1, 7]


@pytest.mark.slow("::test_a_walk_of_a_few_words_ends_at_their_prefixes")
@given(words_of_abc, words_of_abc)
def test_a_walk_carried_along_equals_a_fresh_one(words: list[str], others: list[str]):
    lexicon = Lexicon(words=sorted({*words, *others}))
    walk = LexiconWalk(lexicon, ALPHABET, 6)
    for depth in (1, 2, 3, 1):  # the last: another pass begins, the walk must start again
        trie = grow(LEVELS[:depth])
        assert walk.nodes(trie).tolist() == trie.walk(walk.codes).tolist()


def test_a_walk_notices_a_trie_that_did_not_grow_from_the_last():
    lexicon = Lexicon(words=["ab", "ca"])
    walk = LexiconWalk(lexicon, ALPHABET, 4)
    walk.nodes(grow([{"a", "c"}, {"ab"}]))
    assert walk.nodes(grow([{"a", "c"}, {"ab"}, {"aba"}])).tolist() == [ABSENT, ABSENT]
    assert walk.nodes(grow([{"a", "c"}, {"ca"}])).tolist() == [ABSENT, 0]


def test_reachable_words_fit_the_alphabet_and_the_depth():
    lexicon = Lexicon(words=["abc", "abca", "axc", ""])
    assert lexicon.reachable(ALPHABET, 3).tolist() == [True, False, False, False]


def test_a_lexicon_is_encoded_for_whoever_asks():
    lexicon = Lexicon(words=["abc", "abca", "axc", "", "b\0a"])
    other = Alphabet(symbols="xcba")
    for alphabet, width in [(ALPHABET, 2), (ALPHABET, 4), (ALPHABET, 1), (other, 3), (ALPHABET, 0)]:
        codes = lexicon.encoded(alphabet, width)
        assert codes.tolist() == alphabet.encode(lexicon.words, width=width).tolist()
        assert not codes.flags.writeable
    copy = pickle.loads(pickle.dumps(lexicon))
    assert copy.words == lexicon.words
    assert copy.ids(["axc", "no"]).tolist() == [2, -1]
    assert (copy.encoded(ALPHABET, 4) == lexicon.encoded(ALPHABET, 4)).all()


def held_bytes(held: object) -> int:
    """Return the bytes of the arrays that an object holds, those of its lexicon left out."""
    inner = [each for each in vars(held).values() if not isinstance(each, Lexicon)]
    arrays = [each for each in inner if isinstance(each, np.ndarray)]
    walks = [each for each in inner if isinstance(each, LexiconWalk)]
    codes = [walk.codes.nbytes for walk in walks]
    return sum(each.nbytes for each in arrays) + sum(map(held_bytes, walks)) - sum(codes)


def test_a_word_that_was_asked_about_takes_its_codes_and_five_bytes():
    lexicon = Lexicon(words=[f"{number:05}" for number in range(1_000)])
    digits = Alphabet(symbols="0123456789")
    nothing = np.zeros((0, 9), dtype=np.uint16)
    matcher = WordMatcher(lexicon)
    for length in (1, 2):
        trie = PrefixTrie.all_of_length_one(digits.size)
        trie = trie.extend(np.arange(40)) if length == 2 else trie
        names = TrieNames(trie=trie, finished=digits.encode(["00007"], width=9), excluded=nothing)
        matcher.prefix_values(names, digits)
        assert held_bytes(matcher) == 5 * len(lexicon)
    assert lexicon.encoded(digits, 9).nbytes == 18 * len(lexicon)


def test_words_are_walked_and_matched_by_pieces(monkeypatch):
    words = ["abc", "abca", "ab", "acb", "caab", "cabx", "cax", "x", "c"]
    trie, nothing = grow(LEVELS), np.zeros((0, 6), dtype=np.uint16)
    names = TrieNames(trie=trie, finished=ALPHABET.encode(["ab", "c"], width=6), excluded=nothing)
    at = {prefix: number for number, prefix in enumerate(sorted(LEVELS[2]))}
    values = [at["abc"] * 4, at["abc"] * 4 + 1, 12, -1, at["caa"] * 4 + 2, -1, -1, -1, 13]
    for module in (trie_module, matching):
        monkeypatch.setattr(module, "_AT_ONCE", 2)
    codes = ALPHABET.encode(words, width=6)
    assert trie.walk(codes).tolist() == [at.get(word[:3], ABSENT) for word in words]
    matcher = WordMatcher(Lexicon(words=words))
    assert matcher.prefix_values(names, ALPHABET).tolist() == values


def test_matching_rows_finds_each_row_and_nothing_else():
    codes = np.array([[1, 2, 0], [1, 2, 3], [256, 0, 0], [1, 0, 0]], dtype=np.uint16)
    rows = np.array([[1, 0, 0], [1, 2, 0], [2, 2, 2]], dtype=np.uint16)
    assert match_rows(codes, rows).tolist() == [1, -1, -1, 0]
    # Columns of wider tables do not lie one after the other.
    assert match_rows(codes[:, :2], rows[:, :2]).tolist() == [1, 1, -1, 0]


def test_rows_are_looked_up_by_pieces(monkeypatch):
    monkeypatch.setattr(trie_module, "_AT_ONCE", 2)
    codes = np.array([[1, 2], [1, 0], [3, 3], [1, 2], [2, 2]], dtype=np.uint16)
    assert match_rows(codes, codes[[3, 4]]).tolist() == [0, -1, -1, 0, 1]
    assert match_rows(codes[:0], codes[:1]).tolist() == []
    assert match_rows(codes, codes[:0]).tolist() == [-1] * 5
