"""Approximate k-anonymity of a top-eta selection over Subset Selection votes.

Sun et al. (2024), Definition 3 and Lemma 1: a layer is alpha-approximately k-anonymous if a value
that contributes rarely enough is kept with probability at most 1 - alpha. A value held k times gets
f(k) = Bin(k, p) + Bin(n - k, q) votes, and is kept only if that reaches tau, the eta-th largest
vote of a lower bound on everybody else's votes. Two lower bounds:

* ``lemma``: Lemma 1 as printed. Every report gives a uniform subset of d - 2 values.
* ``tight`` (default): the printed coupling draws a client's own value independently of the value
  in question, which Subset Selection does not; the corrected one has subsets of random size. Given
  that a report contains the value in question (b = 1) or not (b = 0), it contains its client's own
  value with probability p1 = p (d - 1) / ((s - 1) q) or p0 = p (1 - (d - 1) / (s - 1)) / (1 - q).
  Taking the own value out of some reports makes the rest uniform: the subset has size d - b with
  probability (1 - p_b) + x_b, else d - b - 1, where x0 = (1 - p0) d / (s - 1 - d) and
  x1 = (1 - p1)(d - 1) / (s - d). The value in question and the dummy are left out, so tau is the
  eta-th largest of s - 2 votes.

In both, votes of different values are taken as independent, which is an approximation: against
simulation Pr(f(k) >= tau) was within 0.002. k counts contributions in one layer; a client
contributes a value at most once, so it also counts clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial

import numpy as np

from fedhh.accounting.bounds.selection import Selection, paper_subset_size
from fedhh.accounting.bounds.shuffle_bound import check_num_reports
from fedhh.accounting.guarantees import AnonymityGuarantee, NotApplicable, PrivacyReport
from fedhh.accounting.sources import SUN_ANONYMITY
from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import bernstein, lower_tail, pmf, upper_tail
from fedhh.privacy_loss.convolution import convolve
from fedhh.privacy_loss.search import smallest_true
from fedhh.validation import InputError, require_at_least, require_choice, require_inside

VARIANTS = ("tight", "lemma")

THEOREMS = {
    "tight": f"{SUN_ANONYMITY}, with a corrected coupling",
    "lemma": f"{SUN_ANONYMITY}, as printed",
}
ASSUMPTIONS = "votes of different values are independent (approximation, within .002 of truth)"


@dataclass(frozen=True, kw_only=True)
class LayerAnonymity(Selection):
    """How likely one layer keeps a value that few contribute.

    Attributes:
        num_kept: eta, candidates that the layer keeps.
        num_reports: n, dummies included.
        variant: "tight" or "lemma".
    """

    num_kept: int
    num_reports: int
    variant: str = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_num_reports(self.num_reports)
        require_choice(VARIANTS, variant=self.variant)
        require_at_least(1, num_kept=self.num_kept)

    @property
    def decides(self) -> bool:
        """Whether the layer drops any candidate: there are s - 1."""
        return self.num_kept < self.domain_size - 1

    @property
    def mean_subset_size(self) -> float:
        """Mean size m of the subsets that bound everybody else's votes from below."""
        s, d = self.domain_size, self.subset_size
        if self.variant == "lemma":
            return float(d - 2)
        p, q = self.p, self.q
        own_if_absent = p * (1 - (d - 1) / (s - 1)) / (1 - q)
        own_if_present = p * (d - 1) / ((s - 1) * q)
        # For d = s - 1 the corrections divide by zero where nothing is left to correct.
        fix_absent = (1 - own_if_absent) * d / (s - 1 - d) if d < s - 1 else 0.0
        fix_present = (1 - own_if_present) * (d - 1) / (s - d)
        if_absent = d - max(0.0, own_if_absent - fix_absent)
        if_present = d - 1 - max(0.0, own_if_present - fix_present)
        return (1 - q) * if_absent + q * if_present

    def probability_kept(self, count: int) -> float | NotApplicable:
        """Return Pr(f(count) >= tau), an upper bound on being kept when held ``count`` times.

        Returns:
            In [0, 1]; NotApplicable if the layer decides nothing or, for "lemma", if d <= 2.
        """
        require_at_least(0, count=count)
        if count > self.num_reports:
            raise InputError(
                f"Expected count <= num_reports={self.num_reports}, got count={count}."
            )
        return self.not_applicable or self._probability_kept(count)

    @property
    def not_applicable(self) -> NotApplicable | None:
        """Why the lemma says nothing about this layer; None if it does."""
        if not self.decides:
            return NotApplicable(
                f"the layer decides nothing: it keeps {self.num_kept} of "
                f"{self.domain_size - 1} candidates"
            )
        if self.variant == "lemma" and self.subset_size <= 2:
            return NotApplicable(
                f"Lemma 1 needs subsets of d - 2 >= 1 values, got d={self.subset_size}"
            )
        return None

    @cached_property
    def _band(self) -> tuple[int, Floats]:
        """The counts at which P(tau <= count) is neither 0 nor 1: the first, and the values."""
        low = self._first_count_with(1e-15)
        high = self._first_count_with(1 - 1e-15)
        return low, self._threshold_at_most(np.arange(low, high + 1, dtype=np.float64))

    def _first_count_with(self, probability: float) -> int:
        return smallest_true(
            lambda count: bool(self._threshold_at_most(np.array([float(count)]))[0] >= probability),
            low=0,
            high=self.num_reports,
        )

    def _threshold_at_most(self, counts: Floats) -> Floats:
        """Return P(tau <= count): fewer than eta of the other votes exceed the count."""
        others = self.domain_size - (2 if self.variant == "tight" else 1)
        share = self.mean_subset_size / (self.domain_size - 1)
        exceeds = upper_tail(counts + 1, self.num_reports, share)
        return lower_tail(self.num_kept - 1, others, exceeds)

    def _probability_kept(self, count: int) -> float:
        p, q = self.p, self.q
        first_held, held = _pmf_window(count, p)
        first_other, other = _pmf_window(self.num_reports - count, q)
        votes = convolve(held, other)
        start, kept = self._band
        index = first_held + first_other + np.arange(votes.size) - start
        inside = kept[np.clip(index, 0, kept.size - 1)]
        certain = np.where(index < 0, 0.0, np.where(index >= kept.size, 1.0, inside))
        # Not a dot product: BLAS starts threads for one, which cost more than the sum.
        return float(min(1.0, np.sum(votes * certain)))


