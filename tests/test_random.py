from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from fedhh.kernels.prng import mix, next_below, next_float, next_uint64
from fedhh.random import KeyedPermutation, Stream, generator, kernel_state
from fedhh.validation import InputError
from tests.every import every
from tests.kernels.drawing_reference import xoshiro
from tests.thinned import thinned


def test_addresses_that_differ_in_any_part_give_different_streams():
    addresses = [
        (seed, stream, *path)
        for seed, stream in itertools.product((0, 1), (Stream.SAMPLING, Stream.RANDOMIZER))
        for path in ((), (0,), (0, 0), (0, 1), (1, 0))
    ]
    draws = {generator(*address).integers(2**63) for address in addresses}
    assert len(draws) == len(addresses)


def test_purposes_keep_their_numbers():
    # A number is part of what a seed means: changing one changes every published result.
    assert {s.name: s.value for s in Stream} == {
        "COHORT": 1, "SAMPLING": 2, "RANDOMIZER": 3, "POPULATION": 4, "HASHING": 5,
        "TIE_BREAK": 6, "TALLY": 7, "BOOTSTRAP": 8, "SUBSAMPLE": 9,
        "CURATOR": 10, "EVENTS": 11, "QUEUE": 12, "MEMOIZATION": 13, "CALENDAR": 14,
        "INGESTION": 15, "CHECK_IN": 16, "ELIGIBILITY": 17, "DROPOUT": 18, "ADVERSARY": 20,
    }  # fmt: skip


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed=-1"):
        generator(-1, Stream.SAMPLING)


def test_xoshiro_gives_the_published_sequence():
    # First outputs of xoshiro256++ for the state (1, 2, 3, 4), computed from the definition.
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    words = [1, 2, 3, 4]
    assert [int(next_uint64(state)) for _ in range(50)] == [xoshiro(words) for _ in range(50)]
    assert mix(np.uint64(0)) == 0


def test_bounded_draws_are_uniform_and_floats_lie_in_the_unit_interval():
    state = kernel_state(np.random.default_rng(1))
    draws = np.array([int(next_below(state, np.uint64(6))) for _ in range(60_000)])
    counts = np.bincount(draws, minlength=6)
    assert len(counts) == 6
    # Chi-square, 5 degrees of freedom; above 50 with probability 1e-9.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 50
    floats = [float(next_float(state)) for _ in range(1_000)]
    assert min(floats) >= 0
    assert max(floats) < 1


@every("size", [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1_000, 4_095, 4_096, 4_097, 100_000])
def test_a_keyed_permutation_has_every_number_once(size):
    for seed in range(3):
        order = KeyedPermutation.draw(size, rng=generator(seed, Stream.COHORT))
        assert np.array_equal(np.sort(order.at(np.arange(size))), np.arange(size))


@pytest.mark.parametrize("size", [10**9, 2**30, 2**30 + 1, 2**40, 2**62])
def test_numbers_of_a_large_permutation_differ_lie_inside_and_are_spread(size):
    order = KeyedPermutation.draw(size, rng=generator(0, Stream.COHORT))
    positions = np.concatenate([np.arange(20_000), size - 1 - np.arange(20_000)])
    numbers = order.at(positions)
    assert numbers.dtype == np.int64
    assert len(np.unique(numbers)) == 40_000
    assert numbers.min() >= 0
    assert numbers.max() < size
    cells = np.bincount((numbers / size * 64).astype(np.int64), minlength=64)
    assert ((cells - 625) ** 2 / 625).sum() < chi2.isf(1e-9, 63)
    # A position's number does not depend on what else is asked for.
    assert np.array_equal(order.at(positions[::7]), numbers[::7])
    other = KeyedPermutation.draw(size, rng=generator(1, Stream.COHORT))
    assert (other.at(positions) != numbers).mean() > 0.999


def orders_of_three(seeds: int, permuted) -> np.ndarray:
    """How often each order of three of five numbers comes first."""
    found = [permuted(seed)[:3] for seed in range(seeds)]
    return np.unique(np.array(found) @ [25, 5, 1], return_counts=True)[1]


def spread(counts: np.ndarray, cells: int) -> float:
    expected = counts.sum() / cells
    return float(((counts - expected) ** 2 / expected).sum() + (cells - len(counts)) * expected)


@pytest.mark.parametrize("seeds", thinned([900, 3_000]))
def test_positions_of_a_small_permutation_are_uniform_together(seeds):
    def permuted(seed: int) -> np.ndarray:
        keyed = KeyedPermutation.draw(5, rng=np.random.default_rng(seed))
        return keyed.at(np.arange(5))

    assert spread(orders_of_three(seeds, permuted), 60) < chi2.isf(1e-9, 59)

    def weak(seed: int) -> np.ndarray:
        keys = np.random.default_rng(seed).integers(2**64, size=2, dtype=np.uint64)
        return KeyedPermutation(size=5, keys=keys).at(np.arange(5))

    # Two rounds are too few, and the test sees it.
    assert spread(orders_of_three(seeds, weak), 60) > chi2.isf(1e-9, 59)


def test_a_permutation_of_nothing_is_refused():
    with pytest.raises(InputError, match="size >= 1, got size=0"):
        KeyedPermutation.draw(0, rng=np.random.default_rng(0))
