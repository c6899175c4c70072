"""Audits: what samples of two neighboring inputs show, next to what is claimed of them.

An audit can refute a claim, never prove one. A quarter of the samples chooses an event, the rest
tests it: its power and its false alarm are bounded by Clopper and Pearson (1934), and refute the
claim where it allows less power. So an honest mechanism is refuted with a probability of at most
1 - confidence, whatever was tried. Follows Jagielski, Ullman, Oprea (2020), "Auditing
differentially private machine learning", NeurIPS; that trade-offs show what epsilon alone hides:
Nasr et al. (2023), "Tight auditing of differentially private machine learning", USENIX Security.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.accounting.guarantees import REPLACE_ONE
from fedhh.arrays import Floats
from fedhh.audit.caps import CapReplay
from fedhh.audit.claim import Claim, least
from fedhh.experiments.study.json_values import plain
from fedhh.validation import require_at_least, require_inside

Samples = Mapping[str, npt.ArrayLike] | npt.ArrayLike
"""Of each statistic ``(n,)`` numbers, independent and in an order that says nothing; or of one."""

FEWEST = 4
_CHOOSING = 4
"""One sample in so many chooses the event."""
_MOST_THRESHOLDS = 2_000
_MOST_BOUNDARIES = 24
"""Of intervals; their number is squared."""
_LARGEST_ERROR = 1e-4
"""Of each bound on an event that is chosen; a larger one prefers events that are seen by chance."""
_POINTS = 400


@dataclass(frozen=True, kw_only=True)
class Event:
    """That a statistic is in an interval; NaN is in none.

    That it is not needs no events of its own: for an input and a claim whose trade-off function is
    its own inverse, as that of replace-one is, it says for the other input what this event says.

    Attributes:
        statistic: Its name.
        low: The least number of the interval.
        high: The first number above it.
        swapped: Whether it speaks for the second input.
    """

    statistic: str
    low: float
    high: float
    swapped: bool

    def __str__(self) -> str:
        upper = "" if math.isinf(self.high) else f" and < {self.high:g}"
        return (
            f"{self.statistic} >= {self.low:g}{upper}, "
            f"{'second' if self.swapped else 'first'} input over the other"
        )

    def hits(self, samples: Floats) -> int:
        """Return how many of ``(n,)`` samples have it."""
        return int(np.count_nonzero((samples >= self.low) & (samples < self.high)))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What samples show, next to a claim.

    Attributes:
        claim: What is stated.
        event: What was tested.
        power: Lower bound on the probability of the event, or of a random part of it, under its
            input.
        false_alarm: Upper bound on that under the other input.
        allowed: The power that the claim allows.
        at_least: The least level of the claim's kind that allows what was found.
        detects_from: The least level above the claim's that would probably have been detected; None
            if none would.
        num_samples: Samples that tested the event, of either input.
        confidence: That `power` and `false_alarm` are bounds.
    """

    claim: Claim
    event: str
    power: float
    false_alarm: float
    allowed: float
    at_least: float
    detects_from: float | None
    num_samples: int
    confidence: float

    @property
    def refuted(self) -> bool:
        return self.power > self.allowed

    @property
    def epsilon(self) -> float:
        """Lower bound on epsilon at the claim's delta, by this event alone; at least 0."""
        seen = self.power - self.claim.delta
        return max(0.0, math.log(seen / self.false_alarm)) if seen > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        claim = self.claim
        return {
            "unit": claim.unit,
            "at_least": self.at_least,
            "claimed": plain(claim.level),
            "detects_from": self.detects_from,
            "epsilon_at_least": self.epsilon,
            "epsilon_claimed": plain(claim.epsilon),
            "delta": claim.delta,
            "event": self.event,
            "power": self.power,
            "false_alarm": self.false_alarm,
            "allowed_power": self.allowed,
            "num_samples": self.num_samples,
            "confidence": self.confidence,
            "verdict": verdict_word(self.refuted),
        }


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All that an audit found; neighbors replace one value by another.

    Attributes:
        title: What was audited.
        confidence: Of all findings together.
        findings: By what they are about.
        controls: What is found where a fault was put in, by the finding that it is a control of.
        sent: Numbers of records against caps, by use case.
        facts: Of the audit.
        notes: What a reader has to know besides.
    """

    title: str
    confidence: float
    findings: Mapping[str, Finding] = field(default_factory=dict)
    controls: Mapping[str, Finding] = field(default_factory=dict)
    sent: tuple[CapReplay, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        found = any(each.refuted for each in self.findings.values())
        return found or any(each.refuted for each in self.sent)

    def to_dict(self) -> dict[str, Any]:
        return {
            "audited": self.title,
            **self.facts,
            "neighboring": REPLACE_ONE,
            "confidence": self.confidence if self.findings else None,
            "findings": [
                {
                    "of": name,
                    **each.to_dict(),
                    "control": self.controls[name].to_dict() if name in self.controls else None,
                }
                for name, each in self.findings.items()
            ],
            "sent": [each.to_dict() for each in self.sent],
            "notes": list(self.notes),
            "verdict": verdict_word(self.refuted),
        }


def verdict_word(refuted: bool) -> str:
    """Return "refuted" or "consistent"."""
    return "refuted" if refuted else "consistent"


def audit(
    samples_a: Samples,
    samples_b: Samples,
    claim: Claim,
    *,
    confidence: float = 0.99,
    values: int = 0,
) -> Finding:
    """Return what statistics of two neighboring inputs show, next to what is claimed of them.

    With ``values``, samples are of guesses: each output is about one of so many values, drawn
    uniformly, and names one of them or none. ``samples_a`` are a statistic of right guesses, NaN
    for others; ``samples_b`` the same of wrong ones. A wrong guess falls on one of the other
    values, so that per pair of values the mean power is the chance of a right guess, and the mean
    false alarm that of a wrong one over ``values - 1``; a claim is concave, so the means keep it.

    Args:
        samples_a: Under the first input, at least 4.
        samples_b: Under the second one.
        claim: What is stated.
        confidence: In (0, 1): what keeps its claim is refuted with at most the rest.
        values: Of guesses, at least 2; 0 if samples are of two inputs.

    Raises:
        InputError: Too few samples, or the confidence is out of range.

    >>> from fedhh.audit.claim import EpsilonDelta
    >>> rng = np.random.default_rng(3)
    >>> bits = rng.random((2, 200_000)) < np.array([[0.75], [0.25]])  # epsilon = ln 3 = 1.0986
    >>> found = audit(*bits, EpsilonDelta(epsilon=1.2))
    >>> found.refuted, 1.05 < found.at_least < 1.0987
    (False, True)
    """
    require_inside(0, 1, confidence=confidence)
    chosen, tested = _split(samples_a, samples_b)
    event, _ = choose(chosen, claim, confidence=confidence, values=values)
    hits = [event.hits(each) for each in tested[event.statistic]]
    sizes = [each.size for each in tested[event.statistic]]
    error = (1 - confidence) / 2
    power, false_alarm = (
        float(each) for each in bounds(hits, sizes, error=error, values=values)[event.swapped]
    )
    at_least = least(claim, lambda each: power <= each.power([false_alarm])[0])
    return Finding(
        claim=claim,
        event=str(event),
        power=power,
        false_alarm=false_alarm,
        allowed=float(claim.power([false_alarm])[0]),
        at_least=claim.most if at_least is None else at_least,
        detects_from=_detects_from(claim, min(sizes), error=error, values=values),
        num_samples=min(sizes),
        confidence=confidence,
    )


def clopper_pearson(
    hits: npt.ArrayLike, sizes: npt.ArrayLike, *, error: float
) -> tuple[Floats, Floats]:
    """Return lower and upper bounds on probabilities, each wrong with at most ``error``.

    Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
    the binomial", Biometrika 26(4): exact for every number of trials.
    """
    hits, sizes = np.asarray(hits), np.asarray(sizes)
    low = special.betaincinv(np.maximum(hits, 1), sizes - hits + 1, error)
    high = special.betaincinv(hits + 1, np.maximum(sizes - hits, 1), 1 - error)
    return np.where(hits > 0, low, 0.0), np.where(hits < sizes, high, 1.0)


def choose(
    samples: Mapping[str, tuple[Floats, Floats]],
    claim: Claim,
    *,
    confidence: float,
    values: int = 0,
) -> tuple[Event, float]:
    """Return the event that seems to need the highest level of a claim's kind, and that level.

    Args:
        samples: Of each statistic, numbers under either input.
        claim: Of the kind.
        confidence: Of the test for which it is chosen.
        values: Of guesses, see `audit`; then the event is a threshold.
    """
    error = min(_LARGEST_ERROR, (1 - confidence) / 2)
    events, powers, false_alarms = [], [], []
    for statistic, (a, b) in samples.items():
        lows, highs, hits = _intervals(a, b, 0 if values else _MOST_BOUNDARIES)
        shown = bounds(hits, [a.size, b.size], error=error, values=values)
        for swapped in (False, True):
            events += [
                (statistic, low, high, swapped)
                for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
            ]
            powers.append(shown[swapped][0])
            false_alarms.append(shown[swapped][1])
    power, false_alarm = np.concatenate(powers), np.concatenate(false_alarms)

    def gains(each: Claim) -> Floats:
        return power - each.power(false_alarm)

    level = least(claim, lambda each: not (gains(each) > 0).any())
    level = claim.most if level is None else level
    best = int(gains(claim.at(max(0, level - claim.step))).argmax())
    statistic, low, high, swapped = events[best]
    return Event(statistic=statistic, low=low, high=high, swapped=swapped), level


def bounds(
    hits: Sequence[npt.ArrayLike], sizes: Sequence[int], *, error: float, values: int
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return a power and a false alarm that some test has, of either input over the other.

    Of two inputs, they bound an event's probability under each. Of guesses, right and wrong ones
    are of the same outputs, so that among so many guesses right ones are binomial, and the share s
    of these is bounded alone; so is the chance g of any guess. Where neither is smaller than its
    bound, the event, or a random part of it, has power g s and at most the false alarm g (1 - s).

    Args:
        hits: Of an event, among samples of either input, or of right guesses and of wrong ones.
        sizes: Numbers of samples.
        error: With which each of the two bounds is wrong, at most.
        values: Of guesses, see `audit`.

    Returns:
        Of the first input, and of the second one.
    """
    if not values:
        (low_a, high_a), (low_b, high_b) = (
            clopper_pearson(each, size, error=error) for each, size in zip(hits, sizes, strict=True)
        )
        return (low_a, high_b), (low_b, high_a)
    guesses = np.asarray(hits[0]) + np.asarray(hits[1])
    guessed, _ = clopper_pearson(guesses, sizes[0], error=error)
    right, wrong = (clopper_pearson(each, guesses, error=error)[0] for each in hits)
    others = values - 1
    return (
        (guessed * right, guessed * (1 - right) / others),
        (guessed * wrong / others, guessed * (1 - wrong)),
    )


