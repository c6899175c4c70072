import gzip

import numpy as np
import pytest

from fedhh.clients.clients import Clients, Table
from fedhh.clients.known_words import KnownWords, load_known, removal_facts, remove_known
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.every import every


@pytest.fixture
def population():
    return Clients(
        Table(
            Lexicon(words=["dog", "lol", "dogs'", "im"]),
            np.array([0, 2, 3, 5]),
            np.array([0, 1, 0, 1, 3]),
            np.array([5, 2, 1, 3, 4]),
        ),
        name="three",
    )


@every(
    ("word", "known"),
    [
        ("dog", True),
        ("DOG", True),
        ("dog's", True),
        ("Dog'S", True),
        ("1st", True),
        ("22ND", True),
        ("103rd", True),
        ("11th", True),
        ("dogs", False),
        ("dogs'", False),
        ("'s", False),
        ("dog's's", False),
        ("st", False),
        ("1sts", False),
        ("x1st", False),
        ("22", False),
        ("", False),
    ],
)
def test_a_word_is_known_by_the_stated_rule(word, known):
    assert KnownWords(name="t", words=frozenset({"dog"})).contains_all([word]).tolist() == [known]


def test_an_empty_list_knows_nothing_not_even_ordinals():
    assert not load_known("none").contains_all(["the", "1st", "dog's"]).any()


def test_scowl_knows_names_contractions_abbreviations_and_all_spellings():
    known = load_known("scowl70")
    words = ["colour", "color", "don't", "london", "nasa", "cafe", "isn't", "realise", "harbor"]
    assert known.contains_all(words).all()
    assert not known.contains_all(["lol", "im", "gonna2", "teh", "xbox"]).any()
    assert len(known.words) == 168_580


def test_scowl_comes_with_its_notice():
    from importlib import resources

    notice = resources.files("fedhh.words").joinpath("assets", "SCOWL_COPYRIGHT.txt").read_text()
    assert "Copyright 2000-2011 by Kevin Atkinson" in notice


@pytest.mark.parametrize("name", ["words.txt", "words.txt.gz"])
def test_a_file_of_words_is_read_in_lower_case_without_blanks(tmp_path, name):
    data = "\ufeffAlpha\r\n\n  beta \nGAMMA".encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    known = load_known(str(path))
    assert known.words == {"alpha", "beta", "gamma"}
    assert known.name == name


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "none.txt",
            None,
            r"Expected known words to be scowl70, none, .*, or a file, got .*none.txt'",
        ),
        ("empty.txt", b"\n \n", "Expected known words, one a line, got an empty file .*empty.txt"),
        (
            "bytes.txt",
            b"a\nb\n\xff\n",
            "Expected UTF-8 text, got other bytes on line 3 of .*bytes.txt;",
        ),
        ("bad.gz", b"plain", "Expected a readable file of known words, got .*bad.gz: Not a gzip"),
        (
            "cut.gz",
            gzip.compress(b"a\n" * 9, mtime=0)[:-9],
            "Expected a readable file of known words",
        ),
    ],
)
def test_a_bad_file_of_words_is_refused(tmp_path, name, data, message):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        load_known(tmp_path / name)


def test_a_directory_of_words_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"Expected a file, got the directory .*; name a file"):
        load_known(tmp_path)


def test_removal_keeps_clients_and_says_what_it_took(population):
    known = KnownWords(name="mine", words=frozenset({"dog"}))
    target = remove_known(population, known)
    facts = removal_facts(target, "other")
    assert population.removed is None
    assert target.lexicon.words == ["lol", "dogs'", "im"]
    assert target.num_clients == 3
    assert target.items.offsets.tolist() == [0, 1, 1, 3]
    assert target.word_counts().typed.tolist() == [5, 0, 4]
    assert facts == {
        "known": "mine",
        "tokens": 15,
        "words": 3,  # Nobody typed "dogs'".
        "known_tokens": 6,
        "known_words": 1,
        "known_token_share": pytest.approx(0.4),
        "known_word_share": pytest.approx(1 / 3),
    }


def test_removal_of_nothing_keeps_everything(population):
    target = remove_known(population, load_known("none"))
    assert target.lexicon.words == population.lexicon.words
    facts = removal_facts(target, "other")
    assert facts["known"] == "none"
    assert facts["known_tokens"] == facts["known_words"] == 0
    assert facts["known_token_share"] == facts["known_word_share"] == 0.0
