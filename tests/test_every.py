"""A test over many values fails with any of them, and says which."""

import inspect

import pytest

from tests.every import every


def test_every_case_runs_with_what_is_asked_for_besides():
    seen = []

    @every("c", [1, 2])
    @every(("a", "b"), [(1, 2), (3, 4)])
    def check(a, b, c, tmp_path):
        seen.append((a, b, c, tmp_path))

    assert list(inspect.signature(check).parameters) == ["tmp_path"]
    check(tmp_path="here")
    assert seen == [(1, 2, 1, "here"), (3, 4, 1, "here"), (1, 2, 2, "here"), (3, 4, 2, "here")]


def test_a_failure_of_any_case_fails_and_says_its_values():
    @every("size", [1, 2, 3])
    def check(size):
        assert size != 3

    with pytest.raises(AssertionError) as failed:
        check()
    assert failed.value.__notes__ == ["size=3"]


def test_no_cases_are_refused():
    with pytest.raises(ValueError, match="no values of size"):
        every("size", [])
