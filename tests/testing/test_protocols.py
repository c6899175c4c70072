"""The conformance suite finds what is wrong with a protocol, and says which property it is."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from fedhh.oracles import OracleSpec
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.testing import (
    LETTERS,
    ConformanceError,
    ProtocolTrial,
    check_protocol,
    protocol_checks,
    small_population,
)
from fedhh.words.lexicon import Lexicon
from tests.thinned import thinned

POPULATION = small_population(2_000)
TRIE = {
    "alphabet": LETTERS,
    "clients_per_layer": 300,
    "depth": 3,
    "eta_max": 8,
    "max_items": 2,
    "local_epsilon": 6.0,
}
CALLS = itertools.count()


class AsksByChance(LdpTrieHH):
    def next_question(self, state):
        question = super().next_question(state)
        return question and replace(question, max_items=1 + next(CALLS) % 2)


class KeepsByChance(LdpTrieHH):
    def finish_round(self, state, question, aggregate):
        tally = aggregate.tally + np.random.default_rng().integers(50, size=len(aggregate.tally))
        return super().finish_round(state, question, replace(aggregate, tally=tally))


class SpoilsTheAggregate(LdpTrieHH):
    def finish_round(self, state, question, aggregate):
        after = super().finish_round(state, question, aggregate)
        aggregate.tally[:] = 0
        return after


class RemembersInItself(LdpTrieHH):
    """Later rounds of one object add what earlier ones counted."""

    def finish_round(self, state, question, aggregate):
        seen = self.__dict__.setdefault("_seen", {})
        seen[len(state.history)] = int(aggregate.tally.max())
        earlier = seen.get(len(state.history) - 1, 0)
        return super().finish_round(
            state, question, replace(aggregate, num_reports=aggregate.num_reports + earlier)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NamesWithAFunction(TrieNames):
    rule: object = len


class AsksWhatNoLogKnows(LdpTrieHH):
    def next_question(self, state):
        question = super().next_question(state)
        if question is None:
            return None
        parts = {each.name: getattr(question.names, each.name) for each in fields(TrieNames)}
        return replace(question, names=NamesWithAFunction(**parts))


class HearsTheFirstMessages(Pem):
    def finish_round(self, state, question, aggregate):
        kept = aggregate.messages[: len(aggregate.messages) // 2]
        return super().finish_round(
            state,
            question,
            Aggregate(
                tally=aggregate.tally,
                num_reports=len(kept),
                num_clients=aggregate.num_clients,
                messages=kept,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class KnowsTheLexicon(LdpTrieHH):
    known: Lexicon = POPULATION.lexicon


class TakesAnyTally(LdpTrieHH):
    def finish_round(self, state, question, aggregate):
        tally = np.resize(aggregate.tally, question.tally_size)
        return super().finish_round(state, question, replace(aggregate, tally=tally))


class AsksWithLessPrivacy(LdpTrieHH):
    def ask(self, planned, run):
        question = super().ask(planned, run)
        if question is None:
            return None
        louder = replace(question.channel.oracle, epsilon=9.0)
        return replace(question, channel=replace(question.channel, oracle=louder))


@dataclass(frozen=True, kw_only=True)
class SeededSpec(OracleSpec):
    seed: int


@dataclass(frozen=True, kw_only=True)
class TellsTheSeed(LdpTrieHH):
    run_seed: int = 0

    def settle(self, *, num_clients, seed):
        return replace(super().settle(num_clients=num_clients, seed=seed), run_seed=seed)

    @property
    def oracle_spec(self):
        return SeededSpec(**vars(super().oracle_spec), seed=self.run_seed)


class ForgetsASummary(LdpTrieHH):
    def finish_round(self, state, question, aggregate):
        after = super().finish_round(state, question, aggregate)
        return replace(after, history=after.history[-1:])


class InventsAWord(LdpTrieHH):
    def discoveries(self, state):
        found = super().discoveries(state)
        return replace(found, words=["zzz", *found.words[1:]])


class TakesAnyPopulation(LdpTrieHH):
    def check_population(self, num_clients):
        pass


class ChecksNothing(LdpTrieHH):
    def __post_init__(self):
        pass


WRONG = {
    AsksByChance: "questions_are_pure",
    KeepsByChance: "rounds_are_pure",
    SpoilsTheAggregate: "rounds_are_pure",
    RemembersInItself: "a_run_resumes_at_every_round",
    AsksWhatNoLogKnows: "a_run_resumes_at_every_round",
    KnowsTheLexicon: "truth_is_never_read",
    TakesAnyTally: "strange_aggregates_are_refused",
    AsksWithLessPrivacy: "questions_are_as_planned",
    TellsTheSeed: "questions_do_not_carry_the_runs_seed",
    ForgetsASummary: "one_summary_per_round",
    InventsAWord: "discoveries_are_words_that_the_protocol_can_find",
    TakesAnyPopulation: "small_populations_are_refused",
    ChecksNothing: "bad_settings_are_refused",
}


@functools.cache
def failures(kind: type, **settings: object) -> dict[str, str]:
    """What the checks say of a protocol; the same for all tests that ask."""
    found = {}
    protocol = kind(**(settings or TRIE))
    trial = ProtocolTrial(protocol, population=POPULATION)
    for check in protocol_checks(trial):
        try:
            check(trial, seed=3)
        except ConformanceError as failure:
            found[check.name] = str(failure)
    return found


def test_the_protocol_that_the_wrong_ones_are_made_of_is_right():
    assert failures(LdpTrieHH) == {}


@pytest.mark.parametrize("wrong", thinned(WRONG), ids=lambda each: each.__name__)
def test_a_wrong_protocol_fails_the_check_of_what_is_wrong(wrong):
    assert WRONG[wrong] in failures(wrong)
    # One that states something wrong fails few others.
    assert len(failures(wrong)) <= 3 or wrong in list(WRONG)[:5]


@pytest.mark.slow("::test_a_wrong_protocol_fails_the_check_of_what_is_wrong")
def test_a_protocol_that_depends_on_the_order_of_messages_is_found():
    settings = {"alphabet": LETTERS, "clients_per_layer": 300, "length": 4, "step": 1, "keep": 5}
    found = failures(HearsTheFirstMessages, **settings)
    assert {"answers_come_in_any_order", "order_of_messages_does_not_matter"} <= set(found)


def test_a_failure_says_where_and_what():
    found = failures(AsksWhatNoLogKnows)
    message = found["a_run_resumes_at_every_round"]
    assert message.startswith("a_run_resumes_at_every_round: AsksWhatNoLogKnows(alphabet=")
    assert message.endswith(
        "A log cannot know builtin_function_or_method at question.names.rule again."
    )
    found = failures(KnowsTheLexicon)
    assert "protocol.known holds a Lexicon" in found["truth_is_never_read"]
    found = failures(AsksWithLessPrivacy)
    assert "Expected local_epsilon <= 6.0 per contribution" in found["questions_are_as_planned"]
    with pytest.raises(ConformanceError, match=r"2,000 clients.* need"):
        check_protocol(LdpTrieHH(alphabet=LETTERS, clients_per_layer=1_000), population=POPULATION)


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
def test_ray_workers_give_the_same_bits(shared_ray):
    trial = ProtocolTrial(LdpTrieHH(**TRIE), population=POPULATION, workers=(1,))
    checks = {check.name: check for check in protocol_checks(trial)}
    checks["ray_workers_give_the_same_bits"](trial, seed=3)
