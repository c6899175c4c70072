"""Words found so far: every column has an entry for each of them."""

from __future__ import annotations

import numpy as np

from fedhh.found import Found
from fedhh.words.alphabet import Alphabet

ABC = Alphabet(symbols="abc")


def found(*words: str, layer: int = 1) -> Found:
    columns = {
        name: np.arange(len(words), dtype=getattr(Found.nothing(3), name).dtype) + layer
        for name in Found.__dataclass_fields__
    }
    return Found(**{**columns, "codes": ABC.encode(words, width=3)})


def words_of(some: Found) -> list[str]:
    said = some.discoveries(ABC)
    columns = [value for name, value in vars(said).items() if name != "words"]
    assert {len(column) for column in columns} == {len(said.words)}
    return list(said.words)


def test_nothing_is_no_word_in_any_column():
    assert words_of(Found.nothing(3)) == []
    assert Found.nothing(3).codes.shape == (0, 3)


def test_words_are_appended_in_their_order_and_left_out_by_their_codes():
    both = found("ab", "c").append(found("a", layer=5))
    assert words_of(both) == ["ab", "c", "a"]
    assert both.layer.tolist() == [1, 2, 5]
    assert words_of(Found.nothing(3).append(both)) == ["ab", "c", "a"]
    rest = both.without(ABC.encode(["c", "b"], width=3))
    assert words_of(rest) == ["ab", "a"]
    assert rest.layer.tolist() == [1, 5]
    assert words_of(both.only(np.array([2, 0]))) == ["a", "ab"]
