"""The fuzzer itself: it finds what it is to find, and its cases never change."""

from __future__ import annotations

import pickle
import resource
import signal

import numpy as np
import pytest

from fedhh.validation import InputError
from tests.fuzz import cases
from tests.fuzz.cases import SHARES, CaseHangsError, feed, limited, number_of, survives
from tests.fuzz.mutation import mutate_bytes, mutate_table, rng_of
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


@pytest.fixture
def control(monkeypatch):
    """A kind of 100 cases; what is recorded of it."""
    monkeypatch.setitem(SHARES, "control", 1)
    monkeypatch.setattr(cases, "number_of", lambda kind: 100)
    recorded: list[object] = []
    return lambda run: feed("control", run, lambda name, value: recorded.append(value)), recorded


def test_a_parser_that_stumbles_over_one_byte_is_found_and_the_others_are_tried(control):
    run_all, recorded = control

    def run(rng) -> bool:
        data = mutate_bytes(b"user,word\nu,a\n", rng)
        return survives(lambda: {0: 1}[data.count(b"\0")] if len(data) > 9 else refuse(), data)

    with pytest.raises(AssertionError, match="KeyError"):
        run_all(run)
    kind, accepted, refused, failed = recorded[0]
    assert kind == "control"
    assert min(accepted, refused, failed) > 0
    assert accepted + refused + failed == 100


def test_cases_that_are_all_accepted_or_all_refused_try_nothing(control):
    for outcome in (True, False):
        with pytest.raises(AssertionError):
            control[0](lambda rng, outcome=outcome: outcome)


def test_a_case_that_hangs_or_fills_the_memory_is_found(control, monkeypatch):
    monkeypatch.setattr(signal, "alarm", lambda seconds: signal.raise_signal(signal.SIGALRM))
    with pytest.raises(CaseHangsError), limited():
        pass
    monkeypatch.undo()
    peaks = iter(range(0, 1_000 * cases.MOST_MEMORY, cases.MOST_MEMORY + 1))
    monkeypatch.setattr(cases, "number_of", lambda kind: 2)
    monkeypatch.setattr(cases, "peak", lambda: next(peaks))
    with pytest.raises(AssertionError, match="control 1: took"):
        control[0](lambda rng: True)
    monkeypatch.undo()
    before = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr(cases, "number_of", lambda kind: 1)
    with pytest.raises(AssertionError, match="MemoryError"):
        control[0](lambda rng: survives(lambda: np.ones(2**40), "a terabyte"))
    assert resource.getrlimit(resource.RLIMIT_AS) == before


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


def test_each_kind_has_its_share(monkeypatch):
    assert sum(SHARES.values()) == 20_000
    assert set(EXAMPLES) < set(SHARES)
    assert len(TABLES) == 4
    monkeypatch.setattr(cases, "TOTAL", 100_000)
    assert number_of("resume") == 10_000
    monkeypatch.setattr(cases, "TOTAL", 1)
    assert number_of("resume") == 2
