"""The aggregator: adds up batches of one use case, and publishes what exceeds a threshold.

Source: Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 3.2.2:
"only domain elements whose counts are above a prescribed threshold T are included". The data of
several use cases is never combined, so each has an aggregator of its own.

What it estimates are counts of records *sent*, not of events: which part of all events that is,
it does not know.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from fedhh.arrays import Floats, Ints
from fedhh.longitudinal.aggregation.sums import ReportSums, sums_of
from fedhh.longitudinal.records import Batch, FragmentRecords, OracleRecords
from fedhh.oracles import FrequencyOracle, SketchOracle
from fedhh.questions.noise import Noise
from fedhh.questions.question import Aggregate, Question
from fedhh.server.sfp import Sfp
from fedhh.system.archive import Arrays, part, within

FALSE_ONCE_IN = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Publication:
    """What an aggregator publishes.

    Attributes:
        names: Numbers of values, or words; most frequent first.
        estimate: ``(c,) float64``: unbiased, of records sent with the value.
        std_error: ``(c,) float64``, with what other values of a sketch add.
        num_reports: Reports behind it.
        looked_up: Values that were asked about.
        threshold: T: estimates above it are published.
    """

    names: Sequence[int] | Sequence[str]
    estimate: Floats
    std_error: Floats
    num_reports: int
    looked_up: int
    threshold: float


class Aggregator(ABC):
    """Adds up batches, and estimates.

    A window is what is published together; `close` ends one. Reports are added up as they come and
    never kept; what goes on from window to window are sums.

    Attributes:
        oracle: What counts values.
        threshold: T; None for `false_free_threshold`.
        watched: ``(w,) int64``: values to estimate by day.
    """

    oracle: FrequencyOracle
    threshold: float | None
    watched: Ints

    @abstractmethod
    def add(self, batch: Batch) -> None:
        """Add a batch."""

    @abstractmethod
    def add_sums(self, aggregate: Aggregate) -> None:
        """Add reports that crossed as their sums."""

    @abstractmethod
    def close(self) -> Publication:
        """Publish a window, and begin the next."""

    @abstractmethod
    def overall(self) -> Publication:
        """Publish what all closed windows say together."""

    @abstractmethod
    def estimates_of_day(self, day: Batch | Aggregate) -> tuple[Floats, Floats]:
        """Return ``(w,)`` estimates and standard errors of watched values, from a day's reports."""

    @abstractmethod
    def estimates_of_all_days(self) -> tuple[Floats, Floats]:
        """Return ``(w,)`` estimates and standard errors of watched values, of closed windows."""

    @abstractmethod
    def state(self) -> Arrays:
        """Return what `restore` takes."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Go on from a state."""

    def _estimated(self, support: Ints, num_reports: int) -> tuple[Floats, Floats]:
        estimate = self.oracle.estimate(support, num_reports)
        return estimate, standard_errors(self.oracle, estimate, num_reports)

    def _publication(
        self,
        names: Sequence[int] | Sequence[str],
        estimate: Floats,
        errors: Floats,
        *,
        noise: float,
        num_reports: int,
        looked_up: int,
    ) -> Publication:
        """Return what exceeds the threshold, given the standard deviation of pure noise."""
        threshold = self.threshold
        if threshold is None:
            threshold = false_free_threshold(noise, looked_up)
        above = np.flatnonzero(estimate > threshold)
        order = above[np.argsort(-estimate[above], kind="stable")]
        return Publication(
            names=[names[place] for place in order.tolist()],
            estimate=estimate[order],
            std_error=errors[order],
            num_reports=num_reports,
            looked_up=looked_up,
            threshold=threshold,
        )


def false_free_threshold(std: float, looked_up: int) -> float:
    """Return T at which noise alone publishes anything in one of `FALSE_ONCE_IN` windows, at most.

    By the union bound over all values that are looked up, on normal tails of standard deviation
    ``std``, that of the estimate of a value that no device sent.
    """
    return std * float(ndtri(1 - 1 / (FALSE_ONCE_IN * max(looked_up, 1))))


