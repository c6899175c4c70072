"""Ledgers of the audited systems and of runs that are repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.longitudinal.ledger import (
    APPLE,
    Ledger,
    before_under_reports,
    most_under_reports,
    rules_of_configuration,
    rules_of_run,
)
from fedhh.longitudinal.ledger.macos import MacosDevice, most_within, records_by_day, simulate
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS, DAY, IOS_11_BETA, MACOS_10_12_3
from fedhh.oracles import OracleSpec
from fedhh.validation import InputError
from tests.thinned import thinned

LAYERS = tuple(
    PlannedRound(
        layer=number,
        num_clients=100,
        smallest_domain=30,
        largest_domain=60,
        max_items=5,
        local_epsilon=8.0,
    )
    for number in (1, 2, 3)
)


def test_a_year_of_the_audited_system() -> None:
    rules = rules_of_configuration(MACOS_10_12_3)
    ledger = Ledger(charges=rules.charges, num_days=365)
    report = before_under_reports(MACOS_10_12_3, ledger, key_names=1)
    # 16 a day, and two records of health in each of 53 begun weeks.
    assert report.guarantee("user", "basic").epsilon == 16 * 365 + 2 * 53
    # A device that saved up fills two reports: 2 * 16 and 2 * 2.
    assert report.guarantee("day", "basic").epsilon == 36
    assert report.guarantee("24 hours", "basic").epsilon == 36
    assert report.guarantee("item", "basic").epsilon == 2
    # Ten languages: each report has room for ten times as much, and the balance for it.
    emoji = before_under_reports(MACOS_10_12_3, ledger, key_names=10).guarantee(
        "day", "basic", "com.apple.keyboard.Emoji"
    )
    assert emoji.epsilon == 20
    # Caps alone know nothing of reports.
    alone = ledger.before(rules.caps).guarantee("day", "basic", "com.apple.keyboard.Emoji")
    assert alone.epsilon == 365
    assert most_under_reports(MACOS_10_12_3, ledger, key_names=1, num_days=1) == [1, 1, 2, 10, 2]


@pytest.mark.parametrize("name", thinned(CONFIGURATIONS))
@pytest.mark.parametrize(("idle_days", "key_names"), [(0, 1), (12, 3)])
def test_busy_devices_reach_the_ledger_and_never_pass_it(
    name: str, idle_days: int, key_names: int
) -> None:
    system, days = CONFIGURATIONS[name], 16
    ledger = Ledger(charges=rules_of_configuration(system).charges, num_days=days)
    device = simulate(
        system, num_days=days, idle_days=idle_days, events_per_day=25, key_names=key_names,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    sent = records_by_day(device.reports, ledger.use_cases, days)
    spent = ledger.spent(sent[:, :, None])
    allowed = before_under_reports(system, ledger, key_names=key_names)
    for charge in ledger.charges:
        use_case = charge.use_case
        for unit in ("day", "user"):
            most = float(allowed.guarantee(unit, "basic", use_case).epsilon)
            assert float(spent.report.guarantee(unit, "basic", use_case).epsilon) <= most
        if not idle_days:
            lifetime = allowed.guarantee("user", "basic", use_case).epsilon
            assert spent.report.guarantee("user", "basic", use_case).epsilon == lifetime
    in_24_hours = float(allowed.guarantee("24 hours", "basic").epsilon)
    assert 0 < most_within(device.reports, DAY) <= in_24_hours
    # A manager that refills twice would be above what the ledger allows.
    if not idle_days:
        doubled = ledger.spent(2 * sent[:, :, None])
        most = float(allowed.guarantee("user", "basic").epsilon)
        assert float(doubled.report.guarantee("user", "basic").epsilon) > most


def test_two_reports_in_a_day_spend_what_was_saved() -> None:
    ledger = Ledger(charges=rules_of_configuration(IOS_11_BETA).charges, num_days=30)
    allowed = before_under_reports(IOS_11_BETA, ledger, key_names=1)
    device, rng = MacosDevice(IOS_11_BETA), np.random.default_rng(0)
    device.advance(20 * DAY, rng=rng)
    device.add("com.apple.keyboard.Emoji.en_US.EmojiKeyboard", 100)
    device.advance(24 * DAY, rng=rng)
    by_day = records_by_day(device.reports, ["com.apple.keyboard.Emoji"], 30)[:, 0]
    # Epsilon 2, ten records in each of the two reports of day 21.
    assert by_day.max() == 20
    reached = allowed.guarantee("day", "basic", "com.apple.keyboard.Emoji").epsilon
    assert reached == 2 * 20


def test_a_run_that_is_repeated() -> None:
    plan = LocalReports(layers=LAYERS, randomizers=(OracleSpec(name="ss", epsilon=8.0),))
    rules = rules_of_run(plan, every=7, name="ldp-triehh")
    report = Ledger(charges=rules.charges, num_days=365).before(rules.caps)
    # 53 runs in a year; in each, one round with five records.
    assert report.guarantee("user", "basic").epsilon == 53 * 5 * 8
    assert report.guarantee("day", "basic").epsilon == 40
    assert report.guarantee("item", "basic").epsilon == 8
    assert "Sun et al." in report.guarantee("item", "basic").theorem
    reused = LocalReports(
        layers=LAYERS,
        participation="every-round",
        randomizers=(OracleSpec(name="cms", epsilon=2.0), OracleSpec(name="cms", epsilon=6.0)),
    )
    rules = rules_of_run(reused, every=30, name="sfp")
    assert rules.charges[0].reports == (2.0, 6.0)
    report = Ledger(charges=rules.charges, num_days=60).before(rules.caps)
    assert report.guarantee("event", "basic").epsilon == 3 * 8
    assert report.guarantee("user", "basic").epsilon == 2 * 3 * 5 * 8


def test_what_has_no_local_privacy_has_no_ledger() -> None:
    plain = tuple(replace(each, local_epsilon=np.inf) for each in LAYERS)
    plan = LocalReports(layers=plain, randomizers=(OracleSpec(name="none", epsilon=np.inf),))
    with pytest.raises(InputError, match="local privacy, got 'triehh'"):
        rules_of_run(plan, every=7, name="triehh")
    with pytest.raises(InputError, match="every"):
        rules_of_run(plan, every=0, name="triehh")


def test_leaving_out_a_use_case() -> None:
    rules = APPLE.without(("emoji", "health"))
    assert set(rules.caps) == {charge.use_case for charge in rules.charges}
    assert len(rules.charges) == len(APPLE.charges) - 2
    with pytest.raises(InputError, match="did you mean 'emoji'"):
        APPLE.without(("emojis",))
    with pytest.raises(InputError, match="at least one use case"):
        rules.without(tuple(rules.caps))
