"""What a server makes of padding and sampling: how far to pad, with which oracle, and the counts.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Floats
from fedhh.oracles.consistency import PostProcessing, norm_sub, post_process
from fedhh.protocol import Answers
from fedhh.questions.question import Question

WHOLE_SHARE = 0.9
"""Share of the clients that hold a candidate whose sets padding should not cut."""

_TINY = 1e-9
"""Of a variance, where reports have no noise."""


def oracle_of_sample(num_candidates: int, padded_size: int, epsilon: float, other: str) -> str:
    """Return "grr" where that has the smaller variance, else the other oracle.

    With ``ln(L (e**epsilon - 1) + 1)`` over c candidates and L dummies, generalized randomized
    response has the variance (c - 1 + L e**epsilon) / (e**epsilon - 1)**2 per client, after the
    counts are multiplied by L; the other oracles L**2 4 e**epsilon / (e**epsilon - 1)**2. So the
    rule is c < L (4 L - 1) e**epsilon + 1.

    Args:
        num_candidates: c.
        padded_size: L.
        epsilon: Privacy of a client.
        other: The oracle for many candidates.
    """
    return (
        "grr"
        if (num_candidates - 1) * math.exp(-epsilon) < padded_size * (4 * padded_size - 1)
        else other
    )


def set_sizes(answers: Answers) -> Floats:
    """Return ``(c + 1,) float64``: about how many of the clients hold 0, 1, ... c candidates.

    The estimates do not add up to the clients, and most sizes are noise. So a largest size l is
    chosen, by Akaike's criterion: no client holds more, and what is held up to l adds up to all.
    Three things cost: how far the estimates up to l are from that sum, in its own standard error;
    each positive estimate beyond l, in its; and 2 for every size. The fit is then that of
    `norm_sub`.

    A rule that stops where the sum comes within a standard error of all would miss the right l by
    chance once in six, and make up what is missing from sizes that only noise shows.
    """
    question, aggregate = answers.question, answers.aggregate
    oracle, reports = question.channel.pure, aggregate.num_reports
    support = question.channel.support(question, aggregate)
    estimate = oracle.estimate(support, reports)
    # Of one size that no client has; and what being held adds, which is linear in the holders.
    alone = float(oracle.variance(0, reports))
    of_holders = float(oracle.variance(reports, reports)) - alone
    missing = reports - np.cumsum(estimate)
    by_sum = missing**2 / (np.arange(1, len(estimate) + 1) * alone + max(of_holders, 0.0) + _TINY)
    positive = np.maximum(estimate, 0.0) ** 2 / (alone + _TINY)
    beyond = positive.sum() - np.cumsum(positive)
    cost = by_sum + beyond + 2.0 * np.arange(len(estimate))
    largest = 1 + int(np.argmin(cost[1:]))
    sizes = np.zeros(len(estimate))
    sizes[: largest + 1] = norm_sub(estimate[: largest + 1], total=reports)
    return sizes


def padded_size(sizes: Floats) -> int:
    """Return L: the least size that fewer than a tenth of the holders' sets exceed.

    Args:
        sizes: ``(c + 1,) float64``: clients by the number of candidates that they hold.

    >>> padded_size(np.array([50.0, 60.0, 31.0, 9.0]))
    2
    """
    holders = sizes[1:].sum()
    if not holders:
        return 1
    return 1 + int(np.argmax(np.cumsum(sizes[1:]) > WHOLE_SHARE * holders))


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleCounts:
    """What a round of padding and sampling says about its candidates, ``(c,)`` each.

    Attributes:
        estimate: ``float64``: clients of the cohort that hold each. Without bias where no client
            holds more than L; otherwise too small, and corrected for the mean of what is lost.
        variance: ``float64``: of the estimate, by the oracle's formula and from sampling; the
            correction is taken as known.
        z: ``float64``: how far above the noise of the reports the support lies.
    """

    estimate: Floats
    variance: Floats
    z: Floats


def sample_counts(
    answers: Answers,
    sizes: Floats | None = None,
    *,
    post_processing: PostProcessing = "none",
) -> SampleCounts:
    """Return what a round says about its candidates.

    A candidate's reports are multiplied by L. Of a client's h candidates, h - L are lost where h is
    larger: the counts are multiplied by 1 + lost / counted, both over all candidates, with the lost
    ones from the sizes of sets.

    Args:
        answers: The round's.
        sizes: `set_sizes` of other clients, for the correction; None for none.
        post_processing: Of the estimated numbers of reports, before they are multiplied.
    """
    question, reports = answers.question, answers.aggregate.num_reports
    noise = answers.noise
    sampled = noise.estimate(answers.votes)
    held = np.clip(sampled, 0, reports)
    chance = 1 / question.choice.padded_size
    scale = question.choice.padded_size * (1 + _lost_per_counted(question, sampled, reports, sizes))
    reported = post_process(post_processing, sampled, total=reports, std=noise.std, has_rest=True)
    return SampleCounts(
        estimate=reported * scale,
        variance=(noise.variance(sampled) + held * (1 - chance)) * scale**2,
        z=noise.z(answers.votes),
    )


def _lost_per_counted(
    question: Question, sampled: Floats, reports: int, sizes: Floats | None
) -> float:
    if sizes is None or not sizes.any():
        return 0.0
    beyond = np.maximum(np.arange(len(sizes)) - question.choice.padded_size, 0)
    lost = float(sizes @ beyond) / float(sizes.sum())
    counted = float(sampled.sum()) * question.choice.padded_size / reports
    return lost / counted if counted > 0 else 0.0
