"""What a pipeline learned, held against what happened: rows of its tables.

An estimate is of records *sent* with a value, never scaled to events: the server does not know how
many events there were, and the cap and the sampling decide how many of them are sent. It is held
against two truths. ``sent``, the records sent that are really about the value, is what it estimates
without bias: ``error`` is what randomizer and sketch cost. ``events`` and ``events_opted_in`` are
what happened; an estimate's share of its batch is held against their shares, and ``share_error``
has in it, besides that, what caps, delays and sampling cost, and devices that did not opt in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedhh.accounting.bounds.shuffle_bound import LOCAL_EPSILON_RANGE
from fedhh.accounting.shuffles import shuffle_epsilon
from fedhh.arrays import Floats, Ints
from fedhh.longitudinal.aggregation.aggregator import Publication
from fedhh.longitudinal.ledger import LedgerReport, Spending
from fedhh.longitudinal.pipeline.build import UseCase
from fedhh.longitudinal.pipeline.config import PipelineConfig

Row = dict[str, Any]

ALL, OPTED_IN, SENT = range(3)
"""Rows of a use case's counts: events of all devices, of those opted in, of records sent."""

PUBLISHED = (
    "use_case", "window", "rank", "value", "estimate", "std_error", "sent", "events_opted_in",
    "events",
)  # fmt: skip
"""Columns of `published_rows`."""


@dataclass(kw_only=True)
class Tables:
    """Rows of a run's tables.

    Attributes:
        days: One for each use case and day.
        values: One for each use case, day and watched value; day 0: all days.
        published: One for each use case, window and published value; window 0: all windows.
        publications: One for each use case and window.
    """

    days: list[Row] = field(default_factory=list)
    values: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    publications: list[Row] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class PipelineResult:
    """What a pipeline learned, and what it cost.

    Attributes:
        config: Its configuration.
        tables: Rows.
        use_cases: One row for each use case, of all days.
        num_opted_in: Devices that took part.
        before: What caps allow a device to lose, whatever happens.
        spent: What devices that opted in lost.
        seconds: Of the run's parts.
    """

    config: PipelineConfig
    tables: Tables
    use_cases: list[Row]
    num_opted_in: int
    before: LedgerReport
    spent: Spending
    seconds: dict[str, float]


def value_rows(
    use_case: UseCase,
    day: int,
    values: Sequence[int],
    estimates: tuple[Floats, Floats],
    counts: Ints,
) -> list[Row]:
    """Return a row for each watched value.

    Columns:
        use_case: The use case.
        day: From 1; 0 for all days together.
        rank: By the values' distribution, from 1.
        value: The value's number, or the word.
        estimate: Of the records sent with the value, by the aggregator; unbiased.
        std_error: Its standard error, by the oracle's formula at the estimate.
        sent: Records sent that are about the value: what is estimated.
        events_opted_in: Events about it, that day, on devices that opted in.
        events: The same on all devices.
    """
    estimate, errors = estimates
    return [
        {
            "use_case": use_case.name,
            "day": day,
            "rank": rank,
            "value": use_case.label(value),
            "estimate": float(estimate[rank - 1]),
            "std_error": float(errors[rank - 1]),
            "sent": int(counts[SENT, value]),
            "events_opted_in": int(counts[OPTED_IN, value]),
            "events": int(counts[ALL, value]),
        }
        for rank, value in enumerate(values, start=1)
    ]


def errors_of(rows: Sequence[Row], counts: Ints) -> Row:
    """Return mean relative errors over watched values that were sent at all; NaN if none was.

    Columns:
        error: Mean of ``abs(estimate - sent) / sent``.
        std_error: Mean of the expected standard error, relative to ``sent``.
        share_error: Mean relative error of the estimate's share of records sent, against the
            value's share of the events of devices that opted in.
        share_error_all: The same, against its share of the events of all devices.
    """
    there = [row for row in rows if row["sent"]]
    totals = counts.sum(axis=1)

    def share_error(truth: str, total: int) -> float:
        return mean(
            abs(row["estimate"] / totals[SENT] / (row[truth] / total) - 1)
            for row in there
            if row[truth]
        )

    return {
        "error": mean(abs(row["estimate"] - row["sent"]) / row["sent"] for row in there),
        "std_error": mean(row["std_error"] / row["sent"] for row in there),
        "share_error": share_error("events_opted_in", int(totals[OPTED_IN])),
        "share_error_all": share_error("events", int(totals[ALL])),
    }


