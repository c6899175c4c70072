"""Audits: lower bounds on epsilon from what code actually does, at a stated confidence.

An audit can refute a privacy claim, never prove one. Sample outputs under two neighboring inputs,
choose an event on one half of the samples, and bound its two probabilities on the other half by
Clopper and Pearson (1934): if P(event | a) - delta exceeds e**epsilon P(event | b), the mechanism
is not (epsilon, delta)-private. Follows Jagielski, Ullman, Oprea (2020), "Auditing differentially
private machine learning", NeurIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.validation import InputError, require_at_least, require_inside

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle, Reports

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

_MOST_THRESHOLDS = 2000


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found.

    Attributes:
        epsilon: Lower bound, at least 0: with probability at least ``confidence`` over the samples
            the mechanism is not (e, delta)-private for any e below it.
        estimate: The same ratio without the confidence bounds; math.inf if the event was never
            seen under the second input.
        delta: The delta that was allowed.
        confidence: See epsilon.
        event: The event that was tested.
        num_samples: Samples that tested it, for each input; or guesses that did.
        largest_detectable: What ``epsilon`` would be if the event had happened always under one
            input and never under the other, or all guesses had been right: no larger epsilon can
            be seen in so many samples.
    """

    epsilon: float
    estimate: float
    delta: float
    confidence: float
    event: str
    num_samples: int
    largest_detectable: float


def clopper_pearson(successes: int, trials: int, *, error: float) -> tuple[float, float]:
    """Return a lower and an upper bound on a probability, each wrong with at most ``error``.

    Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
    the binomial", Biometrika 26(4): exact for every number of trials.

    Args:
        successes: From 0 to ``trials``.
        trials: At least 1.
        error: Probability of error of each of the two bounds.
    """
    low = special.betaincinv(successes, trials - successes + 1, error) if successes else 0.0
    high = (
        special.betaincinv(successes + 1, trials - successes, 1 - error)
        if successes < trials
        else 1.0
    )
    return float(low), float(high)


