"""What a pipeline's rows say, on counts small enough to check by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting.shuffles import shuffle_epsilon
from fedhh.longitudinal.aggregation.aggregator import Publication
from fedhh.longitudinal.pipeline import measures
from fedhh.longitudinal.pipeline.build import build_use_cases
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.pipeline.measures import ShuffledDays


@pytest.fixture(scope="module")
def emoji():
    settings = ["pipeline.use_cases.emoji.domain.values=4"]
    config = load_pipeline("pipeline-small", settings=settings, use_cases=["emoji"])
    (use_case,) = build_use_cases(config)
    return use_case


COUNTS = np.array([[400, 300, 200, 100], [200, 100, 60, 40], [50, 40, 10, 0]])
"""Events, events of devices that opted in, records sent."""


def test_errors_are_of_records_sent_and_shares_of_events(emoji):
    estimates = np.array([55.0, 30.0, 10.0, 7.0]), np.array([5.0, 4.0, 3.0, 2.0])
    rows = measures.value_rows(emoji, 3, [0, 1, 2, 3], estimates, COUNTS)
    assert [row["sent"] for row in rows] == [50, 40, 10, 0]
    assert [row["events"] for row in rows] == [400, 300, 200, 100]
    errors = measures.errors_of(rows, COUNTS)
    # Value 3 was not sent, so that it has no relative error.
    assert errors["error"] == pytest.approx((5 / 50 + 10 / 40 + 0) / 3)
    assert errors["std_error"] == pytest.approx((5 / 50 + 4 / 40 + 3 / 10) / 3)
    shares = [abs(0.55 / 0.5 - 1), abs(0.3 / 0.25 - 1), abs(0.1 / 0.15 - 1)]
    assert errors["share_error"] == pytest.approx(np.mean(shares))
    shares = [abs(0.55 / 0.4 - 1), abs(0.3 / 0.3 - 1), abs(0.1 / 0.2 - 1)]
    assert errors["share_error_all"] == pytest.approx(np.mean(shares))
    assert math.isnan(measures.errors_of(rows[3:], COUNTS)["error"])


def publication(names, estimate, threshold):
    return Publication(
        names=names,
        estimate=np.array(estimate),
        std_error=np.ones(len(names)),
        num_reports=100,
        looked_up=4,
        threshold=threshold,
    )


def test_a_publication_is_held_against_one_without_noise(emoji):
    found = publication([0, 3, 2], [55.0, 30.0, 20.0], 15.0)
    quality = measures.publication_quality(emoji, found, COUNTS)
    # More than 15 records were sent of 0 and 1.
    assert quality["to_publish"] == 2
    assert quality["precision"] == pytest.approx(1 / 3)
    assert quality["recall"] == 0.5
    assert quality["never_sent"] == 1
    # Of value 1, exactly the threshold was sent, which is not more than it.
    at_the_edge = measures.publication_quality(emoji, publication([0], [55.0], 40.0), COUNTS)
    assert (at_the_edge["to_publish"], at_the_edge["recall"]) == (1, 1.0)
    nothing = measures.publication_quality(emoji, publication([], [], 60.0), COUNTS)
    assert math.isnan(nothing["precision"])
    assert math.isnan(nothing["recall"])
    rows = measures.published_rows(emoji, 2, found, COUNTS)
    assert tuple(rows[0]) == measures.PUBLISHED
    assert [row["sent"] for row in rows] == [50, 0, 10]


def test_words_of_noise_are_nobodys():
    config = load_pipeline("pipeline-small", use_cases=["words"])
    (words,) = build_use_cases(config)
    counts = np.ones((3, len(words.device.events.weights)), dtype=np.int64)
    found = publication([words.label(0), "notone"], [9.0, 8.0], 0.5)
    quality = measures.publication_quality(words, found, counts)
    assert (quality["precision"], quality["never_sent"]) == (0.5, 1)
    rows = measures.published_rows(words, 1, found, counts)
    assert [row["sent"] for row in rows] == [1, 0]


def test_a_days_central_epsilon_is_that_of_no_more_records():
    days = ShuffledDays(delta=1e-8)

    def clones(num_reports):
        return shuffle_epsilon("clones", local_epsilon=2.0, num_reports=num_reports, delta=1e-8)

    assert days.epsilon(2.0, 43_999) == clones(43_000)
    assert clones(43_999) < days.epsilon(2.0, 43_999) < 1.1 * clones(43_999)
    assert days.epsilon(2.0, 1) == 2.0
    assert days.epsilon(20.0, 1_000) == 20.0
    assert days.epsilon(0.01, 1_000) == 0.01
