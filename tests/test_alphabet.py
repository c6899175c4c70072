from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhh.alphabet import END, FOREIGN, Alphabet
from fedhh.validation import InputError


def test_printable_has_the_papers_hundred_symbols_with_the_end_symbol():
    alphabet = Alphabet.named("printable")
    assert alphabet.size == 100
    assert set(alphabet.symbols) == set(string.printable) - {"\n"}


def test_lower_holds_letters_digits_apostrophe_and_hyphen():
    assert set(Alphabet.named("lower").symbols) == set(
        string.ascii_lowercase + string.digits + "'-"
    )


@given(st.lists(st.text(alphabet="abé語", max_size=6), max_size=8))
def test_decoding_gives_back_what_the_alphabet_can_spell(words: list[str]):
    alphabet = Alphabet(symbols="abé語")
    assert alphabet.decode(alphabet.encode(words, width=7)) == words


def test_words_are_cut_at_the_width_and_foreign_symbols_marked():
    codes = Alphabet(symbols="ab").encode(["abab", "axb", ""], width=3)
    assert codes.tolist() == [[1, 2, 1], [1, FOREIGN, 2], [END, END, END]]


def test_no_words_give_no_rows():
    assert Alphabet(symbols="ab").encode([], width=3).shape == (0, 3)


def test_repeated_symbols_are_refused_by_name():
    with pytest.raises(InputError, match=r"'a' more than once in alphabet='aba'"):
        Alphabet(symbols="aba")


def test_an_empty_alphabet_is_refused():
    with pytest.raises(InputError, match="at least one symbol"):
        Alphabet(symbols="")
