"""The shipped lists of known words by language: their form, some words of each, their notice."""

import gzip
import tomllib
import unicodedata
from importlib import resources
from pathlib import Path

import pytest

from tests.thinned import thinned

ASSETS = resources.files("fedhh.words").joinpath("assets")
ROOT = Path(__file__).resolve().parents[2]
WORDS = {
    "es": "el que mañana después niño están corazón x",
    "pt": "não você coração amanhã contacto também x",
    "de": "und haus münchen weiss strasse über gehst bzw usa",
    "fr": "être où coeur français aujourd'hui garçon ça",
    "it": "perché più città andiamo dell'italia università",
    "ru": "что ещё хорошо москва сша завтра г",
    "hi": "है नहीं न व तुम्हारी भारत ज़रूर",
    "id": "yang tidak dengan selamat makan terima",
    "tr": "değil için istanbul güzel ışık türkiye abd",
    "ko": "사람 있 없 했 우리 감사 오늘",
    "ar": "من على الله شكرا اليوم كتاب",
    "fi": "ja ei minä helsinki talossa hyvää ystäväni",
}
MISSPELLED = {
    "es": "tambien asi habia aver",
    "pt": "nao voce entao tambem",
    "de": "nähmlich standart vieleicht",
    "fr": "etre tres apres parmis",
    "it": "perchè piu qual'è citta",
    "ru": "чтонибудь извени зделать щас",
    "hi": "मै तुम्हे",
    "id": "gak nggak yg bgt",
    "tr": "herşey birşey yanlız cok",
    "ko": "됬 ㅋㅋ ㅠㅠ",
    "ar": "ان الى انشاءالله لاكن",
    "fi": "enään sydämmen mä",
}


def lines(language):
    data = ASSETS.joinpath(f"known_{language}.txt.gz").read_bytes()
    return gzip.decompress(data).decode().split("\n")


@pytest.mark.parametrize("language", thinned(WORDS))
def test_a_list_is_sorted_words_in_lower_case_without_digits(language):
    *words, end = lines(language)
    assert end == ""
    assert 15_000 < len(words) <= 100_000
    assert words == sorted(set(words))
    for word in words:
        assert unicodedata.is_normalized("NFC", word)
        assert not any(symbol.isupper() for symbol in word)
        kinds = {unicodedata.category(symbol)[0] for symbol in word}
        assert "L" in kinds
        assert kinds.isdisjoint("NZC"), word  # no digit, blank or control character


@pytest.mark.parametrize("language", WORDS)
def test_a_list_has_everyday_words_and_no_misspelled_ones(language):
    words = set(lines(language))
    assert set(WORDS[language].split()) - words == set()
    assert set(MISSPELLED[language].split()) & words == set()


def test_no_list_has_a_time_stamp_and_all_are_small():
    sizes = []
    for language in WORDS:
        data = ASSETS.joinpath(f"known_{language}.txt.gz").read_bytes()
        assert data[3] == 0, "a file name or another field in gzip's header"
        assert data[4:8] == bytes(4)
        sizes.append(len(data))
    assert sum(sizes) <= 3_000_000


def test_the_notice_and_the_license_expression_name_every_source():
    notice = ASSETS.joinpath("WORD_LISTS_NOTICE.txt").read_text(encoding="utf-8")
    sources = tomllib.loads((ROOT / "tools/word_lists.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licenses = set(project["license"].split(" AND "))
    assert "fedhh/words/assets/WORD_LISTS_NOTICE.txt" in project["license-files"]
    assert sources["wordfreq"]["license"] in licenses
    for language in WORDS:
        for source in sources[language]:
            assert f"\n{language}: {source['package']} ({source['license']})\n" in notice
            assert source["license"] in licenses
    for text in (
        "Copyright (c) 1997-2008, Alexander I. Lebedev",
        "Copyright (c) 2014 Harun Reşit Zafer",
        "SUBTLEX-DE",
        "OpenSubtitles",
        "Version 3, 29 June 2007",
        "Version 2, June 1991",
    ):
        assert text in notice
