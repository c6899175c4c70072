"""Memoized answers: the distribution of whole sequences of reports, enumerated, and estimates."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedhh.longitudinal.memoization import (
    dbitflip,
    error_of_mean,
    estimate_buckets,
    estimate_mean,
    one_bit_mean,
    rappor,
)
from fedhh.oracles.bloom import NOTHING, BitResponse, BloomFilters
from fedhh.testing.statistics import ALPHA, follows_distribution, rows
from fedhh.validation import InputError
from tests.every import every
from tests.longitudinal.memoized_histories import (
    PAPER,
    SETTINGS,
    TINY,
    OwnBits,
    all_reports,
    distribution_of,
    publics_of,
    values_of,
)
from tests.thinned import thinned

SUBMITTED = pytest.mark.parametrize("name", TINY)


def permanent_chances(name, key, public):
    """Return the chances of a permanent 1, written down again from the papers."""
    kind, settings = SETTINGS[name]
    e = math.exp(settings.get("epsilon", 0.0))
    if kind is one_bit_mean:
        point = key * settings["maximum"] / settings["num_steps"]
        return [1 / (e + 1) + point / settings["maximum"] * (e - 1) / (e + 1)]
    if kind is dbitflip:
        h = math.sqrt(e)
        return [h / (h + 1) if each == key else 1 / (h + 1) for each in public[0]]
    held = settings["filters"].filters(public[0], np.array([key]))[0]
    f = settings["response"].f
    return [1 - f / 2 if bit else f / 2 for bit in held]


def roundings(name, values):
    """Return (weight, what each value is rounded to): alpha on a grid finer than the values'."""
    kind, settings = SETTINGS[name]
    if kind is not one_bit_mean:
        return [(1.0, list(values))]
    step, parts = settings["maximum"] / settings["num_steps"], 8
    found = []
    for alpha in (np.arange(parts) + 0.5) * step / parts:
        points = [math.floor(x / step) for x in values]
        found.append(
            (1 / parts,
             [p + (x + alpha >= (p + 1) * step) for p, x in zip(points, values, strict=True)])
        )  # fmt: skip
    return found


def slow_distribution(name, values, public, reports):
    """Return the probability of one sequence of reports: all alphas, all permanent responses."""
    answer, total = TINY[name], 0.0
    for chance_of_alpha, keys in roundings(name, values):
        weight = chance_of_alpha
        for bit in range(answer.num_bits):
            distinct = sorted(set(keys))
            chance = {key: permanent_chances(name, key, public)[bit] for key in distinct}
            of_bit = 0.0
            for kept in itertools.product((0, 1), repeat=len(distinct)):
                held = dict(zip(distinct, kept, strict=True))
                each = math.prod(chance[k] if held[k] else 1 - chance[k] for k in distinct)
                for key, sent in zip(keys, reports[:, bit], strict=True):
                    one = answer.daily_one if held[key] else answer.daily_zero
                    each *= one if sent else 1 - one
                of_bit += each
            weight *= of_bit
        total += weight
    return total


