import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wordfreq

import fedhh
from fedhh.clients import named_words as module
from fedhh.clients.known_words import load_known
from fedhh.clients.named_words import LONGEST_WORD, NAMED_RANKS, rank_strings
from fedhh.validation import InputError
from fedhh.words.coded_words import coded_words

BEYOND = [1_400_000, 1_400_001, 1_500_000, 10**9, 2**40, 2**53 - 1]


@pytest.fixture(scope="module")
def strings():
    ranks = np.r_[np.arange(1, NAMED_RANKS + 100_001), BEYOND]
    return rank_strings(ranks)


def test_every_rank_has_its_own_string(strings):
    assert len(strings) == NAMED_RANKS + 100_000 + len(BEYOND)
    assert len(set(strings)) == len(strings)


def test_some_strings_are_short_plain_words(strings):
    some = strings[::97]
    assert max(len(word) for word in some) <= LONGEST_WORD
    assert all(re.fullmatch(r"[a-z0-9']*[a-z][a-z0-9']*", word) for word in some)


@pytest.mark.slow("::test_some_strings_are_short_plain_words")
def test_strings_are_short_plain_words(strings):
    assert max(len(word) for word in strings) <= LONGEST_WORD
    assert all(re.fullmatch(r"[a-z0-9']+", word) for word in strings)
    assert all(re.search(r"[a-z]", word) for word in strings)


def test_no_string_of_a_named_rank_is_a_known_word(strings):
    assert not load_known("scowl70").contains_all(strings[:NAMED_RANKS]).any()


def test_coded_words_can_not_be_the_string_of_a_named_rank(strings):
    coded = re.compile(r"([bcdfghjklmnprstvwxyz][aeiou]){3,8}q")
    assert not [word for word in strings[:NAMED_RANKS] if coded.fullmatch(word)]
    assert all(coded.fullmatch(word) for word in strings[NAMED_RANKS:])


def test_no_known_word_looks_like_a_coded_one():
    """Nothing is removed from synthetic populations, so nothing may have to be."""
    coded = re.compile(r"([bcdfghjklmnprstvwxyz][aeiou]){3,8}q")
    assert not [word for word in load_known("scowl70").words if coded.fullmatch(word)]


@pytest.mark.slow("tests/system/test_kept.py::test_a_text_is_made_once")
def test_words_are_the_same_made_or_kept(strings, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        module.named_words.cache_clear()
        assert rank_strings(np.arange(1, NAMED_RANKS + 1)) == strings[:NAMED_RANKS]
    module.named_words.cache_clear()
    (file,) = (tmp_path / "fedhh").iterdir()
    assert file.name.startswith("words-")
    monkeypatch.setattr(module, "_real_and_changed_words", lambda: pytest.fail("made again"))
    assert rank_strings(np.array([NAMED_RANKS])) == [strings[NAMED_RANKS - 1]]
    module.named_words.cache_clear()


def test_coded_words_are_one_to_one_where_their_length_changes():
    numbers = np.concatenate([np.arange(-500, 500) + 100**k for k in range(3, 8)])
    numbers = np.r_[
        numbers, np.cumsum(100 ** np.arange(3, 8)), np.cumsum(100 ** np.arange(3, 8)) - 1
    ]
    numbers = np.unique(numbers)
    assert len(set(coded_words(numbers))) == len(numbers)


def test_first_ranks_are_new_words_in_the_order_of_the_list(strings):
    order = {word: i for i, word in enumerate(wordfreq.iter_wordlist("en", "large"))}
    places = [order[word] for word in strings[:100_000]]
    assert places == sorted(places)
    assert {"lol", "dont", "im", "xbox", "lmao"} < set(strings[:30])


def test_runs_of_digits_that_the_list_blurs_are_left_out(strings):
    assert not [word for word in strings[:100_000] if "00" in word]


def test_a_rank_has_the_same_string_whatever_is_asked_with_it(strings):
    for rank in (1, 150_000, 399_999, 400_000, 400_001):
        assert rank_strings(np.array([rank])) == [strings[rank - 1]]
    shuffled = np.random.default_rng(0).permutation(1000) + 399_500
    assert rank_strings(shuffled) == [strings[rank - 1] for rank in shuffled]


def test_some_changed_words_come_in_the_stated_mix(strings):
    listed = set(wordfreq.iter_wordlist("en", "large"))
    changed = [word for word in strings[100_000:NAMED_RANKS:23] if word not in listed]
    assert len(changed) > 7_000
    for stated, kind in ((0.05, r"[a-z]+[0-9]{1,4}"), (0.04, r".*([a-z])\1\1.*")):
        found = np.mean([re.fullmatch(kind, word) is not None for word in changed])
        # Six deviations, and the few words of other kinds that look so.
        assert abs(found - stated) < 6 * (stated / len(changed)) ** 0.5 + 0.002


@pytest.mark.slow("::test_some_changed_words_come_in_the_stated_mix")
def test_changed_words_come_in_the_stated_mix(strings):
    listed = set(wordfreq.iter_wordlist("en", "large"))
    known = load_known("scowl70").words
    changed = [word for word in strings[:NAMED_RANKS] if word not in listed]
    assert len(changed) > 150_000
    # Kinds that no other kind looks like, but for a few words.
    kinds = {
        0.05: [re.fullmatch(r"[a-z]+[0-9]{1,4}", word) for word in changed],
        0.04: [re.search(r"([a-z])\1\1", word) for word in changed],
    }
    for stated, hits in kinds.items():
        assert np.mean([hit is not None for hit in hits]) == pytest.approx(stated, abs=0.005)
    dropped = {word[:i] + word[i + 1 :] for word in known for i in range(len(word))}
    added = [any(w[:i] + w[i + 1 :] in known for i in range(len(w))) for w in changed[:20_000]]
    # Other kinds hit a neighbor of a known word by chance, so these shares only have a floor.
    assert 0.055 < np.mean([word in dropped for word in changed]) < 0.15
    assert 0.13 < np.mean(added) < 0.35
    # The mix is the same early and late.
    early, late = (np.mean([w[-1].isdigit() for w in part]) for part in np.array_split(changed, 2))
    assert early == pytest.approx(late, abs=0.005)


def test_no_ranks_give_no_strings():
    assert rank_strings(np.zeros(0, dtype=np.int64)) == []


@pytest.mark.parametrize("rank", [0, -5, 2**53])
def test_a_rank_outside_is_refused(rank):
    with pytest.raises(InputError, match=rf"Expected ranks in \[1, 2\^53\), got {rank} to {rank}"):
        rank_strings(np.array([rank]))


def test_the_word_list_is_imported_where_it_is_used():
    package = Path(fedhh.__file__).parent
    at_the_top = re.compile(r"^(?:import|from) wordfreq\b", re.MULTILINE)
    assert not [p for p in package.rglob("*.py") if at_the_top.search(p.read_text("utf-8"))]


@pytest.mark.slow("::test_the_word_list_is_imported_where_it_is_used")
def test_the_word_list_is_loaded_only_when_strings_are_made():
    code = (
        "import sys, fedhh.clients.synthetic as s; s.population_presets();"
        "print('wordfreq' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