def standard_errors(oracle: FrequencyOracle, estimate: Floats, num_reports: int) -> Floats:
    """Return ``(c,) float64``: standard errors of estimates, over coins and hash functions.

    What other frequent values add in a sketch is taken at their estimates, where these lie above
    four standard deviations of the noise.
    """
    held = np.clip(estimate, 0, num_reports)
    variance = oracle.variance(held, num_reports)
    if isinstance(oracle, SketchOracle):
        noise = math.sqrt(float(oracle.variance(0, num_reports)))
        added = oracle.collision_variance(np.where(held > 4 * noise, held, 0.0))
        variance = variance + added.sum() - added
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


class OracleAggregator(Aggregator):
    """Aggregates reports of one oracle over a domain that the server knows."""

    def __init__(
        self, form: OracleRecords, *, threshold: float | None, watched: Sequence[int]
    ) -> None:
        self.oracle, self.threshold = form.oracle, threshold
        self.watched = np.asarray(watched, dtype=np.int64)
        self._form = form
        self._window = sums_of(form.oracle)
        self._support = np.zeros(form.domain_size, dtype=np.int64)
        self._num_reports = 0

    def add(self, batch: Batch) -> None:
        self._window.add(self._form.as_reports(batch.reports))

    def add_sums(self, aggregate: Aggregate) -> None:
        self._window.add_aggregate(aggregate.tally, aggregate.num_reports)

    def close(self) -> Publication:
        """Ask about every value of the domain."""
        support, num_reports = self._window.support(), self._window.num_reports
        self._support += support
        self._num_reports += num_reports
        self._window = sums_of(self.oracle)
        return self._publish(support, num_reports)

    def overall(self) -> Publication:
        return self._publish(self._support, self._num_reports)

    def _publish(self, support: Ints, num_reports: int) -> Publication:
        estimate, errors = self._estimated(support, num_reports)
        return self._publication(
            range(len(estimate)),
            estimate,
            errors,
            # The noise of a value that no device sent is that of the least estimates.
            noise=float(errors[np.argmin(estimate)]),
            num_reports=num_reports,
            looked_up=len(estimate),
        )

    def estimates_of_day(self, day: Batch | Aggregate) -> tuple[Floats, Floats]:
        if isinstance(day, Aggregate):
            return self._estimated(self.oracle.support(day.tally, self.watched), day.num_reports)
        reports = self._form.as_reports(day.reports)
        support = self.oracle.support(reports=reports, candidates=self.watched)
        return self._estimated(support, len(reports))

    def estimates_of_all_days(self) -> tuple[Floats, Floats]:
        return self._estimated(self._support[self.watched], self._num_reports)

    def state(self) -> Arrays:
        return {
            **within("window", self._window.state()),
            "support": self._support,
            "num_reports": np.array(self._num_reports),
        }

    def restore(self, state: Arrays) -> None:
        self._window.restore(part("window", state))
        self._support, self._num_reports = state["support"].copy(), int(state["num_reports"])


