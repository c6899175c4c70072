"""Ledgers: what caps allow, what devices spent, and that the second is never above the first."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fedhh.accounting.bounds.composition import optimal_composition
from fedhh.accounting.guarantees import REPLACE_ONE, REPLACE_VALUE, Guarantee
from fedhh.longitudinal.ledger import (
    APPLE,
    Charge,
    Ledger,
    LedgerReport,
    Rules,
    Spending,
    account_ledger,
)
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.ledger.spending import distinct_profiles
from fedhh.validation import InputError
from tests.every import every

CHARGES = (
    Charge(use_case="words", epsilon=1.0, reports=(0.25, 0.75)),
    Charge(use_case="emoji", epsilon=0.5, records_per_event=3),
    Charge(use_case="health", epsilon=2.0),
)
CAPS = (Cap(amount=2), Cap(amount=1, rollover=None), Cap(amount=3, session_days=4, lifetime=5))
UNITS = ["item", "event", "day", "24 hours", "user"]


def epsilons(report: LedgerReport, method: str, use_case: str | None = None) -> list[float]:
    return [float(report.guarantee(unit, method, use_case).epsilon) for unit in UNITS]


def obedient(rng: np.random.Generator, days: int, devices: int) -> np.ndarray:
    """Return what devices sent that obey the caps, and often send all they may."""
    sent = np.zeros((days, len(CAPS), devices), dtype=np.int64)
    for index, cap in enumerate(CAPS):
        balance, total = np.zeros(devices, dtype=np.int64), np.zeros(devices, dtype=np.int64)
        for day in range(days):
            balance = cap.renewed(balance, day)
            allowed = cap.allowed(balance, total)
            now = np.where(rng.random(devices) < 0.5, allowed, rng.integers(0, allowed + 1))
            now = np.where(rng.random(devices) < 0.4, 0, now)
            sent[day, index] = now
            balance, total = balance - now, total + now
    return sent


def test_apple_s_published_caps() -> None:
    ledger = Ledger(charges=APPLE.charges, num_days=365)
    report = ledger.before(APPLE.caps)
    assert epsilons(report, "basic") == [8, 8, 54, 108, 54 * 365]
    for charge, daily in zip(APPLE.charges, (16, 4, 8, 2, 8, 16), strict=True):
        assert report.guarantee("day", "basic", charge.use_case).epsilon == daily
    # QuickType's record is two reports, which compose to less than twice four would.
    single = Ledger(charges=(Charge(use_case="quicktype", epsilon=8),), num_days=365)
    whole = single.before([APPLE.caps["quicktype"]]).guarantee("user", "PLD")
    parts = report.guarantee("user", "PLD", "quicktype")
    assert float(parts.epsilon) < 0.98 * float(whole.epsilon)
    assert report.guarantee("item", "PLD", "quicktype").theorem.startswith("Apple (2017)")


def test_each_level_by_hand() -> None:
    report = Ledger(charges=CHARGES, num_days=10).before(CAPS)
    assert epsilons(report, "basic", "words") == [1, 1, 2, 4, 20]
    # The balance of emoji grows for ten days; of an event, three records.
    assert epsilons(report, "basic", "emoji") == [0.5, 1.5, 5, 5, 5]
    # Three at the end of a session and two at the start of the next: five in all.
    assert epsilons(report, "basic", "health") == [2, 2, 6, 10, 10]
    assert epsilons(report, "basic") == [2, 2, 2 + 5 + 6, 4 + 5 + 10, 20 + 5 + 10]


def test_every_number_says_what_it_is() -> None:
    report = Ledger(charges=CHARGES, num_days=200, delta=1e-8).before(CAPS)
    for each in report.together.guarantees:
        assert each.unit in UNITS
        assert (each.trust, each.neighboring, each.realised) == ("local", REPLACE_ONE, False)
        assert each.delta == (0 if each.method in {"basic", "randomizer"} else 1e-8)
        assert "neighbors send equally many records" in each.assumptions
        assert each.theorem
    of_lifetime = {each.method: each for each in report.together.guarantees if each.unit == "user"}
    assert list(of_lifetime) == ["basic", "PLD"]
    assert [each.best for each in of_lifetime.values()] == [False, True]
    expected = optimal_composition([0.25, 0.75, 0.5, 2.0], [400, 400, 200, 5], delta=1e-8)
    assert of_lifetime["PLD"].epsilon == expected
    assert report.together.best("user", "local") is of_lifetime["PLD"]
    of_day = {each.method: each for each in report.together.guarantees if each.unit == "day"}
    assert Guarantee.from_dict(of_day["PLD"].to_dict()) == of_day["PLD"]


def test_the_sum_is_marked_where_nothing_is_saved() -> None:
    report = Ledger(charges=(Charge(use_case="a", epsilon=8.0),), num_days=2).before(
        {"a": Cap(amount=1)}
    )
    best = report.together.best("user", "local")
    assert (best.method, best.delta, best.epsilon) == ("basic", 0, 16)
    assert not report.guarantee("user", "PLD").best


def test_opting_out_shortens_the_history() -> None:
    ledger = Ledger(charges=CHARGES, num_days=365)
    early = ledger.before(CAPS, num_days=10)
    assert early.num_days == 10
    assert epsilons(early, "basic") == epsilons(
        Ledger(charges=CHARGES, num_days=10).before(CAPS), "basic"
    )
    with pytest.raises(InputError, match="num_days <= 365"):
        ledger.before(CAPS, num_days=366)


def test_permanent_responses_are_paid_once_for_a_value() -> None:
    memo = Charge(use_case="memo", epsilon=4.0, once_per_value=True, most_values=3)
    ledger = Ledger(charges=(memo, CHARGES[0]), num_days=100)
    report = ledger.before([Cap(amount=2), Cap(amount=2)])
    assert epsilons(report, "basic", "memo") == [4, 4, 8, 12, 12]
    assert report.guarantee("user", "basic", "memo").neighboring == REPLACE_VALUE
    assert report.guarantee("user", "basic").neighboring == REPLACE_VALUE
    assert report.guarantee("user", "basic", "words").neighboring == REPLACE_ONE
    assert "3 values of memo" in report.guarantee("user", "basic", "memo").assumptions
    # Without a limit on values, each record may be about a new one.
    endless = Charge(use_case="memo", epsilon=4.0, once_per_value=True)
    report = Ledger(charges=(endless,), num_days=100).before([Cap(amount=2)])
    assert report.guarantee("user", "basic").epsilon == 800


def test_what_few_obedient_devices_spent_is_within_what_caps_allow() -> None:
    rng = np.random.default_rng(3)
    ledger = Ledger(charges=CHARGES, num_days=6, delta=1e-6)
    sent = obedient(rng, 6, 30)
    before, spent = ledger.before(CAPS), ledger.spent(sent)
    for unit in ("item", "day", "24 hours", "user"):
        allowed = float(before.guarantee(unit, "basic").epsilon)
        assert float(spent.report.guarantee(unit, "basic").epsilon) <= allowed + 1e-9
    sent[4, 0, 7] += 30
    broken = ledger.spent(sent)
    for unit in ("day", "24 hours", "user"):
        allowed = float(before.guarantee(unit, "basic").epsilon)
        assert float(broken.report.guarantee(unit, "basic").epsilon) > allowed
    assert (broken.worst_device, broken.worst_day) == (7, 4)


@pytest.mark.slow("::test_what_few_obedient_devices_spent_is_within_what_caps_allow")
def test_what_obedient_devices_spent_is_within_what_caps_allow() -> None:
    rng = np.random.default_rng(3)
    ledger = Ledger(charges=CHARGES, num_days=9, delta=1e-6)
    sent = obedient(rng, 9, 400)
    before, spent = ledger.before(CAPS), ledger.spent(sent)
    for method in ("basic", "PLD"):
        for unit in ("item", "day", "24 hours", "user"):
            allowed = float(before.guarantee(unit, method).epsilon)
            assert float(spent.report.guarantee(unit, method).epsilon) <= allowed + 1e-9
    assert all(each.realised for each in spent.report.together.guarantees)
    # A device that forgets its cap is above.
    sent[4, 0, 7] += 30
    broken = ledger.spent(sent)
    for unit in ("day", "24 hours", "user"):
        allowed = float(before.guarantee(unit, "basic").epsilon)
        assert float(broken.report.guarantee(unit, "basic").epsilon) > allowed
    assert (broken.worst_device, broken.worst_day) == (7, 4)


def naive(sent: np.ndarray, here: np.ndarray) -> dict[str, Any]:
    """Return the same by looping over devices and days."""
    price = [charge.epsilon for charge in CHARGES]
    days, _, devices = sent.shape
    per_day = [
        (day, device, sum(p * int(n) for p, n in zip(price, sent[day, :, device], strict=True)))
        for day in range(days)
        for device in range(devices)
        if here[day, device]
    ]
    lifetime = [sum(each for _, d, each in per_day if d == device) for device in range(devices)]
    return {"per_day": per_day, "life": lifetime}


def at_rank(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(share * len(values) - 1e-9) - 1]


def test_distributions_against_a_loop_over_devices() -> None:
    rng = np.random.default_rng(8)
    sent = rng.integers(0, 4, (6, 3, 50))
    opt_in, opt_out = rng.integers(0, 4, 50), rng.integers(3, 8, 50)
    days = np.arange(6)[:, None]
    here = (opt_in <= days) & (days < opt_out)
    sent = sent * here[:, None, :]
    ledger = Ledger(charges=CHARGES, num_days=6, delta=1e-4)
    found = ledger.spent(sent, opt_in=opt_in, opt_out=opt_out)
    expected = naive(sent, here)
    losses = [each for _, _, each in expected["per_day"]]
    for spread, values in ((found.day.basic, losses), (found.lifetime.basic, expected["life"])):
        assert spread.mean == pytest.approx(np.mean(values))
        assert spread.median == at_rank(values, 0.5)
        assert spread.most == at_rank(values, 0.95)
        assert spread.largest == max(values)
    assert found.day.how_many == here.sum()
    assert found.lifetime.how_many == 50
    assert found.records.tolist() == sent.sum(axis=0).tolist()
    assert expected["life"][found.worst_device] == max(expected["life"])
    by_day = [[each for day, _, each in expected["per_day"] if day == d] for d in range(6)]
    np.testing.assert_allclose(found.mean_by_day, [np.mean(each) for each in by_day])
    np.testing.assert_allclose(found.largest_by_day, [max(each) for each in by_day])
    both = (sent[1:] + sent[:-1]).max(axis=(0, 2))
    pair = found.report.guarantee("24 hours", "basic").epsilon
    assert pair == pytest.approx(sum(c.epsilon * n for c, n in zip(CHARGES, both, strict=True)))
    worst = sent.sum(axis=0)[:, found.worst_device]
    parts = [worst[0], worst[0], worst[1], worst[2]]
    best = optimal_composition([0.25, 0.75, 0.5, 2.0], [int(n) for n in parts], delta=1e-4)
    assert found.lifetime.pld.largest == best
    assert found.lifetime.pld.mean is None
    assert found.lifetime_by_use_case["emoji"].basic.largest == 0.5 * sent.sum(axis=0)[1].max()


def test_days_one_by_one_and_together_are_the_same() -> None:
    sent = np.random.default_rng(1).integers(0, 3, (5, 3, 40))
    ledger = Ledger(charges=CHARGES, num_days=5)

    def text(found: Spending) -> str:
        return json.dumps(found.to_dict())

    assert text(ledger.spent(sent)) == text(ledger.spent(day for day in sent.astype(np.int32)))


def test_profiles_are_counted_in_every_way() -> None:
    rng = np.random.default_rng(2)
    few = rng.integers(0, 3, (3, 500))  # A table.
    many = rng.integers(0, 10_000, (2, 500))  # Sorted keys.
    huge = rng.integers(0, 1 << 40, (2, 30))  # Keys that no int64 holds.
    for numbers in (few, many, huge):
        profiles, counts = distinct_profiles(np.concatenate([numbers, numbers[:, :9]], axis=1))
        found = {tuple(row): n for row, n in zip(profiles.tolist(), counts.tolist(), strict=True)}
        expected: dict[tuple[int, ...], int] = {}
        for column in np.concatenate([numbers, numbers[:, :9]], axis=1).T.tolist():
            expected[tuple(column)] = expected.get(tuple(column), 0) + 1
        assert found == expected


def test_the_curve_of_a_week_ends_with_the_whole_history() -> None:
    rules = Rules(charges=CHARGES, caps=dict(zip(["words", "emoji", "health"], CAPS, strict=True)))
    account = account_ledger(rules, num_days=7, delta=1e-4)
    curve = account.curve()
    assert (curve.days[0], curve.days[-1]) == (1, 7)
    for method, values in curve.together.items():
        assert values[-1] == account.report.guarantee("user", method).epsilon
    for name, values in curve.by_use_case.items():
        stated = float(account.report.guarantee("user", "basic", name).epsilon)
        assert values[-1] == pytest.approx(stated)


@pytest.mark.slow("::test_the_curve_of_a_week_ends_with_the_whole_history")
def test_the_curve_ends_with_the_whole_history() -> None:
    rules = Rules(charges=CHARGES, caps=dict(zip(["words", "emoji", "health"], CAPS, strict=True)))
    account = account_ledger(rules, num_days=60, delta=1e-6)
    curve = account.curve()
    assert (curve.days[0], curve.days[-1]) == (1, 60)
    for method, values in curve.together.items():
        assert values[-1] == account.report.guarantee("user", method).epsilon
    for name, values in curve.by_use_case.items():
        stated = float(account.report.guarantee("user", "basic", name).epsilon)
        assert values[-1] == pytest.approx(stated)
    alone = Rules(charges=CHARGES[:1], caps={"words": Cap(amount=1)})
    assert account_ledger(alone, num_days=1).curve().together["PLD"] == [1.0]


def test_reports_are_json() -> None:
    ledger = Ledger(charges=(*CHARGES, Charge(use_case="plain", epsilon=math.inf)), num_days=3)
    report = ledger.before([*CAPS, Cap(amount=1)])
    content = json.dumps(report.to_dict(), allow_nan=False)
    assert '"inf"' in content
    assert report.guarantee("user", "basic", "words").epsilon == 6
    nothing = ledger.spent(np.zeros((3, 4, 2), dtype=np.int64))
    assert nothing.report.guarantee("user", "basic").epsilon == 0


@every(
    ("make", "message"),
    [
        (lambda: Charge(use_case="a", epsilon=0.0), "epsilon of a"),
        (lambda: Charge(use_case="", epsilon=1.0), "name of the use case"),
        (lambda: Charge(use_case="a", epsilon=8.0, reports=(2, 5)), "add up"),
        (lambda: Charge(use_case="a", epsilon=1.0, most_values=2), "once_per_value"),
        (lambda: Charge(use_case="a", epsilon=1.0, records_per_event=0), "records_per_event"),
        (lambda: Ledger(charges=(), num_days=3), "num_charges"),
        (lambda: Ledger(charges=CHARGES, num_days=0), "num_days"),
        (lambda: Ledger(charges=CHARGES, num_days=3, delta=0.0), "delta"),
        (lambda: Ledger(charges=CHARGES[:1] * 2, num_days=3), "several of 'words'"),
        (lambda: LEDGER.before(CAPS[:2]), "a cap for each of 3"),
        (lambda: LEDGER.before({"word": CAPS[0]}), "did you mean 'words'"),
        (lambda: LEDGER.before({"words": CAPS[0]}), "a cap for the use case 'emoji'"),
        (lambda: LEDGER.before(CAPS).of("emojis"), "did you mean 'emoji'"),
        (lambda: LEDGER.spent(SENT[:1]), "records of 2 days, got 1"),
        (lambda: LEDGER.spent(np.concatenate([SENT, SENT])), "got more"),
        (lambda: LEDGER.spent(SENT[:, :2]), "shape"),
        (lambda: LEDGER.spent(SENT - 1), ">= 0"),
        (lambda: LEDGER.spent(SENT * 0.5), "integers"),
        (lambda: LEDGER.spent(SENT[:, :, :0]), "at least one device"),
        (lambda: LEDGER.spent([SENT[0], SENT[1, :, :2]]), "4 devices"),
        (lambda: LEDGER.spent(SENT + 1, opt_in=np.array([0, 1, 0, 0])), "device 1 on day 0"),
        (lambda: LEDGER.spent(SENT, opt_out=np.array([1])), "opt_out of shape"),
    ],
)
def test_bad_input_is_one_line(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


LEDGER = Ledger(charges=CHARGES, num_days=2)
SENT = np.zeros((2, 3, 4), dtype=np.int64)
