"""Damaged reports, envelopes and queries: refused, and nothing else is raised or slips through.

What is acceptable is decided here by enumeration: an oracle's reports are looked up in the space of
all that it can send.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fedhh.oracles import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.report_checks import check_reports
from fedhh.plans.local_reports import LocalReports
from fedhh.queries.base import PrefixQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.intake import Envelope, Intake
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import PrefixTrie
from tests.clients.test_attendance import PROTOCOLS, settled
from tests.fuzz.mutation import VALUES
from tests.oracles.test_report_checks import PARAMS

TOTAL = int(os.environ.get("FEDHH_FUZZ_CASES", "20000"))
REPORT_CASES, QUERY_CASES = TOTAL // 2, TOTAL // 2
ENOUGH = 10_000
"""Cases of which a part has some that are accepted and some that are refused."""

PARTS = 10
"""Tests that share the cases."""

LARGE = (2**31, 2**53, 2**63 - 1, -(2**63), -1, -2, 5, 255, 256)
TYPES = ("f8", "f4", "i4", "i2", "i1", "u1", "u8", ">i8", "c16", "?", "O", "U5", "S3", "m8[s]")
PLACE = (1, 2)
SIZES = (1, 2, 4)
"""Symbols of an alphabet: candidates are as many squared, and the end symbol's."""


def query_of(oracle, symbols, max_items, pad):
    alphabet = Alphabet(symbols="abcd"[:symbols])
    no_words = np.zeros((0, 3), dtype=np.uint16)
    return PrefixQuery(
        pass_index=PLACE[0],
        layer=PLACE[1],
        cohort=Cohort(start=0, size=4),
        alphabet=alphabet,
        max_items=max_items,
        pad=pad,
        sampler="random",
        trie=PrefixTrie.empty(alphabet.size),
        finished=alphabet.encode(["a", "b", "ab", "ba"][: 1 + symbols], width=3),
        excluded=no_words,
        oracle=OracleSpec(
            name=oracle,
            epsilon=math.inf if oracle == "none" else 0.7,
            params={} if oracle == "dbitflip" else PARAMS.get(oracle, {}),
        ),
    )


@cache
def space_of(oracle, size, params):
    made = make_oracle(oracle, size)
    return {tuple(np.ravel(each).tolist()) for each in made.report_space()}


def is_possible(oracle_spec, size, report):
    """Return whether an oracle can send a report, of which type and shape are right already."""
    numbers = tuple(np.ravel(report).tolist())
    if oracle_spec.name in ("olh", "blh"):
        return 0 <= numbers[-1] < make_oracle(oracle_spec, size).num_cells
    params = tuple(sorted(oracle_spec.params.items()))
    return numbers in space_of(oracle_spec, size, params)


def is_acceptable(query, answer, honest):
    """Return whether an answer is one that a client with the query could send."""
    # A masked array hides some of its numbers.
    if type(answer) is not np.ndarray or answer.dtype != honest.dtype:
        return False
    if answer.ndim != honest.ndim or answer.shape[1:] != honest.shape[1:]:
        return False
    number = len(answer)
    if number != query.max_items and (query.pad or number > query.max_items):
        return False
    return all(is_possible(query.oracle, query.domain_size, each) for each in answer)


