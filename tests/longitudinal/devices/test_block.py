"""Devices from day to day: which records are sent, against enumeration and literal devices."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2

from fedhh.kernels.device_days import draw_day, value_distribution, values_of
from fedhh.longitudinal.devices.model import (
    Delay,
    DeviceBlock,
    DeviceModel,
    DeviceUseCase,
    EventDistribution,
)
from fedhh.longitudinal.devices.worker import FragmentRecordMaker
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.records import FragmentRecords, OracleRecords
from fedhh.oracles import OracleSpec
from fedhh.random import Stream, generator, kernel_state
from fedhh.validation import InputError
from tests import questions_of_each_kind as ask

FORM = OracleRecords(spec=OracleSpec(name="grr", epsilon=1.0), domain_size=2)


def model(*, number=100, mean=2.0, spread=0.0, cap=None, **changes):
    events = EventDistribution(mean=mean, spread=spread, weights=np.array([3.0, 1.0]))
    use_case = DeviceUseCase(name="x", form=FORM, cap=cap or Cap(amount=1), events=events)
    settings = {"opt_in": 1.0, "delay": Delay(), "store_days": 2} | changes
    return DeviceModel(num_devices=number, use_cases=(use_case,), **settings)


def p_value(found: Counter, expected: dict) -> float:
    keys = list(expected)
    assert set(found) <= set(keys)
    total = sum(found.values())
    wanted = total * np.array([expected[key] for key in keys])
    counts = np.array([found[key] for key in keys])
    return chi2.sf(((counts - wanted) ** 2 / wanted).sum(), len(keys) - 1)


def sent_by_age(ready, allowed, devices, seed=0):
    """Return how many records of each age devices send that have so many ready."""
    ages = len(ready)
    sent = np.empty(devices, dtype=np.int64)
    stored = np.tile(np.array(ready, dtype=np.int32), (devices, 1))
    picks = draw_day(
        np.zeros(devices),
        np.ones(devices, dtype=np.bool_),
        np.full(devices, allowed, dtype=np.int64),
        np.zeros(ages),
        np.zeros(devices + 1, dtype=np.int64),
        np.zeros((devices, ages), dtype=np.int32),
        stored,
        np.zeros((devices, ages), dtype=np.int32),
        sent,
        kernel_state(np.random.default_rng(seed)),
        kernel_state(np.random.default_rng(seed + 1)),
    )
    assert (sent == min(allowed, sum(ready))).all()
    chosen = picks[:, 0].reshape(devices, -1)
    return Counter(map(tuple, np.sort(chosen, axis=1).tolist()))


def test_any_set_of_ready_records_is_as_likely_to_be_sent():
    ready, allowed = (1, 3, 2), 3
    records = [age for age, count in enumerate(ready) for _ in range(count)]
    subsets = list(itertools.combinations(range(len(records)), allowed))
    distribution = Counter(tuple(records[i] for i in subset) for subset in subsets)
    expected = {ages: count / len(subsets) for ages, count in distribution.items()}
    found = sent_by_age(ready, allowed, 40_000)
    assert p_value(found, expected) > 1e-9
    # Ages alike, whatever there is of each, is another distribution, which the test would see.
    ages = Counter(tuple(sorted(each)) for each in itertools.permutations((0, 1, 1, 1, 2, 2), 3))
    wrong = {key: 1 / len(ages) for key in ages}
    assert p_value(found, wrong) < 1e-9


def literal_devices(*, number, days, rate, weights, oracle, cap, hours, store_days, rng):
    """Return for each device and day the sorted reports of devices that privatize at once."""
    histories = []
    chances = np.asarray(weights) / np.sum(weights)
    for _ in range(number):
        stored: list[tuple[int, int, int]] = []
        history = []
        for day in range(days):
            made = rng.poisson(rate)
            values = rng.choice(len(chances), size=made, p=chances)
            for report in oracle.privatize(values.astype(np.int64), rng=rng).tolist():
                ready = day + math.floor((rng.random() * 24 + hours) / 24)
                stored.append((day, ready, report))
            stored = [record for record in stored if record[0] >= day - store_days]
            ready_now = [i for i, record in enumerate(stored) if record[1] <= day]
            chosen = rng.choice(ready_now, size=min(cap, len(ready_now)), replace=False)
            history.append(tuple(sorted(stored[i][2] for i in chosen)))
            stored = [record for i, record in enumerate(stored) if i not in set(chosen)]
        histories.append(tuple(history))
    return histories


def histories_of(block: DeviceBlock, days: int, seed: int):
    histories = []
    for day in range(days):
        sent = block.simulate()
        reports = FORM.oracle.privatize(sent.values, rng=generator(seed, Stream.RANDOMIZER, 0, day))
        parts = np.split(reports, np.cumsum(sent.by_device)[:-1])
        histories.append([tuple(sorted(part.tolist())) for part in parts])
    return list(zip(*histories, strict=True))


def two_samples(one: Counter, other: Counter) -> float:
    keys = [key for key in {*one, *other} if one[key] + other[key] >= 10]
    a, b = (np.array([each[key] for key in keys], dtype=float) for each in (one, other))
    share = a.sum() / (a + b).sum()
    expected = (a + b) * share
    statistic = ((a - expected) ** 2 / (expected * (1 - share))).sum()
    return chi2.sf(statistic, len(keys) - 1)


@pytest.mark.slow("::test_any_set_of_ready_records_is_as_likely_to_be_sent")
def test_sent_records_have_the_distribution_of_devices_that_privatize_at_once():
    number, days, hours = 2_500, 3, 18.0
    literal = {"days": days, "rate": 1.5, "weights": [3, 1], "oracle": FORM.oracle, "store_days": 1}
    rng = np.random.default_rng(5)
    truth = literal_devices(number=number, cap=1, hours=hours, rng=rng, **literal)
    tiny = model(number=number, mean=1.5, delay=Delay(hours=hours), store_days=1)
    found = Counter(histories_of(DeviceBlock(tiny, 0, 0, number, 7), days, 7))
    assert two_samples(Counter(truth), found) > 1e-9
    for wrong in ({"cap": 1, "hours": 6.0}, {"cap": 2, "hours": hours}):
        other = literal_devices(number=number, rng=rng, **wrong, **literal)
        assert two_samples(Counter(other), found) < 1e-9


def test_no_event_is_sent_twice_and_each_is_its_own_devices():
    devices, ages, days = 50, 4, 12
    held, ready, taken = (np.zeros((devices, ages), dtype=np.int32) for _ in range(3))
    firsts = np.zeros((ages, devices + 1), dtype=np.int64)
    seen = set()
    for day in range(days):
        for counts in (held, ready, taken):
            counts[:, 1:] = counts[:, :-1].copy()
            counts[:, 0] = 0
        firsts = np.roll(firsts, 1, axis=0)
        sent = np.empty(devices, dtype=np.int64)
        picks = draw_day(
            np.full(devices, 1.3),
            np.ones(devices, dtype=np.bool_),
            np.full(devices, 2, dtype=np.int64),
            np.array([0.3, 0.7, 1.0, 1.0]),
            firsts[0],
            held,
            ready,
            taken,
            sent,
            kernel_state(np.random.default_rng(day)),
            kernel_state(np.random.default_rng(100 + day)),
        )
        for device, (age, number) in zip(np.repeat(np.arange(devices), sent), picks, strict=True):
            event = day - age, firsts[age, device] + number
            assert firsts[age, device] <= event[1] < firsts[age, device + 1]
            assert event not in seen
            seen.add(event)
    assert len(seen) > 400


@pytest.mark.parametrize(
    "cap",
    [
        Cap(amount=2),
        Cap(amount=3, session_days=4),
        Cap(amount=1, session_days=2, rollover=None),
        Cap(amount=2, rollover=1, lifetime=7),
    ],
)
def test_caps_hold_and_records_are_neither_made_up_nor_lost(cap):
    size, days = 300, 10
    block = DeviceBlock(model(mean=4.0, spread=1.0, cap=cap, opt_in=0.7), 0, 0, size, 3)
    sent, dropped = [], 0
    counts = np.zeros((2, 2), dtype=np.int64)
    for _ in range(days):
        today = block.simulate()
        block.count_events(counts)
        sent.append(today.by_device)
        dropped += today.dropped
    by_day = np.stack(sent)
    for first in range(days):
        for last in range(first + 1, days + 1):
            window = by_day[first:last].sum(axis=0)
            assert window.max() <= cap.most_in(first, last - first)
    assert by_day.sum() + dropped + block.waiting == counts[1].sum()
    assert 0 < counts[1].sum() < counts[0].sum()
    # Heavy devices use up what they may send.
    assert by_day.sum(axis=0).max() == cap.most_in(0, days)


def test_values_have_their_distribution():
    weights = np.array([5.0, 1.0, 0.0, 3.0, 0.5])
    distribution = value_distribution(weights)
    # Enumeration: a column is as likely as any other, and keeps its value with its cut.
    exact = distribution.cuts / 5 + np.bincount(
        distribution.others, weights=(1 - distribution.cuts) / 5, minlength=5
    )
    assert exact == pytest.approx(weights / weights.sum(), abs=1e-15)
    n = 100_000
    values = values_of(np.full(n, 9, dtype=np.uint64), np.arange(n), distribution)
    found = np.bincount(values, minlength=5)
    expected = n * weights / weights.sum()
    kept = weights > 0
    assert not found[~kept].any()
    statistic = (found[kept] - expected[kept]) ** 2 / expected[kept]
    assert chi2.sf(statistic.sum(), 3) > 1e-9


def test_waits_have_their_distributions():
    assert Delay(hours=0).ready_chances(2).tolist() == [1.0, 1.0]
    assert Delay(hours=12).ready_chances(3).tolist() == [0.5, 1.0, 1.0]
    assert Delay(hours=36).ready_chances(4).tolist() == [0.0, 0.5, 1.0, 1.0]
    assert Delay(hours=24).ready_chances(3).tolist() == [0.0, 1.0, 1.0]
    assert Delay(distribution="geometric", hours=24).ready_chances(2).tolist() == [0.5, 0.5]


def test_rates_differ_by_the_spread():
    rates = EventDistribution(mean=3.0, spread=0.5, weights=np.ones(2)).draw_rates(
        50_000, np.random.default_rng(0)
    )
    assert rates.mean() == pytest.approx(3.0, rel=0.02)
    assert rates.std() == pytest.approx(1.5, rel=0.03)


def test_distributions_are_checked():
    with pytest.raises(InputError, match="mean"):
        EventDistribution(mean=0, spread=1, weights=np.ones(2))
    with pytest.raises(InputError, match="a weight per word"):
        EventDistribution(mean=1, spread=1, weights=np.ones(2), words=["a"])
    with pytest.raises(InputError, match="hours"):
        Delay(hours=-1)


def test_a_word_that_the_alphabet_cannot_spell_is_named():
    form = FragmentRecords(question=ask.records())
    assert FragmentRecordMaker(form, ["abc", "fed"]) is not None
    with pytest.raises(InputError, match="got 'xyz'"):
        FragmentRecordMaker(form, ["abc", "xyz", "fed"])
