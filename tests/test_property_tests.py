"""Property tests take the same examples in every run, and none fails for being slow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import conftest


def examples(profile: settings) -> list[int]:
    seen = []

    @settings(profile)
    @given(st.integers())
    def look(number: int) -> None:
        seen.append(number)

    look()
    return seen


@pytest.mark.parametrize("name", ["stable", "ci"])
def test_the_examples_of_a_property_are_always_the_same(name: str):
    profile = settings.get_profile(name)
    assert profile.deadline is None
    first = examples(profile)
    assert examples(profile) == first
    assert len(set(first)) > 10


def test_a_failure_in_ci_says_how_to_see_it_again():
    assert settings.get_profile("ci").print_blob
    assert conftest.profile_of({"CI": "true"}) == "ci"
    assert conftest.profile_of({"CI": "false"}) == conftest.profile_of({}) == "stable"
