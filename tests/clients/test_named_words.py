"""Strings of synthetic populations in languages other than English."""

import unicodedata

import numpy as np
import pytest
import wordfreq

from fedhh.clients.named_words import LONGEST_WORD, NAMED_RANKS, named_words, rank_strings
from fedhh.validation import InputError
from fedhh.words.alphabet import clusters
from fedhh.words.known_words import KnownWords, named_list
from tests.thinned import thinned

SCRIPTS = {"hi": "DEVANAGARI", "tr": "LATIN"}


@pytest.fixture(scope="module", params=thinned(["tr", "hi"]))
def language(request):
    return request.param


@pytest.mark.slow("tests/clients/test_strings.py::test_every_rank_has_its_own_string")
def test_every_rank_has_its_own_string_that_no_known_word_is(language):
    known = named_list(language)
    words = named_words(known)
    assert len(set(words)) == len(words) == NAMED_RANKS
    assert not known.contains_all(words).any()
    assert rank_strings(np.array([1, NAMED_RANKS + 1]), known) == [words[0], "bababaq"]


def test_words_have_the_symbols_of_the_known_ones_and_one_form(language):
    known = named_list(language)
    symbols = set().union(*map(clusters, known.words)) | set("0123456789'")
    for word in named_words(known)[::97]:
        assert set(clusters(word)) <= symbols
        assert unicodedata.is_normalized("NFC", word)
        assert 1 <= len(clusters(word)) <= LONGEST_WORD
    letters = [each for word in named_words(known)[:500] for each in word if each.isalpha()]
    names = [unicodedata.name(each) for each in letters]
    assert all(name.startswith(SCRIPTS[language]) for name in names)


def test_the_first_words_are_those_of_the_list_in_its_order(language):
    order = {word: i for i, word in enumerate(wordfreq.iter_wordlist(language, "best"))}
    places = [order[word] for word in named_words(named_list(language))[:2_000]]
    assert places == sorted(places)


def test_a_list_of_another_language_than_wordfreqs_is_refused():
    with pytest.raises(InputError, match=r"of which wordfreq has a list, got 'xx'; it has ar, bg"):
        named_words(KnownWords(name="mine", words=frozenset(["word"]), language="xx"))


def test_too_few_known_words_are_refused():
    few = KnownWords(name="few", words=frozenset(["merhaba", "istanbul"]), language="tr")
    with pytest.raises(InputError, match=r"words of at least 3 symbols .*got 2 in few; set popul"):
        named_words(few)
