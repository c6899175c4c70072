"""What a device loses under some rules, in one call."""

from __future__ import annotations

import pytest

from fedhh.longitudinal.ledger import (
    Charge,
    Rules,
    account_audited_ledger,
    account_ledger,
    ledger_account,
    rules_of_source,
    statements,
)
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.ledger.statements import PLD, SUM
from fedhh.validation import InputError

RULES = Rules(
    charges=(Charge(use_case="emoji", epsilon=1.0), Charge(use_case="words", epsilon=2.0)),
    caps={"emoji": Cap(amount=2), "words": Cap(amount=1, session_days=7)},
)


def test_sums_of_epsilons_are_records_times_epsilon():
    found = account_ledger(RULES, num_days=14)
    assert found.most_in_lifetime(14) == [28, 2]
    assert found.report.guarantee("user", SUM).epsilon == 28 + 4
    assert found.report.guarantee("user", SUM).delta == 0
    assert found.report.guarantee("day", SUM, "words").epsilon == 2
    assert found.report.guarantee("user", PLD).epsilon < 32
    assert (found.neighboring, found.saturating, found.title) == (
        "replace-one",
        None,
        "your own rules",
    )
    assert found.curve().days[-1] == 14
    assert found.to_dict()["use_cases"]["words"]["session_days"] == 7
    assert account_ledger(RULES, num_days=14, without=["emoji"]).most_in_lifetime(14) == [2]


def test_the_weakest_neighbors_are_named_whatever_their_names_are(monkeypatch):
    by_value = Charge(use_case="memo", epsilon=0.5, once_per_value=True)
    caps = {**RULES.caps, "memo": Cap(amount=1)}
    rules = Rules(charges=(*RULES.charges, by_value), caps=caps)
    monkeypatch.setattr(statements, "REPLACE_VALUE", "vs")
    monkeypatch.setattr(ledger_account, "REPLACE_VALUE", "vs", raising=False)
    assert account_ledger(rules, num_days=14).neighboring == "vs"
    assert account_ledger(RULES, num_days=14).neighboring == "replace-one"


def test_an_event_has_all_reports_of_all_days():
    assert len(account_ledger(RULES, num_days=14).dp_event().events) == 30


def test_a_saturating_device_spends_what_an_audited_system_permits():
    found = account_audited_ledger("macos-10.12", num_days=10, without=["health"])
    device = found.saturating
    # 16 a day for the four announced applications (Tang et al. 2017, section 4.2.3).
    assert device.permitted_per_day["announced in 2016"] == 16
    assert sum(device.loss_by_day) == device.spent.lifetime.basic.largest == 160
    assert found.short_name("com.apple.keyboard.Emoji") == "Emoji"
    idle = account_audited_ledger("macos-10.12", num_days=10, idle_days=4, busy_days=1, events=2)
    assert idle.saturating.loss_by_day[:4] == [0.0] * 4


def test_a_repeated_run_is_a_use_case_with_a_cap():
    rules, title = rules_of_source("small", every=30, settings=["population.clients=2000"])
    (charge,) = rules.charges
    assert rules.caps[charge.use_case].session_days == 30
    assert title.endswith("every 30 days")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"preset": "macos-10.13"}, "macos-10.12"),
        ({"num_days": 0}, "days >= 1"),
        ({"num_days": 4_000}, "days <= 3650"),
        ({"key_names": 161}, "key_names <= 160"),
        ({"events": 100, "key_names": 100}, "events \\* key_names <= 400"),
    ],
)
def test_impossible_devices_are_refused(asked, message):
    with pytest.raises(InputError, match=message):
        account_audited_ledger(**{"preset": "macos-10.12", "num_days": 5, **asked})
