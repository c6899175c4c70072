"""Aggregate-level sampling: a question's tally drawn from noise-free counts, without reports.

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
from fedhh.questions.base import PrefixQuestion, Question, Tally
from fedhh.questions.blooms import BloomQuestion
from fedhh.questions.cohort import Cohort
from fedhh.questions.sets import HeldSetQuestion
from fedhh.questions.sketches import BlindPrefixQuestion, FragmentQuestion
from fedhh.random import Stream, generator


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseFreeQuestion(Question):
    """Asks workers for a question's noise-free counts in place of its tally; no protocol can ask it.

    Attributes:
        question: The server's question.
    """

    question: Question

    @classmethod
    def of(cls, question: Question, cohort: Cohort) -> Self:
        """Return the question for a question's noise-free counts among some clients."""
        values = {field.name: getattr(question, field.name) for field in fields(Question)}
        return cls(**{**values, "cohort": cohort}, question=question)

    @property
    def tally_size(self) -> int:
        return self.question.tally_size


def can_sample(question: Question) -> bool:
    """Return whether a question's tally can be drawn from its noise-free counts."""
    if type(question) is PrefixQuestion:
        oracle = _oracle(question)
        counts_values = isinstance(oracle, SampledAggregates) and oracle.aggregate_form == "values"
        # Of what a client's reports support together, no joint distribution is known.
        is_known = counts_values or isinstance(oracle, SketchOracle)
        return is_known and question.votes_per_client == "all"
    if isinstance(question, FragmentQuestion):
        return all(
            isinstance(each, SampledAggregates) for each in (question.words, question.fragments)
        )
    if isinstance(question, BlindPrefixQuestion):
        is_sketch = question.prefixes.aggregate_form == "sketch"
        return is_sketch and isinstance(question.prefixes, SampledAggregates)
    if isinstance(question, HeldSetQuestion):
        return isinstance(question.randomizer, SampledAggregates)
    return isinstance(question, BloomQuestion)


def nanoseconds_saved(question: Question) -> float:
    """Return about what sampling the tally of a whole cohort saves, for questions that can be."""
    num_reports = question.cohort.size * question.max_items
    if isinstance(question, FragmentQuestion):
        positions: int = question.puzzle.num_positions
        fragments = sampling.nanoseconds_saved(question.fragments, num_reports // positions)
        return sampling.nanoseconds_saved(question.words, num_reports) + positions * fragments
    if isinstance(question, BloomQuestion):
        return question.reports.nanoseconds_saved(num_reports)
    return sampling.nanoseconds_saved(_oracle(question), num_reports)


def sample_tally(question: Question, counts: Tally, *, seed: int) -> Tally:
    """Return a question's tally, drawn from its noise-free counts with the exact joint distribution.

    It is drawn in one place: that takes a second where all reports take a minute of all workers.

    Args:
        question: One of those that `can_sample` accepts.
        counts: ``(question.tally_size,) int64``: noise-free counts of all clients.
        seed: The run's seed.
    """
    parts = _sample_parts(question, counts, seed)
    return np.concatenate(list(parts))


def _sample_parts(question: Question, counts: Tally, seed: int) -> Iterator[Tally]:
    def rng(part: int) -> np.random.Generator:
        return generator(seed, Stream.TALLY, question.pass_index, question.layer, part)

    if isinstance(question, FragmentQuestion):
        words, fragments, records = question.split(counts)
        yield _sample(question.words, words, rng(0))
        for position, part in enumerate(fragments):
            yield _sample(question.fragments, part, rng(1 + position))
        yield records
    elif isinstance(question, BloomQuestion):
        yield question.reports.sample_aggregate(counts, rng=rng(0))
    elif isinstance(question, BlindPrefixQuestion | HeldSetQuestion):
        yield _sample(_oracle(question), counts, rng(0))
    else:
        yield _sample_support(_oracle(question), counts, rng(0))


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


def _oracle(question: Question) -> FrequencyOracle:
    if isinstance(question, BlindPrefixQuestion):
        return question.prefixes
    if isinstance(question, HeldSetQuestion):
        return question.randomizer
    assert isinstance(question, PrefixQuestion)
    return make_oracle(question.oracle, question.domain_size)
