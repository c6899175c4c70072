import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.repeated.budgets import DeviceBudgets
from fedhh.testing import ALPHA, distribution_p_value, follows_distribution
from tests.thinned import thinned

CAPS = st.builds(
    Cap,
    amount=st.integers(1, 4),
    session_days=st.integers(1, 30),
    rollover=st.none() | st.integers(0, 5),
    lifetime=st.none() | st.integers(1, 8),
)


@pytest.mark.parametrize(
    "cap",
    [
        Cap(amount=2, session_days=9),
        Cap(amount=1, rollover=2),
        Cap(amount=2, lifetime=3),
    ],
    ids=str,
)
def test_three_devices_answer_no_more_than_their_cap_allows(cap):
    budgets = DeviceBudgets(cap, arrivals=np.array([0, 1, 0]), every_days=2, cost=1, num_periods=9)
    sent = np.zeros((18, 3), dtype=np.int64)
    for period in range(9):
        devices = np.flatnonzero(np.array([0, 1, 0]) <= period)
        chosen = devices[budgets.choose(devices, period=period, seed=0, most=2).asked]
        budgets.charge(chosen)
        sent[2 * period, chosen] += 1
    assert np.array_equal(budgets.sent, sent.sum(axis=0))
    for device, arrival in enumerate((0, 1, 0)):
        mine = sent[2 * arrival :, device]
        for first, window in itertools.product(range(0, len(mine), 3), (1, 5, 13)):
            days = mine[first : first + window]
            assert days.sum() <= cap.most_in(first, len(days))
    assert sent.sum() > 4


@pytest.mark.slow("::test_three_devices_answer_no_more_than_their_cap_allows")
@settings(max_examples=150)
@given(
    cap=CAPS,
    every_days=st.integers(1, 12),
    cost=st.integers(1, 2),
    arrivals=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    most=st.none() | st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_no_device_ever_answers_more_than_its_cap_allows(
    cap, every_days, cost, arrivals, most, seed
):
    periods = 9
    arrivals = np.array(arrivals)
    budgets = DeviceBudgets(
        cap, arrivals=arrivals, every_days=every_days, cost=cost, num_periods=periods
    )
    sent = np.zeros((periods * every_days, len(arrivals)), dtype=np.int64)
    for period in range(periods):
        devices = np.flatnonzero(arrivals <= period)
        asking = budgets.choose(devices, period=period, seed=seed, most=most)
        assert len(asking.asked) == min(asking.wanted, asking.with_budget)
        chosen = devices[asking.asked]
        assert len(np.unique(chosen)) == len(chosen)
        budgets.charge(chosen)
        sent[period * every_days, chosen] += cost
    assert np.array_equal(budgets.sent, sent.sum(axis=0))
    for device, arrival in enumerate(arrivals):
        mine = sent[arrival * every_days :, device]
        lifetime = len(mine)
        for first, window in itertools.product(range(0, lifetime, 3), (1, 5, 13, 40)):
            days = mine[first : first + window]
            assert days.sum() <= cap.most_in(first, len(days))


def test_a_device_with_budget_is_asked_whenever_all_are_wanted():
    cap = Cap(amount=2, session_days=21)
    budgets = DeviceBudgets(
        cap, arrivals=np.array([0, 1]), every_days=7, cost=1, num_periods=9
    )  # fmt: skip
    asked = []
    for period in range(9):
        devices = np.array([0] if period == 0 else [0, 1])
        asking = budgets.choose(devices, period=period, seed=0, most=2)
        budgets.charge(devices[asking.asked])
        asked.append(devices[asking.asked].tolist())
    # Two of three weeks, from each device's own first one.
    assert asked == [[0], [0, 1], [1], [0], [0, 1], [1], [0], [0, 1], [1]]


def test_an_even_share_uses_what_a_cap_allows():
    def share(cap, every_days=7, cost=1, periods=26):
        return DeviceBudgets(
            cap, arrivals=np.zeros(1, int), every_days=every_days, cost=cost, num_periods=periods
        ).even_share

    assert share(Cap(amount=1, session_days=28)) == pytest.approx(0.25)
    assert share(Cap(amount=13, session_days=365)) == pytest.approx(13 * 7 / 365)
    assert share(Cap(amount=2, session_days=28), cost=2) == pytest.approx(0.25)
    assert share(Cap(amount=9)) == 1
    assert share(Cap(amount=1, lifetime=13)) == pytest.approx(0.5)


def test_an_even_share_of_devices_is_not_rounded_down_by_floating_point():
    # 0.29 * 100 is 28.999999999999996.
    budgets = DeviceBudgets(
        Cap(amount=29, session_days=100),
        arrivals=np.zeros(100, int), every_days=1, cost=1, num_periods=2,
    )  # fmt: skip
    assert budgets.choose(np.arange(100), period=0, seed=0, most=None).wanted == 29


@pytest.mark.parametrize(
    ("draws", "more", "less"), thinned([(600, 0.16, 0.06), (6_000, 0.115, 0.09)])
)
def test_who_is_asked_is_drawn_uniformly_among_those_with_budget(draws, more, less):
    cap = Cap(amount=1, session_days=100)
    drawn = []
    for seed in range(draws):
        budgets = DeviceBudgets(
            cap, arrivals=np.zeros(5, dtype=np.int64), every_days=7, cost=1, num_periods=2
        )
        budgets.charge(np.array([], dtype=np.int64))
        asking = budgets.choose(np.arange(5), period=0, seed=seed, most=2)
        drawn.append(tuple(asking.asked.tolist()))
    pairs = list(itertools.combinations(range(5), 2))
    assert follows_distribution(drawn, dict.fromkeys(pairs, 0.1))
    wrong = {pair: more if 0 in pair else less for pair in pairs}
    assert distribution_p_value(drawn, wrong) < ALPHA


def test_periods_come_in_order():
    budgets = DeviceBudgets(
        Cap(amount=1), arrivals=np.zeros(1, int), every_days=7, cost=1, num_periods=3
    )
    with pytest.raises(ValueError, match="Expected period 0, got 1"):
        budgets.choose(np.arange(1), period=1, seed=0, most=None)
