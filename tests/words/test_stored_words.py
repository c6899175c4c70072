"""Words in an Arrow array answer as a list of them does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fedhh.words import lexicon as lexicon_module
from fedhh.words import stored_words as module
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.stored_words import StoredLexicon, StoredWords

WORDS = sorted(["", "a", "ab", "abc", "b", "z\u00e9", "\uffee", "\U0001f600", "na\u00efve"])


def stored(words) -> StoredWords:
    return StoredWords(pa.array(words, type=pa.large_string()))


def test_they_are_read_as_a_list_is(monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    words = stored(WORDS)
    assert list(words) == WORDS
    assert len(words) == len(WORDS)
    assert [words[i] for i in range(len(WORDS))] == WORDS
    assert words[-1] == WORDS[-1]
    assert words[2:5] == WORDS[2:5]
    with pytest.raises(IndexError):
        words[len(WORDS)]
    keep = np.array([word > "a" for word in WORDS])
    assert list(words.only(keep)) == [word for word in WORDS if word > "a"]
    assert list(stored([])) == []
    assert stored([]).find("a") == -1


def test_a_stored_lexicon_answers_as_one_in_memory(monkeypatch):
    monkeypatch.setattr(lexicon_module, "_ENCODED_AT_ONCE", 2)
    held, lying = Lexicon(words=WORDS), StoredLexicon(words=stored(WORDS))
    asked = [*WORDS, "aa", "zz", "\U0001f601", "nai\u0308ve"]
    ids = lying.ids(asked)
    assert ids.tolist() == [*range(len(WORDS)), -1, -1, -1, WORDS.index("na\u00efve")]
    assert np.array_equal(ids, held.ids(asked))
    assert np.array_equal(lying.ids([]), held.ids([]))
    alphabet = Alphabet(symbols="abcenv\u00ef")
    expected = alphabet.encode(WORDS, width=4)
    assert np.array_equal(lying.encoded(alphabet, 4), expected)
    assert np.array_equal(held.encoded(alphabet, 4), expected)


@pytest.mark.parametrize(
    "texts",
    [
        pa.array(["b", "a"], type=pa.large_string()),
        pa.array(["a", "a"], type=pa.large_string()),
        pa.array([b"a", b"\xff"], type=pa.large_binary()).view(pa.large_string()),
    ],
)
def test_words_that_cannot_be_searched_are_refused(texts):
    with pytest.raises(ValueError, match=r"order|UTF"):
        StoredWords(texts)


def test_some_of_the_words_answer_as_a_list_of_them_does_and_are_not_copied():
    words, before = stored(WORDS), pa.total_allocated_bytes()
    some = words.only(np.array([word != "ab" for word in WORDS]))
    fewer = some.only(np.arange(len(some)) > 1)
    assert pa.total_allocated_bytes() == before
    expected = [word for word in WORDS if word != "ab"]
    assert list(some) == expected
    assert list(fewer) == expected[2:]
    assert [fewer[i] for i in range(len(fewer))] == expected[2:]
    assert fewer[1:3] == expected[3:5]
    assert fewer[-1] == WORDS[-1]
    assert [fewer.find(word) for word in ("ab", *expected)] == [-1, -1, -1, *range(len(fewer))]
    with pytest.raises(IndexError):
        fewer[len(fewer)]
