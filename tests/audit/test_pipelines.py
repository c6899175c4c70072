"""The devices of a pipeline, and audited systems, as an audit of their histories sees them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.audit import (
    audit_device,
    neighboring_histories,
    replay_cap,
    stated_records,
    telling_epsilon,
)
from fedhh.audit.pipelines import PipelineDevices
from fedhh.longitudinal.devices.model import Delay
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.ledger.macos import DAY, MacosDevice
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
from fedhh.longitudinal.records import OracleRecords
from fedhh.oracles import OracleSpec
from fedhh.validation import InputError
from tests.faulty_devices import NotApplied, RefilledTwice

NUM_DAYS = 5
MACOS = CONFIGURATIONS["macos-10.12"]
EMOJI = "com.apple.keyboard.Emoji"


def devices(cap, epsilon, **options):
    form = OracleRecords(spec=OracleSpec(name="grr", epsilon=epsilon), domain_size=2)
    return PipelineDevices(form=form, cap=cap, **{"delay": Delay(), "store_days": 3, **options})


def audited(cap):
    histories = neighboring_histories("user", num_days=NUM_DAYS, events_per_day=6)
    most = stated_records(1.0, cap, histories).times
    return audit_device(
        devices(cap, telling_epsilon(4.0, most)),
        histories,
        num_devices=3000,
        rng=np.random.default_rng(1),
        confidence=1 - 1e-6,
    )


@pytest.mark.parametrize("rollover", [0, 3])
def test_a_pipelines_devices_keep_their_caps(rollover):
    found = audited(Cap(amount=2, rollover=rollover))
    assert not found.refuted
    assert found.found.claim.times == 2 * NUM_DAYS
    assert found.found.at_least >= NUM_DAYS


@pytest.mark.parametrize("kind", [RefilledTwice, NotApplied])
def test_a_pipeline_with_a_broken_cap_is_caught_twice(kind):
    found = audited(kind(amount=2))
    assert found.sent.worst.sent > found.sent.worst.stated
    assert found.sent.num_overspending > 2900
    assert found.found.refuted
    assert 2 * NUM_DAYS < found.found.at_least <= found.sent.most_in_lifetime


def test_transcripts_hold_every_report_with_its_device_and_day():
    history = np.ones((4, 3), dtype=np.int64)
    seen = devices(Cap(amount=2), 12.0, delay=Delay(hours=0.0)).simulate(
        history, num_devices=700, rng=np.random.default_rng(3)
    )
    assert len(seen.reports) == len(seen.devices) == len(seen.days)
    # At epsilon 12 nearly every report tells the truth.
    assert seen.reports.mean() > 0.99
    counts = np.bincount(seen.devices * 4 + seen.days, minlength=2800)
    # Two a day, but where a device had fewer events by then.
    assert counts.max() == 2
    assert 0.8 < (counts == 2).mean() < 1


def test_what_devices_of_a_pipeline_cannot_live_is_refused():
    with pytest.raises(InputError, match="one and the same value"):
        devices(Cap(amount=1), 1.0).simulate(
            np.array([[0], [1]]), num_devices=2, rng=np.random.default_rng(0)
        )
    wide = OracleRecords(spec=OracleSpec(name="oue", epsilon=1.0), domain_size=500)
    with pytest.raises(InputError, match="read one by one, got 'oue' over domain_size=500"):
        PipelineDevices(form=wide, cap=Cap(amount=1), delay=Delay(), store_days=1)


def sent_by(system, *, languages, num_days=6):
    """Days of records of emoji that a device sends under a budget manager."""
    rng = np.random.default_rng(2)
    device = MacosDevice(system)
    for day in range(num_days):
        device.advance(day * DAY, rng=rng)
        for language in range(languages):
            device.add(f"{EMOJI}.{language}", 4)
    device.advance(num_days * DAY - 1, rng=rng)
    return [
        record for report in device.reports for record in [report.at // DAY] * len(report.records)
    ]


def test_a_budget_manager_that_refills_twice_is_detected():
    budget = MACOS.budgets[EMOJI]
    twice = replace(budget, session_amount=2 * budget.session_amount)
    broken_rules = replace(MACOS, budgets={**MACOS.budgets, EMOJI: twice})
    honest, broken = (sent_by(system, languages=5) for system in (MACOS, broken_rules))
    assert replay_cap(budget.cap, [0] * len(honest), honest).worst is None
    found = replay_cap(budget.cap, [0] * len(broken), broken)
    assert found.worst.sent > found.worst.stated
    assert found.most_in_lifetime > 1.5 * len(honest)
