"""One round of plain words to a trusted execution environment, which adds noise: Gboard's way.

Sources: TensorFlow Federated's aggregation core (thresholding histograms), by its published
formulas; Desfontaines, Voss, Gipson, Mandayam (2022), "Differentially private partition selection",
PoPETs, for a minimum of contributors. Proofs: `fedhh.accounting.noisy_histogram`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Le
from scipy.special import ndtri

from fedhh.accounting.noisy_histogram import HistogramRelease, NoisyHistogram, histogram_release
from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Bools, Floats, Ints
from fedhh.questions.question import Messages
from fedhh.server.trusted_aggregator import Released, TrustedAggregator
from fedhh.settings import AUTO


@dataclass(frozen=True, kw_only=True)
class TeeHistogram(TrustedAggregator):
    """Settings of a noisy histogram of whole words, made where clients trust the code.

    Each client sends up to B distinct words, 1 for each. The aggregator adds noise to the count of
    every word that somebody sent, and publishes words with their noisy counts from a threshold on;
    both follow from ``central_epsilon`` and ``delta`` by Google's published rule. With
    ``min_contributors``, words are selected by their number of contributors in place of the
    threshold, and none with fewer is ever published.

    A word is published only if somebody holds it: precision is 1 by construction. Noise is
    continuous, which suits a simulator and no deployment.

    Attributes:
        noise: "laplace", "gaussian", or "auto" for the one with the smaller variance.
        min_contributors: Contributors that a word needs, by truncated geometric selection, which
            takes half of the budget; 0 for the threshold.
    """

    name: ClassVar[str] = "tee-histogram"
    title: ClassVar[str] = "TEE histogram"

    noise: Literal["auto", "laplace", "gaussian"] = "auto"
    min_contributors: Annotated[int, Ge(0), Le(1_000_000)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that a privacy without a selection is refused before anything runs.
        _ = self.release.selection

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        """Return the settings for an epsilon; of an item, "auto" noise is that with less variance.

        Which noise that is depends on what is equal: Laplace noise hides one item of many better.
        """
        if unit == "user" or self.noise != "auto":
            return super().with_central_epsilon(epsilon, unit=unit)
        laplace, gaussian = (
            replace(self, noise=noise).with_central_epsilon(epsilon, unit=unit)
            for noise in ("laplace", "gaussian")
        )
        return min(laplace, gaussian, key=lambda each: each.release.std)

    def resolve(self, num_clients: int) -> dict[str, Any]:
        if self.noise == AUTO:
            return {"noise": self.release.noise}
        return super().resolve(num_clients)

    @property
    def release(self) -> HistogramRelease:
        """How counts are published."""
        return histogram_release(
            epsilon=float(self.central_epsilon),
            delta=self.delta,
            max_items=self.max_items,
            noise=self.noise,
            min_contributors=self.min_contributors,
        )

    @property
    def plan(self) -> NoisyHistogram:
        return NoisyHistogram(
            layers=self.planned_rounds(),
            epsilon=float(self.central_epsilon),
            delta=self.delta,
            release=self.release,
        )

    def released(self, planned: PlannedRound, rows: Messages, starts: Ints) -> Released:
        """Return noisy counts, and which of them are published."""
        release, counts = self.release, rows[:, -1]
        noisy, is_published = publish(release, counts, rng=self.noise_of(planned.layer))
        return Released(
            estimate=noisy,
            is_published=is_published,
            variance=release.std**2,
            z=_z(release, noisy),
            decision={
                "threshold_estimate": 0.0 if release.min_contributors else release.threshold,
                "noise_std": release.std,
                "kept_by": "estimates",
            },
        )


def publish(
    release: HistogramRelease, counts: Ints, *, rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Return ``(c,)`` noisy counts, and which words are published.

    Args:
        release: How.
        counts: ``(c,) int64``: contributors of each word, at least 1.
        rng: Source of the noise and the selection.
    """
    draw = rng.laplace if release.noise == "laplace" else rng.normal
    noisy = counts + draw(scale=release.scale, size=len(counts))
    selection = release.selection
    if selection is None:
        return noisy, noisy >= release.threshold
    beyond = np.clip(counts - release.min_contributors + 1, 0, len(selection.chances) - 1)
    return noisy, rng.random(len(counts)) < selection.chances[beyond]


def _z(release: HistogramRelease, noisy: Floats) -> Floats:
    """Return the normal quantile of the chance that noise alone is below each noisy count."""
    if release.noise == "gaussian":
        return noisy / release.scale
    tails = np.exp(-np.abs(noisy) / release.scale) / 2
    quantiles = -ndtri(np.maximum(tails, np.finfo(np.float64).tiny))
    return np.asarray(np.sign(noisy) * quantiles)
