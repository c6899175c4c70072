from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from fedhh.hashing import NUM_KEYS, HashFamily, StringKeys, derived_seeds
from fedhh.validation import InputError

ALPHA = 1e-9
PRIME = 2**61 - 1


def test_a_cell_is_the_polynomial_modulo_the_prime_modulo_the_cells():
    # Python's integers are the slow reference; the edges are where folding could go wrong.
    rng = np.random.default_rng(0)
    edges = [0, 1, 2, PRIME - 2, PRIME - 1, 2**32 - 1, 2**32, 2**60]
    keys = edges + rng.integers(PRIME, size=20).tolist()
    coefficients = np.array(
        [
            *itertools.product([0, 1, PRIME - 1], repeat=3),
            *rng.integers(PRIME, size=(20, 3)).tolist(),
        ],
        dtype=np.uint64,
    )
    for num_cells in (2, 1000, 1024):
        family = HashFamily(coefficients=coefficients, num_cells=num_cells)
        for row, (a, b, c) in enumerate(coefficients.tolist()):
            expected = [((a + b * x + c * x * x) % PRIME) % num_cells for x in keys]
            got = family.cells(np.full(len(keys), row), np.array(keys))
            assert got.tolist() == expected


@pytest.mark.parametrize("keys", [(0, 1, 2), (5, 6, 7), (3, 2**40, PRIME - 1)])
def test_three_keys_fall_into_cells_independently(keys):
    assert statistic(HashFamily.draw(num_hashes=200_000, num_cells=4, seed=1), keys) < limit()


def test_the_test_of_independence_notices_pairwise_hashing_and_uneven_cells():
    family = HashFamily.draw(num_hashes=200_000, num_cells=4, seed=1)
    linear = family.coefficients.copy()
    linear[:, 2] = 0
    assert statistic(HashFamily(coefficients=linear, num_cells=4), (5, 6, 7)) > limit()
    uneven = family.coefficients.copy()
    uneven[:4000] = 0
    assert statistic(HashFamily(coefficients=uneven, num_cells=4), (5, 6, 7)) > limit()


def statistic(family: HashFamily, keys: tuple[int, ...]) -> float:
    """Chi-square of the joint distribution of three keys' cells against the uniform one."""
    rows = np.arange(len(family.coefficients))
    cells = [family.cells(rows, np.full(len(rows), key)) for key in keys]
    observed = np.bincount(np.ravel_multi_index(cells, (4, 4, 4)), minlength=64)
    expected = len(rows) / 64
    return float(((observed - expected) ** 2 / expected).sum())


def limit() -> float:
    return float(chi2.isf(ALPHA, 63))


def test_a_family_is_fixed_by_its_seed():
    def draw(seed: int) -> list[list[int]]:
        return HashFamily.draw(num_hashes=3, num_cells=7, seed=seed).coefficients.tolist()

    assert draw(4) == draw(4)
    assert draw(4) != draw(5)


def test_derived_seeds_differ_within_a_run_and_between_runs():
    assert derived_seeds(4, 3) == derived_seeds(4, 3)
    assert len({*derived_seeds(4, 3), *derived_seeds(5, 3), 4, 5}) == 8


def test_short_strings_are_read_as_numbers_and_so_never_share_a_key():
    keys = StringKeys.draw(alphabet_size=3, length=4, seed=0)
    codes = np.array(list(itertools.product(range(3), repeat=4)), dtype=np.uint16)
    assert keys.keys(codes).tolist() == list(range(81))
    assert keys.num_keys == 81


def test_long_strings_get_keys_from_a_random_polynomial():
    keys = StringKeys.draw(alphabet_size=100, length=12, seed=0)
    assert keys.point != StringKeys.draw(alphabet_size=100, length=12, seed=1).point
    rng = np.random.default_rng(0)
    codes = rng.integers(100, size=(5000, 12)).astype(np.uint16)
    got = keys.keys(codes)
    for row, key in zip(codes[:50].tolist(), got.tolist(), strict=False):
        assert key == sum(c * keys.point ** (11 - i) for i, c in enumerate(row)) % PRIME
    assert len(set(got.tolist())) == len(np.unique(codes, axis=0))
    assert got.max() < keys.num_keys == NUM_KEYS


def test_bad_sizes_are_refused():
    with pytest.raises(InputError, match="num_cells >= 1, got num_cells=0"):
        HashFamily.draw(num_hashes=1, num_cells=0, seed=0)
