"""Audits of whole histories: honest devices pass close to what they state, others are detected."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from fedhh.audit import (
    NO_EVENT,
    NeighboringHistories,
    audit_device,
    neighboring_histories,
    stated_records,
    telling_epsilon,
)
from fedhh.audit.devices import LEVELS
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.oracles import GeneralizedRandomizedResponse, SubsetSelection
from fedhh.validation import InputError
from tests.faulty_devices import (
    CappedDevice,
    ForgetsItsLifetime,
    HasNoCap,
    IsSilentAboutValueZero,
    KeepsWhatIsLeft,
    RefillsTwice,
    SendsAgain,
    SendsAtRandom,
)
from tests.thinned import thinned

NUM_DAYS = 6
CAP = Cap(amount=2)
SURE = 1 - 1e-6


def response(epsilon):
    return GeneralizedRandomizedResponse(epsilon=epsilon, domain_size=2)


def audited(kind, *, cap=CAP, seed=1, num_devices=4000, confidence=SURE, **options):
    """An audit of each level, at an epsilon that shows how many records there were."""
    found = {}
    for level in LEVELS:
        histories = neighboring_histories(
            level, num_days=NUM_DAYS, events_per_day=5, day=0 if level == "event" else 1
        )
        most = stated_records(1.0, cap, histories).times
        found[level] = audit_device(
            kind(oracle=response(telling_epsilon(4.0, most)), cap=cap, **options),
            histories,
            num_devices=num_devices,
            rng=np.random.default_rng(seed),
            confidence=confidence,
        )
    return found


def exact_epsilon(histories, epsilon):
    """Of a device that sends one of each day's events: over all transcripts of its reports."""
    p = 1 / (1 + math.exp(-epsilon))
    distributions = [
        [
            np.mean([p if value == report else 1 - p for value in day if value != NO_EVENT])
            for day in history
            for report in (0, 1)
        ]
        for history in (histories.first, histories.second)
    ]
    worst = 0.0
    for reports in itertools.product((0, 1), repeat=histories.first.shape[0]):
        logs = [
            sum(math.log(distribution[2 * d + r]) for d, r in enumerate(reports))
            for distribution in distributions
        ]
        worst = max(worst, abs(logs[0] - logs[1]))
    return worst


@pytest.mark.parametrize(
    ("level", "first", "second", "records"),
    thinned(
        [
            ("user", [[0, 0], [0, 0]], [[1, 1], [1, 1]], 2),
            ("event", [[0, NO_EVENT], [0, 0]], [[1, NO_EVENT], [0, 0]], 1),
            ("event", [[0, 0], [0, 0]], [[1, 0], [0, 0]], 1),
        ],
        keep=2,
    ),
)
def test_the_bound_comes_close_to_the_distribution_of_all_transcripts(
    level, first, second, records
):
    histories = NeighboringHistories(
        level=level, first=np.array(first), second=np.array(second), pair=(0, 1), seen=(0, 2)
    )
    device = CappedDevice(oracle=response(1.0), cap=Cap(amount=1))
    assert stated_records(1.0, device.cap, histories).times == records
    exact = exact_epsilon(histories, 1.0)
    assert exact <= records + 1e-12
    found = audit_device(
        device, histories, num_devices=40_000, rng=np.random.default_rng(2), confidence=SURE
    )
    assert not found.refuted
    assert 0.8 * exact < found.found.epsilon <= exact


@pytest.mark.parametrize(
    ("kind", "refuted"),
    [
        (CappedDevice, set()),
        (RefillsTwice, {"day", "user"}),
        (SendsAgain, {"event"}),
        (IsSilentAboutValueZero, {"event", "day", "user"}),
    ],
)
def test_few_reports_alone_refute_who_does_not_do_what_is_stated(kind, refuted):
    found = audited(kind, num_devices=2_500)
    assert {level for level, each in found.items() if each.found.refuted} == refuted
    stated = {level: each.found.claim.times for level, each in found.items()}
    assert stated == {"event": 1, "day": 2, "user": 12}
    if kind is CappedDevice:
        sent = found["user"].sent.most_in_lifetime
        assert 0.3 * sent <= found["user"].found.at_least <= sent


def test_two_honest_audits_of_few_devices_are_not_refuted():
    for seed in range(2):
        found = audited(CappedDevice, seed=seed, num_devices=200, confidence=0.7)
        assert not any(each.refuted for each in found.values())


@pytest.mark.slow("::test_few_reports_alone_refute_who_does_not_do_what_is_stated")
@pytest.mark.parametrize(
    ("cap", "kept_days", "of_day", "of_lifetime"),
    [
        (CAP, 1, 2, 12),
        (Cap(amount=2, rollover=2), 2, 4, 12),
        (Cap(amount=3, session_days=4), 4, 3, 6),
        (Cap(amount=2, lifetime=5), 1, 2, 5),
    ],
)
def test_an_honest_device_passes_close_to_what_it_states(cap, kept_days, of_day, of_lifetime):
    found = audited(CappedDevice, cap=cap, kept_days=kept_days)
    assert not any(each.refuted for each in found.values())
    stated = {level: each.found.claim.times for level, each in found.items()}
    assert stated == {"event": 1, "day": of_day, "user": of_lifetime}
    # Almost all the records that were really sent are found in their reports.
    sent = found["user"].sent.most_in_lifetime
    assert sent <= of_lifetime
    assert 0.6 * sent <= found["user"].found.at_least <= sent
    assert found["event"].found.at_least == 1


