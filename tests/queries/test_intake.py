"""What a round's intake accepts, what it refuses, and that nothing is lost between the two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.oracles import ORACLES, OracleSpec
from fedhh.queries.base import PrefixQuery, WordVoteQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.intake import Envelope, Intake, oracle_of_reports
from fedhh.queries.refusals import IntakeCounts, Refusal
from fedhh.queries.sets import PaddedSampleQuery, singletons
from fedhh.queries.sketches import BlindPrefixQuery
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import PrefixTrie
from tests.conftest import LETTERS

ALPHABET = Alphabet(symbols=LETTERS)


def prefix_query(oracle="ss", *, max_items=2, pad=True, epsilon=1.0, kind=PrefixQuery):
    return kind(
        pass_index=1,
        layer=3,
        cohort=Cohort(start=0, size=10),
        alphabet=ALPHABET,
        max_items=max_items,
        pad=pad,
        sampler="random",
        trie=PrefixTrie.all_of_length_one(ALPHABET.size),
        finished=np.zeros((0, 5), dtype=np.uint16),
        excluded=np.zeros((0, 5), dtype=np.uint16),
        oracle=OracleSpec(name=oracle, epsilon=float("inf") if oracle == "none" else epsilon),
    )


def answers_to(query, number, *, reports_each=2, seed=0):
    oracle = oracle_of_reports(query)
    rng = np.random.default_rng(seed)
    values = rng.integers(oracle.domain_size, size=number * reports_each)
    return np.split(oracle.privatize(values, rng=rng), number)


def envelope(token, reports, *, pass_index=1, layer=3):
    return Envelope(token=token, pass_index=pass_index, layer=layer, reports=reports)


@pytest.mark.parametrize("oracle", ORACLES)
def test_accepted_answers_add_up_to_what_their_reports_do(oracle):
    query = prefix_query(oracle)
    randomizer = oracle_of_reports(query)
    answers = answers_to(query, 10)
    intake = Intake(query)
    intake.receive([envelope(token, reports) for token, reports in enumerate(answers[:6])])
    intake.receive([envelope(6 + token, reports) for token, reports in enumerate(answers[6:])])
    assert intake.counts == IntakeCounts(received=10, accepted=10)
    expected = randomizer.support(randomizer.aggregate(np.concatenate(answers)))
    aggregate = intake.aggregate
    assert np.array_equal(aggregate.tally, expected)
    assert (aggregate.num_reports, aggregate.num_clients) == (20, 10)
    aggregate.check_answers(query)


def test_each_rule_refuses_what_it_says_and_the_first_that_holds_is_counted():
    query = prefix_query()
    good = answers_to(query, 8)
    repeated = np.zeros_like(good[0])
    beyond = good[0].copy()
    beyond[1, -1] = query.domain_size
    cases = [
        (envelope(0, good[0]), None),
        (envelope(0, good[1]), Refusal.SECOND),
        (envelope(0, beyond), Refusal.SECOND),
        (envelope(1, good[1], layer=2), Refusal.STALE),
        (envelope(1, good[1], pass_index=0), Refusal.STALE),
        (envelope(1, good[1], layer=3.0), Refusal.STALE),
        (envelope(1, good[1], layer=None), Refusal.STALE),
        (envelope(-1, good[1]), Refusal.NOT_ASKED),
        (envelope(10, good[1]), Refusal.NOT_ASKED),
        (envelope("1", good[1]), Refusal.NOT_ASKED),
        (envelope([1], good[1]), Refusal.NOT_ASKED),
        (envelope(True, good[1]), Refusal.NOT_ASKED),
        (envelope(1, beyond), Refusal.DOMAIN),
        (envelope(1, good[1].astype(np.float64)), Refusal.TYPE),
        (envelope(1, good[1].tolist()), Refusal.TYPE),
        (envelope(1, None), Refusal.TYPE),
        (envelope(1, good[1][:, :0]), Refusal.SIZE),
        (envelope(1, good[1][0]), Refusal.SIZE),
        (envelope(1, good[1][:1]), Refusal.NUMBER),
        (envelope(1, good[1][:0]), Refusal.NUMBER),
        (envelope(1, np.concatenate([good[1], good[2]])), Refusal.NUMBER),
        # None of that has used up the token.
        (envelope(np.int64(1), good[1]), None),
        (envelope(1, good[1]), Refusal.SECOND),
        (envelope(9, good[2]), None),
    ]
    if good[0].shape[1] > 1:
        cases.append((envelope(2, repeated), Refusal.REPEATED))
    for together in (True, False):
        intake = Intake(query)
        for each in [cases] if together else [[case] for case in cases]:
            before = intake.counts
            intake.receive([sent for sent, _ in each])
            reasons = [reason for _, reason in each if reason is not None]
            new = intake.counts
            assert new.received - before.received == len(each)
            assert new.num_refused - before.num_refused == len(reasons)
            for reason in reasons:
                gained = new.refused[reason] - before.refused.get(reason, 0)
                assert gained == reasons.count(reason)
        aggregate = intake.aggregate
        assert (aggregate.num_clients, aggregate.num_reports) == (3, 6)
        oracle = oracle_of_reports(query)
        assert np.array_equal(aggregate.tally, oracle.aggregate(np.concatenate(good[:3])))


def test_clients_that_do_not_fill_up_send_any_number_up_to_the_most():
    query = prefix_query(pad=False)
    one, two = answers_to(query, 2)
    intake = Intake(query)
    sent = [one[:0], one[:1], one, np.concatenate([one, two])]
    intake.receive([envelope(token, reports) for token, reports in enumerate(sent)])
    assert intake.counts.refused == {Refusal.NUMBER: 1}
    assert (intake.aggregate.num_clients, intake.aggregate.num_reports) == (3, 3)
    # An empty array of another type is no answer either.
    intake.receive([envelope(8, one[:0].astype(float)), envelope(9, one[:0, :0])])
    assert intake.counts.refused == {Refusal.TYPE: 1, Refusal.SIZE: 1, Refusal.NUMBER: 1}


def test_a_client_that_answered_elsewhere_has_answered():
    query = prefix_query()
    intake = Intake(query)
    intake.note_answered([3])
    intake.receive([envelope(3, answers_to(query, 1)[0])])
    assert intake.counts == IntakeCounts(received=1, refused={Refusal.SECOND: 1})
    assert not intake.aggregate.tally.any()


def test_of_a_set_there_is_one_report():
    query = PaddedSampleQuery(
        pass_index=0,
        layer=1,
        cohort=Cohort(start=0, size=5),
        alphabet=ALPHABET,
        max_items=3,
        words=ALPHABET.encode(["ab", "c"], width=3),
        itemsets=singletons(2),
        epsilon=1.0,
        oracle_name="oue",
        padded_size=2,
    )
    one, other = answers_to(query, 2, reports_each=1)
    intake = Intake(query)
    both = np.concatenate([one, other])
    intake.receive([envelope(t, r, pass_index=0, layer=1) for t, r in enumerate((one, both))])
    assert intake.counts.refused == {Refusal.NUMBER: 1}
    assert np.array_equal(intake.aggregate.tally, one[0])


@pytest.mark.parametrize("oracle", ["olh", "cms"])
def test_reports_that_reach_the_server_as_they_are_do_so(oracle):
    query = BlindPrefixQuery(
        pass_index=0,
        layer=1,
        cohort=Cohort(start=0, size=5),
        alphabet=ALPHABET,
        max_items=1,
        sampler="random",
        prefix_length=2,
        longest_word=4,
        oracle=OracleSpec(name=oracle, epsilon=2.0),
        hash_seed=3,
    )
    answers = answers_to(query, 5, reports_each=1)
    intake = Intake(query)
    intake.receive([envelope(t, r, pass_index=0, layer=1) for t, r in enumerate(answers)])
    aggregate = intake.aggregate
    prefixes = ALPHABET.encode(["ab", "cd", "e"], width=2)
    assert query.support(aggregate, prefixes).shape == (3,)
    assert (aggregate.messages is None) == (oracle == "cms")
    assert aggregate.num_reports == 5


def test_where_answers_are_no_reports_the_envelope_decides():
    query = prefix_query("none", kind=WordVoteQuery)
    intake = Intake(query)
    intake.receive([envelope(0, None), envelope(0, None), envelope(1, None, layer=1)])
    assert intake.counts.refused == {Refusal.STALE: 1, Refusal.SECOND: 1}
    assert intake.aggregate.num_clients == intake.counts.accepted == 1
    assert intake.aggregate.num_reports == 0


def test_counts_that_do_not_add_up_are_none():
    with pytest.raises(ValueError, match="to add up to received=3, got 1 and 1"):
        IntakeCounts(received=3, accepted=1, refused={Refusal.STALE: 1})
    one = IntakeCounts(received=3, accepted=2, refused={Refusal.STALE: 1})
    other = replace(one, refused={Refusal.SIZE: 1})
    merged = one.merge(other)
    assert merged.refused == {Refusal.STALE: 1, Refusal.SIZE: 1}
    assert (merged.received, merged.accepted, merged.malformed) == (6, 4, 1)
    assert merged.text == "1 malformed, 1 stale"
