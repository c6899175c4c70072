from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhh.experiments.config.domain import symbols_of
from fedhh.validation import InputError
from fedhh.words.alphabet import BREAK, END, FOREIGN, Alphabet, clusters, length_of
from fedhh.words.candidates import Candidates
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon
from tests.every import every

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
THUMB = "\U0001f44d\U0001f3fd"
GERMANY, FRANCE = "\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"
KSHI = "\u0915\u094d\u0937\u093f"
KA_VIRAMA, SSA = "\u0915\u094d", "\u0937"
ACUTE = "e\u0301"
JAMO = ("\u1112", "\u1161", "\u11ab")
HAN = "\ud55c"
PIECES = ["a", "\u00e9", KSHI, KA_VIRAMA, SSA, *JAMO, HAN, FAMILY, THUMB, GERMANY, "\u0628\u064e"]


@every(
    ("text", "symbols"),
    [
        # By rule GB9c, consonants that a virama joins are one symbol.
        (KSHI + "\u0915", [KSHI, "\u0915"]),
        ("".join(JAMO), ["".join(JAMO)]),
        (HAN + "\uad6d", [HAN, "\uad6d"]),
        (FAMILY + THUMB, [FAMILY, THUMB]),
        (GERMANY + FRANCE, [GERMANY, FRANCE]),
        (f"caf{ACUTE}", ["c", "a", "f", ACUTE]),
        ("\u0643\u064e\u062a", ["\u0643\u064e", "\u062a"]),
    ],
)
def test_a_symbol_is_what_a_reader_sees_as_one(text, symbols):
    assert clusters(text) == symbols
    assert length_of(text) == len(symbols)


def test_equivalent_words_have_the_same_codes():
    alphabet = Alphabet(symbols=f"caf{ACUTE}{HAN}")
    assert alphabet.symbols == f"caf\u00e9{HAN}"
    codes = alphabet.encode(["caf\u00e9", f"caf{ACUTE}", HAN, "".join(JAMO)], width=5)
    assert codes.tolist() == [[1, 2, 3, 4, 0], [1, 2, 3, 4, 0], [5, 0, 0, 0, 0], [5, 0, 0, 0, 0]]
    assert Candidates(["\u00e9", ACUTE]).words == ("\u00e9",)
    assert Lexicon(words=["\u00e9"]).ids([ACUTE]).tolist() == [0]


def test_a_symbol_that_the_alphabet_lacks_is_foreign_as_a_whole():
    alphabet = Alphabet(symbols="\u0915\u0937a")
    assert alphabet.encode([f"a{KSHI}a", FAMILY], width=4).tolist() == [
        [3, FOREIGN, 3, END],
        [FOREIGN, END, END, END],
    ]
    assert alphabet.foreign(f"a{KSHI}a") == [KSHI]


def test_a_word_is_cut_at_symbols():
    assert Alphabet(symbols=GERMANY + "a").encode([f"{GERMANY}a{GERMANY}"], width=2).tolist() == [
        [1, 2]
    ]


@pytest.mark.slow("::test_equivalent_words_have_the_same_codes")
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), max_size=8))
def test_words_of_any_script_are_decoded_as_they_were(words):
    alphabet = Alphabet(symbols=symbols_of([*words, "a"]))
    spelled = alphabet.decode(alphabet.encode(words, width=8))
    assert spelled == [unicodedata.normalize("NFC", word) for word in words]


@given(st.lists(st.sampled_from(PIECES), min_size=1, unique=True))
def test_an_alphabet_is_read_back_from_its_text(symbols):
    text = symbols_of(symbols)
    alphabet = Alphabet(symbols=text)
    assert sorted(alphabet.listed) == sorted(symbols)
    assert Alphabet(symbols=alphabet.symbols) == alphabet
    assert Alphabet(symbols=alphabet.symbols).listed == alphabet.listed


def test_rows_of_codes_and_their_texts_are_one_to_one():
    alphabet = Alphabet(symbols=symbols_of(PIECES))
    codes = [list(row) for row in itertools.product(range(1, alphabet.size), repeat=2)]
    texts = alphabet.decode(np.array(codes, dtype=np.uint16))
    assert len(set(texts)) == len(codes)
    for row, text in zip(codes, texts, strict=True):
        # What has a break in it cannot be typed; all else has the codes that it was made of.
        foreign = BREAK in text
        assert foreign or alphabet.encode([text], width=2).tolist() == [row]
    pair = [alphabet.listed.index(KA_VIRAMA) + 1, alphabet.listed.index(SSA) + 1]
    assert texts[codes.index(pair)] == f"{KA_VIRAMA}{BREAK}{SSA}"


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ("\u0301ab", r"stand alone, got '\\u0301'"),
        (f"\u00e9{ACUTE}", "distinct symbols"),
        (BREAK, "only what stands between"),
    ],
)
def test_alphabets_that_cannot_be_are_refused(symbols, message):
    with pytest.raises(InputError, match=message):
        Alphabet(symbols=symbols)


def test_marks_without_a_letter_and_invisible_symbols_are_left_out():
    assert symbols_of(["\u0301a", " \u0301", "b\u200b", FAMILY]) == f"ab{FAMILY}"


def test_both_spellings_of_a_word_are_known():
    known = KnownWords(name="mine", words=frozenset({"\u00e9t\u00e9"}), language="fr")
    assert known.contains_all(["\u00e9t\u00e9", f"{ACUTE}t{ACUTE}", "e"]).tolist() == [
        True,
        True,
        False,
    ]
