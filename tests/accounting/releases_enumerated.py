"""What is published of a few words, enumerated: each word's outcomes in cells, and their products.

Cells are exact for words that are not published; published noisy numbers fall into intervals, which
can only lower a divergence, and hardly do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from fedhh.arrays import Floats


def laplace_cdf(x: Floats, scale: float) -> Floats:
    tails = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tails, 1 - tails)


def outcomes(
    amount: float,
    *,
    cdf: Callable[[Floats], Floats],
    edges: Floats,
    threshold: float = -math.inf,
    selected: float = 1.0,
) -> Floats:
    """Return chances: not published, then in each interval of the edges and beyond the last.

    Args:
        amount: The word's true number; 0 where nobody has it, which is never published.
        cdf: Of the noise.
        edges: Rising; the first is the threshold, or far below all numbers.
        threshold: Noisy number from which the word is published, if selected.
        selected: Chance that it is selected at all.
    """
    if amount == 0:
        return np.concatenate([[1.0], np.zeros(len(edges))])
    below = cdf(np.asarray(edges, dtype=np.float64) - amount)
    shown = np.diff(np.concatenate([below, [1.0]]))
    if threshold == -math.inf:
        shown[0] += below[0]
    return np.concatenate([[1 - selected * shown.sum()], selected * shown])


def divergence(before: Sequence[Floats], after: Sequence[Floats], epsilon: float) -> float:
    """Return the hockey-stick divergence of products of independent words' outcomes."""
    one, other = np.ones(1), np.ones(1)
    for p, q in zip(before, after, strict=True):
        one, other = np.outer(one, p).ravel(), np.outer(other, q).ravel()
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def largest_divergence(
    pairs: Iterable[tuple[Sequence[Floats], Sequence[Floats]]], epsilon: float
) -> float:
    """Return the largest divergence of some neighbors, both orders."""
    return max(
        max(divergence(before, after, epsilon), divergence(after, before, epsilon))
        for before, after in pairs
    )


def swaps(
    word: Callable[[float], Floats],
    lost: Sequence[float],
    gained: Sequence[float],
    others: Sequence[float],
) -> Iterable[tuple[list[Floats], list[Floats]]]:
    """Yield neighbors: words that a client takes some amounts from, and words it gives some to.

    Args:
        word: Returns the outcomes of a word's amount.
        lost: What the client has given to each of its words before the replacement.
        gained: What it gives to each of its other words after it.
        others: What all other clients together may give to a word.
    """
    for given in itertools.product(others, repeat=len(lost) + len(gained)):
        rest_lost, rest_gained = given[: len(lost)], given[len(lost) :]
        if list(rest_lost) != sorted(rest_lost) or list(rest_gained) != sorted(rest_gained):
            continue
        before = [word(r + a) for r, a in zip(rest_lost, lost, strict=True)]
        after = [word(r) for r in rest_lost]
        before += [word(r) for r in rest_gained]
        after += [word(r + a) for r, a in zip(rest_gained, gained, strict=True)]
        yield before, after
