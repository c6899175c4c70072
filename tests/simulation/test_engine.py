"""The loop holds a protocol to its plan: it cannot exceed what it claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.run import simulate
from fedhh.oracles import OracleSpec
from fedhh.oracles.bloom import BitResponse
from fedhh.questions.cohort import Cohort
from fedhh.server.blender import Blender
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.rappor import Rappor
from fedhh.server.sfp import Sfp
from fedhh.server.svim import Svim
from fedhh.simulation import engine
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.candidates import Candidates
from tests.questions_of_each_kind import sending
from tests.thinned import thinned

POPULATION = small_population(1_500)
TRIE = {
    "alphabet": LETTERS, "clients_per_layer": 200, "depth": 6, "eta_max": 8, "max_items": 2,
    "passes": 1, "local_epsilon": 4.0,
}  # fmt: skip
LAST = 6


def asking(base, change, **settings):
    """Return a protocol with the plan of another one that asks otherwise."""

    @dataclass(frozen=True, kw_only=True)
    class Otherwise(base):
        def ask(self, planned, run):
            question = super().ask(planned, run)
            return question and change(planned, question)

    return Otherwise(**settings)


def in_last_layer(**changes):
    """Return what changes the channel of the last layer's question."""

    def changed(planned, question):
        return question if planned.layer != LAST else sending(question, **changes)

    return changed


class Listening(InProcessExecutor):
    """Keeps the questions that reach clients."""

    def __init__(self):
        super().__init__(ClientWorker(POPULATION, seed=1))
        self.heard = []

    def answer(self, broadcast, progress=None):
        self.heard.append(broadcast.question)
        return super().answer(broadcast, progress)


EXCEEDS = {
    "epsilon": ({"oracle": OracleSpec(name="ss", epsilon=16.0)}, "local_epsilon <= 4.0"),
    "plain": ({"oracle": OracleSpec(name="none", epsilon=math.inf)}, "local_epsilon <= 4.0"),
    "randomizer": ({"oracle": OracleSpec(name="grr", epsilon=4.0)}, "the randomizer .*'ss'"),
}


@pytest.mark.parametrize("case", thinned(EXCEEDS))
def test_a_query_beyond_the_plan_is_not_sent(case):
    changes, message = EXCEEDS[case]
    protocol = asking(LdpTrieHH, in_last_layer(**changes), **TRIE)
    with pytest.raises(InputError, match=message) as refusal:
        simulate(protocol, POPULATION, seed=1)
    assert "\n" not in str(refusal.value)
    executor = Listening()
    with pytest.raises(InputError, match=message):
        list(engine.rounds(protocol, executor))
    # The layers before were as planned.
    assert [question.layer for question in executor.heard] == [1, 2, 3, 4, 5]


ADDRESSED = {
    "more clients": ({"cohort": Cohort(start=1000, size=201)}, "size=200.*got .*size=201"),
    "fewer clients": ({"cohort": Cohort(start=1000, size=10)}, "size=200.*got .*size=10,"),
    "clients again": ({"cohort": Cohort(start=0, size=200)}, "start=1000.*got .*start=0,"),
    "a start of no client": ({"cohort": Cohort(start=1000.0, size=200)}, "got .*start=1000.0,"),
    "a new order": ({"cohort": Cohort(start=1000, size=200, redraw=1)}, "got .*redraw=1"),
    "contributions": ({"max_items": 3}, "max_items=2 in pass 1, layer 6.*max_items=3"),
    "no dummies": ({"pad": False}, "pad=True in pass 1, layer 6"),
    "another pass": ({"pass_index": 1}, "a planned round, got pass 2, layer 6"),
    "another layer": ({"layer": 7}, "a planned round, got pass 1, layer 7"),
    "no layer": ({"layer": 6.0}, "Expected layer=6 in pass 1, .*got layer=6.0"),
    "a round again": (
        {"layer": LAST - 1, "cohort": Cohort(start=800, size=200)},
        "each round once, got pass 1, layer 5 again",
    ),
}


