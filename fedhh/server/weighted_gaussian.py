"""Weighted Gaussian selection in one round, and DP-SIPS, the same in several.

Sources: Gopi et al. (2020), "Differentially private set union", ICML; Swanberg, Desfontaines, Haney
(2023), "DP-SIPS: a simpler, more scalable mechanism for differentially private partition
selection", PoPETs. Proofs: `fedhh.accounting.weighted_gaussian`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.weighted_gaussian import WeightedGaussian, WeightRelease, weight_releases
from fedhh.arrays import Ints
from fedhh.protocol import RunState
from fedhh.questions.question import Messages, Question
from fedhh.server.trusted_aggregator import Released, TrustedAggregator


@dataclass(frozen=True, kw_only=True)
class WeightedSelection(TrustedAggregator):
    """A discovery that publishes words with enough noisy weight.

    A client with k words, at most B, gives 1 / sqrt(k) to each. ``estimate`` is a word's noisy sum
    of weights: less, in expectation, than its contributors where clients have several words. With
    one word per client, it is their noisy number.
    """

    @property
    def rounds(self) -> int:
        """Rounds of a run."""
        return 1

    @property
    def releases(self) -> tuple[WeightRelease, ...]:
        """How each round publishes words."""
        return weight_releases(
            epsilon=float(self.central_epsilon),
            delta=self.delta,
            max_items=self.max_items,
            rounds=self.rounds,
        )

    @property
    def plan(self) -> WeightedGaussian:
        return WeightedGaussian(
            layers=self.planned_rounds(self.rounds),
            participation="every-round" if self.rounds > 1 else "one-round",
            epsilon=float(self.central_epsilon),
            delta=self.delta,
            releases=self.releases,
        )

    def ask(self, planned: PlannedRound, run: RunState) -> Question:
        found = run.found.codes[:, : self.length]
        return self.plain_words(by_size=True, excluded=found if len(found) else None)

    def released(self, planned: PlannedRound, rows: Messages, starts: Ints) -> Released:
        """Return noisy sums of weights, and which of them reach the round's threshold."""
        release = self.releases[planned.layer - 1]
        weights = rows[:, -1] / np.sqrt(rows[:, -2])
        sums = np.add.reduceat(weights, starts) if len(starts) else weights
        noisy = sums + self.noise_of(planned.layer).normal(scale=release.sigma, size=len(sums))
        return Released(
            estimate=noisy,
            is_published=noisy >= release.threshold,
            variance=release.sigma**2,
            z=noisy / release.sigma,
            decision={
                "threshold_estimate": release.threshold,
                "noise_std": release.sigma,
                "kept_by": "estimates",
            },
        )


@dataclass(frozen=True, kw_only=True)
class WeightedGaussianSelection(WeightedSelection):
    """Settings of weighted Gaussian selection, in one round."""

    name: ClassVar[str] = "weighted-gaussian"
    title: ClassVar[str] = "Weighted Gaussian"


@dataclass(frozen=True, kw_only=True)
class DpSips(WeightedSelection):
    """Settings of DP-SIPS: weighted Gaussian selection round after round.

    Each round asks all clients, who leave out what earlier rounds published, so that what is left
    of their words weighs more. The last round has most of the budget.

    Attributes:
        num_rounds: Rounds; each has .3 of the budget of the one after it.
    """

    name: ClassVar[str] = "dp-sips"
    title: ClassVar[str] = "DP-SIPS"

    num_rounds: Annotated[int, Ge(1), Le(10)] = 3

    @property
    def rounds(self) -> int:
        return self.num_rounds
