import unicodedata

import pytest

from fedhh.words.known_words import (
    KnownWords,
    language_list,
    shipped_list,
    shipped_lists,
)
from fedhh.words.languages import NAMES, lower, normalised


@pytest.mark.parametrize(
    ("text", "language", "lowered"),
    [
        ("IŞIK", "tr", "ışık"),
        ("İzmir", "tr", "izmir"),
        ("ISI", "az", "ısı"),
        ("ISI", "en", "isi"),
        ("ÄÖÜ", "de", "äöü"),
        ("ΣΑΣ", "el", "σας"),
        ("МИР", "ru", "мир"),
    ],
)
def test_case_is_the_languages(text, language, lowered):
    assert lower(text, language) == lowered
    assert normalised(unicodedata.normalize("NFD", text), language) == lowered


def test_without_its_rule_a_turkish_capital_would_be_two_code_points():
    assert len("İ".lower()) == 2
    assert len(lower("İ", "tr")) == 1


def test_every_named_language_has_a_list_of_its_own():
    assert set(shipped_lists()) == {"scowl70", "none", *NAMES} - {"en"}
    for language in NAMES:
        known = language_list(language)
        assert known.language == language
        assert len(known.words) > 10_000
    assert language_list("pl") is None


def test_other_lists_have_no_english_endings():
    words = ["haus's", "1st", "haus"]
    assert shipped_list("de").contains_all(words).tolist() == [False, False, True]


def test_words_that_a_list_has_folded_are_known():
    known = KnownWords(name="mine", words=frozenset(["strasse", "σοφόσ"]), language="de")
    assert known.contains_all(["Straße", "strasse", "σοφός", "strase"]).tolist() == [
        True, True, True, False,
    ]  # fmt: skip