@pytest.mark.parametrize("case", thinned(ADDRESSED))
def test_a_protocol_that_addresses_questions_itself_asks_nobody_else(case):
    changes, message = ADDRESSED[case]

    @dataclass(frozen=True, kw_only=True)
    class Addresses(LdpTrieHH):
        def next_question(self, run):
            question = super().next_question(run)
            return question and (
                question if question.layer != LAST else replace(question, **changes)
            )

    executor = Listening()
    with pytest.raises(InputError, match=message) as refusal:
        list(engine.rounds(Addresses(**TRIE), executor))
    assert "\n" not in str(refusal.value)
    assert [question.layer for question in executor.heard] == [1, 2, 3, 4, 5]


def test_the_plan_says_whom_a_question_asks_whatever_it_says_itself():
    def elsewhere(planned, question):
        return replace(
            question,
            pass_index=3,
            layer=1,
            cohort=Cohort(start=0, size=1_500),
            alphabet=Alphabet.named("printable"),
            max_items=9,
            pad=False,
        )

    usual, other = Listening(), Listening()
    list(engine.rounds(LdpTrieHH(**TRIE), usual))
    list(engine.rounds(asking(LdpTrieHH, elsewhere, **TRIE), other))
    whom = ("pass_index", "layer", "cohort", "alphabet", "max_items", "pad")
    told, asked = (
        [[getattr(each, name) for name in whom] for each in executor.heard]
        for executor in (usual, other)
    )
    assert told == asked
    assert [question.layer for question in other.heard] == [1, 2, 3, 4, 5, 6]
    assert [question.cohort.start for question in other.heard] == [0, 200, 400, 600, 800, 1000]


@dataclass(frozen=True, kw_only=True)
class KeepsAll(LdpTrieHH):
    def keep(self, answers):
        return np.arange(len(answers.votes)), 0


@dataclass(frozen=True, kw_only=True)
class SaysThatItKeepsAll(KeepsAll):
    def most_prefixes(self, candidates):
        return candidates


def test_a_rule_may_keep_as_many_prefixes_as_it_states_and_no_more():
    settings = {**TRIE, "depth": 3}
    with pytest.raises(InputError, match=r"a domain of 8 to 57 values in pass 1, layer 2"):
        simulate(KeepsAll(**settings), POPULATION, seed=1)
    protocol = SaysThatItKeepsAll(**settings)
    result = simulate(protocol, POPULATION, seed=1)
    stated = [layer.largest_domain for layer in protocol.plan.layers]
    assert result.layers["domain_size"].tolist() == stated
    assert stated[-1] > LdpTrieHH(**settings).plan.layers[-1].largest_domain


def less_private(spec):
    return replace(spec, epsilon=9.0)


SFP = {
    "alphabet": LETTERS, "clients_per_layer": 900, "length": 6, "num_puzzles": 16,
    "word_hashes": 16, "word_cells": 64, "fragment_hashes": 16, "fragment_cells": 64,
}  # fmt: skip
KNOWN = {"alphabet": LETTERS, "candidates": Candidates(POPULATION.lexicon.words)}
OTHERS = {
    "sfp": asking(
        Sfp,
        lambda planned, question: sending(
            question, fragment_oracle=less_private(question.channel.fragment_oracle)
        ),
        **SFP,
    ),
    "rappor": asking(
        Rappor,
        lambda planned, question: sending(
            question,
            reports=replace(
                question.channel.reports, response=BitResponse.of_one_report(9.0, num_hashes=2)
            ),
        ),
        **KNOWN,
        bloom_bits=32,
        bloom_cohorts=8,
    ),
    "svim": asking(Svim, lambda planned, question: sending(question, epsilon=9.0), **KNOWN, keep=5),
    "blender": asking(
        Blender,
        lambda planned, question: (
            question
            if planned.layer < 3
            else sending(question, oracle=less_private(question.channel.oracle))
        ),
        alphabet=LETTERS,
        opt_in_share=0.5,
        length=5,
        delta=1e-2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_every_kind_of_query_is_held_to_its_epsilon(name):
    with pytest.raises(InputError, match=r"local_epsilon <= 8.0 per contribution"):
        simulate(OTHERS[name], POPULATION, seed=1)
