"""From fragment counts to candidate strings: Apple (2017), Algorithm 10, lines 7 to 14."""

from __future__ import annotations

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.oracles import PureOracle
from fedhh.privacy_loss.binomial import upper_tail
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import Codes

_FEWEST_RIVALS = 0.1
"""What a fragment's rivals count as at least."""

_LARGEST_BUDGET = 2.0**60
"""Where halving an infinite budget starts, in units of the fewest rivals of a string."""

_Pieces = tuple[Ints, Floats]
"""Kept fragments of one position, or their texts, and the rivals of each in units of the fewest:
ascending."""


def assemble(
    puzzle: FragmentPuzzle,
    support: Ints,
    num_reports: Ints,
    oracle: PureOracle,
    *,
    max_fragments: int,
    noise_budget: float,
    max_strings: int,
) -> Codes:
    """Return the strings that frequent fragments with a common puzzle number make up.

    The paper keeps the T most frequent fragments of each position and looks at all strings of the
    Cartesian product, per puzzle number. Two additions, both post-processing:

    * A fragment's rivals are how many noise fragments of its position and puzzle number are
      expected to have as many votes, counted as at least 0.1. Their product over a string's
      fragments is about how many strings of noise are as credible. A string is looked at if that
      is within the noise budget, or the least there is: so a weak fragment is believed besides
      strong ones, and a strong one does not carry several weak ones.
    * Nothing follows a blank in a padded string, so other fragments and strings are left out.

    A string stays if its own puzzle number is that of its fragments. Where a puzzle number has
    more strings than may be looked at, its budget is halved until it has not; at the least budget,
    the half of its fragments with more rivals goes instead.

    Args:
        puzzle: How strings were cut.
        support: ``(positions, num_fragments) int64``: support of every fragment value.
        num_reports: ``(positions,) int64``.
        oracle: The fragments' randomizer.
        max_fragments: T, most fragments kept per position, over all puzzle numbers.
        noise_budget: Most rivals that a string may have among noise; infinite for the plain
            Cartesian product of the paper.
        max_strings: Most strings looked at per puzzle number.

    Returns:
        ``(c, length) uint16`` distinct codes.
    """
    largest = max(noise_budget / _FEWEST_RIVALS**puzzle.num_positions, 1.0)
    kept: list[_Pieces] = []
    for position, (votes, reports) in enumerate(zip(support, num_reports.tolist(), strict=True)):
        possible = puzzle.is_possible.copy()
        # The all-blank text: no word is empty.
        possible[0] &= position > 0
        values = (
            np.flatnonzero(np.tile(possible, puzzle.num_puzzles)) if reports else support[0, :0]
        )
        values = values[np.argsort(-votes[values], kind="stable")[:max_fragments]]
        distinct, numbers = np.unique(votes[values], return_inverse=True)
        rivals = np.count_nonzero(possible) * upper_tail(distinct, reports, oracle.q)
        costs = (np.maximum(rivals, _FEWEST_RIVALS) / _FEWEST_RIVALS)[numbers]
        kept.append((values[costs <= largest], costs[costs <= largest]))
    candidates = []
    for number in range(puzzle.num_puzzles):
        pieces = []
        for values, costs in kept:
            mine = values // puzzle.num_texts == number
            pieces.append((values[mine] % puzzle.num_texts, costs[mine]))
        budget = largest
        while (strings := puzzle.strings(number, pieces, budget, max_strings)) is None:
            if budget > 1:
                budget = max(min(budget, _LARGEST_BUDGET) / 2, 1.0)
            else:
                pieces = [(v[: len(v) // 2], c[: len(v) // 2]) for v, c in pieces]
        candidates.append(strings)
    return np.concatenate(candidates)
