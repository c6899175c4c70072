"""Memoized answers: the honest ones pass, those that are drawn again are caught."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.audit import EpsilonDelta, audit_answer, stated_bits
from fedhh.longitudinal.memoization import dbitflip, one_bit_mean, rappor
from fedhh.oracles.bloom import BitResponse
from fedhh.validation import InputError
from tests.forgetful_answers import AlphaRedrawn, RedrawnAfterAChange
from tests.longitudinal.memoized_histories import OwnBits
from tests.thinned import thinned

SURE = 1 - 1e-6

RAPPOR = rappor(OwnBits(num_bits=4), BitResponse(f=0.5, p=0.25, q=0.75))
ONE_BIT_MEAN = one_bit_mean(epsilon=1.0, maximum=10.0, num_steps=1)
PERTURBED = one_bit_mean(epsilon=1.0, maximum=10.0, num_steps=2, gamma=0.2)
D_BIT_FLIP = dbitflip(epsilon=2.0, num_buckets=4, num_drawn=4)
ANSWERS = [(RAPPOR, 0, 1), (ONE_BIT_MEAN, 0.0, 10.0), (PERTURBED, 0.0, 10.0), (D_BIT_FLIP, 0, 1)]
NAMES = ["rappor", "one-bit-mean", "perturbed", "dbitflip"]


def histories(pair, days, *, back_and_forth):
    """Always one value or always the other, or both of them in turn, in either order."""
    if back_and_forth:
        return np.resize(pair, days), np.resize(pair[::-1], days)
    return np.full(days, pair[0]), np.full(days, pair[1])


def audited(answer, first, second, *, num_devices=2000, seed=1, **options):
    return audit_answer(
        answer,
        first,
        second,
        num_devices=num_devices,
        rng=np.random.default_rng(seed),
        confidence=SURE,
        **options,
    )


@pytest.mark.parametrize("back_and_forth", thinned([False, True]))
@pytest.mark.parametrize(("answer", "low", "high"), ANSWERS, ids=NAMES)
def test_kept_responses_pass_and_redrawn_ones_are_detected(answer, low, high, back_and_forth):
    first, second = histories((low, high), 20, back_and_forth=back_and_forth)
    stated = stated_bits(answer, first, second)
    assert stated.epsilon == pytest.approx(answer.epsilon_of_same_pattern(1 + back_and_forth))
    found = audited(answer, first, second)
    assert found.claim == stated
    assert not found.refuted
    again = audited(answer, first, second, redrawn=True)
    assert again.claim == stated
    assert again.refuted
    assert again.at_least > stated.times


@pytest.mark.parametrize("back_and_forth", [False, True])
def test_rappors_response_redrawn_after_a_change_is_detected_only_by_changing(back_and_forth):
    first, second = histories((0, 1), 40, back_and_forth=back_and_forth)
    stated = stated_bits(RAPPOR, first, second)
    found = audited(RedrawnAfterAChange(RAPPOR), first, second, stated=stated, num_devices=800)
    assert found.refuted == back_and_forth


def test_few_devices_show_a_threshold_of_rounding_that_is_drawn_again():
    first, second = np.full(20, 1.0), np.full(20, 9.0)
    assert not audited(ONE_BIT_MEAN, first, second, num_devices=1_200).refuted
    assert audited(AlphaRedrawn(ONE_BIT_MEAN), first, second, num_devices=1_200).refuted


def test_what_one_day_gives_away_is_found_of_few_devices_and_seldom_exceeded():
    for answer, low, high in ANSWERS[:2]:
        found = audited(answer, [low], [high], num_devices=6_000)
        exact = answer.epsilon_after(1)
        assert not found.refuted
        assert 0.3 * exact < found.epsilon <= exact
    rng = np.random.default_rng(5)
    refuted = sum(
        audit_answer(
            RAPPOR, np.full(3, 0), np.full(3, 1), num_devices=150, rng=rng, confidence=0.7
        ).refuted
        for _ in range(6)
    )
    assert refuted <= 1


@pytest.mark.slow("::test_rappors_response_redrawn_after_a_change_is_detected_only_by_changing")
@pytest.mark.parametrize(("answer", "low", "high"), ANSWERS[:2], ids=NAMES[:2])
def test_responses_that_a_change_and_back_redraws_are_detected_only_by_changing(answer, low, high):
    for back_and_forth in (False, True):
        first, second = histories((low, high), 40, back_and_forth=back_and_forth)
        stated = stated_bits(answer, first, second)
        found = audited(RedrawnAfterAChange(answer), first, second, stated=stated)
        assert found.refuted == back_and_forth


@pytest.mark.slow("::test_few_devices_show_a_threshold_of_rounding_that_is_drawn_again")
def test_a_threshold_of_rounding_that_is_drawn_again_is_detected():
    # Between grid points a new alpha each day shows both of their permanent bits.
    first, second = np.full(20, 1.0), np.full(20, 9.0)
    assert not audited(ONE_BIT_MEAN, first, second).refuted
    assert audited(AlphaRedrawn(ONE_BIT_MEAN), first, second).refuted


@pytest.mark.slow("::test_what_one_day_gives_away_is_found_of_few_devices_and_seldom_exceeded")
def test_what_one_day_gives_away_is_found_closely():
    # One report: the exact epsilon of a binary response, and of RAPPOR's first day.
    for answer, low, high in ANSWERS:
        found = audited(answer, [low], [high], num_devices=20_000)
        exact = answer.epsilon_after(1)
        assert not found.refuted
        assert 0.55 * exact < found.epsilon <= exact
    assert audited(ONE_BIT_MEAN, [0.0], [10.0], num_devices=20_000).epsilon > 0.85


@pytest.mark.slow("::test_what_one_day_gives_away_is_found_of_few_devices_and_seldom_exceeded")
def test_honest_answers_are_refuted_no_more_often_than_the_confidence_says():
    rng = np.random.default_rng(5)
    refuted = sum(
        audit_answer(
            answer, np.full(3, low), np.full(3, high), num_devices=150, rng=rng, confidence=0.7
        ).refuted
        for answer, low, high in ANSWERS[:2]
        for _ in range(15)
    )
    # At most 9 are to be expected.
    assert refuted <= 3


def test_that_a_value_changed_is_not_hidden_by_memoization():
    # Without perturbation, a bit that differs from yesterday's proves a change.
    still, moved = np.full(10, 0.0), np.resize([0.0, 10.0], 10)
    claim = EpsilonDelta(epsilon=2.0)
    found = audited(ONE_BIT_MEAN, still, moved, stated=claim)
    assert found.refuted
    assert found.epsilon > 3
    with pytest.raises(InputError, match="repeat and differ on the same days"):
        audited(ONE_BIT_MEAN, still, moved)


def test_what_cannot_be_audited_is_named():
    with pytest.raises(InputError, match="two histories of one length"):
        audited(RAPPOR, [0, 0], [1])
    with pytest.raises(InputError, match="num_samples >= 4"):
        audited(RAPPOR, [0], [1], num_devices=3)