def published_rows(
    use_case: UseCase, window: int, publication: Publication, counts: Ints
) -> list[Row]:
    """Return a row for each published value.

    Columns:
        use_case: The use case.
        window: From 1; 0 for all windows together.
        rank: By the estimate, from 1.
        value: The value's number, or the word.
        estimate: Of the records sent with the value.
        std_error: Its standard error.
        sent: Records sent that are about the value.
        events_opted_in: Events about it on devices that opted in.
        events: The same on all devices.
    """
    places = _places(use_case, publication)
    rows = []
    for rank, (name, place) in enumerate(zip(publication.names, places, strict=True), start=1):
        here = counts[:, place] if place >= 0 else np.zeros(3, dtype=np.int64)
        rows.append(
            {
                "use_case": use_case.name,
                "window": window,
                "rank": rank,
                "value": str(name),
                "estimate": float(publication.estimate[rank - 1]),
                "std_error": float(publication.std_error[rank - 1]),
                "sent": int(here[SENT]),
                "events_opted_in": int(here[OPTED_IN]),
                "events": int(here[ALL]),
            }
        )
    return rows


def publication_quality(use_case: UseCase, publication: Publication, counts: Ints) -> Row:
    """Return how good a publication is, against one without noise by the same threshold.

    Columns:
        use_case: The use case.
        window: From 1; 0 for all windows together.
        threshold: T.
        looked_up: Values that were asked about.
        published: Values whose estimate exceeds T.
        to_publish: Values of which more than T records were sent.
        precision: Share of the published that are to publish; NaN if nothing is published.
        recall: Share of those to publish that are published; NaN if there are none.
        never_sent: Published values of which no record was sent.
    """
    places = _places(use_case, publication)
    wanted = set(np.flatnonzero(counts[SENT] > publication.threshold).tolist())
    right = sum(place in wanted for place in places)
    return {
        "threshold": publication.threshold,
        "looked_up": publication.looked_up,
        "published": len(places),
        "to_publish": len(wanted),
        "precision": right / len(places) if places else math.nan,
        "recall": right / len(wanted) if wanted else math.nan,
        "never_sent": sum(place < 0 or not counts[SENT, place] for place in places),
    }


@dataclass(kw_only=True)
class ShuffledDays:
    """Central epsilons of a day's batch, which the ingestor permutes.

    Item level: neighbors differ in one record of the day's batch of one use case; for readers of
    what is computed from the permuted batch. By `fedhh.accounting.shuffles`, bound "clones". The
    number of records is rounded down to two digits first, which can only raise epsilon.

    Attributes:
        delta: At which.
    """

    delta: float
    _known: dict[tuple[float, int], float] = field(default_factory=dict)

    def epsilon(self, local_epsilon: float, num_reports: int) -> float:
        """Return the epsilon; the local one where the bound does not reach."""
        low, high = LOCAL_EPSILON_RANGE
        if num_reports < 2 or not low <= local_epsilon <= high:
            return local_epsilon
        step = 10 ** max(len(str(num_reports)) - 2, 0)
        key = local_epsilon, num_reports // step * step
        if key not in self._known:
            found = shuffle_epsilon(
                "clones", local_epsilon=key[0], num_reports=key[1], delta=self.delta
            )
            assert isinstance(found, float | int)
            self._known[key] = float(found)
        return self._known[key]


def _places(use_case: UseCase, publication: Publication) -> list[int]:
    """Return the number of each published value among the use case's; -1 for a word of noise."""
    words = use_case.device.events.words
    if words is None:
        return [int(name) for name in publication.names]
    place_of = {word: place for place, word in enumerate(words)}
    return [place_of.get(str(name), -1) for name in publication.names]


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN of nothing."""
    found = list(values)
    return float(np.mean(found)) if found else math.nan
