"""From fragment counts to candidate strings: Apple (2017), Algorithm 10, lines 7 to 14."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.oracles import PureOracle
from fedhh.questions.noise import chance_of_votes
from fedhh.words.alphabet import END
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import Codes

_FEWEST_RIVALS = 0.1
"""What a fragment's rivals count as at least."""

_LARGEST_BUDGET = 2.0**60
"""Where halving an infinite budget starts, in units of the fewest rivals of a string."""

Values = npt.NDArray[np.int64]
Chances = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PuzzleSummary:
    """The outcome of the fragments.

    Attributes:
        fragments_kept: Fragments kept at each position.
        num_products: Strings that kept fragments with a common puzzle number make up, in all.
        num_looked_at: Those among them that were put together.
        num_puzzles_cut: Puzzle numbers that had more strings than may be looked at.
        num_candidates: Strings looked at whose own puzzle number is right.
    """

    fragments_kept: tuple[int, ...]
    num_products: float
    num_looked_at: int
    num_puzzles_cut: int
    num_candidates: int


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """How strings are put together from fragments.

    Attributes:
        max_fragments: T, most fragments kept per position, over all puzzle numbers.
        noise_budget: Most rivals that a string may have among noise, see `assemble`; infinite for
            the plain Cartesian product of the paper.
        max_strings: Most strings looked at per puzzle number.
    """

    max_fragments: int
    noise_budget: float
    max_strings: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pieces:
    """Kept fragments of one position: their values, or texts, and rivals in units of the least.

    The fewest rivals come first.
    """

    values: Values
    costs: Chances

    def of_puzzle(self, puzzle: FragmentPuzzle, number: int) -> _Pieces:
        mine = self.values // puzzle.num_texts == number
        return _Pieces(values=self.values[mine] % puzzle.num_texts, costs=self.costs[mine])

    def cheaper_half(self) -> _Pieces:
        half = len(self.values) // 2
        return _Pieces(values=self.values[:half], costs=self.costs[:half])


def assemble(
    puzzle: FragmentPuzzle,
    support: Values,
    num_reports: Values,
    oracle: PureOracle,
    settings: Assembly,
) -> tuple[Codes, PuzzleSummary]:
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
        settings: What to keep.

    Returns:
        ``(c, length) uint16`` distinct codes, and what happened.
    """
    kept = [
        _kept_fragments(puzzle, votes, reports, oracle, settings, is_first=position == 0)
        for position, (votes, reports) in enumerate(zip(support, num_reports.tolist(), strict=True))
    ]
    largest = _budget(puzzle, settings)
    candidates = []
    num_products = looked_at = puzzles_cut = 0
    for number in range(puzzle.num_puzzles):
        pieces = [position.of_puzzle(puzzle, number) for position in kept]
        num_products += _num_products(puzzle, pieces)
        budget = largest
        strings = _strings(puzzle, pieces, budget, settings.max_strings)
        puzzles_cut += strings is None
        while strings is None:
            if budget > 1:
                budget = max(min(budget, _LARGEST_BUDGET) / 2, 1.0)
            else:
                pieces = [position.cheaper_half() for position in pieces]
            strings = _strings(puzzle, pieces, budget, settings.max_strings)
        looked_at += len(strings)
        own = puzzle.puzzles(puzzle.names.keys(strings)) == number
        candidates.append(strings[own])
    codes = np.concatenate(candidates)
    return codes, PuzzleSummary(
        fragments_kept=tuple(len(position.values) for position in kept),
        num_products=float(num_products),
        num_looked_at=looked_at,
        num_puzzles_cut=puzzles_cut,
        num_candidates=len(codes),
    )


def _budget(puzzle: FragmentPuzzle, settings: Assembly) -> float:
    """Return the noise budget in units of the fewest rivals that a string can have."""
    return max(settings.noise_budget / _FEWEST_RIVALS**puzzle.num_positions, 1.0)


def _kept_fragments(
    puzzle: FragmentPuzzle,
    votes: Values,
    num_reports: int,
    oracle: PureOracle,
    settings: Assembly,
    *,
    is_first: bool,
) -> _Pieces:
    possible = puzzle.is_possible.copy()
    if is_first:
        # The all-blank text: no word is empty.
        possible[0] = False
    values = np.flatnonzero(np.tile(possible, puzzle.num_puzzles))
    order = np.argsort(-votes[values], kind="stable")[: settings.max_fragments]
    values = values[order]
    if num_reports == 0:
        values = values[:0]
    distinct, numbers = np.unique(votes[values], return_inverse=True)
    rivals = np.count_nonzero(possible) * chance_of_votes(distinct, num_reports, oracle.q)
    costs = (np.maximum(rivals, _FEWEST_RIVALS) / _FEWEST_RIVALS)[numbers]
    affordable = costs <= _budget(puzzle, settings)
    return _Pieces(values=values[affordable], costs=costs[affordable])


def _num_products(puzzle: FragmentPuzzle, pieces: list[_Pieces]) -> int:
    live, ended = 1, 0
    for here in pieces:
        to_end = int(np.count_nonzero(_ends(puzzle, here.values)))
        blank = int(np.count_nonzero(here.values == 0))
        live, ended = live * (len(here.values) - to_end), live * to_end + ended * blank
    return live + ended


def _strings(
    puzzle: FragmentPuzzle, pieces: list[_Pieces], budget: float, most: int
) -> Codes | None:
    """Return the codes of all strings within the budget, or None if there are more than ``most``.

    Strings grow position by position. Costs are at least 1, so a beginning beyond the budget never
    comes back within it.
    """
    texts = np.zeros((1, 0), dtype=np.int64)
    costs = np.ones(1)
    ended = np.zeros(1, dtype=np.bool_)
    for here in pieces:
        # Pieces ascend in cost, so what a beginning can afford are the first few.
        affordable = np.searchsorted(here.costs, budget / costs, side="right")
        blank = int(np.argmax(here.values == 0)) if (here.values == 0).any() else len(here.values)
        counts = np.where(ended, affordable > blank, affordable)
        total = int(counts.sum())
        if total > most:
            return None
        before = np.repeat(np.arange(len(texts)), counts)
        choice = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        choice[ended[before]] = blank
        texts = np.concatenate([texts[before], here.values[choice][:, None]], axis=1)
        costs = costs[before] * here.costs[choice]
        ended = _ends(puzzle, texts[:, -1])
    return puzzle.text_codes[texts].reshape(len(texts), puzzle.length)


def _ends(puzzle: FragmentPuzzle, texts: Values) -> npt.NDArray[np.bool_]:
    """Return which texts end in a blank, so that only blanks may follow."""
    return np.asarray(puzzle.text_codes[texts, -1] == END)