@pytest.mark.slow("::test_few_reports_alone_refute_who_does_not_do_what_is_stated")
@pytest.mark.parametrize(("kind", "sent_on_a_day"), [(RefillsTwice, 4), (HasNoCap, 5)])
def test_a_budget_refilled_twice_and_a_missing_cap_are_caught_twice(kind, sent_on_a_day):
    found = audited(kind)
    assert str(found["user"].sent.first) == f"sent {sent_on_a_day} in 1 day, stated at most 2"
    # The reports alone show it too, and about how many there were.
    of_day, of_lifetime = found["day"].found, found["user"].found
    assert of_day.refuted
    assert of_lifetime.refuted
    assert 2 < of_day.at_least <= sent_on_a_day
    assert 16 <= of_lifetime.at_least <= NUM_DAYS * sent_on_a_day
    # One event is still in one record.
    assert not found["event"].found.refuted


def test_a_rollover_without_its_limit_and_a_forgotten_lifetime_are_caught():
    kept = Cap(amount=3, rollover=1)
    # Idle days come first: only then is there more to inherit than the limit.
    history = np.full((5, 9), NO_EVENT)
    history[3:] = 0
    histories = NeighboringHistories(
        level="user",
        first=history,
        second=np.where(history == NO_EVENT, NO_EVENT, 1),
        pair=(0, 1),
        seen=(0, 5),
    )
    for kind, cap, refuted in (
        (CappedDevice, kept, False),
        (KeepsWhatIsLeft, kept, True),
        (CappedDevice, dataclasses.replace(kept, lifetime=4), False),
        (ForgetsItsLifetime, dataclasses.replace(kept, lifetime=4), True),
    ):
        found = audit_device(
            kind(oracle=response(0.8), cap=cap),
            histories,
            num_devices=3000,
            rng=np.random.default_rng(4),
            confidence=SURE,
        )
        assert found.refuted == refuted
        assert (found.sent.worst is not None) == refuted


@pytest.mark.slow("::test_few_reports_alone_refute_who_does_not_do_what_is_stated")
def test_an_event_sent_again_is_caught_by_its_reports_alone():
    found = audited(SendsAgain)
    assert all(each.sent.worst is None for each in found.values())
    assert {level: each.refuted for level, each in found.items()} == {
        "event": True,
        "day": False,
        "user": False,
    }


@pytest.mark.slow("::test_few_reports_alone_refute_who_does_not_do_what_is_stated")
def test_numbers_that_depend_on_values_are_caught():
    found = audited(IsSilentAboutValueZero)
    assert all(each.sent.worst is None for each in found.values())
    assert all(each.found.refuted for each in found.values())
    assert "numbers sent" in found["user"].found.event


@pytest.mark.slow("::test_two_honest_audits_of_few_devices_are_not_refuted")
def test_honest_devices_are_refuted_no_more_often_than_the_confidence_says():
    refuted = sum(
        each.refuted
        for seed in range(10)
        for each in audited(CappedDevice, seed=seed, num_devices=300, confidence=0.7).values()
    )
    # At most 9 are to be expected; bounds that each hold for themselves leave far fewer.
    assert refuted <= 3


@pytest.mark.parametrize("audits", thinned([1, 3]))
def test_numbers_are_learned_from_other_devices_than_they_are_tested_on(audits):
    # Of few devices and many days, what was learned of a device's own numbers tells its history.
    histories = neighboring_histories("event", num_days=40, events_per_day=9)
    device = SendsAtRandom(oracle=response(0.1), cap=Cap(amount=9))
    found = [
        audit_device(
            device, histories, num_devices=40, rng=np.random.default_rng(seed), confidence=0.99
        )
        for seed in range(audits)
    ]
    assert not any(each.refuted for each in found)


def test_many_records_are_audited_at_a_smaller_epsilon():
    assert telling_epsilon(4.0, 4) == pytest.approx(1.0)
    assert telling_epsilon(0.1, 100) == 0.1


def test_wrong_histories_are_named():
    for change, message in (
        ({"level": "week"}, "Unknown level 'week'"),
        ({"num_days": 0}, "num_days >= 1"),
        ({"day": 3}, "0 <= day < num_days=3, got day=3"),
        ({"pair": (1, 1)}, "two different values"),
    ):
        with pytest.raises(InputError, match=message):
            neighboring_histories(**{"level": "user", "num_days": 3, "events_per_day": 1, **change})
    device = CappedDevice(oracle=SubsetSelection(epsilon=1.0, domain_size=4), cap=CAP)
    histories = neighboring_histories("user", num_days=2, events_per_day=1)
    for change, message in (
        ({"num_devices": 7}, "num_devices >= 8"),
        ({"confidence": 1.0}, "confidence=1.0"),
    ):
        with pytest.raises(InputError, match=message):
            audit_device(
                device,
                **{
                    "histories": histories,
                    "num_devices": 8,
                    "rng": np.random.default_rng(0),
                    **change,
                },
            )
