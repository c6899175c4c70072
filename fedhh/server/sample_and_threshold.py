"""Sample and threshold: one round of plain words, privacy from a sample and a threshold, no noise.

Source: Bharadwaj, Cormode (2022), "Sample-and-threshold differential privacy: histograms and
applications", AISTATS. Proof, exact delta, choice of the settings:
`fedhh.accounting.sample_and_threshold`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.sample_and_threshold import SampledCounts, SampledHistogram, sampled_counts
from fedhh.arrays import Ints
from fedhh.protocol import RunState
from fedhh.questions.question import Messages, Question
from fedhh.server.trusted_aggregator import Released, TrustedAggregator
from fedhh.settings import AUTO, CountOrAuto, Share
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class SampleAndThreshold(TrustedAggregator):
    """Settings of sample and threshold.

    Each client sends each of its up to B words with probability ``sample_rate``, all independently.
    Words of at least ``threshold`` senders are published, with their exact number, of which the
    estimate follows. A word is published only if somebody holds it: precision is 1 by construction.

    Attributes:
        sample_rate: p. "auto" together with the threshold: the two that publish words with the
            fewest contributors, at ``central_epsilon`` and ``delta``. Given alone, the threshold is
            the least one; given both, they alone say what the run can claim.
        threshold: tau, senders from which a word is published.
    """

    name: ClassVar[str] = "sample-and-threshold"
    title: ClassVar[str] = "Sample and threshold"

    sample_rate: Share | Literal["auto"] = AUTO
    threshold: CountOrAuto = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold != AUTO and self.sample_rate == AUTO:
            raise InputError(
                'Expected threshold="auto" with sample_rate="auto", got '
                f"threshold={self.threshold}; give both, or sample_rate alone."
            )

    @property
    def counts(self) -> SampledCounts:
        """Rate and threshold, once they are decided."""
        rate = None if self.sample_rate == AUTO else float(self.sample_rate)
        if rate is not None and self.threshold != AUTO:
            return SampledCounts(rate=rate, threshold=self.threshold)
        return sampled_counts(
            epsilon=float(self.central_epsilon),
            delta=self.delta,
            max_items=self.max_items,
            rate=rate,
        )

    @property
    def plan(self) -> SampledHistogram:
        counts = self.counts
        return SampledHistogram(
            layers=self.planned_rounds(),
            epsilon=counts.epsilon_of_replacement(self.max_items, delta=self.delta),
            delta=self.delta,
            counts=counts,
        )

    @property
    def claiming(self) -> tuple[str, ...]:
        return ("threshold",)

    def resolve(self, num_clients: int) -> dict[str, Any]:
        if AUTO in {self.sample_rate, self.threshold}:
            counts = self.counts
            return {"sample_rate": counts.rate, "threshold": counts.threshold}
        return super().resolve(num_clients)

    def ask(self, planned: PlannedRound, run: RunState) -> Question:
        return self.plain_words(inclusion=self.counts.rate)

    def released(self, planned: PlannedRound, rows: Messages, starts: Ints) -> Released:
        """Return senders over rate, and which words enough clients sent."""
        counts, senders = self.counts, rows[:, -1]
        estimate = senders / counts.rate
        return Released(
            estimate=estimate,
            is_published=senders >= counts.threshold,
            variance=estimate * (1 - counts.rate) / counts.rate,
            z=np.full(len(senders), math.inf),
            decision={"threshold": counts.threshold},
        )