def damaged(reports, rng):
    """Return reports with something done to them, harmless or not."""
    if reports.dtype.kind not in "iu":
        return reports
    choice, flat = rng.integers(22), reports.copy()
    place = tuple(rng.integers(max(size, 1)) for size in reports.shape)
    if choice < 6 and reports.size:
        with np.errstate(over="ignore"):
            flat[place] = np.array(LARGE[rng.integers(len(LARGE))]).astype(reports.dtype)
        return flat
    if choice < 8:
        return reports.astype(TYPES[rng.integers(len(TYPES))])
    if choice == 8 and reports.size:
        other = reports.astype(np.float64)
        other[place] = (np.nan, np.inf, -0.0, 1e300)[rng.integers(4)]
        return other
    if choice == 9 and reports.size and reports.ndim > 1:
        flat[place[0]] = flat[place]
        return flat
    if choice == 10:
        return np.flip(reports, axis=rng.integers(reports.ndim))
    if choice == 11:
        return np.repeat(reports, rng.integers(4), axis=rng.integers(reports.ndim))
    if choice == 12:
        return reports[..., None] if rng.random() < 0.5 else reports.ravel()
    if choice == 13:
        return reports.T
    if choice == 14:
        return reports[: rng.integers(len(reports) + 1)]
    if choice == 15:
        return np.asarray(reports.ravel()[0]) if reports.size else np.zeros(())
    if choice == 16:
        return np.ma.masked_array(reports, mask=rng.random(reports.shape) < 0.5)
    if choice == 17:
        return np.concatenate([reports, reports])[::2]
    if choice == 18:
        boxed = reports.astype(object)
        boxed[place] = VALUES[rng.integers(len(VALUES))] if reports.size else None
        return boxed
    if choice == 19:
        return np.zeros(len(reports), dtype=[("a", "i8"), ("b", "f4")])
    others = (None, reports.tolist(), bytes(4), "reports", {}, 3, math.nan, object(), iter([]))
    if choice == 20:
        return others[rng.integers(len(others))]
    flat.flags.writeable = False
    return flat


def field_of(value, rng):
    """Return a field of an envelope, usually as it is."""
    if rng.random() < 0.85:
        return value
    return (*VALUES, np.int64(1), np.float64(1), np.array([1, 2]), {1})[
        rng.integers(len(VALUES) + 4)
    ]


def whole(value):
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_answers_are_refused_and_others_counted(part, record_property):
    accepted_in_all = received = 0
    for case in range(part, REPORT_CASES, PARTS):
        rng = np.random.default_rng([28, case])
        names = list(ORACLES)
        name = names[rng.integers(len(names))]
        query = query_of(name, SIZES[rng.integers(3)], int(rng.integers(1, 4)), rng.random() < 0.7)
        oracle = make_oracle(query.oracle, query.domain_size)
        intake, seen, kept = Intake(query), set(), []
        for _ in range(rng.integers(1, 5)):
            values = rng.integers(query.domain_size, size=query.max_items)
            honest = answer = oracle.privatize(values, rng=rng)
            assert check_reports(oracle, honest).accepted.all(), (case, name)
            for _ in range(rng.integers(3)):
                if isinstance(answer, np.ndarray) and answer.ndim and answer.size:
                    answer = damaged(answer, rng)
            token, layer = field_of(int(rng.integers(4)), rng), field_of(PLACE[1], rng)
            pass_index = field_of(PLACE[0], rng)
            # A check of the reports alone loses none of them either.
            check = check_reports(oracle, answer)
            assert check.accepted.sum() + sum(check.refused.values()) == len(check.codes)
            addressed = whole(pass_index) and whole(layer) and (pass_index, layer) == PLACE
            expected = (
                addressed
                and whole(token)
                and 0 <= token < 4
                and int(token) not in seen
                and is_acceptable(query, answer, honest)
            )
            before = intake.counts
            intake.receive(
                [Envelope(token=token, pass_index=pass_index, layer=layer, reports=answer)]
            )
            after = intake.counts
            assert after.received == before.received + 1
            assert after.accepted + after.num_refused == after.received
            assert (after.accepted > before.accepted) == expected, (case, name, answer, honest)
            if expected:
                seen.add(int(token))
                kept.append(np.asarray(answer))
            received += 1
        aggregate = intake.aggregate
        assert aggregate.num_clients == len(kept)
        assert aggregate.num_reports == sum(map(len, kept))
        sums = oracle.aggregate_size
        total = oracle.aggregate(np.concatenate(kept)) if kept else np.zeros(sums, dtype=np.int64)
        assert np.array_equal(aggregate.tally, oracle.support(total))
        accepted_in_all += len(kept)
    # Both happen, of a few cases perhaps not.
    assert TOTAL < ENOUGH or 0.1 < accepted_in_all / received < 0.9
    record_property("fuzz", ["answers", accepted_in_all, received - accepted_in_all, 0])


