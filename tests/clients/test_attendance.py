"""Only the devices that are there answer, for every kind of question and in every way of asking."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

import fedhh
from fedhh.clients.attendance import AttendanceExecutor, MissedRoundError
from fedhh.clients.exact_tally import ExactTallyExecutor
from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.experiments.config.fidelity import EXACT_TALLY, PER_REPORT, Fidelity
from fedhh.experiments.run.run import simulate
from fedhh.plans.base import PlannedRound
from fedhh.plans.local_reports import LocalReports
from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.words.known_words import named_list
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import Recording
from tests.thinned import thinned

POPULATION = small_population(6_000)
DEVICES = Devices(check_in="papaya", eligible=0.7, dropout=0.1, deadline_hours=16.0)
TRIE = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=1_500, depth=4, passes=1, eta_max=20, max_items=4
)
WORDS = fedhh.Candidates(("ab", "abc", "b", "ca", "da"))
PROTOCOLS = {
    "trie": TRIE,
    "posterior": fedhh.AdaptiveTrieHH(
        alphabet=LETTERS,
        depth=3,
        max_items=1,
        public_words="none",
        known_words=named_list("none"),
    ),
    "sketch": fedhh.Sfp(alphabet=LETTERS, length=4, max_items=1),
    "sketch of prefixes": fedhh.Pem(alphabet=LETTERS, length=4, oracle="cms", max_items=1),
    "plain votes": TrieHH(alphabet=LETTERS, depth=3, clients_per_layer=900, threshold=3),
    "curator": fedhh.Blender(alphabet=LETTERS, length=4, max_items=1, opt_in_share=0.3),
    "sets": fedhh.Svim(alphabet=LETTERS, candidates=WORDS, local_epsilon=12.0),
    "filters": fedhh.Rappor(alphabet=LETTERS, candidates=WORDS, max_items=1),
    "clients asked twice": fedhh.LdpMiner(alphabet=LETTERS, candidates=WORDS),
    "validated": LdpTrieHH(
        alphabet=LETTERS, depth=3, passes=1, eta_max=9, max_items=1, false_discovery_rate=0.05
    ),
}


class Parts(InProcessExecutor):
    """Answers its blocks in several parts, as so many workers would."""

    def __init__(self, workers: list[ClientWorker]) -> None:
        self._workers = workers

    def answer(self, question, progress=None):
        count = len(self._workers)
        for number, worker in reversed(list(enumerate(self._workers))):
            yield worker.answer(
                question, range(number, question.cohort.num_blocks, count), progress
            )


def executor(devices: Devices, *, workers: int = 1, seed: int = 9, population=POPULATION):
    parts = Parts([ClientWorker(population, seed=seed) for _ in range(workers)])
    return AttendanceExecutor(parts, population, devices, seed=seed)


def settled(protocol):
    return protocol.settle(num_clients=POPULATION.num_clients, seed=9)


def question_of(protocol=TRIE):
    return protocol.next_question(protocol.initialize())


def answer_of(way, question) -> Answer:
    return reduce(Answer.merge, way.answer(question))


@pytest.mark.parametrize("name", thinned(PROTOCOLS, keep=2))
def test_every_protocol_has_the_same_bits_for_any_number_of_workers(name):
    protocol = settled(PROTOCOLS[name])
    states = []
    for count in (1, 3):
        last = None
        for finished in rounds(protocol, executor(DEVICES, workers=count)):
            attended = finished.diagnostics.attendance
            assert finished.aggregate.num_clients == attended.answers < attended.asked
            last = finished.state
        states.append(last)
    one, other = states
    assert one.history == other.history
    found, same = (protocol.discoveries(state) for state in states)
    assert found.words == same.words
    assert np.array_equal(found.estimate, same.estimate)


def test_those_that_are_there_are_asked_and_nobody_else():
    asked = Recording(POPULATION)
    way = executor(DEVICES, population=asked)
    answer = answer_of(way, question_of())
    everybody = Recording(POPULATION)
    ClientWorker(everybody, seed=9).answer(question_of(), range(question_of().cohort.num_blocks))
    assert len(np.unique(asked.asked)) == len(asked.asked) == answer.aggregate.num_clients
    assert np.isin(asked.asked, everybody.asked).all()
    assert DEVICES.is_eligible(asked.asked, seed=9).all()
    attended = answer.diagnostics.attendance
    assert attended.asked == len(everybody.asked) == 1_500
    assert attended.eligible == DEVICES.is_eligible(everybody.asked, seed=9).sum()
    # .7 eligible, .85 by the deadline, .9 of those not dropped out.
    assert abs(attended.answers / 1_500 - 0.7 * 0.85 * 0.9) < 0.06
    assert abs(attended.dropped / 1_500 - 0.7 * 0.85 * 0.1) < 0.04
    assert (attended.hours, attended.waited_hours) == (16.0, 0.0)


def test_where_all_are_there_the_bits_are_those_without_devices():
    plain = answer_of(InProcessExecutor(ClientWorker(POPULATION, seed=9)), question_of())
    always = answer_of(executor(Devices()), question_of())
    assert np.array_equal(always.aggregate.tally, plain.aggregate.tally)
    assert always.aggregate.num_reports == plain.aggregate.num_reports
    assert plain.diagnostics.attendance is None


@pytest.mark.parametrize("least", [860, 880])
def test_a_round_waits_for_just_the_answers_that_it_lacks(least):
    waiting = replace(DEVICES, least_clients=least)
    (attended, presence) = executor(waiting).attend(question_of().cohort, 0, 1)
    assert attended.answers == presence.answers == least
    assert not attended.is_missed
    assert 16 < attended.hours < 96
    assert attended.waited_hours == attended.hours - 16
    answer = answer_of(executor(waiting, workers=2), question_of())
    assert answer.aggregate.num_clients == least
    assert answer.aggregate.num_reports == 4 * least
    # One answer later is one device more, and takes longer.
    (later, _) = executor(replace(waiting, least_clients=least + 1)).attend(
        question_of().cohort, 0, 1
    )
    assert later.answers == least + 1
    assert later.hours > attended.hours


def test_a_round_that_waits_in_vain_or_stops_asks_nobody():
    asked = Recording(POPULATION)
    for devices, hours in (
        (replace(DEVICES, least_clients=1_200), 96.0),
        (replace(DEVICES, least_clients=950, when_missed="stop"), 16.0),
    ):
        with pytest.raises(MissedRoundError, match=r"pass 1, layer 1: .* of at least") as error:
            answer_of(executor(devices, population=asked), question_of())
        attended = error.value.attendance
        assert attended.is_missed
        assert attended.hours == hours
        assert attended.fewest == devices.least_clients
    assert not asked.blocks


def test_noise_free_counts_are_of_those_that_are_there():
    answers = []
    for name in (PER_REPORT, EXACT_TALLY):
        worker = InProcessExecutor(ClientWorker(POPULATION, seed=9))
        way = Fidelity(name=name).wrap(worker, seed=9)
        answers.append(
            answer_of(AttendanceExecutor(way, POPULATION, DEVICES, seed=9), question_of())
        )
    one, other = answers
    assert one.aggregate.num_clients == other.aggregate.num_clients < 1_500
    assert one.aggregate.num_reports == other.aggregate.num_reports
    assert one.diagnostics.attendance == other.diagnostics.attendance
    assert one.diagnostics.num_clients_with_items == other.diagnostics.num_clients_with_items
    assert other.diagnostics.is_sampled


def test_clients_that_are_not_drawn_are_scaled_up_to_those_that_are_there():
    worker = InProcessExecutor(ClientWorker(POPULATION, seed=9))
    way = ExactTallyExecutor(worker, seed=9, drawn_clients=400)
    answer = answer_of(AttendanceExecutor(way, POPULATION, DEVICES, seed=9), question_of())
    there = executor(DEVICES).attend(question_of().cohort, 0, 1)[0].answers
    assert answer.aggregate.num_clients == there
    assert answer.aggregate.num_reports == 4 * there


def test_progress_is_of_all_that_were_asked():
    heard: list[int] = []
    reduce(Answer.merge, executor(DEVICES, workers=2).answer(question_of(), heard.append))
    assert abs(sum(heard) - 1_500) <= 1


def test_a_device_that_is_not_eligible_never_serves_and_overlaps_count_once():
    way = executor(replace(DEVICES, check_in="always", dropout=0.0, deadline_hours=None))
    cohorts = [(Cohort(start=0, size=4_000, redraw=place), 0, place) for place in range(4)]
    share = way.share_served(cohorts)
    eligible = DEVICES.is_eligible(np.arange(6_000), seed=9).mean()
    assert 0.97 * eligible < share <= eligible
    alone = way.share_served(cohorts[:1])
    assert alone == way.attend(*cohorts[0])[0].answers / 6_000
    assert alone == way.share_served([cohorts[0], cohorts[0]])


@pytest.fixture(scope="module")
def alike():
    """Clients who all hold the same word."""
    return StoredPopulation.from_rows(
        name="alike",
        lexicon=Lexicon(words=["ab"]),
        clients=np.arange(4_000),
        word_ids=np.zeros(4_000, dtype=np.int64),
        num_clients=4_000,
    )


@pytest.mark.parametrize("name", thinned(PROTOCOLS, keep=2))
def test_estimates_are_of_the_realised_number_of_answers(name, alike):
    protocol = PROTOCOLS[name]
    if name == "trie":
        protocol = replace(protocol, clients_per_layer=900, max_items=1)
    few = Devices(eligible=0.5, dropout=0.3)
    result = simulate(protocol, alike, seed=2, devices=few)
    row = result.discoveries.set_index("word").loc["ab"]
    # All of them contribute it, however few answer.
    assert abs(row["estimated_clients"] - 4_000) < 6 * row["std_error"] + 1
    assert (result.layers["num_clients"] < 0.5 * result.layers["clients_asked"]).all()


def test_a_plan_states_what_its_rounds_accept():
    rounds_ = tuple(
        PlannedRound(
            pass_index=0, layer=layer, num_clients=size, smallest_domain=2, largest_domain=9
        )
        for layer, size in ((1, 100), (2, 10))
    )
    plan = LocalReports(layers=rounds_, randomizers=())
    accepting = plan.accepting(Devices(least_share=0.55).fewest_answers)
    assert [each.fewest_clients for each in accepting.layers] == [55, 6]
    assert accepting.fewest_answers == 6
    assert plan.fewest_answers == plan.smallest_cohort == accepting.smallest_cohort == 10
    assert accepting.may_miss_answers
    assert not plan.may_miss_answers
    assert [each.num_clients for each in accepting.layers] == [100, 10]
