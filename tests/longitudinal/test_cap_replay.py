"""Sending replayed against a cap: the same as looking at every window."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.longitudinal.audit import replay_cap
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError


def excesses(cap, counts):
    """Of a device's records per day: how many above the cap, in the worst window."""
    ends = [(first, last) for first in range(len(counts)) for last in range(first, len(counts))]
    return max(counts[a : b + 1].sum() - cap.most_in(a, b - a + 1) for a, b in ends)


@pytest.mark.parametrize("session_days", [1, 3])
@pytest.mark.parametrize("rollover", [0, 2, None])
@pytest.mark.parametrize("lifetime", [None, 6])
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
        assert found.most_in_life == counts.sum(axis=1).max()
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
    assert replay_cap(Cap(amount=1), [4], [2], [0]).most_in_life == 0
    with pytest.raises(InputError, match="days of at least 0, got days=-1"):
        replay_cap(Cap(amount=1), [0], [-1])
    with pytest.raises(InputError, match="one length"):
        replay_cap(Cap(amount=1), [0, 1], [0])
