"""What a query's tally would be without the noise, and the noise drawn on it at once.

A simulator does this, never a device: reports one by one, each with its own noise, are what the
privacy of the clients rests on. Hits are histograms of what clients hold; they stay on this side of
the trust boundary, and only the tally that is drawn from them goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from fedhh.clients.answers.base import Values
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles import FrequencyOracle, make_oracle
from fedhh.oracles.base import SamplesHits, SamplesTally
from fedhh.queries.base import PrefixQuery, Query, Tally
from fedhh.queries.blooms import BloomQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.sets import HeldSetQuery
from fedhh.queries.sketches import BlindPrefixQuery, FragmentQuery
from fedhh.random import Stream, generator


@dataclass(frozen=True, kw_only=True, eq=False)
class HitsQuery(Query):
    """Asks workers for the hits of a query, in place of its tally; no protocol can ask it.

    Attributes:
        query: The server's query.
    """

    query: Query

    @classmethod
    def of(cls, query: Query, cohort: Cohort) -> Self:
        """Return the question for a query's hits among some clients."""
        values = {field.name: getattr(query, field.name) for field in fields(Query)}
        return cls(**{**values, "cohort": cohort}, query=query)

    @property
    def tally_size(self) -> int:
        """Hits have the form of the tally."""
        return self.query.tally_size

    @property
    def local_epsilon(self) -> float:
        """Infinite: these are the clients' values, for the simulator alone."""
        return float("inf")


def can_sample(query: Query) -> bool:
    """Return whether a query's tally has a law that is drawn at once, given its hits."""
    if type(query) is PrefixQuery:
        return isinstance(_oracle(query), SamplesTally)
    if isinstance(query, FragmentQuery):
        return _has_hits(query.words) and _has_hits(query.fragments)
    if isinstance(query, BlindPrefixQuery):
        return query.prefixes.has_fixed_aggregate and _has_hits(query.prefixes)
    if isinstance(query, HeldSetQuery):
        return _has_hits(query.randomizer)
    return isinstance(query, BloomQuery)


def nanoseconds_saved(query: Query) -> float:
    """Return about what sampling the tally of a whole cohort saves, for queries that can be."""
    num_reports = query.cohort.size * query.max_items
    if isinstance(query, FragmentQuery):
        positions: int = query.puzzle.num_positions
        fragments = query.fragments.nanoseconds_saved(num_reports // positions)
        return query.words.nanoseconds_saved(num_reports) + positions * fragments
    if isinstance(query, BloomQuery):
        return query.reports.nanoseconds_saved(num_reports)
    return _oracle(query).nanoseconds_saved(num_reports)


def sample_tally(query: Query, hits: Tally, *, seed: int) -> Tally:
    """Return a query's tally, drawn given its hits with the exact joint law.

    It is drawn in one place: that takes a second where all reports take a minute of all workers.

    Args:
        query: One of those that `can_sample` accepts.
        hits: ``(query.tally_size,) int64``, of all clients.
        seed: The run's seed.
    """
    parts = _sample_parts(query, hits, seed)
    return np.concatenate(list(parts))


def _sample_parts(query: Query, hits: Tally, seed: int) -> Iterator[Tally]:
    def rng(part: int) -> np.random.Generator:
        return generator(seed, Stream.TALLY, query.pass_index, query.layer, part)

    if isinstance(query, FragmentQuery):
        words, fragments, records = query.split(hits)
        yield _sample(query.words, words, rng(0))
        for position, part in enumerate(fragments):
            yield _sample(query.fragments, part, rng(1 + position))
        yield records
    elif isinstance(query, BloomQuery):
        yield query.reports.sample_tally(hits, rng=rng(0))
    elif isinstance(query, BlindPrefixQuery | HeldSetQuery):
        yield _sample(_oracle(query), hits, rng(0))
    else:
        oracle = _oracle(query)
        assert isinstance(oracle, SamplesTally)
        yield oracle.sample_tally(hits, int(hits.sum()), rng=rng(0))


def add_hits(
    oracle: FrequencyOracle, values: Values, *, rng: np.random.Generator, out: Tally
) -> None:
    """Add the hits of some clients to ``(aggregate_size,) int64``, in place of their reports."""
    if isinstance(oracle, SamplesHits):
        oracle.add_hits(values, rng=rng, out=out)
    else:
        count_into(oracle.check_values(values), out)


def _has_hits(oracle: FrequencyOracle) -> bool:
    if oracle.has_fixed_aggregate:
        return isinstance(oracle, SamplesHits)
    return isinstance(oracle, SamplesTally) and oracle.aggregate_size == oracle.domain_size


def _sample(oracle: FrequencyOracle, hits: Tally, rng: np.random.Generator) -> Tally:
    if isinstance(oracle, SamplesHits):
        return oracle.sample_aggregate(hits, rng=rng)
    assert isinstance(oracle, SamplesTally)
    return oracle.sample_tally(hits, int(hits.sum()), rng=rng)


def _oracle(query: Query) -> FrequencyOracle:
    if isinstance(query, BlindPrefixQuery):
        return query.prefixes
    if isinstance(query, HeldSetQuery):
        return query.randomizer
    assert isinstance(query, PrefixQuery)
    return make_oracle(query.oracle, query.domain_size)
