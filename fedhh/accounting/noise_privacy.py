"""What noise on counts costs in privacy: exact or by privacy losses, never below the truth.

Neighbors move some counts by whole numbers; each count has independent noise of its own, which is
symmetric, so that a count that falls costs what one that rises does, in either order.

**Unit moves.** A count that moves by one has the privacy loss ln(P(x) / P(x - 1)) at x ~ P. For
discrete Laplace noise whose shares all arrive it is a if x <= 0 and -a otherwise: that of a binary
randomized response with epsilon a. Otherwise it takes many values, each of which is split between
the two nearest points of a grid so that the probabilities under both neighbors are kept: delta is
then exact at the grid's points and, as a convex function of e**epsilon, too large between them
(Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, "Connect the Dots", Algorithm 1; numbering not
verified). Losses of several counts are added up by `fedhh.privacy_loss.sums`.

**Larger moves, discrete Laplace, all shares.** A count that moves by m has loss a (m - 2 j) with
j = x cut to [0, m]: probability 1 / (1 + e) at j = 0, e = e**-a, then (1 - e) e**j / (1 + e) for
0 < j < m, and e**m / (1 + e) at j = m. *Moving one count by m1 + m2 costs at least as much as
moving two counts by m1 and m2.* Both losses are symmetric (mass at -l is e**-l times that at l),
so each is a mixture of randomized responses with epsilon |loss|, and it is enough that |loss| is
stochastically larger: a response with a larger epsilon can be turned into one with a smaller. Let
m = m1 + m2, Y = x cut to [0, m] for the one count and S = Y1 + Y2 for the two; that |loss| is at
least a (m - 2 J) says Y <= J or Y >= m - J, and likewise for S, so it is enough that
P(S = s) >= P(Y = s) for 0 < s < m. There P(Y = s) = (1 - e) e**s / (1 + e), and P(S = s) is
e**s / (1 + e)**2 times the sum over y1 + y2 = s of c(y1) c(y2), where c is 1 at the ends of
[0, mi] and 1 - e inside. At least two pairs have one of their numbers at an end (m1, m2 >= 1 and
0 < s < m), so the sum is at least 2 (1 - e) >= (1 + e) (1 - e). [] So of all ways to move B ones
from some counts to others, the dearest moves one count down by B and one up by B.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.sums import epsilon_of_sum
from fedhh.questions.noise_shares import (
    LEAST_STD,
    MOST_STD,
    DiscreteLaplace,
    NoiseName,
    NoiseShares,
    noise_of,
)
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

_FINE, _COARSE = 256, 48
"""Points of the grid in a standard deviation of the loss; fewer where many losses are added."""
_FEW = 16
_ROUNDING = 1e-9
"""Relative, of probabilities that are products of up to a million ratios."""
_TOLERANCE = 2e-5
"""How far above the least standard deviation a chosen one may be, relative."""
_STEPS = 60


@lru_cache(maxsize=4096)
def noise_epsilon(
    noise: NoiseShares, *, counts: int, delta: float, move: int = 1, part: float = 1.0
) -> float:
    """Return an upper bound on epsilon at delta where neighbors move some counts.

    Args:
        noise: Of each count.
        counts: How many counts move.
        delta: Above 0 and below 1.
        move: By how much each of them moves; above 1 for discrete Laplace noise alone, all of
            whose shares arrive.
        part: Of the noise's shares, what arrives.

    Returns:
        Never above `pure_epsilon`.

    Raises:
        InputError: A move above 1 of other noise.

    >>> round(noise_epsilon(noise_of("skellam", 5.807), counts=2, delta=1e-6), 3)
    1.0
    """
    require_at_least(1, counts=counts, move=move)
    require_inside(0, 1, delta=delta)
    losses = loss_of_move(noise, move, part, counts)
    # Losses on a grid may have a delta above that of a pure epsilon.
    pure = pure_epsilon(noise, total=counts * move, part=part)
    return min(epsilon_of_sum([(losses, counts)], delta=delta), pure)


def loss_of_move(
    noise: NoiseShares, move: int, part: float, counts: int
) -> PrivacyLossDistribution:
    """Return a distribution of privacy losses that dominates that of one count's move.

    Args:
        noise: Of the count.
        move: By how much it moves.
        part: Of the noise's shares, what arrives.
        counts: How many such losses will be added; more may be coarser.
    """
    if isinstance(noise, DiscreteLaplace) and part == 1:
        return _laplace_loss(noise.decay, move)
    if move > 1:
        raise InputError(
            f"Expected a move of 1 under {noise.name} noise of which {part:g} arrives, got "
            f"{move}: only discrete Laplace noise, all of which arrives, is proven for more."
        )
    distribution = noise.distribution(part)
    logs = np.log(distribution.ratios)
    masses = distribution.masses
    # From the largest loss, at x = 0, down to x = 1 - K; then from x = 1 up to K.
    losses = np.concatenate([-logs, logs])
    chances = np.concatenate([masses[:-1], masses[1:]])
    center = float(np.sum(chances * losses))
    deviation = math.sqrt(float(np.sum(chances * (losses - center) ** 2)))
    gap = deviation / (_FINE if counts <= _FEW else _COARSE)
    places = np.floor(losses / gap).astype(np.int64)
    # Of a loss g + t between g and g + h, (e**(h - t) - 1) / (e**h - 1) goes to g.
    lower = np.clip(np.expm1((places + 1) * gap - losses) / math.expm1(gap), 0.0, 1.0)
    lost = 2 * math.exp(noise.log_tail(distribution.last))
    return PrivacyLossDistribution.of_losses(
        np.concatenate([places, places + 1]),
        np.concatenate([chances * lower, chances * (1 - lower)]) * (1 + _ROUNDING),
        gap=gap,
        infinite=lost,
    )


def _laplace_loss(decay: float, move: int) -> PrivacyLossDistribution:
    """Return the loss a (m - 2 j): the module's text has the probabilities."""
    j = np.arange(move + 1)
    masses = np.exp(-decay * j) / (1 + math.exp(-decay))
    masses[1:-1] *= -math.expm1(-decay)
    return PrivacyLossDistribution.of_losses(move - 2 * j, masses * (1 + _ROUNDING), gap=decay)


