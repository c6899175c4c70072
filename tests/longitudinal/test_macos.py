"""The audited budget manager: the paper's numbers, its worked example, what it never does."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fedhh.longitudinal.ledger.macos import (
    HOUR,
    MacosDevice,
    loss_by_day,
    most_within,
)
from fedhh.longitudinal.ledger.macos_presets import (
    CONFIGURATIONS,
    DAY,
    DEEP_LINK,
    DEFAULT,
    EMOJI,
    HEALTH,
    INITIALLY_ANNOUNCED,
    IOS_10_1_1,
    IOS_11_BETA,
    MACOS_10_12_1,
    MACOS_10_12_3,
    NEW_WORDS,
    SAFARI,
    SEARCH,
    Configuration,
)
from fedhh.validation import InputError
from tests.every import every

NEW_WORD = "com.apple.keyboard.NewWords.en_US"
DEEP = "com.apple.parsec.AppDeepLink"
LOOKUP = "com.apple.lookup.DomainMatch"
EMOJIS = [f"com.apple.keyboard.Emoji.{n}.EmojiKeyboard" for n in range(10)]
FOUR = [NEW_WORD, DEEP, LOOKUP, EMOJIS[0]]


def busy(system: Configuration, keys: list[str], *, days: int, idle_days: int = 0) -> MacosDevice:
    """Return a device on which 20 events of each name happen at the start of every later day."""
    device, rng = MacosDevice(system), np.random.default_rng(0)
    for day in range(idle_days, days):
        device.advance(day * DAY, rng=rng)
        for key in keys:
            device.add(key, 20)
    device.advance(days * DAY - 1, rng=rng)
    return device


def test_daily_losses_of_the_paper() -> None:
    without_links = [each for each in INITIALLY_ANNOUNCED if each != DEEP_LINK]
    assert MACOS_10_12_3.loss_per_day(INITIALLY_ANNOUNCED) == 16  # Section 4.2.3.
    assert MACOS_10_12_3.loss_per_day(without_links) == 6  # Section 4.2.3.
    assert IOS_10_1_1.loss_per_day(INITIALLY_ANNOUNCED) == 14  # Section 4.2.3.
    assert MACOS_10_12_1.loss_per_day(INITIALLY_ANNOUNCED) == 14  # Section 5.4: the same files.
    named = [*INITIALLY_ANNOUNCED, SAFARI]
    assert IOS_11_BETA.loss_per_day(named) - IOS_10_1_1.loss_per_day(INITIALLY_ANNOUNCED) == 29
    assert MACOS_10_12_3.loss_per_day([HEALTH]) == pytest.approx(2 / 7)
    assert MACOS_10_12_3.without([DEEP_LINK, HEALTH]).loss_per_day() == 6


@pytest.mark.parametrize(
    ("system", "keys", "daily"),
    [
        (MACOS_10_12_3, FOUR, 16),
        (MACOS_10_12_3.without([DEEP_LINK]), [NEW_WORD, LOOKUP, EMOJIS[0]], 6),
        (IOS_10_1_1, FOUR, 14),
        (
            IOS_11_BETA,
            [*FOUR, "com.apple.safari.DomainVisited", "com.apple.safari.DomainCausingEnergyDrain"],
            14 + 29,
        ),
    ],
    ids=["macos", "macos without deep links", "ios 10", "ios 11"],
)
def test_a_saturating_device_sends_what_the_paper_permits(
    system: Configuration, keys: list[str], daily: int
) -> None:
    device = busy(system, keys, days=12)
    assert loss_by_day(device.reports, 12) == [daily] * 12
    # Reports come 18 h apart and budgets 24 h: two days' budgets go out within a day.
    assert most_within(device.reports, DAY) == 2 * daily
    assert most_within(device.reports, 18 * HOUR) == daily
    # So days that begin at another hour are not alike: three reports in the time of four budgets.
    shifted = loss_by_day(device.reports, 10, start=DAY // 2)
    assert shifted[1] == 2 * daily
    assert sum(shifted) <= 11 * daily


@every("hour", range(24))
def test_the_worked_example_of_section_4_2_3(hour: int) -> None:
    """20 idle days, then two emoji in each of ten languages: 10 sent, then the other 10."""
    device, rng = MacosDevice(MACOS_10_12_3), np.random.default_rng(hour)
    device.advance(20 * DAY - 1, rng=rng)
    assert device.balances[EMOJI] == 20
    device.advance(20 * DAY + hour * HOUR, rng=rng)
    assert device.balances[EMOJI] == 21
    for key in EMOJIS:
        device.add(key, 2)
    device.advance(40 * DAY, rng=rng)
    first, second = device.reports
    for report in device.reports:
        assert Counter(record.key_name for record in report.records) == Counter(EMOJIS)
        assert report.loss == 10
    assert second.at - first.at == 18 * HOUR
    if hour < 6:
        # The report of 06:00 is in time: 10 on the first day and 10 on the second, as printed.
        losses = loss_by_day(device.reports, 40)
        assert losses[20:22] == [10, 10]
        assert sum(losses) == 20
    else:
        # Later than that, both reports lie on the second day.
        assert loss_by_day(device.reports, 40)[21] == 20


def test_never_more_than_balances_and_reports_allow() -> None:
    """Random days, many languages; every limit of section 4.2.1 holds."""
    system = MACOS_10_12_3
    keys = [*EMOJIS, *FOUR, "com.apple.health.datatypes", "com.apple.keyboard.LocalWords.en_US"]
    reached = 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        device = MacosDevice(system)
        while device.now < 25 * DAY:
            device.advance(device.now + int(rng.integers(1, DAY)), rng=rng)
            device.add(keys[rng.integers(len(keys))], int(rng.integers(0, 30)))
            assert min(device.balances.values()) >= 0
        paid: Counter[str] = Counter()
        for report in device.reports:
            for name, number in Counter(r.key_name for r in report.records).items():
                budget = system.properties_of(name).budget
                assert number <= system.budgets[budget].session_amount
                paid[budget] += number
            for name, number in paid.items():
                each = system.budgets[name]
                assert number <= each.session_amount * (1 + report.at // each.session_seconds)
            days = report.at // DAY
            loss = sum(number * system.epsilon_of(name) for name, number in paid.items())
            permitted = 16 * (days + 1) + 2 * (report.at // (7 * DAY) + 1)
            assert loss <= permitted
            reached = max(reached, loss / permitted)
    assert reached > 0.4


def test_balances_roll_over_and_health_rises_weekly() -> None:
    device, rng = MacosDevice(MACOS_10_12_3), np.random.default_rng(0)
    device.advance(8 * DAY, rng=rng)
    assert device.balances[NEW_WORDS] == 2 * 9
    assert device.balances[DEEP_LINK] == 10 * 9
    assert device.balances[HEALTH] == 2 * 2
    assert device.balances[DEFAULT] == 1


def test_over_a_sleep_a_balance_is_session_amount_times_days() -> None:
    device, rng = MacosDevice(MACOS_10_12_3), np.random.default_rng(0)
    device.now = 5 * DAY + HOUR  # Nothing ran since opt-in.
    assert device.balances[DEEP_LINK] == 10
    device.advance(device.now, rng=rng)
    assert device.balances[EMOJI] == 1 + 5
    assert device.balances[DEEP_LINK] == 10 + 10 * 5
    # The hour beyond the fifth day counts: the sixth is over 23 hours after waking, seen at 24.
    device.advance(6 * DAY + HOUR, rng=rng)
    assert device.balances[EMOJI] == 1 + 6


def test_epsilon_max_and_priorities() -> None:
    raised = replace(
        MACOS_10_12_3,
        key_properties={
            **MACOS_10_12_3.key_properties,
            "TermFrequency": replace(
                MACOS_10_12_3.key_properties["TermFrequency"], privacy_parameter=2.5
            ),
            "LocalWords": replace(
                MACOS_10_12_3.key_properties["LocalWords"], submission_priority=7
            ),
        },
    )
    device, rng = MacosDevice(raised), np.random.default_rng(0)
    device.add(EMOJIS[0], 3)
    assert {(each.epsilon, each.priority) for each in device.waiting} == {(1.0, 99_999)}
    device.add("com.apple.keyboard.LocalWords.en_US", 3)
    device.add(NEW_WORD, 3)
    device.advance(18 * HOUR, rng=rng)
    # Both NewWords names share a balance of 2; the lower priority number takes all of it.
    assert [record.key_name for record in device.reports[0].records] == [NEW_WORD] * 2
    device.advance(13 * DAY, rng=rng)
    sent = {record.key_name for report in device.reports for record in report.records}
    assert EMOJIS[0] not in sent
    assert EMOJI not in raised.paid_budgets
    assert raised.loss_per_day(MACOS_10_12_3.paid_budgets[1:]) < 16


def test_at_most_forty_of_one_name_in_a_report() -> None:
    amount = replace(MACOS_10_12_3.budgets[EMOJI], session_amount=100)
    system = replace(MACOS_10_12_3, budgets={**MACOS_10_12_3.budgets, EMOJI: amount})
    device = MacosDevice(system)
    device.add(EMOJIS[0], 90)
    device.add(EMOJIS[1], 90)
    device.advance(18 * HOUR, rng=np.random.default_rng(0))
    names = Counter(record.key_name for record in device.reports[0].records)
    assert names == {EMOJIS[0]: 40, EMOJIS[1]: 40}


def test_choice_among_records_is_random_and_seeded() -> None:
    def chosen(seed: int) -> tuple[int, ...]:
        device, rng = MacosDevice(MACOS_10_12_3), np.random.default_rng(seed)
        for _ in range(6):
            device.advance(device.now + HOUR, rng=rng)
            device.add(NEW_WORD)
        device.advance(18 * HOUR, rng=rng)
        return tuple(record.created for record in device.reports[0].records)

    picks = Counter(each for seed in range(300) for each in chosen(seed))
    assert len(picks) == 6
    # Each of 6 records is one of 2 chosen in 100 of 300 histories; 60 apart is over 7 deviations.
    assert max(picks.values()) - min(picks.values()) < 60
    assert chosen(3) == chosen(3)


def test_records_older_than_two_weeks_are_never_sent() -> None:
    device, rng = MacosDevice(IOS_10_1_1), np.random.default_rng(0)
    device.add(DEEP, 200)
    device.advance(14 * DAY + 11 * HOUR, rng=rng)
    assert len(device.waiting) == 200 - 10 * 15
    device.advance(14 * DAY + 12 * HOUR, rng=rng)
    assert not device.waiting


def test_presets_are_complete() -> None:
    for system in CONFIGURATIONS.values():
        assert all(each.source for each in system.budgets.values())
        assert all(each.source for each in system.key_properties.values())
        assert set(INITIALLY_ANNOUNCED) <= set(system.paid_budgets)
        caps = {key: system.budgets[key].cap for key in system.paid_budgets}
        # A history of 30 days: a day's budget on each of them, none lost.
        assert caps[SEARCH].most_in(0, 30) == 30
    assert MACOS_10_12_3.budgets[HEALTH].cap.most_in(0, 15) == 6
    assert MACOS_10_12_3.budgets[DEFAULT].cap.most_in(0, 15) == 1


def test_bad_input_is_one_line() -> None:
    device = MacosDevice(MACOS_10_12_3)
    device.advance(DAY, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="time goes forward"):
        device.advance(0, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match=r"Unknown KeyName 'com\.apple\.nothing'"):
        device.add("com.apple.nothing")
    with pytest.raises(InputError, match="Unknown BudgetKeyName"):
        MACOS_10_12_3.without(["emoji"])
