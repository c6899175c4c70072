"""Aggregate-level sampling: a query's tally drawn from noise-free counts, without reports.

A simulator does this, never a device: reports one by one, each with its own noise, are what the
privacy of the clients rests on. Noise-free counts are histograms of what clients hold; they stay on
this side of the trust boundary, and only the tally that is drawn from them goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from fedhh.clients.answers.matching import Values
from fedhh.oracles import FrequencyOracle, make_oracle, sampling
from fedhh.oracles.sampling import SampledAggregates
from fedhh.oracles.sketch import SketchOracle, sample_sketch
from fedhh.queries.base import PrefixQuery, Query, Tally
from fedhh.queries.blooms import BloomQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.sets import HeldSetQuery
from fedhh.queries.sketches import BlindPrefixQuery, FragmentQuery
from fedhh.random import Stream, generator


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseFreeQuery(Query):
    """Asks workers for a query's noise-free counts in place of its tally; no protocol can ask it.

    Attributes:
        query: The server's query.
    """

    query: Query

    @classmethod
    def of(cls, query: Query, cohort: Cohort) -> Self:
        """Return the question for a query's noise-free counts among some clients."""
        values = {field.name: getattr(query, field.name) for field in fields(Query)}
        return cls(**{**values, "cohort": cohort}, query=query)

    @property
    def tally_size(self) -> int:
        return self.query.tally_size


def can_sample(query: Query) -> bool:
    """Return whether a query's tally can be drawn from its noise-free counts."""
    if type(query) is PrefixQuery:
        oracle = _oracle(query)
        counts_values = isinstance(oracle, SampledAggregates) and oracle.aggregate_form == "values"
        # Of what a client's reports support together, no joint distribution is known.
        is_known = counts_values or isinstance(oracle, SketchOracle)
        return is_known and query.votes_per_client == "all"
    if isinstance(query, FragmentQuery):
        return all(isinstance(each, SampledAggregates) for each in (query.words, query.fragments))
    if isinstance(query, BlindPrefixQuery):
        is_sketch = query.prefixes.aggregate_form == "sketch"
        return is_sketch and isinstance(query.prefixes, SampledAggregates)
    if isinstance(query, HeldSetQuery):
        return isinstance(query.randomizer, SampledAggregates)
    return isinstance(query, BloomQuery)


def nanoseconds_saved(query: Query) -> float:
    """Return about what sampling the tally of a whole cohort saves, for queries that can be."""
    num_reports = query.cohort.size * query.max_items
    if isinstance(query, FragmentQuery):
        positions: int = query.puzzle.num_positions
        fragments = sampling.nanoseconds_saved(query.fragments, num_reports // positions)
        return sampling.nanoseconds_saved(query.words, num_reports) + positions * fragments
    if isinstance(query, BloomQuery):
        return query.reports.nanoseconds_saved(num_reports)
    return sampling.nanoseconds_saved(_oracle(query), num_reports)


def sample_tally(query: Query, counts: Tally, *, seed: int) -> Tally:
    """Return a query's tally, drawn from its noise-free counts with the exact joint distribution.

    It is drawn in one place: that takes a second where all reports take a minute of all workers.

    Args:
        query: One of those that `can_sample` accepts.
        counts: ``(query.tally_size,) int64``: noise-free counts of all clients.
        seed: The run's seed.
    """
    parts = _sample_parts(query, counts, seed)
    return np.concatenate(list(parts))


def _sample_parts(query: Query, counts: Tally, seed: int) -> Iterator[Tally]:
    def rng(part: int) -> np.random.Generator:
        return generator(seed, Stream.TALLY, query.pass_index, query.layer, part)

    if isinstance(query, FragmentQuery):
        words, fragments, records = query.split(counts)
        yield _sample(query.words, words, rng(0))
        for position, part in enumerate(fragments):
            yield _sample(query.fragments, part, rng(1 + position))
        yield records
    elif isinstance(query, BloomQuery):
        yield query.reports.sample_aggregate(counts, rng=rng(0))
    elif isinstance(query, BlindPrefixQuery | HeldSetQuery):
        yield _sample(_oracle(query), counts, rng(0))
    else:
        yield _sample_support(_oracle(query), counts, rng(0))


def add_noise_free_counts(
    oracle: FrequencyOracle, values: Values, *, rng: np.random.Generator, out: Tally
) -> None:
    """Add the noise-free counts of some clients to ``(aggregate_size,) int64``, not their reports.

    The oracle is one of those that `can_sample` accepts.
    """
    assert isinstance(oracle, SampledAggregates)
    oracle.noise_free_counts(values, rng=rng, out=out)


def _sample(oracle: FrequencyOracle, counts: Tally, rng: np.random.Generator) -> Tally:
    assert isinstance(oracle, SampledAggregates)
    return oracle.sample_aggregate(counts, rng=rng)


def _sample_support(oracle: FrequencyOracle, counts: Tally, rng: np.random.Generator) -> Tally:
    """Return every value's support, from how many clients hold each: ``(domain_size,)`` both."""
    if isinstance(oracle, SketchOracle):
        return oracle.support(sample_sketch(oracle, counts, rng=rng))
    return _sample(oracle, counts, rng)


def _oracle(query: Query) -> FrequencyOracle:
    if isinstance(query, BlindPrefixQuery):
        return query.prefixes
    if isinstance(query, HeldSetQuery):
        return query.randomizer
    assert isinstance(query, PrefixQuery)
    return make_oracle(query.oracle, query.domain_size)
