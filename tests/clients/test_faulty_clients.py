"""Faulty clients: what they send is refused for its fault, and nobody else is missing."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from fedhh.clients.attendance import AttendanceExecutor, MissedRoundError
from fedhh.clients.faulty_answers import REFUSALS
from fedhh.clients.faulty_clients import FaultyClientsExecutor, HeavyFirstExecutor
from fedhh.clients.order import ClientOrder, typed_by_clients
from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.experiments.config.fidelity import EXACT_TALLY, Fidelity
from fedhh.faults import FAULTS, Fault, Faults, fault_generator
from fedhh.oracles import ORACLES, OracleSpec
from fedhh.queries.base import Answer
from fedhh.queries.cohort import Cohort
from fedhh.queries.refusals import Refusal
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.validation import InputError
from tests.asked_clients import Recording
from tests.clients.test_attendance import PROTOCOLS, Parts
from tests.conftest import LETTERS, zipf_population

POPULATION = zipf_population(6_000)
SEED = 9
EVERY = dict.fromkeys(FAULTS, 0.05)
SOME = Faults(second_answers=0.1, stale_answers=0.1, wrong_number=0.1)
DEVICES = Devices(check_in="papaya", eligible=0.7, dropout=0.1, deadline_hours=16.0)


def trie():
    protocol = LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=1_500, depth=4, passes=1, eta_max=20, max_items=4,
    )  # fmt: skip
    return settled(protocol)


def settled(protocol):
    return protocol.settle(num_clients=POPULATION.num_clients, seed=SEED)


def executor(protocol, faults, *, devices=None, workers=1, population=POPULATION):
    parts = Parts([ClientWorker(population, seed=SEED) for _ in range(workers)])
    options = {"devices": devices or Devices(), "plan": protocol.plan, "seed": SEED}
    way = FaultyClientsExecutor(parts, population, faults, **options)
    return way if devices is None else AttendanceExecutor(way, population, devices, seed=SEED)


def second_round(protocol):
    """Return the query of a protocol's second round, which has one before it."""
    worker = InProcessExecutor(ClientWorker(POPULATION, seed=SEED))
    first = next(iter(rounds(protocol, worker)))
    return protocol.next_query(first.state)


def faults_of_cohort(faults, query):
    """Return the place of each client's fault, by client, drawn here as the stream says."""
    cohort, drawn = query.cohort, {}
    for block in range(cohort.num_blocks):
        clients = ClientOrder(POPULATION, seed=SEED).clients(cohort, block)
        rng = fault_generator(query.pass_index, query.layer, block, seed=SEED)
        drawn.update(zip(clients.tolist(), faults.draw(len(clients), rng).tolist(), strict=True))
    return drawn


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_has_the_same_bits_for_any_number_of_workers(name):
    protocol, states = settled(PROTOCOLS[name]), []
    for count in (1, 3):
        last = None
        for finished in rounds(protocol, executor(protocol, SOME, devices=DEVICES, workers=count)):
            counts, attended = finished.diagnostics.intake, finished.diagnostics.attendance
            second = counts.refused[Refusal.SECOND]
            assert counts.accepted == finished.aggregate.num_clients
            assert counts.received - second == attended.answers < attended.asked
            assert counts.accepted < attended.answers or finished.query.layer == 1
            assert second > 0
            last = finished.state
        states.append(last)
    one, other = states
    assert one.history == other.history
    found, same = (protocol.discoveries(state) for state in states)
    assert found.words == same.words
    assert np.array_equal(found.estimate, same.estimate)


@pytest.mark.parametrize("oracle", [name for name in ORACLES if name != "none"])
def test_each_fault_is_refused_for_itself_and_only_the_faulty_are_missing(oracle):
    faults = Faults(**EVERY)
    protocol = trie()
    query = replace(second_round(protocol), oracle=OracleSpec(name=oracle, epsilon=1.0))
    asked = Recording(POPULATION)
    answer = reduce(Answer.merge, executor(protocol, faults, population=asked).answer(query))
    drawn = faults_of_cohort(faults, query)
    possible = set(FAULTS)
    if oracle not in ("ss", "dbitflip"):
        possible -= {Fault.REPEATED}
    if oracle not in ("cms", "hcms", "hashtogram", "flh", "bassily-smith"):
        possible -= {Fault.ROW}
    if oracle == "cms":
        # All 64 bits of each word say something.
        possible -= {Fault.DOMAIN}
    expected = {
        REFUSALS[fault]: sum(place == FAULTS.index(fault) for place in drawn.values())
        for fault in possible
    }
    counts = answer.diagnostics.intake
    assert counts.refused == expected
    missing = {FAULTS.index(fault) for fault in possible - {Fault.SECOND}}
    answering = sorted(client for client, place in drawn.items() if place not in missing)
    assert sorted(asked.asked.tolist()) == answering
    assert answer.aggregate.num_clients == counts.accepted == len(answering)
    assert answer.aggregate.num_reports == len(answering) * query.max_items
    # A share of .05 each, of 1,500.
    assert all(40 < count < 115 for count in expected.values())


