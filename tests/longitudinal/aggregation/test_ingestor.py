"""The ingestor forgets who sent what, and when."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
from scipy.stats import chisquare

from fedhh.longitudinal.aggregation.ingestor import Ingestor
from fedhh.longitudinal.records import Arrivals, Batch


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
