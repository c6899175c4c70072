"""A histogram of words with noise and a threshold, as in Gboard's trusted execution environment.

The rule is Google's, published in the aggregation core of TensorFlow Federated (thresholding
histograms; formulas only). A client contributes at most l0 distinct words, 1 to the count of each,
so that a replacement moves the counts by L1 = 2 l0 and L2 = sqrt(2 l0). With d' such that
1 - (1 - d')**(2 l0) is delta, or half of it where the noise needs the other half:

* Laplace noise has scale b = L1 / epsilon, the threshold is 1 - b ln(2 d');
* Gaussian noise is the least with (epsilon, delta / 2), the threshold 1 + sigma Phi^-1(1 - d');
* "auto" takes what has the smaller variance.

**Theorem.** It is (epsilon, delta)-private for a user, neighbors being replace-one of all its data.

*Proof.* By (1) of `fedhh.accounting.trusted_aggregator`: a word of U has count 1 and is published
with chance d' at most, independently, and U has at most l0 words, so r = 1 - (1 - d')**l0, which is
1 - sqrt(1 - delta), or 1 - sqrt(1 - delta / 2). Noise on the other counts, which move by L1 and L2
at most, is (epsilon, 0)-private, or (epsilon, delta / 2)-private. So delta(epsilon) is at most
1 - sqrt(1 - delta) < delta, or at most delta / 2 + 1 - sqrt(1 - delta / 2) < delta. []

The rule charges 2 l0 words, where a replacement has at most l0 on either side, and half of delta,
or a quarter, stays unused: `proven_delta`. All of delta on the l0 words of one side would do for
Laplace noise; that threshold is lower by b ln 2 (with l0 = 1: 142.795 in place of 147.20 at (.315,
1e-10)).

**One contribution.** If one contributed word is replaced, U and U' have a word each at
most, r is d', L1 is 2 and L2 sqrt(2): Laplace noise is (epsilon / l0, d')-private.

**With least contributors.** A word is selected by its number of contributors, and each selected
word gets its noisy count, without a threshold. Of n contributors, the chance is that of truncated
geometric selection for n - (k - 1): a word with fewer than k is never published. Selection and
noise have half of epsilon each. Laplace noise needs no delta, so selection has all of it; Gaussian
noise has half. Each word's selection is (epsilon / (4 l0), d')-private for one contributor more or
less, with 1 - (1 - d')**(2 l0) the delta of selection.

**Theorem.** This, too, is (epsilon, delta)-private for a user under replace-one.

*Proof.* A replacement takes one contributor from l0 words at most and gives one to l0 words at
most. Selections are independent, and n to n - (k - 1), cut at 0, maps numbers that differ by one to
such numbers, or to equal ones. An (e, d')-private bit is, but for a chance d' of showing
everything, e-private (Kairouz, Oh, Viswanath 2015, Theorem 3.3's dominating pair), so 2 l0 of them
are (2 l0 e, 1 - (1 - d')**(2 l0))-private: (epsilon / 2, delta of selection). Given which words are
selected, noise on their counts is private with the rest, whatever they are; basic composition adds
up. []

Both sides of the replacement cost delta here: a word of S may be published only before, and a word
that S' makes certain may be dropped only before. So nothing is left over as in the first rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from scipy.special import ndtr

from fedhh.accounting.gaussian_noise import (
    chance_of_each,
    gaussian_delta,
    gaussian_mu,
    quantile_of_any,
)
from fedhh.accounting.truncated_geometric import TruncatedGeometric
from fedhh.accounting.trusted_aggregator import TrustedAggregatorPlan
from fedhh.privacy_loss.search import smallest_epsilon
from fedhh.validation import require_at_least, require_choice, require_inside, require_positive

NoiseKind = Literal["laplace", "gaussian"]

NOISES = ("auto", "laplace", "gaussian")


@dataclass(frozen=True, kw_only=True)
class HistogramRelease:
    """How counts of words are published.

    Attributes:
        epsilon: Central privacy of a user.
        delta: Its delta.
        max_items: l0, words that a client contributes at most.
        noise: "laplace" or "gaussian".
        scale: b of Laplace noise, or the standard deviation of Gaussian noise.
        threshold: Noisy count from which a word is published; minus infinity where words are
            selected by their contributors.
        min_contributors: k, contributors that a word needs; 0 for the threshold.
    """

    epsilon: float
    delta: float
    max_items: int
    noise: NoiseKind
    scale: float
    threshold: float
    min_contributors: int = 0

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return self.scale * (math.sqrt(2) if self.noise == "laplace" else 1.0)

    @property
    def selection(self) -> TruncatedGeometric | None:
        """What selects words by their contributors, if anything does."""
        if not self.min_contributors:
            return None
        return TruncatedGeometric(
            epsilon=self.epsilon / (4 * self.max_items),
            delta=chance_of_each(self._selection_delta, 2 * self.max_items),
        )

    @property
    def proven_delta(self) -> float:
        """The delta at ``epsilon`` that is proven for a user; at most ``delta``."""
        if self.min_contributors:
            return self.delta
        return self._delta_of_replacement(self.max_items, self.epsilon)

    def epsilon_of_replacement(self, items: int) -> float:
        """Return an epsilon at ``delta`` if so many contributed words of a client are replaced.

        Args:
            items: From 1 to ``max_items``.
        """
        if items == self.max_items:
            return self.epsilon
        selected = self.epsilon / 2 * items / self.max_items if self.min_contributors else 0.0
        if self.noise == "laplace":
            return selected + 2 * items / self.scale
        spent = 0.0
        if self.min_contributors:
            spent = 1 - (1 - self._selection_delta) ** (items / self.max_items)
        noise_epsilon = self.epsilon / 2 if self.min_contributors else self.epsilon
        return selected + smallest_epsilon(
            lambda epsilon: (
                gaussian_delta(math.sqrt(2 * items) / self.scale, epsilon)
                if self.min_contributors
                else self._delta_of_replacement(items, epsilon)
            ),
            delta=self.delta - spent,
            upper=noise_epsilon,
        )

    def release_chance(self, contributors: int) -> float:
        """Return the chance that a word of so many contributors is published."""
        if contributors < 1:
            return 0.0
        selection = self.selection
        if selection is not None:
            return selection.chance(contributors - self.min_contributors + 1)
        return self.noise_above(self.threshold - contributors)

    def noise_above(self, value: float) -> float:
        """Return the chance that the noise is at least a value."""
        if self.noise == "gaussian":
            return float(ndtr(-value / self.scale))
        tail = math.exp(-abs(value) / self.scale) / 2
        return tail if value >= 0 else 1 - tail

    @property
    def _selection_delta(self) -> float:
        return self.delta if self.noise == "laplace" else self.delta / 2

    def _delta_of_replacement(self, items: int, epsilon: float) -> float:
        """Return delta by (1), with the threshold, at an epsilon that Laplace noise has."""
        shown = -math.expm1(items * math.log1p(-self.noise_above(self.threshold - 1)))
        if self.noise == "laplace":
            return shown
        return shown + (1 - shown) * gaussian_delta(math.sqrt(2 * items) / self.scale, epsilon)


@lru_cache(maxsize=256)
def histogram_release(
    *,
    epsilon: float,
    delta: float,
    max_items: int,
    noise: str = "auto",
    min_contributors: int = 0,
) -> HistogramRelease:
    """Return how to publish counts of words with a privacy of a user: the module has the proof.

    Args:
        epsilon: Central privacy of a user under replace-one, above 0.
        delta: Above 0 and below 1.
        max_items: l0, words that a client contributes at most.
        noise: "auto", "laplace" or "gaussian".
        min_contributors: k, contributors that a word needs; 0 for noise and a threshold.

    Raises:
        InputError: A value is out of range.

    >>> release = histogram_release(epsilon=1.0987, delta=1e-8, max_items=1)
    >>> release.noise, round(release.std, 2), round(release.threshold, 2)
    ('laplace', 2.57, 34.53)
    """
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    require_at_least(1, max_items=max_items)
    require_at_least(0, min_contributors=min_contributors)
    require_choice(NOISES, noise=noise)
    kinds: tuple[NoiseKind, ...] = ("laplace", "gaussian")
    found = [
        _release(epsilon, delta, max_items, kind, min_contributors)
        for kind in kinds
        if noise in ("auto", kind)
    ]
    return min(found, key=lambda each: each.std)


def _release(
    epsilon: float, delta: float, max_items: int, noise: NoiseKind, min_contributors: int
) -> HistogramRelease:
    of_noise = epsilon / 2 if min_contributors else epsilon
    if noise == "laplace":
        scale = 2 * max_items / of_noise
        threshold = 1 - scale * math.log(2 * chance_of_each(delta, 2 * max_items))
    else:
        scale = math.sqrt(2 * max_items) / gaussian_mu(epsilon=of_noise, delta=delta / 2)
        threshold = 1 + scale * quantile_of_any(delta / 2, 2 * max_items)
    return HistogramRelease(
        epsilon=epsilon,
        delta=delta,
        max_items=max_items,
        noise=noise,
        scale=scale,
        threshold=-math.inf if min_contributors else threshold,
        min_contributors=min_contributors,
    )


@dataclass(frozen=True, kw_only=True)
class NoisyHistogram(TrustedAggregatorPlan):
    """One round of plain words, published with noise: `tee-histogram`.

    Attributes:
        release: How counts are published.
    """

    method: ClassVar[str] = "noisy histogram"
    theorem: ClassVar[str] = (
        "noisy histogram under replace-one; proof in fedhh.accounting.noisy_histogram"
    )

    release: HistogramRelease

    @property
    def item_epsilon(self) -> float:
        return self.release.epsilon_of_replacement(1)

    def release_chance(self, contributors: int) -> float:
        return self.release.release_chance(contributors)