@SUBMITTED
def test_the_distribution_of_whole_sequences_is_that_of_the_papers(name):
    answer = TINY[name]
    values = values_of(name)
    for history in ([values[0], values[1], values[0]], [values[-1], values[-1]], values[-2:]):
        for public in publics_of(name)[:2]:
            space, logs = distribution_of(answer, history, public)
            found = np.exp(logs)
            assert found.sum() == pytest.approx(1)
            some = range(0, len(space), max(1, len(space) // 12))
            expected = [slow_distribution(name, history, public, space[row]) for row in some]
            assert found[list(some)] == pytest.approx(expected)


@SUBMITTED
@pytest.mark.parametrize("days", [1, 2, 3])
def test_epsilon_after_some_days_is_attained_exactly(name, days):
    answer = TINY[name]
    worst = 0.0
    for public in publics_of(name):
        logs = [distribution_of(answer, [value] * days, public)[1] for value in values_of(name)]
        for first, second in itertools.permutations(logs, 2):
            possible = first > -math.inf
            assert (second[possible] > -math.inf).all()
            worst = max(worst, float((first[possible] - second[possible]).max()))
    assert worst == pytest.approx(answer.epsilon_after(days))
    assert worst <= answer.epsilon_forever * (1 + 1e-9)


@SUBMITTED
def test_epsilon_rises_to_its_limit_and_no_further(name):
    answer = TINY[name]
    epsilons = [answer.epsilon_after(days) for days in (1, 2, 5, 20, 10**6)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] == pytest.approx(answer.epsilon_forever)
    assert answer.epsilon_first == epsilons[0]


def test_the_numbers_of_the_rappor_paper():
    answer = rappor(BloomFilters(num_bits=128, num_hashes=2, num_cohorts=8, hash_seed=0), PAPER)
    assert answer.epsilon_first == pytest.approx(1.0743, abs=5e-5)
    assert answer.epsilon_first == pytest.approx(PAPER.epsilon_of_one_report(2))
    assert answer.epsilon_forever == pytest.approx(4.394, abs=5e-4)
    assert answer.epsilon_forever == pytest.approx(PAPER.epsilon_of_all_reports(2))
    again = BitResponse.of_all_reports(answer.epsilon_forever, num_hashes=2, p=0.5, q=0.75)
    assert again.f == pytest.approx(0.5)
    assert again.epsilon_of_all_reports(2) <= answer.epsilon_forever


@SUBMITTED
def test_the_second_answer_is_made_from_the_first(name):
    answer = TINY[name]
    n = 500
    state = answer.begin(n, rng=np.random.default_rng(1))
    values = np.random.default_rng(2).choice(values_of(name), n)
    kept = answer.permanent(state, values)
    assert (answer.permanent(state, values) == kept).all()
    answer.answer(state, values[::-1].copy(), rng=np.random.default_rng(3))
    assert (answer.permanent(state, values) == kept).all()
    assert (answer.permanent(state.rows(100, 300), values[100:300]) == kept[100:300]).all()
    again = [answer.answer(state, values, rng=np.random.default_rng(day)) for day in (4, 5)]
    same = bool((again[0] == again[1]).all())
    assert same == (answer.daily_zero == 0 and answer.daily_one == 1)
    if same:
        assert (again[0] == kept).all()
    redrawn = state.with_new_keys(rng=np.random.default_rng(6))
    assert (answer.permanent(redrawn, values) != kept).any()


def simulated(answer, states, history, *, seed):
    """Return ``(n, t, b)`` reports, of each day from that day's state."""
    rng = np.random.default_rng(seed)
    days = [
        answer.answer(state, np.full(state.num_devices, value), rng=rng)
        for state, value in zip(states, history, strict=True)
    ]
    return np.stack(days, axis=1)


@pytest.mark.parametrize(
    ("name", "days", "redraw"),
    thinned(
        [
            ("basic-rappor", 2, "with_new_keys"),
            ("one-bit-mean-gamma", 2, "with_new_keys"),
            ("dbitflip-gamma", 2, "with_new_keys"),
            ("one-bit-mean", 3, "with_new_offsets"),
        ]
    ),
)
def test_simulated_reports_follow_the_distribution_and_redrawn_states_do_not(name, days, redraw):
    answer = TINY[name]
    n, rng = 25_000, np.random.default_rng(7)
    public = publics_of(name)[0]
    state = replace(answer.begin(n, rng=rng), public=np.repeat(public, n, axis=0))
    values = values_of(name)
    # Alpha drawn again shows only in numbers that are between grid points.
    same = [3.0 if redraw == "with_new_offsets" else values[-1]] * days
    for history in (same, [*values[:2], *values[:1]][:days]):
        space, logs = distribution_of(answer, history, public)
        distribution = dict(zip(rows(space), np.exp(logs), strict=True))
        assert follows_distribution(
            rows(simulated(answer, [state] * days, history, seed=8)), distribution
        )
        if history is same:
            redrawn = [
                state.with_new_keys(rng=rng)
                if redraw == "with_new_keys"
                else replace(state, offsets=rng.random(n))
                for _ in history
            ]
            assert not follows_distribution(
                rows(simulated(answer, redrawn, history, seed=9)), distribution
            )


def test_permanent_responses_of_different_values_are_independent():
    answer = rappor(OwnBits(num_bits=2), BitResponse(f=0.5))
    n = 60_000
    state = answer.begin(n, rng=np.random.default_rng(15))
    kept = [answer.permanent(state, np.full(n, value)) for value in (0, 1, NOTHING)]
    pairs = np.concatenate(kept, axis=1)
    chances = [0.75, 0.25, 0.25, 0.75, 0.25, 0.25]
    distribution = {
        bits: math.prod(c if bit else 1 - c for bit, c in zip(bits, chances, strict=True))
        for bits in itertools.product((False, True), repeat=6)
    }
    assert follows_distribution(rows(pairs), distribution)
    assert not follows_distribution(rows(pairs[:, [0, 1, 0, 1, 4, 5]]), distribution)


def own(name, *wanted):
    """Those of an answer's settings that an estimate takes."""
    return {key: each for key, each in SETTINGS[name][1].items() if key in wanted}


@every("name", ["one-bit-mean", "one-bit-mean-gamma"])
@every("value", [0.0, 0.3, 1.0, 2.5, 3.9, 4.0])
def test_one_bit_mean_is_unbiased(name, value):
    space, logs = distribution_of(TINY[name], [value], publics_of(name)[0])
    settings = own(name, "epsilon", "maximum", "gamma")
    estimates = [estimate_mean(report, **settings) for report in space]
    assert np.exp(logs) @ estimates == pytest.approx(value)


def test_alpha_points_are_right_in_the_mean_for_each_device_for_good():
    answer = one_bit_mean(epsilon=1.0, maximum=10.0, num_steps=4)
    values = np.random.default_rng(16).uniform(0, 10, 200)
    below, threshold = answer.rounded(values)
    expected = (below + (1 - threshold)) * answer.step
    assert expected == pytest.approx(values)
    # The paper's rule for whole numbers: up where x + alpha reaches the next point.
    whole = one_bit_mean(epsilon=1.0, maximum=12.0, num_steps=3)
    below, threshold = whole.rounded(np.arange(13))
    for alpha in range(4):
        paper = [4 * (x // 4) if x + alpha < 4 * (x // 4 + 1) else 4 * (x // 4 + 1)
                 for x in range(13)]  # fmt: skip
        assert (4 * (below + ((alpha + 0.5) / 4 >= threshold))).tolist() == paper


@pytest.mark.parametrize("gamma", [0.0, 0.2])
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_one_bit_means_error_bound_is_missed_with_delta_at_most(gamma, delta):
    settings = {"epsilon": 1.0, "maximum": 10.0, "gamma": gamma}
    answer = one_bit_mean(num_steps=2, **settings)
    n, runs = 400, 400
    bound = error_of_mean(n, delta=delta, **settings)
    if gamma == 0:
        e = math.e
        paper = 10 / math.sqrt(2 * n) * (e + 1) / (e - 1) * math.sqrt(math.log(2 / delta))
        assert bound == pytest.approx(paper)
    rng = np.random.default_rng(17)
    values = np.tile(np.linspace(0, 10, n), runs)
    state = answer.begin(n * runs, rng=rng)
    reports = answer.answer(state, values, rng=rng).reshape(runs, n, 1)
    errors = np.array([estimate_mean(each, **settings) for each in reports]) - 5
    misses = int((np.abs(errors) > bound).sum())
    assert stats.binomtest(misses, runs, delta, alternative="greater").pvalue > ALPHA
    # A quarter of it is missed more often than that: the test can fail.
    often = int((np.abs(errors) > bound / 4).sum())
    assert stats.binomtest(often, runs, delta, alternative="greater").pvalue < ALPHA


@every("name", [each for each in TINY if each.startswith("dbitflip")])
def test_dbitflips_counts_are_unbiased(name):
    settings = own(name, "epsilon", "num_buckets", "gamma")
    total = np.zeros(settings["num_buckets"])
    for public in publics_of(name):
        space, logs = distribution_of(TINY[name], [1], public)
        for report, log in zip(space, logs, strict=True):
            total += math.exp(log) * estimate_buckets(report, public, **settings)
    held = np.arange(settings["num_buckets"]) == 1
    assert total / len(publics_of(name)) == pytest.approx(held.astype(float))


def test_drawn_buckets_are_uniform_sets():
    answer = dbitflip(epsilon=1.0, num_buckets=5, num_drawn=3)
    drawn = answer.begin(20_000, rng=np.random.default_rng(19)).public
    distribution = dict.fromkeys(itertools.combinations(range(5), 3), 0.1)
    assert follows_distribution(rows(drawn), distribution)
    assert answer.public_bits == pytest.approx(math.log2(10))
    assert TINY["rappor"].public_bits == 1


def test_large_blocks_of_devices_are_answered_in_parts(monkeypatch):
    answer = TINY["dbitflip-gamma"]
    state = answer.begin(50, rng=np.random.default_rng(22))
    values = np.arange(50) % 3
    whole = answer.answer(state, values, rng=np.random.default_rng(23))
    monkeypatch.setattr("fedhh.longitudinal.memoization.bits._BITS_AT_ONCE", 16)
    assert (answer.answer(state, values, rng=np.random.default_rng(23)) == whole).all()
    assert all_reports(answer, 1).shape == (4, 1, 2)


@every(
    ("make", "message"),
    [
        (lambda: one_bit_mean(epsilon=0.0, maximum=1.0), "epsilon=0.0"),
        (lambda: one_bit_mean(epsilon=31.0, maximum=1.0), "epsilon <= 30"),
        (lambda: one_bit_mean(epsilon=1.0, maximum=0.0), "maximum=0.0"),
        (lambda: one_bit_mean(epsilon=1.0, maximum=1.0, num_steps=0), "num_steps=0"),
        (lambda: one_bit_mean(epsilon=1.0, maximum=1.0, gamma=0.5), "gamma=0.5"),
        (lambda: dbitflip(epsilon=1.0, num_buckets=4, num_drawn=5), "num_drawn=5"),
        (lambda: dbitflip(epsilon=1.0, num_buckets=1, num_drawn=1), "num_buckets=1"),
        (lambda: rappor(OwnBits(num_bits=1), PAPER), "num_bits=1"),
        (lambda: TINY["one-bit-mean"].rounded([4.5]), "[0, 4], got 4.5 to 4.5"),
        (lambda: TINY["dbitflip"].rounded(np.array([4])), "[0, 3], got 4 to 4"),
        (lambda: TINY["dbitflip"].rounded(np.array([0.5])), "whole numbers"),
        (lambda: TINY["rappor"].rounded(np.array([-2])), "[-1, inf], got -2 to -2"),
        (lambda: TINY["basic-rappor"].epsilon_after(0), "days=0"),
        (lambda: TINY["basic-rappor"].epsilon_of_same_pattern(0), "width=0"),
        (lambda: error_of_mean(3, delta=1.0, epsilon=1.0, maximum=1.0), "delta=1.0"),
    ],
)
def test_wrong_input_is_refused(make, message):
    with pytest.raises(InputError) as refusal:
        make()
    assert message in str(refusal.value)


def test_values_must_be_one_per_device_and_one_per_day():
    answer = TINY["dbitflip"]
    state = answer.begin(3, rng=np.random.default_rng(24))
    with pytest.raises(InputError, match="each of 3 devices"):
        answer.answer(state, np.array([0, 1]), rng=np.random.default_rng(25))
    with pytest.raises(InputError, match="each of 3 devices"):
        answer.permanent(state, np.array([0, 1]))
    with pytest.raises(InputError, match="each of 1 days"):
        answer.log_prob(np.zeros((1, 1, 2), dtype=bool), [0, 1], state.public[:1])
