from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhh.validation import InputError
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.lexicon import Lexicon


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


def test_a_nul_in_a_word_is_a_foreign_symbol_and_never_its_end():
    alphabet = Alphabet(symbols="abc")
    codes = alphabet.encode(["ab\0c", "\0", "ab", "ab\0", "\0\0a"], width=4)
    assert codes.tolist() == [
        [1, 2, FOREIGN, 3],
        [FOREIGN, END, END, END],
        [1, 2, END, END],
        [1, 2, FOREIGN, END],
        [FOREIGN, FOREIGN, 1, END],
    ]
    lexicon = Lexicon(words=["ab\0c", "ab", "\0", "ab\0"])
    assert lexicon.reachable(alphabet, 3).tolist() == [False, True, False, False]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_no_symbol_of_a_word_gets_the_code_of_its_end(width: int):
    alphabet = Alphabet(symbols="a\n")
    words = [chr(point) for point in (*range(0x3000), 0xD800, 0xFFFF, 0x10FFFF)]
    assert not (alphabet.encode(words, width=width)[:, 0] == END).any()


def test_an_alphabet_that_holds_nul_is_refused():
    with pytest.raises(InputError, match=r"without the symbol '\\x00'.*leave it out"):
        Alphabet(symbols="ab\0")
