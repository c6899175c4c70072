"""Only the devices that are there answer, for every kind of question and in every way of asking."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

import fedhh
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.clients.clients import Clients
from fedhh.clients.population import client_order
from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices, check_ins
from fedhh.experiments.run.run import simulate
from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.fidelity import EXACT_TALLY, PER_REPORT, Fidelity
from fedhh.simulation.roster import MissedRoundError, Roster, RoundRoster
from fedhh.testing import LETTERS, small_population
from fedhh.words.known_words import named_list
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import Recording
from tests.same_bits import assert_same
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

    def answer(self, broadcast, progress=None):
        count = len(self._workers)
        parts = (
            worker.answer(broadcast, range(number, broadcast.cohort.num_blocks, count), progress)
            for number, worker in reversed(list(enumerate(self._workers)))
        )
        return reduce(Answer.merge, parts)


def parts(workers: int = 1, *, population=POPULATION) -> Parts:
    return Parts([ClientWorker(population, seed=9) for _ in range(workers)])


def roster_of(devices: Devices | None, population=POPULATION) -> Roster:
    return Roster(client_order(population, seed=9), devices=devices)


def settled(protocol):
    return protocol.settle(num_clients=POPULATION.num_clients, seed=9)


def first_round(devices, *, protocol=TRIE, **options):
    """Return the first round of a protocol."""
    return next(rounds(protocol, parts(**options), roster=roster_of(devices)))


def who_of(devices: Devices) -> RoundRoster:
    return roster_of(devices).round(TRIE.plan.layers[0])


@pytest.mark.parametrize("name", thinned(PROTOCOLS, keep=2))
def test_every_protocol_has_the_same_bits_for_any_number_of_workers(name):
    protocol = settled(PROTOCOLS[name])
    states = []
    for count in (1, 3):
        last = None
        for finished in rounds(protocol, parts(count), roster=roster_of(DEVICES)):
            attended = finished.diagnostics.attendance
            assert finished.aggregate.num_clients == attended.answers < attended.asked
            last = finished.state
        states.append(last)
    assert_same(*states)


def test_those_that_are_there_are_asked_and_nobody_else():
    asked, everybody = Recording(POPULATION), Recording(POPULATION)
    there = first_round(DEVICES, population=asked)
    first_round(None, population=everybody)
    assert len(np.unique(asked.asked)) == len(asked.asked) == there.aggregate.num_clients
    assert np.isin(asked.asked, everybody.asked).all()
    assert DEVICES.is_eligible(asked.asked, seed=9).all()
    attended = there.diagnostics.attendance
    assert attended.asked == len(everybody.asked) == 1_500
    assert attended.eligible == DEVICES.is_eligible(everybody.asked, seed=9).sum()
    # .7 eligible, .85 by the deadline, .9 of those not dropped out.
    assert abs(attended.answers / 1_500 - 0.7 * 0.85 * 0.9) < 0.06
    assert abs(attended.dropped / 1_500 - 0.7 * 0.85 * 0.1) < 0.04
    assert (attended.hours, attended.waited_hours) == (16.0, 0.0)


def test_where_all_are_there_the_bits_are_those_without_devices():
    plain, always = first_round(None), first_round(Devices())
    assert np.array_equal(always.aggregate.tally, plain.aggregate.tally)
    assert always.aggregate.num_reports == plain.aggregate.num_reports
    assert plain.diagnostics.attendance is None


@pytest.mark.parametrize("least", [860, 880])
def test_a_round_waits_for_just_the_answers_that_it_lacks(least):
    waiting = replace(DEVICES, least_clients=least)
    attended = who_of(waiting).attendance
    assert attended.answers == least
    assert not attended.is_missed
    assert 16 < attended.hours < 96
    assert attended.waited_hours == attended.hours - 16
    answer = first_round(waiting, workers=2).aggregate
    assert answer.num_clients == least
    assert answer.num_reports == 4 * least
    # One answer later is one device more, and takes longer.
    later = who_of(replace(waiting, least_clients=least + 1)).attendance
    assert later.answers == least + 1
    assert later.hours > attended.hours


def test_a_round_may_wait_for_the_very_last_device():
    order, cohort = client_order(POPULATION, seed=9), who_of(DEVICES).cohort
    drawn = [
        check_ins(DEVICES, 0, 1, order.clients(cohort, block), block, seed=9)
        for block in range(cohort.num_blocks)
    ]
    ever = sum(int((each.is_kept & (each.place < DEVICES.points[-1][1])).sum()) for each in drawn)
    attended = who_of(replace(DEVICES, least_clients=ever)).attendance
    assert (attended.answers, attended.is_missed) == (ever, False)
    with pytest.raises(MissedRoundError):
        first_round(replace(DEVICES, least_clients=ever + 1))


def test_a_round_that_waits_in_vain_or_stops_asks_nobody():
    asked = Recording(POPULATION)
    for devices, hours in (
        (replace(DEVICES, least_clients=1_200), 96.0),
        (replace(DEVICES, least_clients=950, when_missed="stop"), 16.0),
    ):
        with pytest.raises(MissedRoundError, match=r"pass 1, layer 1: .* of at least") as error:
            first_round(devices, population=asked)
        attended = error.value.attendance
        assert attended.is_missed
        assert attended.hours == hours
        assert attended.fewest == devices.least_clients
    assert not asked.blocks


def test_a_roster_is_a_value_that_says_the_same_elsewhere():
    who = who_of(DEVICES)
    copy = pickle.loads(pickle.dumps(who))
    assert copy == who
    assert hash(copy) == hash(who)
    order = client_order(POPULATION, seed=9)
    clients = order.clients(who.cohort, 3)
    drawn = check_ins(DEVICES, 0, 1, clients, 3, seed=9)
    there = drawn.is_eligible & ~drawn.is_lost & (drawn.place < 0.85)
    assert np.array_equal(copy.clients(order, 3), clients[there])
    assert 0 < there.sum() < len(there)


def test_noise_free_counts_are_of_those_that_are_there():
    one, other = (
        next(rounds(TRIE, parts(), roster=roster_of(DEVICES), fidelity=Fidelity(name=name)))
        for name in (PER_REPORT, EXACT_TALLY)
    )
    assert one.aggregate.num_clients == other.aggregate.num_clients < 1_500
    assert one.aggregate.num_reports == other.aggregate.num_reports
    assert one.diagnostics.attendance == other.diagnostics.attendance
    assert one.diagnostics.num_clients_with_items == other.diagnostics.num_clients_with_items
    assert other.diagnostics.is_sampled


def test_clients_that_are_not_drawn_are_scaled_up_to_those_that_are_there():
    few = Fidelity(drawn_clients=400)
    answer = next(rounds(TRIE, parts(), roster=roster_of(DEVICES), fidelity=few)).aggregate
    there = who_of(DEVICES).attendance.answers
    assert answer.num_clients == there
    assert answer.num_reports == 4 * there


def test_progress_is_of_all_that_were_asked():
    heard: list[int] = []
    next(rounds(TRIE, parts(2), roster=roster_of(DEVICES), progress=heard.append))
    assert sum(heard) == 1_500


def test_a_device_that_is_not_eligible_never_serves_and_overlaps_count_once():
    way = roster_of(replace(DEVICES, check_in="always", dropout=0.0, deadline_hours=None))
    cohorts = [
        replace(TRIE.plan.layers[0], layer=place, cohort=Cohort(start=0, size=4_000, redraw=place))
        for place in range(4)
    ]
    share = way.share_served(cohorts)
    eligible = DEVICES.is_eligible(np.arange(6_000), seed=9).mean()
    assert 0.97 * eligible < share <= eligible
    alone = way.share_served(cohorts[:1])
    assert alone == way.round(cohorts[0]).num_answers / 6_000
    assert alone == way.share_served([cohorts[0], cohorts[0]])


@pytest.fixture(scope="module")
def alike():
    """Clients who all hold the same word."""
    return Clients.from_rows(
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
