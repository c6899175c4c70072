"""Caps against every way to send records in a short life."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError

CAPS = [
    Cap(amount=2),
    Cap(amount=1, rollover=2),
    Cap(amount=2, rollover=None),
    Cap(amount=2, session_days=2),
    Cap(amount=1, session_days=3, rollover=1),
    Cap(amount=2, rollover=1, lifetime=5),
]
DAYS = 4


def histories(cap: Cap) -> list[tuple[int, ...]]:
    """Return what a device can send each day, by trying every number of records."""
    most = 2 * DAYS
    possible = []
    for wanted in itertools.product(range(most + 1), repeat=DAYS):
        balance, sent = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        for day, number in enumerate(wanted):
            balance = cap.renewed(balance, day)
            if number > cap.allowed(balance, sent)[0]:
                break
            balance, sent = balance - number, sent + number
        else:
            possible.append(wanted)
    return possible


@pytest.mark.parametrize("cap", CAPS, ids=repr)
def test_the_most_is_what_the_busiest_life_sends(cap: Cap) -> None:
    possible = np.array(histories(cap))
    for first in range(DAYS):
        for number in range(1, DAYS - first + 1):
            busiest = possible[:, first : first + number].sum(axis=1).max()
            assert cap.most_in(first, number) == busiest
    for number in range(1, DAYS + 1):
        windows = [possible[:, f : f + number].sum(axis=1).max() for f in range(DAYS - number + 1)]
        assert cap.most_in_any(number, of_days=DAYS) == max(windows)


@pytest.mark.parametrize(
    "wrong",
    [{"amount": 0}, {"amount": 1, "session_days": 0}, {"amount": 1, "rollover": -1}],
)
def test_caps_of_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="Expected"):
        Cap(**wrong)


def test_a_window_longer_than_the_life_is_refused() -> None:
    with pytest.raises(InputError, match="num_days"):
        Cap(amount=1).most_in_any(3, of_days=2)