def pure_epsilon(noise: NoiseShares, *, total: int, part: float = 1.0) -> float:
    """Return epsilon at delta 0 where neighbors move counts, rounded up; infinite for Skellam.

    Discrete Laplace noise of which a part b arrives has the closed form of `missing_shares_epsilon`
    for every count, and epsilons add up.

    Args:
        noise: Of each count.
        total: By how much all counts move, together.
        part: b.
    """
    if not isinstance(noise, DiscreteLaplace):
        return math.inf
    return total * missing_shares_epsilon(noise.decay, part) * (1 + _ROUNDING)


def missing_shares_epsilon(decay: float, part: float, *, move: int = 1) -> float:
    """Return ln(P(0) / P(D)) of Polya shares of which a part arrives, for a move D of one count.

    With b the part and z = e**(-2 a), P(D) is proportional to
    e**(-a D) Gamma(D + b) / (Gamma(b) D!) 2F1(b, D + b; D + 1; z), which gives

        a D + ln( 2F1(b, b; 1; z) / 2F1(b, b + D; 1 + D; z) Gamma(D + 1) Gamma(b) / Gamma(b + D) ).

    For D = 1 it is the largest loss, hence a pure epsilon. With p the negative binomial of shape
    b <= 1, p is log-convex, P(k) is the sum over j of p(j) p(j + k), and sums of log-convex
    sequences are log-convex: P(k) / P(k - 1) rises with k >= 1, to e**-a < 1, and is least at 1.

    Args:
        decay: a, above 0.
        part: b, in (0, 1].
        move: D, at least 1.

    >>> [round(missing_shares_epsilon(0.1575, b), 6) for b in (1.0, 0.9, 0.7, 0.5)]
    [0.1575, 0.214199, 0.392504, 0.702184]
    """
    from scipy.special import gammaln, hyp2f1

    require_positive(decay=decay)
    require_at_least(1, move=move)
    if part == 1:
        return decay * move
    z = math.exp(-2 * decay)
    ratio = hyp2f1(part, part, 1, z) / hyp2f1(part, part + move, 1 + move, z)
    gammas = gammaln(move + 1) + gammaln(part) - gammaln(part + move)
    return float(decay * move + math.log(ratio) + gammas)


@lru_cache(maxsize=512)
def least_noise(
    name: NoiseName, *, epsilon: float, counts: int, delta: float, move: int = 1, part: float = 1.0
) -> float:
    """Return about the least standard deviation with a guarantee, which it has.

    Args:
        name: Of the noise.
        epsilon: The target, above 0.
        counts: See `noise_epsilon`, as the other arguments are.
        delta: As there.
        move: As there.
        part: As there.

    Raises:
        InputError: No noise that is computed with has it; with the least epsilon that one has.

    >>> round(least_noise("skellam", epsilon=1.0, counts=2, delta=1e-6), 3)
    5.807
    """
    require_positive(epsilon=epsilon)

    def epsilon_at(std: float) -> float:
        return noise_epsilon(noise_of(name, std), counts=counts, delta=delta, move=move, part=part)

    guess = move * math.sqrt(2 * counts * math.log(2 / delta)) / epsilon
    low, high = LEAST_STD, min(max(guess, 2 * LEAST_STD), MOST_STD)
    while (above := epsilon_at(high)) > epsilon:
        if high == MOST_STD:
            raise InputError(
                f"Expected an epsilon of at least {above:.3g} for {name} noise, the least with "
                f"noise_std={MOST_STD:,.0f}, got {epsilon:g}; ask for more, lower max_items or "
                "max_dropout, or raise delta."
            )
        low, high = high, min(4 * high, MOST_STD)
    for _ in range(_STEPS):
        if high <= low * (1 + _TOLERANCE):
            break
        # Epsilon is about proportional to 1 / std: aim there, and stay well inside the bracket.
        aimed = high * above / epsilon * (1 + _TOLERANCE / 2)
        if not low * (1 + _TOLERANCE / 4) < aimed < high:
            aimed = math.sqrt(low * high)
        found = epsilon_at(aimed)
        if found <= epsilon:
            high, above = aimed, found
            if found >= epsilon * (1 - _TOLERANCE):
                break
        else:
            low = aimed
    return high