def test_a_second_answer_changes_no_bit():
    protocol = trie()
    query = second_round(protocol)
    plain = reduce(
        Answer.merge, InProcessExecutor(ClientWorker(POPULATION, seed=SEED)).answer(query)
    )
    twice = reduce(Answer.merge, executor(protocol, Faults(second_answers=0.3)).answer(query))
    assert np.array_equal(plain.aggregate.tally, twice.aggregate.tally)
    assert twice.diagnostics.intake.refused[Refusal.SECOND] > 380
    # Control: a stale answer takes the place of one that counts.
    stale = reduce(Answer.merge, executor(protocol, Faults(stale_answers=0.3)).answer(query))
    assert not np.array_equal(plain.aggregate.tally, stale.aggregate.tally)
    # Nobody is late for the round that was never before.
    first = protocol.next_query(protocol.initialize())
    early = reduce(Answer.merge, executor(protocol, Faults(stale_answers=0.3)).answer(first))
    assert early.diagnostics.intake.num_refused == 0
    assert early.aggregate.num_clients == 1_500


def test_tallies_that_are_drawn_at_once_are_of_those_that_are_accepted():
    protocol = trie()
    query = second_round(protocol)
    worker = InProcessExecutor(ClientWorker(POPULATION, seed=SEED))
    always = Fidelity(name=EXACT_TALLY).wrap(worker, seed=SEED)
    options = {"devices": Devices(), "plan": protocol.plan, "seed": SEED}
    way = FaultyClientsExecutor(always, POPULATION, SOME, **options)
    answer = reduce(Answer.merge, way.answer(query))
    assert answer.diagnostics.is_sampled
    assert answer.aggregate.num_clients == answer.diagnostics.intake.accepted < 1_250
    assert answer.aggregate.num_reports == 4 * answer.aggregate.num_clients


def test_a_round_with_too_few_accepted_answers_is_missed():
    protocol = trie()
    query = second_round(protocol)
    # All are there, and a third of them is refused.
    devices = Devices(least_share=0.9)
    way = executor(protocol, Faults(wrong_size=0.3), devices=devices)
    with pytest.raises(MissedRoundError, match=r"1,0\d\d of at least 1,350 answers") as raised:
        list(way.answer(query))
    attendance = raised.value.attendance
    assert (attendance.asked, attendance.eligible, attendance.fewest) == (1_500, 1_500, 1_350)


def test_heavy_typists_come_first():
    typed = typed_by_clients(POPULATION)
    rows = POPULATION.items
    assert typed.tolist() == [
        int(rows.counts[first:last].sum())
        for first, last in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    ]
    cohort = Cohort(start=0, size=6_000, heavy_first=True)
    order = ClientOrder(POPULATION, seed=SEED)

    def everybody(cohort):
        return np.concatenate([order.clients(cohort, b) for b in range(cohort.num_blocks)])

    heavy = everybody(cohort)
    assert sorted(heavy.tolist()) == list(range(6_000))
    assert (np.diff(typed[heavy]) <= 0).all()
    # Equals come in a random order, another one where cohorts are redrawn.
    again = everybody(replace(cohort, redraw=1))
    assert (typed[again] == typed[heavy]).all()
    assert not np.array_equal(again, heavy)
    plain = everybody(replace(cohort, heavy_first=False))
    assert not (np.diff(typed[plain]) <= 0).all()
    asked = Recording(POPULATION)
    way = HeavyFirstExecutor(InProcessExecutor(ClientWorker(asked, seed=SEED)))
    query = trie().next_query(trie().initialize())
    reduce(Answer.merge, way.answer(query))
    served = np.concatenate(asked.blocks[-query.cohort.num_blocks :])
    assert sorted(typed[served]) == sorted(typed[heavy[:1_500]])


def test_shares_of_faults_are_below_one_in_all():
    with pytest.raises(InputError, match="lower one of second_answers, wrong_size"):
        Faults(second_answers=0.6, wrong_size=0.5)
    with pytest.raises(InputError, match="wrong_size"):
        Faults(wrong_size=-0.1)
    with pytest.raises(InputError, match="order"):
        Faults(order="heavy")


def test_faults_have_their_shares():
    faults = Faults(second_answers=0.25, out_of_domain=0.5)
    drawn = faults.draw(40_000, np.random.default_rng(0))
    counts = np.bincount(drawn + 1, minlength=len(FAULTS) + 1)
    assert counts[1:].tolist().count(0) == len(FAULTS) - 2
    for fault, share in ((Fault.SECOND, 0.25), (Fault.DOMAIN, 0.5)):
        # Five standard errors.
        assert abs(counts[1 + FAULTS.index(fault)] / 40_000 - share) < 0.0125
