"""Known words of languages other than English: the head of wordfreq's list."""

import unicodedata

import pytest
import wordfreq

from fedhh.validation import InputError
from fedhh.words.known_words import KNOWN_SHARE, named_list, wordfreq_head

WORDS = {
    "hi": "है नहीं तुम्हारी भारत",
    "id": "yang tidak selamat gak",
    "tr": "değil istanbul güzel ışık",
    "ko": "사람 우리 감사 오늘",
    "ro": "este oameni",
}
UNKNOWN = {
    "hi": "the",
    "id": "menyelundup",
    "tr": "kütüphanecilik",
    "ko": "the 漢",
    "ro": "zzz",
}


@pytest.mark.parametrize("language", WORDS)
def test_a_list_is_words_in_lower_case_without_digits(language):
    for word in named_list(language).words:
        assert unicodedata.is_normalized("NFC", word)
        assert not any(symbol.isupper() for symbol in word)
        kinds = {unicodedata.category(symbol)[0] for symbol in word}
        assert "L" in kinds
        assert kinds.isdisjoint("NZ"), word


@pytest.mark.parametrize("language", WORDS)
def test_a_list_has_everyday_words_and_no_rare_or_foreign_ones(language):
    known = named_list(language)
    assert known.contains_all(WORDS[language].split()).all()
    assert not known.contains_all(UNKNOWN[language].split()).any()


def test_known_words_have_the_share_of_the_frequency():
    def mass(share):
        known = wordfreq_head("ro", share).words
        return sum(frequency for word, frequency in listed.items() if word in known) / total

    listed = {
        word: frequency
        for word, frequency in wordfreq.get_frequency_dict("ro", wordlist="best").items()
        if not any(unicodedata.category(symbol)[0] == "N" for symbol in word)
    }
    total = sum(listed.values())
    assert mass(KNOWN_SHARE) == pytest.approx(KNOWN_SHARE, abs=1e-3)
    assert mass(0.5) == pytest.approx(0.5, abs=1e-2)
    assert wordfreq_head("ro").words == named_list("ro").words
    assert wordfreq_head("ro", 0.5).words < named_list("ro").words < wordfreq_head("ro", 1).words


def test_a_share_is_at_most_one():
    with pytest.raises(InputError, match=r"Expected 0 <= share <= 1, got share=1\.5"):
        wordfreq_head("ro", 1.5)
