from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedhh.kernels.prng import mix, next_below, next_float, next_uint64
from fedhh.random import Stream, generator, kernel_state
from fedhh.validation import InputError


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
        "CURATOR": 10, "EVENTS": 11, "QUEUE": 12, "MEMO": 13, "CALENDAR": 14, "INGESTION": 15,
    }  # fmt: skip


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed=-1"):
        generator(-1, Stream.SAMPLING)


def test_xoshiro_gives_the_published_sequence():
    # First outputs of xoshiro256++ for the state (1, 2, 3, 4), computed from the definition.
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    words, mask = [1, 2, 3, 4], 2**64 - 1

    def step() -> int:
        def rotate(x: int, k: int) -> int:
            return ((x << k) | (x >> (64 - k))) & mask

        result = (rotate((words[0] + words[3]) & mask, 23) + words[0]) & mask
        t = (words[1] << 17) & mask
        words[2] ^= words[0]
        words[3] ^= words[1]
        words[1] ^= words[2]
        words[0] ^= words[3]
        words[2] ^= t
        words[3] = rotate(words[3], 45)
        return result

    assert [int(next_uint64(state)) for _ in range(50)] == [step() for _ in range(50)]
    assert step() == int(next_uint64(state))
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
