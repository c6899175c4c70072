"""Curves of check-ins, who is eligible, and settings that cannot be met."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.devices import CURVES, Devices, check_ins
from fedhh.testing import follows_distribution
from fedhh.validation import InputError
from tests.every import every

CURVE = ((2.0, 0.2), (3.0, 0.6), (10.0, 0.9))


def draws(devices: Devices, *, layer: int = 1, blocks: int = 40, seed: int = 5):
    """What 1,000 devices of each block draw in a round."""
    return [
        check_ins(devices, 0, layer, np.arange(1_000) + 1_000 * block, block, seed=seed)
        for block in range(blocks)
    ]


def hours_drawn(devices: Devices, **changes: int) -> list[str]:
    """In which stretch of the curve each device checks in, or never."""
    places = np.concatenate([drawn.place for drawn in draws(devices, **changes)])
    bounds = [devices.share_by(hours) for hours in (1.0, 2.0, 3.0, 6.5, 10.0)]
    return [str(x) for x in np.searchsorted(bounds, places, side="right")]


def test_devices_check_in_as_the_curve_says_and_no_other():
    devices = Devices(check_in=CURVE)
    # Linear from no device at hour 0, between points, and flat behind the last one.
    shares = {"0": 0.1, "1": 0.1, "2": 0.4, "3": 0.15, "4": 0.15, "5": 0.1}
    assert follows_distribution(hours_drawn(devices), shares)
    wrong = {**shares, "2": 0.38, "3": 0.17}
    assert not follows_distribution(hours_drawn(devices), wrong)


def test_a_share_and_its_hour_are_each_other_s_inverse():
    devices = Devices(check_in=CURVE)
    for hours in (0.5, 2.0, 2.5, 7.0, 10.0):
        assert devices.hours_of(devices.share_by(hours)) == pytest.approx(hours)
    assert devices.share_by(11.0) == 0.9
    assert math.isinf(devices.hours_of(0.901))
    jump = Devices(check_in=((0.0, 0.3), (4.0, 0.5)))
    assert (jump.share_by(0.0), jump.share_by(2.0)) == (0.3, 0.4)
    assert (jump.hours_of(0.2), jump.hours_of(0.4)) == (0.0, pytest.approx(2.0))


def test_presets_are_as_their_sources_say():
    papaya = Devices(check_in="papaya")
    assert [papaya.share_by(hours) for hours in (16, 24, 96, 1_000)] == [0.85, 0.90, 0.96, 0.96]
    assert papaya.hours_between_openings == 12.0
    assert Devices(check_in="papaya", answers_per_day=1).hours_between_openings == 24.0
    always = Devices()
    assert (always.share_by(0.0), always.closing_hours) == (1.0, 0.0)
    assert always.hours_between_openings == 0.0


def test_dropouts_have_their_share_and_do_not_depend_on_when_a_device_checks_in():
    drawn = draws(Devices(check_in=CURVE, dropout=0.3))
    early = np.concatenate([each.is_lost[each.place < 0.2] for each in drawn])
    late = np.concatenate([each.is_lost[each.place >= 0.2] for each in drawn])
    for lost in (early, late):
        assert follows_distribution(lost, {True: 0.3, False: 0.7})
        assert not follows_distribution(lost, {True: 0.27, False: 0.73})


def test_who_is_eligible_is_a_device_s_own_and_the_same_in_every_round():
    devices = Devices(eligible=0.4)
    clients = np.arange(50_000)
    eligible = devices.is_eligible(clients, seed=1)
    assert follows_distribution(eligible, {True: 0.4, False: 0.6})
    assert not follows_distribution(eligible, {True: 0.42, False: 0.58})
    # Neighbors in number are no neighbors in luck.
    pairs = np.stack([eligible[:-1:2], eligible[1::2]], axis=1)
    both = {(a, b): (0.4 if a else 0.6) * (0.4 if b else 0.6) for a in (0, 1) for b in (0, 1)}
    assert follows_distribution(pairs.astype(int), both)
    order = np.random.default_rng(0).permutation(50_000)
    assert np.array_equal(devices.is_eligible(order, seed=1), eligible[order])
    other = devices.is_eligible(clients, seed=2)
    assert abs(np.mean(other == eligible) - 0.52) < 0.02
    more = Devices(eligible=0.6).is_eligible(clients, seed=1)
    assert (more | ~eligible).all()
    for layer in (1, 2):
        (drawn, *_) = draws(devices, layer=layer)
        assert np.array_equal(drawn.is_eligible, devices.is_eligible(np.arange(1_000), seed=5))


def test_rounds_and_blocks_draw_check_ins_of_their_own():
    devices = Devices(check_in=CURVE)
    first, second = draws(devices, blocks=2)
    (other, *_) = draws(devices, layer=2, blocks=1)
    for each in (second, other):
        assert abs(np.corrcoef(first.place, each.place)[0, 1]) < 0.15


@every(
    ("settings", "message"),
    [
        ({"check_in": "papya"}, "Unknown check_in 'papya'; did you mean 'papaya'"),
        ({"check_in": ()}, "points"),
        ({"check_in": ((1.0, 0.5), (1.0, 0.6))}, "rising hours in check_in, got .1.0, 1.0"),
        ({"check_in": ((1.0, 0.5), (2.0, 0.5))}, "rising shares in check_in, got .0.5, 0.5"),
        ({"check_in": ((1.0, 1.5),)}, r"shares of check_in in .0, 1., got .1.5"),
        ({"check_in": ((1.0, 0.0),)}, "shares of check_in"),
        ({"check_in": ((-1.0, 0.5),)}, "hours of check_in from 0 to 8760"),
        ({"check_in": ((math.nan, 0.5),)}, "hours of check_in"),
        ({"eligible": 0.0}, "Expected 0 < eligible <= 1, got eligible=0.0"),
        ({"eligible": 1.1}, "eligible=1.1"),
        ({"dropout": 1.0}, "Expected 0 <= dropout < 1, got dropout=1.0"),
        ({"dropout": -0.1}, "dropout=-0.1"),
        ({"deadline_hours": 0.0}, "deadline_hours"),
        ({"least_clients": 3, "least_share": 0.5}, "least_clients or least_share, got both"),
        ({"when_missed": "go"}, "when_missed"),
        ({"gap_hours": -1.0}, "gap_hours"),
        ({"answers_per_day": 0}, "answers_per_day"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_one_line(settings, message):
    with pytest.raises(InputError, match=message) as error:
        Devices(**settings)
    assert "\n" not in str(error.value)


def test_the_least_number_is_what_is_asked_for_and_never_below_two():
    assert Devices().fewest_answers(100) == 2
    assert Devices(least_clients=1).fewest_answers(100) == 2
    assert Devices(least_clients=40).fewest_answers(100) == 40
    assert Devices(least_share=0.7).fewest_answers(10) == 7
    assert Devices(least_share=0.71).fewest_answers(10) == 8


def test_what_cannot_be_expected_is_refused_with_the_nearest_that_can():
    few = {"check_in": "papaya", "eligible": 0.5, "dropout": 0.2, "deadline_hours": 16.0}
    # .5 * .85 * .8 by the deadline, .5 * .96 * .8 by the last check-in.
    stops, waits = ({**few, "when_missed": each} for each in ("stop", "wait"))
    Devices(**stops, least_clients=340).check_cohort(1_000)
    Devices(**waits, least_clients=384).check_cohort(1_000)
    with pytest.raises(
        InputError, match=r"least_clients <= 340; or deadline_hours >= 16.4,.*at 16 hours"
    ):
        Devices(**stops, least_clients=341).check_cohort(1_000)
    with pytest.raises(InputError, match=r"least_clients <= 384, got least_clients=385.*96 hours"):
        Devices(**waits, least_clients=385).check_cohort(1_000)
    with pytest.raises(InputError, match=r"least_share <= 0.384, got least_share=0.4:"):
        Devices(**waits, least_share=0.4).check_cohort(1_000)
    with pytest.raises(InputError, match="least_clients <= 1, got least_clients=2"):
        Devices(eligible=0.1).check_cohort(10)
    # No deadline helps where the curve never comes so far.
    with pytest.raises(InputError, match="least_clients <= 340, got"):
        Devices(**stops, least_clients=400).check_cohort(1_000)


def test_curves_by_name_are_curves():
    for points in CURVES.values():
        assert Devices(check_in=points).points == points
