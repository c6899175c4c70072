"""A run in sentences, and what is said instead of a bare error in Python."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fedhh
from fedhh.experiments.run.sentences import privacy_sentence, sentence
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.thinned import thinned

POPULATION = small_population(3_000)
ADAPTIVE = fedhh.AdaptiveTrieHH(
    alphabet=LETTERS, local_epsilon=6.0, depth=4, eta_max=25, max_items=4
)


def test_a_result_prints_as_a_few_lines():
    result = fedhh.simulate(ADAPTIVE, POPULATION, seed=0)
    lines = str(result).splitlines()
    assert repr(result) == str(result)
    assert lines[0] == f"Adaptive TrieHH on {result.population['name']}"
    assert lines[1:] == [
        sentence(result),
        "First words: " + ", ".join(result.discoveries["word"].head(10)),
        privacy_sentence(result),
    ]


def test_a_hostile_word_stays_in_its_line():
    result = fedhh.simulate(ADAPTIVE, POPULATION, seed=0)
    words = result.discoveries.assign(word="a\n\x1b[2J")
    text = str(replace(result, discoveries=words))
    assert len(text.splitlines()) == 4
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("protocol", "why"),
    thinned(
        [
            (
                fedhh.TrieHH(alphabet=LETTERS, clients_per_layer=10, threshold=9),
                "No word was sampled as often as the threshold asks",
            ),
            (
                replace(ADAPTIVE, local_epsilon=0.1),
                "ask more clients, or raise local_epsilon, or lower",
            ),
            (replace(ADAPTIVE, alphabet="xy"), "The alphabet and the longest word can spell none"),
            (fedhh.Bitstogram(alphabet=LETTERS, local_epsilon=0.05), "No word's reports stood out"),
        ]
    ),
)
def test_a_run_without_a_word_says_why_and_what_helps(protocol, why):
    result = fedhh.simulate(protocol, POPULATION, seed=0)
    assert not len(result.discoveries)
    text = sentence(result)
    assert text.startswith("Discovered no word. ")
    assert why in text


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        (ADAPTIVE, "; 6 and 24 against the server."),
        (fedhh.TrieHH(alphabet=LETTERS), "clients trust the server, which reads their words"),
        (
            fedhh.Blender(alphabet=LETTERS, length=4, local_epsilon=3.0, max_items=2),
            "that opted in trust the server, which sees their words; of the others, 3 and 6 "
            "against it",
        ),
        (
            fedhh.LdpTrieHH(alphabet=LETTERS, depth=3, eta_max=25, oracle="none"),
            "none against the server, since reports are not randomized",
        ),
    ],
)
def test_privacy_against_the_server_says_who_trusts_it(protocol, text):
    said = privacy_sentence(fedhh.simulate(protocol, POPULATION, seed=0))
    assert text in said
    assert "inf against the server" not in said


@pytest.mark.parametrize("ask", [fedhh.simulate, lambda *a, **k: next(fedhh.rounds(*a, **k))])
def test_what_is_no_protocol_or_population_is_named(ask):
    with pytest.raises(InputError, match=r"the class AdaptiveTrieHH; write AdaptiveTrieHH\(\)"):
        ask(fedhh.AdaptiveTrieHH, POPULATION, seed=0)
    with pytest.raises(InputError, match=r"Expected a protocol such as .*, got 'ldp-triehh'"):
        ask("ldp-triehh", POPULATION, seed=0)
    with pytest.raises(InputError, match=r"Expected a population such as .*, got a str"):
        ask(ADAPTIVE, "chat", seed=0)


def test_a_sweep_names_a_class_in_place_of_a_protocol():
    with pytest.raises(InputError, match=r"the class Pem; write Pem\(\)"):
        fedhh.sweep_over({"pem": fedhh.Pem}, POPULATION)