def _pmf_window(trials: int, p: float) -> tuple[int, Floats]:
    """Return the smallest count that matters, and the probabilities from there on."""
    if trials == 0:
        return 0, np.ones(1)
    reach = bernstein(trials * p * (1 - p), 35.0)
    low = max(0, int(trials * p - reach))
    high = min(trials, int(trials * p + reach) + 1)
    return low, pmf(np.arange(low, high + 1, dtype=np.float64), trials, p)


def probability_surfacing(layers: Sequence[LayerAnonymity], count: int) -> float:
    """Return the probability that one of the layers keeps a value held ``count`` times in each.

    Args:
        layers: The layers of different passes in which a value may surface, all deciding.
        count: Contributions in each of the layers.
    """
    missed = 1.0
    for layer in layers:
        missed *= 1.0 - layer._probability_kept(min(count, layer.num_reports))
    return 1.0 - missed


def anonymity(layers: Sequence[LayerAnonymity], *, alpha: float) -> AnonymityGuarantee:
    """Return the largest k such that a value held k times surfaces with probability <= 1 - alpha.

    Args:
        layers: One layer, or the layers of several passes in which the same value may surface:
            then the probabilities combine to 1 - product of (1 - Pr).
        alpha: In (0, 1).

    Returns:
        A guarantee whose k is NotApplicable if one of the layers decides nothing (or d <= 2 for
        "lemma"), and None if even a value that no client holds surfaces more often.

    >>> gboard = LayerAnonymity(local_epsilon=10.0, domain_size=1_000_001, subset_size=46,
    ...                         num_kept=10_000, num_reports=30_000_000)
    >>> anonymity([gboard], alpha=0.95).k, anonymity([gboard, gboard], alpha=0.95).k
    (49, 26)
    """
    require_inside(0, 1, alpha=alpha)
    require_at_least(1, num_layers=len(layers))
    k, probability = _largest_count(tuple(layers), alpha)
    variant = layers[0].variant
    return AnonymityGuarantee(
        k=k,
        alpha=alpha,
        variant=variant,
        probability=probability,
        theorem=THEOREMS[variant],
        assumptions=ASSUMPTIONS,
    )


@lru_cache(maxsize=1024)
def _largest_count(
    layers: tuple[LayerAnonymity, ...], alpha: float
) -> tuple[int | NotApplicable | None, float | None]:
    """Return k and its probability; layers of a run, and of a sweep's runs, are often alike."""
    missing = next((layer.not_applicable for layer in layers if layer.not_applicable), None)
    if missing is not None:
        return missing, None
    surfacing = cache(partial(probability_surfacing, layers))
    if surfacing(0) > 1 - alpha:
        return None, surfacing(0)
    most = min(layer.num_reports for layer in layers)
    k = smallest_true(lambda count: count > most or surfacing(count) > 1 - alpha, low=1) - 1
    return k, surfacing(k)


def account_anonymity(
    *,
    local_epsilon: float,
    num_reports: int,
    eta_max: int,
    alphabet_size: int,
    alpha: float = 0.95,
    passes: int = 1,
) -> PrivacyReport:
    """Return approximate k-anonymity of a full layer of Subset Selection, by both variants.

    Unit: an item. Sun et al. (2024), Lemma 1, "lemma" as printed and "tight" corrected; the subset
    size is theirs.

    Args:
        local_epsilon: Privacy of one report.
        num_reports: Reports in the layer, dummies included.
        eta_max: Prefixes that the layer keeps, and extends by each symbol.
        alphabet_size: Symbols, the end symbol included.
        alpha: Probability that a rare word stays unseen, in (0, 1).
        passes: Passes in which a word may surface.
    """
    require_at_least(1, eta_max=eta_max, alphabet_size=alphabet_size, passes=passes)
    domain_size = eta_max * alphabet_size + 1
    claims = []
    for variant in reversed(VARIANTS):
        layer = LayerAnonymity(
            local_epsilon=local_epsilon,
            domain_size=domain_size,
            subset_size=paper_subset_size(local_epsilon, domain_size),
            num_kept=eta_max,
            num_reports=num_reports,
            variant=variant,
        )
        claims.append(anonymity([layer] * passes, alpha=alpha))
    return PrivacyReport(
        guarantees=(),
        anonymity=tuple(claims),
        notes=(f"A word may surface in {passes} {'pass' if passes == 1 else 'passes'}.",),
    )