def audit_epsilon(
    samples_a: npt.ArrayLike,
    samples_b: npt.ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.99,
) -> AuditResult:
    """Return a lower bound on epsilon from samples of one number under two neighboring inputs.

    The first half of each sample chooses the event: a threshold, a side (above or below), and
    which input it speaks for. The second half tests it. Samples must be independent, and in an
    order that says nothing.

    Args:
        samples_a: ``(n,)`` test statistics under the first input, n >= 4, no NaN.
        samples_b: ``(m,)`` test statistics under the second input, m >= 4, no NaN.
        delta: Allowed delta, in [0, 1).
        confidence: In (0, 1).

    >>> rng = np.random.default_rng(3)
    >>> bits = rng.random((2, 200_000)) < np.array([[0.75], [0.25]])  # epsilon = ln 3 = 1.0986
    >>> 1.05 < audit_epsilon(*bits).epsilon < 1.0987
    True
    """
    check_levels(delta, confidence)
    a, b = (np.asarray(samples, dtype=np.float64).ravel() for samples in (samples_a, samples_b))
    require_at_least(4, num_samples_a=a.size, num_samples_b=b.size)
    if np.isnan(a).any() or np.isnan(b).any():
        raise InputError("Expected samples without NaN.")
    event = choose_event(a[: a.size // 2], b[: b.size // 2], delta)
    hits, sizes = event.tested(a[a.size // 2 :], b[b.size // 2 :])
    return result_of_event(
        hits=hits, sizes=sizes, delta=delta, confidence=confidence, event=str(event)
    )


def log_ratio(oracle: FrequencyOracle, reports: Reports, value: int, other: int) -> Floats:
    """Return the stated log-likelihood ratio of each report, see `rounded_ratio`."""
    return rounded_ratio(oracle.log_prob(reports, value), oracle.log_prob(reports, other))


def rounded_ratio(first: Floats, second: Floats) -> Floats:
    """Return log-likelihood ratios, finite, rounded to 1e-9.

    Rounding keeps reports of equal ratio equal; a report impossible under both values counts 0.
    """
    impossible = np.isneginf(first) & np.isneginf(second)
    with np.errstate(invalid="ignore"):
        ratio = np.where(impossible, 0.0, first - second)
    return np.round(np.clip(ratio, -1e6, 1e6), 9)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that a number may do, likelier under one of two inputs.

    Attributes:
        threshold: What the number is compared with.
        above: Whether the event is a number of at least the threshold, or one below it.
        swapped: Whether it is the second input that it speaks for.
        gain: How good it looked where it was chosen.
    """

    threshold: float
    above: bool
    swapped: bool
    gain: float

    def __str__(self) -> str:
        return (
            f"statistic {'>=' if self.above else '<'} {self.threshold:g}, "
            f"{'second' if self.swapped else 'first'} input over the other"
        )

    def tested(self, a: Floats, b: Floats) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return how often it happened, and among how many: for its input, then the other's."""
        hits = [int(np.count_nonzero((each >= self.threshold) == self.above)) for each in (a, b)]
        sizes = [a.size, b.size]
        if self.swapped:
            hits.reverse()
            sizes.reverse()
        return (hits[0], hits[1]), (sizes[0], sizes[1])


def hits_of_thresholds(a: Floats, b: Floats) -> tuple[Floats, Numbers, Numbers]:
    """Return thresholds, and how many samples of either kind reach each; at most 2,000."""
    values = np.unique(np.concatenate([a, b]))
    if values.size > _MOST_THRESHOLDS:
        values = values[np.linspace(0, values.size - 1, _MOST_THRESHOLDS).astype(np.intp)]
    hits = [each.size - np.searchsorted(np.sort(each), values) for each in (a, b)]
    return values, hits[0], hits[1]


def choose_event(a: Floats, b: Floats, delta: float = 0.0) -> Event:
    """Return the event that seems to bound epsilon best on these samples.

    Args:
        a: ``(n,)`` samples under the first input, without NaN.
        b: ``(m,)`` samples under the second.
        delta: Allowed delta.
    """
    values, hits_a, hits_b = hits_of_thresholds(a, b)
    best = (-math.inf, float(values[0]), True, False)
    for above in (True, False):
        for swapped in (False, True):
            first, second = (hits_b, hits_a) if swapped else (hits_a, hits_b)
            n, m = (b.size, a.size) if swapped else (a.size, b.size)
            if not above:
                first, second = n - first, m - second
            gains = _ratio_of_bounds(first, n, second, m, delta)
            i = int(np.argmax(gains))
            best = max(best, (float(gains[i]), float(values[i]), above, swapped))
    return Event(gain=best[0], threshold=best[1], above=best[2], swapped=best[3])


def _ratio_of_bounds(first: Numbers, n: int, second: Numbers, m: int, delta: float) -> Floats:
    """Return the least ratio of two probabilities, at a fixed small error, which ranks events."""
    low = special.betaincinv(np.maximum(first, 1), n - first + 1, 1e-3)
    high = special.betaincinv(second + 1, np.maximum(m - second, 1), 1 - 1e-3)
    return np.asarray(np.where(first > 0, low - delta, 0.0) / np.where(second < m, high, 1.0))


def result_of_event(
    *,
    hits: tuple[int, int],
    sizes: tuple[int, int],
    delta: float,
    confidence: float,
    event: str,
) -> AuditResult:
    """Return the audit of an event that was fixed beforehand."""
    error = (1 - confidence) / 2
    low = clopper_pearson(hits[0], sizes[0], error=error)[0] - delta
    high = clopper_pearson(hits[1], sizes[1], error=error)[1]
    seen, rare = hits[0] / sizes[0] - delta, hits[1] / sizes[1]
    estimate = 0.0
    if seen > 0:
        estimate = math.log(seen / rare) if rare > 0 else math.inf
    largest = clopper_pearson(sizes[0], sizes[0], error=error)[0] - delta
    return AuditResult(
        epsilon=_log_ratio_of(low, high),
        estimate=max(0.0, estimate),
        delta=delta,
        confidence=confidence,
        event=event,
        num_samples=min(sizes),
        largest_detectable=_log_ratio_of(largest, clopper_pearson(0, sizes[1], error=error)[1]),
    )


def _log_ratio_of(low: float, high: float) -> float:
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def check_levels(delta: float, confidence: float) -> None:
    """Raise InputError unless 0 <= delta < 1 and 0 < confidence < 1."""
    if not 0 <= delta < 1:
        raise InputError(f"Expected 0 <= delta < 1, got delta={delta!r}.")
    require_inside(0, 1, confidence=confidence)
