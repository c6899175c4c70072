"""The fuzzer itself: it finds what it is to find, and its cases never change."""

from __future__ import annotations

import pickle

import pytest

from fedhh.validation import InputError
from tests.fuzz.mutation import CASES, feed, mutate_bytes, mutate_table, rng_of, survives
from tests.fuzz.test_configs import TABLES
from tests.fuzz.test_readers import EXAMPLES


def refuse() -> None:
    raise InputError("no")


def test_only_an_input_error_is_a_refusal():
    assert survives(lambda: 1, "")
    assert not survives(refuse, "")
    for error in (ValueError("x"), KeyError("x"), MemoryError(), SystemExit(1)):

        def fail(error: BaseException = error) -> None:
            raise error

        with pytest.raises(AssertionError, match="for 'the case'"):
            survives(fail, "the case")


def test_a_parser_that_stumbles_over_one_byte_is_found():
    def run(rng) -> bool:
        data = mutate_bytes(b"user,word\nu,a\n", rng)
        return survives(lambda: {0: 1}[data.count(b"\0")] if data else refuse(), data)

    with pytest.raises(AssertionError, match="KeyError"):
        feed("control", 0, run)


def test_cases_that_are_all_accepted_try_nothing():
    with pytest.raises(AssertionError):
        feed("control", 0, lambda rng: True)


def test_cases_are_the_same_in_every_process():
    assert mutate_bytes(b"user,word\n", rng_of("csv", 3)) == mutate_bytes(
        b"user,word\n", rng_of("csv", 3)
    )
    first, second = (
        [
            pickle.dumps(mutate_table({"a": {"b": {"c": 2}}}, rng_of("x", case)))
            for case in range(500)
        ]
        for _ in range(2)
    )
    assert first == second


def test_there_are_twenty_thousand_cases():
    readers = sum(chunks for _, _, chunks in EXAMPLES.values())
    assert (readers + 12 + 12 + 8 + 8) * CASES == 20_000
    assert len(TABLES) == 4
