"""Truncated geometric selection: whether a word is published, by its number of contributors alone.

Source: Desfontaines, Voss, Gipson, Mandayam (2022), "Differentially private partition selection",
PoPETs, Theorem 1 (numbering not verified). If one contributor more or less of a word is to have
(epsilon, delta)-privacy, and a word without contributors is never published, then no mechanism
publishes a word of n contributors with a chance above

    p(0) = 0,  p(n) = min(e**epsilon p(n - 1) + delta, 1 - e**-epsilon (1 - p(n - 1) - delta), 1),

and the mechanism that publishes each word independently with that chance is private.

*Proof.* Publishing is one bit. (epsilon, delta)-privacy of its two distributions at n - 1 and n
says p(n) <= e**epsilon p(n - 1) + delta and 1 - p(n - 1) <= e**epsilon (1 - p(n)) + delta, which
are the first two terms; both rise with p(n - 1), so the largest p are those of the recurrence, by
induction. The two inequalities with n and n - 1 exchanged hold since p does not fall. []
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np

from fedhh.arrays import Floats
from fedhh.validation import InputError, require_inside, require_positive

MOST_STEPS = 10_000_000
"""Numbers of contributors below which a word has to be certain to be published."""


class TruncatedGeometric:
    """Selection with a privacy for one contributor more or less of a word.

    >>> TruncatedGeometric(epsilon=math.log(2), delta=0.1).chances.round(3).tolist()
    [0.0, 0.1, 0.3, 0.7, 0.9, 1.0]
    """

    def __init__(self, *, epsilon: float, delta: float) -> None:
        """Take a privacy.

        Args:
            epsilon: Of one contributor, above 0.
            delta: Above 0 and below 1.

        Raises:
            InputError: They are so small that ten million contributors are not certain.
        """
        require_positive(epsilon=epsilon)
        require_inside(0, 1, delta=delta)
        self.epsilon = epsilon
        self.delta = delta
        # From delta to a half, p grows by e**epsilon at least, or by delta.
        steps = min(math.log1p(math.expm1(epsilon) / delta) / epsilon, 1 / delta)
        if 2 * steps > MOST_STEPS:
            raise InputError(
                f"Expected a larger epsilon or delta of one contributor, got epsilon={epsilon:.3g} "
                f"and delta={delta:.3g}: a word would need about {2 * steps:,.0f} contributors."
            )

    @cached_property
    def chances(self) -> Floats:
        """``(m + 1,) float64``: chances for 0 to m contributors, m the first with chance 1."""
        return _chances(self.epsilon, self.delta)

    def chance(self, contributors: int) -> float:
        """Return the chance that a word with so many contributors is published."""
        return float(self.chances[min(max(contributors, 0), len(self.chances) - 1)])


@lru_cache(maxsize=32)
def _chances(epsilon: float, delta: float) -> Floats:
    growth, chances = math.exp(epsilon), [0.0]
    while chances[-1] < 1:
        last = chances[-1]
        chances.append(min(growth * last + delta, 1 - (1 - last - delta) / growth, 1.0))
    return np.array(chances)