@cache
def planned_queries():
    """Return plans with their first query, of protocols of all kinds."""
    pairs = []
    for protocol in map(settled, PROTOCOLS.values()):
        pairs.append((protocol.plan, protocol.next_query(protocol.initialize())))
    return pairs


COHORTS = (
    {"size": 0}, {"size": -1}, {"size": 1.5}, {"size": math.nan}, {"size": None}, {"start": -1},
    {"start": 0.0}, {"start": 10**6}, {"start": "0"}, {"redraw": 0}, {"redraw": 7},
    {"heavy_first": True}, {"presence": 3},
)  # fmt: skip
ORACLE_FIELDS = ("oracle", "word_oracle", "fragment_oracle")
EPSILONS = (math.nan, math.inf, -1.0, 0.0, 1e300, 1e-9, 8.0, 40.0)


def damaged_query(query, rng):
    """Return a query with one or two fields changed, to others of their kind or to anything."""
    for _ in range(rng.integers(1, 3)):
        fields = [
            "cohort", "cohort", "max_items", "max_items", "pad", "layer", "pass_index", "alphabet",
            *(name for name in (*ORACLE_FIELDS, "epsilon", "trie", "noise") if hasattr(query, name)
              and name in type(query).__dataclass_fields__),
        ]  # fmt: skip
        name = fields[rng.integers(len(fields))]
        value = (*VALUES, np.int64(1), np.float64(2))[rng.integers(len(VALUES) + 2)]
        if name == "cohort" and rng.random() < 0.7 and isinstance(query.cohort, Cohort):
            value = replace(query.cohort, **COHORTS[rng.integers(len(COHORTS))])
        elif name == "max_items" and rng.random() < 0.5:
            value = (1, 2, 4, 5, 100)[rng.integers(5)]
        elif name in ORACLE_FIELDS and rng.random() < 0.8:
            names = list(ORACLES)
            epsilon = EPSILONS[rng.integers(len(EPSILONS))]
            value = OracleSpec(name=names[rng.integers(len(names))], epsilon=epsilon)
        elif name == "alphabet" and rng.random() < 0.5:
            value = Alphabet(symbols="xyz")
        query = replace(query, **{name: value})
    return query


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_queries_are_refused_or_ask_for_no_more_than_planned(part, record_property):
    accepted = refused = 0
    for plan, query in planned_queries():
        plan.check_query(query)
    for case in range(part, QUERY_CASES, PARTS):
        rng = np.random.default_rng([29, case])
        pairs = planned_queries()
        plan, valid = pairs[rng.integers(len(pairs))]
        try:
            query = damaged_query(valid, rng)
        except (ValueError, TypeError):
            # A kind of query that checks its own fields.
            refused += 1
            continue
        try:
            plan.check_query(query)
        except InputError:
            refused += 1
            continue
        accepted += 1
        planned = plan.planned(query.pass_index, query.layer)
        cohort = query.cohort
        for number in (query.pass_index, query.layer, query.max_items, cohort.start, cohort.size):
            assert type(number) is int, (case, query)
        assert cohort == plan.cohort(query.pass_index, query.layer)
        assert cohort.presence is None
        assert not cohort.heavy_first
        assert 1 <= query.max_items <= plan.max_items
        assert query.pad is True or not plan.padded
        if query.domain_size is not None:
            assert planned.smallest_domain <= query.domain_size <= planned.largest_domain
        if isinstance(plan, LocalReports):
            assert query.local_epsilon <= plan.local_epsilon * (1 + 1e-9), case
    assert TOTAL < ENOUGH or 0.02 < accepted / (accepted + refused) < 0.9
    record_property("fuzz", ["queries", accepted, refused, 0])
