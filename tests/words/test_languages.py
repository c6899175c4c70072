import unicodedata

from fedhh.words.known_words import KnownWords, is_named, language_list, named_list
from fedhh.words.languages import NAMES, lower, normalised
from tests.every import every


@every(
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
    assert all(map(is_named, {"scowl70", "none", "pl", *NAMES} - {"en"}))
    assert not any(map(is_named, ("en", "eo", "words.txt", "")))
    for language in ("en", "id", "vi"):
        known = language_list(language)
        assert known.language == language
        assert len(known.words) > 1_000
    assert language_list("eo") is None


def test_other_lists_have_no_english_endings():
    words = ["ikan's", "1st", "ikan"]
    assert named_list("id").contains_all(words).tolist() == [False, False, True]


def test_words_that_a_list_has_folded_are_known():
    known = KnownWords(name="mine", words=frozenset(["strasse", "σοφόσ"]), language="de")
    assert known.contains_all(["Straße", "strasse", "σοφός", "strase"]).tolist() == [
        True, True, True, False,
    ]  # fmt: skip