def _split(a: Samples, b: Samples) -> tuple[dict[str, tuple[Floats, Floats]], ...]:
    """Return the samples that choose an event, and those that test it, by statistic."""
    named = [each if isinstance(each, Mapping) else {"statistic": each} for each in (a, b)]
    chosen, tested = {}, {}
    for name in named[0]:
        a, b = (np.asarray(each[name], dtype=np.float64).ravel() for each in named)
        require_at_least(FEWEST, num_samples=min(a.size, b.size))
        few_a, few_b = a.size // _CHOOSING, b.size // _CHOOSING
        chosen[name] = a[:few_a], b[:few_b]
        tested[name] = a[few_a:], b[few_b:]
    return chosen, tested


def _intervals(
    a: Floats, b: Floats, boundaries: int
) -> tuple[Floats, Floats, list[npt.NDArray[np.intp]]]:
    """Return intervals, from where and up to where, and how many samples of either kind they hold.

    Some go on for ever: then the event is a threshold. Others end, since what speaks for an input
    may be neither a large number nor a small one.
    """
    known = np.unique(np.concatenate([a, b]))
    known = known[~np.isnan(known)]
    if not known.size:
        known = np.zeros(1)
    few = _spread(known, boundaries)
    begin, end = np.triu_indices(few.size, 1)
    starts = _spread(known, _MOST_THRESHOLDS)
    lows = np.concatenate([starts, few[begin]])
    highs = np.concatenate([np.full(starts.size, math.inf), few[end]])
    hits = []
    for each in (a, b):
        ordered = np.sort(each[~np.isnan(each)])
        hits.append(np.searchsorted(ordered, highs) - np.searchsorted(ordered, lows))
    return lows, highs, hits


def _spread(ordered: Floats, most: int) -> Floats:
    """Return at most so many of some numbers, evenly spread."""
    if ordered.size <= most:
        return ordered
    return ordered[np.linspace(0, ordered.size - 1, most).astype(np.intp)]


def _detects_from(claim: Claim, size: int, *, error: float, values: int) -> float | None:
    """Return the least level above a claim's whose expected hits would refute it, None if none."""
    others = max(1, values - 1)
    rare = np.geomspace(1 / (size * others), 1 / others, _POINTS)
    wrong = np.floor(rare * others * size).clip(max=size)

    def seen(larger: Claim) -> bool:
        # A guess is right, or it is wrong.
        power = np.minimum(larger.power(rare), 1 - others * rare if values else 1)
        hits = np.floor(power * size), wrong
        (power, false_alarm), _ = bounds(hits, [size, size], error=error, values=values)
        return bool((power > claim.power(false_alarm)).any())

    return least(claim, seen, above=claim.level + claim.step)
