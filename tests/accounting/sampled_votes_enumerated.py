"""Sampled votes enumerated in whole numbers, for a few clients: what the bounds must not miss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

NOTHING = ""
"""What a client holds that votes for no prefix."""

Distribution = dict[tuple[frozenset[str], ...], int]
"""How many of all choices of samples give each sequence of kept prefixes."""


@cache
def round_distribution(
    votes: tuple[tuple[str, int], ...], sample_size: int, threshold: int
) -> dict[frozenset[str], int]:
    """How many samples keep which prefixes, where so many clients vote for each."""
    distribution: dict[frozenset[str], int] = {}
    for counts in itertools.product(*(range(held + 1) for _, held in votes)):
        if sum(counts) == sample_size:
            kept = frozenset(
                prefix
                for (prefix, _), count in zip(votes, counts, strict=True)
                if prefix != NOTHING and count >= threshold
            )
            ways = math.prod(
                math.comb(held, count) for (_, held), count in zip(votes, counts, strict=True)
            )
            distribution[kept] = distribution.get(kept, 0) + ways
    return distribution


def distribution_of_trie(
    words: tuple[str, ...], sample_size: int, threshold: int, rounds: int
) -> Distribution:
    """The distribution of all rounds: each votes for one symbol more of a kept prefix."""
    distribution: Distribution = {(): 1}
    for length in range(1, rounds + 1):
        following: Distribution = {}
        for history, ways in distribution.items():
            tally: dict[str, int] = {}
            for word in words:
                alive = len(word) >= length and (length == 1 or word[: length - 1] in history[-1])
                vote = word[:length] if alive else NOTHING
                tally[vote] = tally.get(vote, 0) + 1
            votes = tuple(sorted(tally.items()))
            for kept, more in round_distribution(votes, sample_size, threshold).items():
                following[*history, kept] = ways * more
        distribution = following
    return distribution


def neighbors(kinds: tuple[str, ...], num_clients: int) -> Iterator[tuple[tuple[str, ...], ...]]:
    """All data of so many clients, and the same with another word of one of them."""
    for others in itertools.combinations_with_replacement(kinds, num_clients - 1):
        for pair in itertools.permutations(kinds, 2):
            yield tuple((*others, word) for word in pair)


def hockey_stick(first: Distribution, second: Distribution, ratio: Fraction) -> Fraction:
    """The sum of first - ratio * second where positive, over the number of all samples."""
    total = sum(first.values())
    above = sum(
        (max(ways - ratio * second.get(each, 0), Fraction(0)) for each, ways in first.items()),
        Fraction(0),
    )
    return above / total


def worst_delta(
    kinds: tuple[str, ...],
    *,
    num_clients: int,
    sample_size: int,
    threshold: int,
    rounds: int,
    epsilon: float,
) -> Fraction:
    """The largest delta over all neighbors, in both orders."""
    ratio = Fraction(math.exp(epsilon))
    distribution = cache(lambda words: distribution_of_trie(words, sample_size, threshold, rounds))
    return max(
        hockey_stick(distribution(tuple(sorted(one))), distribution(tuple(sorted(other))), ratio)
        for one, other in neighbors(kinds, num_clients)
    )


def one_prefix_delta(
    num_clients: int, sample_size: int, threshold: int, epsilon: float
) -> Fraction:
    """The largest delta of one round, where all who vote do so for one prefix, in both orders."""
    ratio = Fraction(math.exp(epsilon))
    total = math.comb(num_clients, sample_size)

    def kept(holders: int) -> int:
        """How many samples keep the prefix."""
        fewest = max(0, sample_size - num_clients + holders)
        if holders < threshold:
            return 0
        missed = sum(
            math.comb(holders, votes) * math.comb(num_clients - holders, sample_size - votes)
            for votes in range(fewest, threshold)
        )
        return total - missed

    worst, before = Fraction(0), 0
    for holders in range(1, num_clients + 1):
        after = kept(holders)
        for one, other in ((before, after), (after, before)):
            parts = (one - ratio * other, total - one - ratio * (total - other))
            worst = max(worst, sum((max(part, Fraction(0)) for part in parts), Fraction(0)))
        before = after
    return worst / total
