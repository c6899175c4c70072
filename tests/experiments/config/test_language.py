"""What `population.language` brings with it."""

import numpy as np
import pytest

from fedhh.clients.known_words import removal_facts
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import (
    build_population,
    check_population,
    has_none_of,
    population_model,
)
from fedhh.experiments.config.protocol import build_protocol
from fedhh.validation import InputError
from fedhh.words.known_words import named_list
from fedhh.words.languages import check_language


def parsed(protocol="adaptive-triehh", **population):
    table = {"population": {"source": "chat", "clients": 500, **population}}
    return parse_config({**table, "protocol": {"name": protocol}}, "test")


def test_a_language_stands_for_its_list_and_its_symbols():
    population = parsed(language="tr", known="scowl70", alphabet="lower").population
    assert (population.known, population.alphabet_source) == ("tr", "tr")
    assert set("ığşç0123456789'-") <= set(population.alphabet)
    assert not set("qж") - set("q") & set(population.alphabet)
    assert parsed().population.known == "scowl70"
    assert parsed().population.alphabet == "lower"


def test_what_is_said_of_a_language_stays():
    population = parsed(language="tr", known="none", alphabet="abc").population
    assert (population.known, population.alphabet) == ("none", "abc")


@pytest.mark.slow("::test_a_users_file_of_a_language_is_what_its_clients_know")
def test_clients_type_new_words_of_the_language():
    config = parsed(language="hi")
    population = build_population(config.population, seed=0)
    assert not named_list("hi").contains_all(population.lexicon.words).any()
    devanagari = [all("ऀ" <= each <= "ॿ" for each in word) for word in population.lexicon.words]
    assert np.average(devanagari, weights=population.word_counts().typed) > 0.6
    english = build_population(parsed().population, seed=0)
    assert english.word_counts().typed.sum() == population.word_counts().typed.sum()


@pytest.mark.slow("::test_a_language_stands_for_its_list_and_its_symbols")
def test_the_prior_follows_the_language():
    protocol = build_protocol(parsed(language="de"))
    assert protocol.known_words is named_list("de")
    assert protocol._public_list is named_list("de")
    assert build_protocol(parsed())._public_list is named_list("scowl70")


def test_a_language_that_wordfreq_lacks_is_refused():
    with pytest.raises(InputError, match=r"Expected known words to be scowl70, .* got 'eo', which"):
        parsed(language="eo")
    without = parsed(language="eo", known="none", alphabet="abc").population
    with pytest.raises(InputError, match="'eo': expected a language that wordfreq has a list of"):
        build_population(without, seed=0)


def test_a_users_file_of_a_language_is_what_its_clients_know(tmp_path):
    import wordfreq

    file = tmp_path / "romanian.txt"
    file.write_text("\n".join(wordfreq.top_n_list("ro", 5_000)))
    config = parsed(language="ro", known=str(file))
    population = build_population(config.population, seed=0)
    assert removal_facts(population, config.population.known)["known"] == str(file)
    protocol = build_protocol(config)
    assert protocol._public_list is protocol.known_words
    assert protocol.known_words.name == "romanian.txt"
    assert not protocol.known_words.contains_all(population.lexicon.words).any()


@pytest.mark.slow("::test_a_users_list_is_known_again_by_its_words")
def test_a_users_file_is_not_a_shipped_list_whatever_its_name(tmp_path):
    file = tmp_path / "de"
    file.write_text("\n".join(["haus", "baum"]))
    assert population_model(parsed(language="de", known=str(file)).population).known.name == "de"
    model = population_model(parsed(language="de").population)
    assert has_none_of("de", model)
    assert has_none_of("none", model)
    assert not has_none_of(str(file), model)


def test_a_users_list_is_known_again_by_its_words(tmp_path):
    import wordfreq

    words = wordfreq.top_n_list("ro", 5_000)
    file, other = tmp_path / "ro.txt", tmp_path / "other" / "ro.txt"
    file.write_text("\n".join(words))
    other.parent.mkdir()
    other.write_text("\n".join(words[1:]))
    model = population_model(parsed(language="ro", known=str(file)).population)
    assert has_none_of(str(file), model)
    assert not has_none_of(str(other), model)


@pytest.mark.parametrize("source", ["wordfreq-tail", "zipf"])
def test_listed_words_are_of_no_other_language(source):
    config = parsed(source=source, language="tr").population
    with pytest.raises(InputError, match=f"'tr': expected 'en' for the words of {source}; remove"):
        check_population(config)


def test_a_code_in_capitals_has_no_rules_of_case():
    with pytest.raises(InputError, match="in lower case such as 'de', got language='TR'"):
        check_language("TR")
