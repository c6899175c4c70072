"""Caps against every way to send records in a short life, and sending replayed against them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedhh.audit import replay_cap
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError
from tests.every import every

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


def test_a_window_longer_than_the_history_is_refused() -> None:
    with pytest.raises(InputError, match="num_days"):
        Cap(amount=1).most_in_any(3, of_days=2)


def excesses(cap, counts):
    """Of a device's records per day: how many above the cap, in the worst window."""
    ends = [(first, last) for first in range(len(counts)) for last in range(first, len(counts))]
    return max(counts[a : b + 1].sum() - cap.most_in(a, b - a + 1) for a, b in ends)


@every("session_days", [1, 3])
@every("rollover", [0, 2, None])
@every("lifetime", [None, 6])
def test_a_replay_finds_the_worst_of_all_windows(session_days, rollover, lifetime):
    cap = Cap(amount=2, session_days=session_days, rollover=rollover, lifetime=lifetime)
    rng = np.random.default_rng(3)
    for mean in (0.4, 1.0, 2.0):
        counts = rng.poisson(mean, size=(12, 8))
        devices, days = np.nonzero(counts)
        order = rng.permutation(devices.size)
        found = replay_cap(cap, devices[order], days[order], counts[devices, days][order])
        worst = [excesses(cap, each) for each in counts]
        assert found.num_overspending == sum(each > 0 for each in worst)
        assert found.most_in_a_day == counts.max()
        assert found.most_in_lifetime == counts.sum(axis=1).max()
        for each in (found.first, found.worst):
            if max(worst) <= 0:
                assert each is None
                continue
            window = counts[each.device, each.first_day : each.last_day + 1]
            assert window.sum() == each.sent > each.stated
            assert each.stated == cap.most_in(each.first_day, each.num_days)
        if found.worst is not None:
            assert found.worst.sent - found.worst.stated == max(worst)


def test_what_a_device_saved_up_is_not_held_against_it():
    idle = Cap(amount=1, rollover=None)
    twenty_idle_days = ([0, 0], [20, 21], [10, 10])
    assert replay_cap(idle, *twenty_idle_days).worst is None
    found = replay_cap(Cap(amount=1), *twenty_idle_days)
    assert str(found.first) == "sent 10 in 1 day, stated at most 1"
    assert str(found.worst) == "sent 20 in 2 days, stated at most 2"
    assert replay_cap(idle, [0], [8], [10]).worst is not None


def test_no_records_are_no_trouble_and_wrong_ones_are_refused():
    assert replay_cap(Cap(amount=1), [], []).num_devices == 0
    assert replay_cap(Cap(amount=1), [4], [2], [0]).most_in_lifetime == 0
    with pytest.raises(InputError, match="days of at least 0, got days=-1"):
        replay_cap(Cap(amount=1), [0], [-1])
    with pytest.raises(InputError, match="one length"):
        replay_cap(Cap(amount=1), [0, 1], [0])
