"""The ingestor forgets who sent what, and when; sums in few bytes, and what is published."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from fedhh.longitudinal.aggregation.aggregator import (
    FragmentAggregator,
    OracleAggregator,
    false_free_threshold,
    standard_errors,
)
from fedhh.longitudinal.aggregation.ingestor import Ingestor
from fedhh.longitudinal.aggregation.sums import SketchSums, sums_of
from fedhh.longitudinal.devices.worker import record_maker
from fedhh.longitudinal.records import Arrivals, Batch, FragmentRecords, OracleRecords
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.questions.question import Aggregate
from fedhh.server.sfp import Sfp
from tests.every import every

SPECS = [
    OracleSpec(name="cms", epsilon=4.0, params={"num_hashes": 9, "num_cells": 70}),
    OracleSpec(name="hcms", epsilon=4.0, params={"num_hashes": 9, "num_cells": 64}),
    OracleSpec(name="grr", epsilon=4.0),
    OracleSpec(name="ss", epsilon=2.0),
    OracleSpec(name="olh", epsilon=2.0),
    OracleSpec(name="hr", epsilon=2.0),
]


def reports_of(oracle, values, seed=0):
    return oracle.privatize(np.asarray(values), rng=np.random.default_rng(seed))


@every("spec", SPECS)
def test_sums_support_what_the_oracle_supports(spec):
    oracle = make_oracle(spec, 40)
    first, second = reports_of(oracle, np.arange(40)), reports_of(oracle, [3] * 60, seed=1)
    sums = sums_of(oracle)
    sums.add(first)
    sums.add_aggregate(oracle.aggregate(second), 60)
    whole = oracle.aggregate(first) + oracle.aggregate(second)
    assert sums.num_reports == 100
    assert (sums.aggregate() == whole).all()
    candidates = np.array([3, 39])
    assert (sums.support(candidates) == oracle.support(whole, candidates)).all()
    assert (sums.support() == oracle.support(whole)).all()
    again = sums_of(oracle)
    again.restore(sums.state())
    assert (again.aggregate() == whole).all()
    assert again.num_reports == 100


@pytest.mark.parametrize("cells_at_once", [1, 200])
@pytest.mark.parametrize("spec", SPECS[:2], ids=["cms", "hcms"])
def test_how_many_rows_are_looked_up_at_once_changes_nothing(monkeypatch, spec, cells_at_once):
    oracle = make_oracle(spec, 40)
    reports = reports_of(oracle, np.arange(40))
    sums = sums_of(oracle)
    sums.add(reports)
    monkeypatch.setattr("fedhh.longitudinal.aggregation.sums._CELLS_AT_ONCE", cells_at_once)
    whole = oracle.aggregate(reports)
    assert (sums.support() == oracle.support(whole)).all()
    assert (sums.support(np.array([3])) == oracle.support(whole, np.array([3]))).all()
    assert (sums_of(oracle).support() == 0).all()


@pytest.mark.parametrize("name", ["cms", "hcms"])
def test_cells_get_wider_before_they_run_over(name):
    oracle = make_oracle(
        OracleSpec(name=name, epsilon=12.0, params={"num_hashes": 1, "num_cells": 2}), 4
    )
    reports = reports_of(oracle, [1] * 40_000)
    narrow = SketchSums(oracle)
    for part in np.array_split(reports, 7):
        narrow.add(part)
    assert (narrow.aggregate() == oracle.aggregate(reports)).all()
    assert np.abs(narrow.aggregate()).max() > np.iinfo(np.int16).max


def batch(form, values, seed=0):
    reports = reports_of(form.oracle, values, seed)
    return Batch(use_case="x", reports=reports.reshape(len(reports), -1).astype(np.int64))


def test_only_what_exceeds_the_threshold_is_published():
    form = OracleRecords(spec=OracleSpec(name="grr", epsilon=3.0), domain_size=20)
    values = [0] * 900 + [1] * 300 + [2] * 5
    expected = form.oracle.estimate(form.oracle.aggregate(batch(form, values).reports[:, 0]), 1_205)
    threshold = float(np.sort(expected)[-2])
    for given, published in ((threshold, [0]), (np.nextafter(threshold, 0), [0, 1])):
        aggregator = OracleAggregator(form, threshold=given, watched=[0, 2])
        aggregator.add(batch(form, values))
        publication = aggregator.close()
        assert list(publication.names) == published
        assert publication.estimate.tolist() == expected[published].tolist()
        assert (publication.num_reports, publication.looked_up) == (1_205, 20)


def test_windows_add_up():
    form = OracleRecords(spec=OracleSpec(name="cms", epsilon=4.0), domain_size=20)
    aggregator = OracleAggregator(form, threshold=-1e9, watched=[0, 1])
    parts = [[0] * 300, [1] * 200]
    for number, values in enumerate(parts):
        aggregator.add(batch(form, values, number))
        today, errors = aggregator.estimates_of_day(batch(form, values, number))
        assert abs(today[number] - len(values)) < 6 * errors[number]
        window = aggregator.close()
        assert window.num_reports == len(values)
    whole = OracleAggregator(form, threshold=-1e9, watched=[0, 1])
    for number, values in enumerate(parts):
        whole.add(batch(form, values, number))
    at_once, overall = whole.close(), aggregator.overall()
    assert list(at_once.names) == list(overall.names)
    assert at_once.estimate.tolist() == overall.estimate.tolist()
    estimate, _ = aggregator.estimates_of_all_days()
    assert abs(estimate[0] - 300) < 60


def test_sums_that_cross_are_reports():
    form = OracleRecords(spec=OracleSpec(name="oue", epsilon=4.0), domain_size=2_000)
    assert not form.crosses_one_by_one
    tally = form.oracle.aggregate(
        values=np.zeros(200, dtype=np.int64), rng=np.random.default_rng(0)
    )
    aggregate = Aggregate(tally=tally, num_reports=200, num_clients=200)
    aggregator = OracleAggregator(form, threshold=None, watched=[0])
    aggregator.add_sums(aggregate)
    today, errors = aggregator.estimates_of_day(aggregate)
    assert abs(today[0] - 200) < 6 * errors[0]
    assert list(aggregator.close().names) == [0]


def test_noise_alone_rarely_exceeds_the_threshold():
    form = OracleRecords(spec=OracleSpec(name="grr", epsilon=2.0), domain_size=100)
    rng = np.random.default_rng(0)
    false = 0
    for seed in rng.integers(2**31, size=200):
        # Value 0 holds all; what else is published is noise.
        aggregator = OracleAggregator(form, threshold=None, watched=[0])
        aggregator.add(batch(form, np.zeros(5_000, dtype=np.int64), seed))
        false += list(aggregator.close().names) != [0]
    # One in twenty at most: 10 of 200, and 27 with a chance below 1e-5.
    assert false <= 27
    assert false_free_threshold(10.0, 1) == pytest.approx(16.449, abs=1e-3)


def test_frequent_values_make_the_others_of_a_sketch_less_sure():
    oracle = make_oracle(
        OracleSpec(name="cms", epsilon=8.0, params={"num_hashes": 64, "num_cells": 32}), 100
    )
    counts = np.full(100, 100)
    counts[0] = 50_000
    errors = standard_errors(oracle, counts.astype(float), int(counts.sum()))
    exact = np.sqrt(oracle.exact_variance(counts))
    assert errors[1:] == pytest.approx(exact[1:], rel=0.01)
    alone = np.sqrt(oracle.variance(counts, int(counts.sum())))
    assert (errors[1:] > 2 * alone[1:]).all()
    # No value makes itself less sure: here, no other one is frequent.
    assert errors[0] == pytest.approx(alone[0])


def test_the_threshold_is_that_of_a_value_that_nobody_sent():
    form = OracleRecords(
        spec=OracleSpec(name="cms", epsilon=8.0, params={"num_hashes": 64, "num_cells": 32}),
        domain_size=30,
    )
    values = [0] * 20_000 + [1] * 300
    aggregator = OracleAggregator(form, threshold=None, watched=[0])
    aggregator.add(batch(form, values))
    publication = aggregator.close()
    support = form.oracle.support(
        reports=form.as_reports(batch(form, values).reports), candidates=np.arange(30)
    )
    estimate = form.oracle.estimate(support, len(values))
    errors = standard_errors(form.oracle, estimate, len(values))
    # The frequent value makes all others less sure than itself.
    assert errors[2:].min() > 2 * errors[0]
    of_noise = false_free_threshold(float(errors[2:].min()), 30)
    assert publication.threshold == pytest.approx(of_noise, rel=0.01)


def sfp_form(**changes):
    protocol = Sfp(
        local_epsilon=16.0, word_share=0.4, alphabet="abcdef", length=4, num_puzzles=8,
        word_hashes=64, fragment_hashes=64, fragment_cells=128, max_items=1, **changes,
    ).settle(num_clients=1_000, seed=0)  # fmt: skip
    return protocol, FragmentRecords(question=protocol.next_question(protocol.initialize()))


@pytest.mark.parametrize("threshold", [None, 100.0])
def test_one_day_says_of_itself_what_all_days_say_together(threshold):
    # Only one word is let through, so that the others' collisions are seen in the sketch alone.
    protocol, form = sfp_form(word_cells=32, max_words=1)
    maker = record_maker(form, ["abba", "face", "dead"])
    values = np.array([0] * 9_000 + [1] * 7_000 + [2] * 8_000)
    aggregator = FragmentAggregator(form, protocol, threshold=threshold, watched=["abba"])
    aggregator.add(Batch(use_case="x", reports=maker.reports(values, np.random.default_rng(0))))
    day, together = aggregator.close(), aggregator.overall()
    assert list(day.names) == list(together.names) == ["abba"]
    assert day.estimate.tolist() == together.estimate.tolist()
    assert day.std_error.tolist() == together.std_error.tolist()
    assert day.threshold == together.threshold
    assert (day.num_reports, day.looked_up) == (together.num_reports, together.looked_up)
    # Words that were not looked up make it less sure, too.
    assert day.std_error[0] > 1.5 * form.question.channel.words.variance(9_000, 24_000) ** 0.5


def test_sfp_finds_words_in_every_window_and_counts_them_over_all():
    protocol, form = sfp_form(word_cells=128)
    words = ["abba", "face", "dead"]
    maker = record_maker(form, words)
    aggregator = FragmentAggregator(form, protocol, threshold=None, watched=words)
    for number, values in enumerate(([0] * 900 + [1] * 700, [0] * 900 + [2] * 800)):
        reports = maker.reports(np.array(values), np.random.default_rng(number))
        today = Batch(use_case="x", reports=reports)
        aggregator.add(today)
        estimate, errors = aggregator.estimates_of_day(today)
        truth = np.bincount(values, minlength=3)
        assert (np.abs(estimate - truth) < 6 * errors).all()
        if number == 0:
            # What is stored goes on as if nothing had happened.
            state = aggregator.state()
            aggregator = FragmentAggregator(form, protocol, threshold=None, watched=words)
            aggregator.restore(state)
        found = aggregator.close()
        assert set(found.names) == {words[value] for value in set(values)}
    overall = aggregator.overall()
    assert list(overall.names) == ["abba", "dead", "face"]
    assert overall.num_reports == 3_300
    assert overall.estimate[0] == pytest.approx(1_800, rel=0.2)


def arrivals(use_case, reports):
    n = len(reports)
    return Arrivals(
        use_case=use_case,
        addresses=np.arange(n) + 1_000_000,
        seconds=np.arange(n) + 2_000_000,
        reports=np.asarray(reports, dtype=np.int64).reshape(n, -1),
    )


def test_what_leaves_has_reports_of_one_use_case_and_nothing_else():
    assert [field.name for field in dataclasses.fields(Batch)] == ["use_case", "reports"]
    parts = [arrivals("b", [[1, 2], [3, 4]]), arrivals("a", [5, 6, 7]), arrivals("b", [[8, 9]])]
    batches = Ingestor(seed=0).ingest(parts, day=0)
    assert list(batches) == ["a", "b"]
    assert sorted(batches["a"].reports.ravel().tolist()) == [5, 6, 7]
    assert sorted(map(tuple, batches["b"].reports.tolist())) == [(1, 2), (3, 4), (8, 9)]
    for batch in batches.values():
        assert batch.reports.max() < 1_000_000


def test_messages_hold_arrivals():
    sent = arrivals("a", [[1, 2], [3, 4]])
    back = Arrivals.of("a", sent.as_messages())
    assert (back.reports == sent.reports).all()
    assert back.addresses.tolist() == sent.addresses.tolist()
    assert back.seconds.tolist() == sent.seconds.tolist()


def test_every_order_is_as_likely():
    found = Counter(
        tuple(Ingestor(seed=0).ingest([arrivals("a", [0, 1, 2])], day=day)["a"].reports.ravel())
        for day in range(3_000)
    )
    orders = list(itertools.permutations(range(3)))
    assert chisquare([found[order] for order in orders]).pvalue > 1e-9


def test_the_order_is_the_seeds_the_days_and_the_use_cases():
    reports = list(range(50))

    def order(seed, day, name):
        batch = Ingestor(seed=seed).ingest([arrivals(name, reports)], day=day)[name]
        return batch.reports.ravel().tolist()

    assert order(0, 0, "a") == order(0, 0, "a")
    orders = [order(0, 0, "a"), order(1, 0, "a"), order(0, 1, "a"), order(0, 0, "b"), reports]
    assert len(set(map(tuple, orders))) == len(orders)