class FragmentAggregator(Aggregator):
    """Aggregates SFP's records: finds words, and counts them in the sketch of whole words.

    Earlier windows may say something of words that a later one finds, too: sums of the reports of
    whole words stay over all windows, those of fragments end with theirs.
    """

    def __init__(
        self,
        form: FragmentRecords,
        protocol: Sfp,
        *,
        threshold: float | None,
        watched: Sequence[str],
    ) -> None:
        self._question: Question = form.question
        self.oracle, self.threshold = form.question.channel.words, threshold
        self.watched = self._keys(watched)
        self._protocol = protocol
        self._all_words = sums_of(self.oracle)
        self._found: list[str] = []
        self._looked_up = 0
        self._clear()

    def add(self, batch: Batch) -> None:
        positions, words, fragments = self._split(batch)
        self._words.add(words)
        self._all_words.add(words)
        for position, sums in enumerate(self._fragments):
            sums.add(fragments[positions == position])
        self._positions += np.bincount(positions, minlength=len(self._positions))

    def add_sums(self, aggregate: Aggregate) -> None:
        raise TypeError("Records of two reports cross one by one.")

    def close(self) -> Publication:
        """Put words together from frequent fragments, and look them up."""
        num_reports = self._words.num_reports
        sums = [each.aggregate() for each in (self._words, *self._fragments)]
        tally = np.concatenate([*sums, self._positions])
        aggregate = Aggregate(tally=tally, num_reports=num_reports, num_clients=num_reports)
        found: list[str] = []
        looked_up = 0
        if num_reports:
            protocol = self._protocol
            state = protocol.finish_round(protocol.initialize(), self._question, aggregate)
            found = list(protocol.discoveries(state).words)
            looked_up = state.history[0].num_candidates
        earlier = set(self._found)
        self._found += [word for word in found if word not in earlier]
        self._looked_up += looked_up
        publication = self._publish(found, self._words, looked_up)
        self._clear()
        return publication

    def overall(self) -> Publication:
        return self._publish(self._found, self._all_words, self._looked_up)

    def _publish(self, words: Sequence[str], sums: ReportSums, looked_up: int) -> Publication:
        """Return what the sketch of whole words says of some, with its noise as it shows it.

        That noise includes collisions with frequent words that nobody looked up.
        """
        num_reports = sums.num_reports
        estimate = self.oracle.estimate(sums.support(self._keys(words)), num_reports)
        noise = Noise.of_aggregate(self._question.channel.words, num_reports, sums.aggregate())
        return self._publication(
            words,
            estimate,
            np.sqrt(noise.variance(estimate)),
            noise=noise.std,
            num_reports=num_reports,
            looked_up=looked_up,
        )

    def estimates_of_day(self, day: Batch | Aggregate) -> tuple[Floats, Floats]:
        assert isinstance(day, Batch)
        _, words, _ = self._split(day)
        support = self.oracle.support(reports=words, candidates=self.watched)
        return self._estimated(support, len(words))

    def estimates_of_all_days(self) -> tuple[Floats, Floats]:
        return self._estimated(self._all_words.support(self.watched), self._all_words.num_reports)

    def state(self) -> Arrays:
        found = json.dumps(self._found).encode()
        state = {
            "positions": self._positions,
            "found": np.frombuffer(found, dtype=np.uint8),
            "looked_up": np.array(self._looked_up),
        }
        for name, sums in self._sums():
            state |= within(name, sums.state())
        return state

    def restore(self, state: Arrays) -> None:
        for name, sums in self._sums():
            sums.restore(part(name, state))
        self._positions = state["positions"].copy()
        self._found = json.loads(state["found"].tobytes())
        self._looked_up = int(state["looked_up"])

    def _sums(self) -> Iterator[tuple[str, ReportSums]]:
        """Yield all sums of reports with a name each."""
        yield from (("words", self._words), ("all_words", self._all_words))
        yield from ((f"fragments{place}", sums) for place, sums in enumerate(self._fragments))

    def _clear(self) -> None:
        positions = self._question.channel.puzzle.num_positions
        self._words = sums_of(self.oracle)
        self._fragments = [sums_of(self._question.channel.fragments) for _ in range(positions)]
        self._positions = np.zeros(positions, dtype=np.int64)

    def _split(self, batch: Batch) -> tuple[Ints, Ints, Ints]:
        """Return positions, reports of words, reports of fragments."""
        zero = np.zeros(1, dtype=np.int64)
        width = self.oracle.privatize(zero, rng=np.random.default_rng(0)).size
        reports = batch.reports
        return reports[:, 0], reports[:, 1 : 1 + width], reports[:, 1 + width :]

    def _keys(self, words: Sequence[str]) -> Ints:
        codes = self._question.alphabet.encode(
            list(words), width=self._question.channel.puzzle.length
        )
        return np.asarray(self._question.names.keys_of(codes))
