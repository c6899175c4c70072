"""What all reports of a device say, for an answer by name."""

from __future__ import annotations

import pytest

from fedhh.longitudinal.memoization import (
    ANSWERS,
    MemoizedBits,
    account_memo,
    make_answer,
)
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned


@pytest.mark.parametrize("name", thinned(sorted(ANSWERS)))
def test_every_answer_is_accounted_by_its_name(name):
    found = account_memo(name, local_epsilon=2.0, days=3)
    assert found.settings == ANSWERS[name]
    assert [row.days for row in found.rows] == [1, 2, 3]
    content = found.to_dict()
    assert (content["answer"], content["delta"], content["found_in_crowd"]) == (name, 0.0, None)
    assert (content["epsilon_forever"] is None) == (name == "fresh")


def test_a_device_is_looked_for_in_its_crowd():
    found = account_memo("one-bit-mean", local_epsilon=8.0, days=3, crowd=5, seed=3)
    assert found.found.by_chance == 0.2
    assert 0 < found.change_shows < 1
    assert account_memo("fresh", local_epsilon=1.0, days=1).change_shows is None


@pytest.mark.slow("::test_a_device_is_looked_for_in_its_crowd")
def test_a_device_is_found_again_by_its_memory():
    found = account_memo("rappor", local_epsilon=8.0, days=10, crowd=5, bits=16, seed=3)
    assert found.title == "rappor (bits 16, hashes 2, p 0.5, q 0.75)"
    assert found.found.by_chance == 0.2 < found.found.lower
    assert 0 < found.change_shows < 1
    assert account_memo("fresh", local_epsilon=1.0, days=1).change_shows is None


def test_answers_are_made_by_name():
    made = make_answer("rappor", local_epsilon=1.0, hashes=1)
    assert isinstance(made, MemoizedBits)
    assert made.epsilon_forever == pytest.approx(1.0)
    fresh = make_answer("fresh", local_epsilon=1.0, oracle="oue", domain_size=7)
    assert (fresh.epsilon, fresh.domain_size) == (1.0, 7)


@every(
    ("name", "asked", "message"),
    [
        ("rapor", {}, "did you mean 'rappor'"),
        ("rappor", {"drawn": 2}, "no drawn with answer='rappor', which takes bits, hashes, p, q"),
        ("rappor", {"bits": 5_000}, "at most 4096 bits"),
        ("rappor", {"days": 1_001}, "days=1001"),
        ("rappor", {"changes": 0}, "changes=0"),
        ("rappor", {"crowd": 1}, "crowd=1"),
        ("fresh", {"crowd": 3}, "no crowd with fresh noise"),
    ],
)
def test_what_cannot_be_accounted_is_refused(name, asked, message):
    with pytest.raises(InputError, match=message):
        account_memo(name, **{"local_epsilon": 1.0, "days": 2, **asked})
