"""What no central mechanism can do better: a lower bound on the mass that it misses.

**Theorem.** Let a mechanism publish words, only such that some client holds, and be
(epsilon, delta)-private for neighbors that differ in one client (more or less, or replaced by any
other). Then it publishes a word that n clients hold with probability at most p(n), the recurrence
of truncated geometric selection at (epsilon, delta) (`fedhh.accounting.truncated_geometric`),
whatever else these and all other clients hold.

*Proof.* Replace one holder's data by data without the word, or remove the client: neighbors, of n
and n - 1 holders. Whether the word is published is a function of the output, so its chances P(n)
and P(n - 1) have P(n) <= e**epsilon P(n - 1) + delta and
1 - P(n - 1) <= e**epsilon (1 - P(n)) + delta. With P(0) = 0, since nobody holds it then, induction
gives P(n) <= p(n): both right-hand sides rise with P(n - 1). []

So the expected mass of what is missed is at least the sum of mass(w) (1 - p(n_w)) over all words w.
For each word by itself, selection by its number of holders attains that (Desfontaines, Voss,
Gipson, Mandayam 2022) where a client has one word and neighbors are one client more or less; with
many words per client, or replace-one, no mechanism may come near. Dick, Joseph, Raman (2026), arXiv
2603.14016, Theorem 3.5, bound the missing mass under Zipf's law in closed form; this takes the
holders of every word as they are, and the recurrence in place of a closed form.

For a guarantee of an item, the same holds with its epsilon and delta: neighbors that replace one
item of a holder, which holds each word once, have n and n - 1 holders.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.accounting.truncated_geometric import TruncatedGeometric
from fedhh.arrays import Floats
from fedhh.validation import InputError


def largest_release_chances(holders: npt.ArrayLike, *, epsilon: float, delta: float) -> Floats:
    """Return the largest chance with which a central mechanism may publish each word.

    Args:
        holders: ``(c,)``: clients that hold each word, at least 0.
        epsilon: Central privacy of one client, or of an item, above 0.
        delta: Above 0 and below 1.

    >>> largest_release_chances([0, 1, 68, 136], epsilon=0.315, delta=1e-10).round(3).tolist()
    [0.0, 0.0, 0.542, 1.0]
    """
    chances = TruncatedGeometric(epsilon=epsilon, delta=delta).chances
    counts = np.asarray(holders, dtype=np.int64)
    if (counts < 0).any():
        raise InputError(f"Expected holders >= 0, got {int(counts.min())}.")
    return chances[np.minimum(counts, len(chances) - 1)]


def missing_mass_lower_bound(
    masses: npt.ArrayLike, holders: npt.ArrayLike, *, epsilon: float, delta: float
) -> float:
    """Return the least mass that any central mechanism misses in expectation.

    One minus it is at least the expected coverage of every mechanism with this guarantee that
    publishes held words only, however many rounds it has, and whoever is trusted.

    Args:
        masses: ``(c,) float64``: share of each word in all contributions.
        holders: ``(c,)``: clients that hold it.
        epsilon: Central privacy of a user, or of an item, above 0.
        delta: Above 0 and below 1.

    >>> missing_mass_lower_bound([0.6, 0.4], [1_000, 50], epsilon=1.0, delta=1e-10)
    0.0
    >>> round(missing_mass_lower_bound([0.6, 0.4], [1_000, 15], epsilon=1.0, delta=1e-10), 3)
    0.4
    """
    shares = np.asarray(masses, dtype=np.float64)
    missed = 1 - largest_release_chances(holders, epsilon=epsilon, delta=delta)
    if shares.shape != missed.shape or not (shares >= 0).all():
        raise InputError(
            f"Expected masses >= 0, one for each of {missed.size:,} words, got {shares.size:,}."
        )
    return float(shares @ missed)
