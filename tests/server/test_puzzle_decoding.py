from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from fedhh.oracles import SubsetSelection
from fedhh.server.puzzle_decoding import assemble
from fedhh.words.puzzle import FragmentPuzzle

PUZZLE = FragmentPuzzle(alphabet_size=3, length=6, fragment_length=2, num_puzzles=4, hash_seed=9)
ORACLE = SubsetSelection(epsilon=1.0, domain_size=PUZZLE.num_fragments)
NUM_REPORTS = np.array([400, 300, 350])
ALL = {"max_fragments": 10**6, "noise_budget": math.inf, "max_strings": 10**6}


HELD = (1, 2, 2, 1, 0, 0)


def random_support(seed: int) -> np.ndarray:
    """Votes of noise, and of one string that everybody holds."""
    rng = np.random.default_rng(seed)
    support = rng.binomial(NUM_REPORTS[:, None], ORACLE.q, size=(3, PUZZLE.num_fragments))
    codes = np.array([HELD], dtype=np.uint16)
    support[np.arange(3), PUZZLE.fragments(codes, PUZZLE.names.keys(codes))[0]] = NUM_REPORTS
    return support


def strings_of(codes: np.ndarray) -> set[tuple[int, ...]]:
    assert len({tuple(row) for row in codes.tolist()}) == len(codes)
    return {tuple(row) for row in codes.tolist()}


def all_words() -> list[tuple[int, ...]]:
    """Every string in which nothing follows a blank, but the empty one."""
    return [
        s
        for s in itertools.product(range(3), repeat=6)
        if any(s) and all(not (s[i] == 0 and s[i + 1]) for i in range(5))
    ]


def slow_assembly(
    support: np.ndarray, *, max_fragments: int, noise_budget: float
) -> set[tuple[int, ...]]:
    """String by string, from the definition."""
    kept = []
    for position in range(3):
        possible = [
            v
            for v in range(PUZZLE.num_fragments)
            if PUZZLE.is_possible[v % 9] and not (position == 0 and v % 9 == 0)
        ]
        votes = support[position]
        top = sorted(possible, key=lambda v: (-votes[v], v))[:max_fragments]
        rivals = len(possible) // 4
        costs = {
            v: max(0.1, rivals * binom.sf(votes[v] - 1, NUM_REPORTS[position], ORACLE.q))
            for v in top
        }
        kept.append(costs)
    found = set()
    for string in all_words():
        codes = np.array([string], dtype=np.uint16)
        pieces = PUZZLE.fragments(codes, PUZZLE.names.keys(codes))[0].tolist()
        if all(piece in costs for piece, costs in zip(pieces, kept, strict=True)):
            cost = math.prod(costs[piece] for piece, costs in zip(pieces, kept, strict=True))
            if cost <= max(noise_budget, 0.1**3) * (1 + 1e-12):
                found.add(string)
    return found


@pytest.mark.parametrize("max_fragments", [8, 15, 10**6])
@pytest.mark.parametrize("noise_budget", [1e-9, 0.05, 1.0, 30.0, math.inf])
def test_strings_are_those_of_the_definition(max_fragments, noise_budget):
    settings = {"max_fragments": max_fragments, "noise_budget": noise_budget}
    for seed in range(2):
        support = random_support(seed)
        codes = assemble(PUZZLE, support, NUM_REPORTS, ORACLE, max_strings=10**6, **settings)
        expected = slow_assembly(support, **settings)
        assert strings_of(codes) == expected
        assert HELD in expected


def test_with_every_fragment_every_word_is_a_candidate_once():
    codes = assemble(PUZZLE, random_support(0), NUM_REPORTS, ORACLE, **ALL)
    assert strings_of(codes) == set(all_words())


def test_too_many_strings_are_cut():
    support = random_support(1)
    full = assemble(PUZZLE, support, NUM_REPORTS, ORACLE, **ALL)
    for most in (1, 7, 60):
        settings = {**ALL, "max_strings": most}
        codes = assemble(PUZZLE, support, NUM_REPORTS, ORACLE, **settings)
        assert strings_of(codes) < strings_of(full)
        assert len(codes) <= 4 * most


def test_a_cut_keeps_the_strings_that_are_least_like_noise():
    support = random_support(2)
    found = assemble(PUZZLE, support, NUM_REPORTS, ORACLE, **{**ALL, "max_strings": 20})
    assert HELD in strings_of(found)


def test_a_position_without_reports_leaves_no_string():
    codes = assemble(PUZZLE, random_support(3), np.array([400, 0, 350]), ORACLE, **ALL)
    assert len(codes) == 0
