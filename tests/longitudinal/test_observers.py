"""What all reports of a device say: against enumeration of whole sequences of reports."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedhh.longitudinal.memoization import (
    OTHER_DEVICE,
    A,
    B,
    BitPair,
    always,
    changing,
    find_device,
    histories,
    observe,
    observed_after,
    one_bit_mean,
    one_day,
    rappor,
)
from fedhh.longitudinal.memoization.histories import pseudonym_scores
from fedhh.longitudinal.memoization.losses import ExactLosses, total_variation
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.bloom import BitResponse, BloomFilters
from fedhh.validation import InputError
from tests.every import every
from tests.longitudinal.memoized_histories import PAPER, TINY, OwnBits, distribution_of
from tests.thinned import thinned

# Of each answer, a device's public part and the two values that are easiest to distinguish.
FARTHEST = {
    "basic-rappor": ([[0]], (0, 1)),
    "one-time-rappor": ([[0]], (0, 1)),
    "rappor": ([[1]], (0, 1)),
    "one-bit-mean": ([[]], (4.0, 0.0)),
    "one-bit-mean-gamma": ([[]], (4.0, 0.0)),
    "dbitflip": ([[1, 2]], (1, 2)),
    "dbitflip-gamma": ([[0, 2]], (2, 0)),
    "dbitflip-one": ([[1]], (1, 2)),
}
NAMES = pytest.mark.parametrize("name", FARTHEST)
GRR = make_oracle(OracleSpec(name="grr", epsilon=1.0), 4)


def both_distributions(name, first, second):
    """Return the log-probabilities of all sequences of reports in two histories, enumerated."""
    answer = TINY[name]
    public, (a, b) = FARTHEST[name]
    public = np.array(public, dtype=np.int64)
    return [
        distribution_of(answer, [{A: a, B: b}[label] for label in history.tolist()], public)[1]
        for history in (first, second)
    ]


def variation(p, q):
    return float(np.maximum(np.exp(p) - np.exp(q), 0).sum())


def worst_ratio(p, q):
    return max(float((x - y)[x > -math.inf].max()) for x, y in ((p, q), (q, p)))


@NAMES
@pytest.mark.parametrize(
    ("first", "second"),
    thinned(
        [
            (always(1), always(1, B)),
            (always(3), always(3, B)),
            (always(3), one_day(3)),
            (always(3), changing(3)),
            (changing(3, 2), changing(3, 1)),
        ],
        keep=15,
    ),
)
def test_epsilon_and_the_observer_are_those_of_all_sequences(name, first, second):
    p, q = both_distributions(name, first, second)
    found = observe(TINY[name], first, second)
    with np.errstate(invalid="ignore"):
        assert found.epsilon == pytest.approx(worst_ratio(p, q))
    exact = (1 + variation(p, q)) / 2
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-9
    assert found.upper - found.lower < 3e-4
    assert found.middle == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("name", ["basic-rappor", "one-bit-mean-gamma", "dbitflip-gamma"])
def test_another_device_is_told_by_its_own_permanent_response(name):
    first, second = both_distributions(name, always(2), always(1))
    # Two devices with one report each are independent.
    joint = np.add.outer(second, second).ravel()
    space = {tuple(row): log for row, log in zip(distribution_rows(name, 2), first, strict=True)}
    single = distribution_rows(name, 1)
    same = np.array([space[(*x, *y)] for x, y in itertools.product(single, repeat=2)])
    found = observe(TINY[name], always(2), np.array([A, OTHER_DEVICE]))
    exact = (1 + variation(same, joint)) / 2
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-9
    assert exact > 0.5


def distribution_rows(name, days):
    public, (a, _) = FARTHEST[name]
    space, _ = distribution_of(TINY[name], [a] * days, np.array(public, dtype=np.int64))
    return [tuple(row) for row in space.reshape(len(space), -1).tolist()]


@NAMES
def test_fresh_noise_of_the_same_distribution_is_the_first_report_again_and_again(name):
    p, q = both_distributions(name, always(1), always(1, B))
    first, second = p, q
    for days in (2, 3):
        first, second = (np.add.outer(x, y).ravel() for x, y in ((first, p), (second, q)))
        found = observe(TINY[name], always(days), always(days, B), redrawn=True)
        assert found.lower - 1e-9 <= (1 + variation(first, second)) / 2 <= found.upper + 1e-9
        assert found.epsilon == pytest.approx(days * TINY[name].epsilon_first)


@NAMES
def test_the_epsilon_of_a_value_is_the_answers_own(name):
    for days in (1, 4, 40):
        found = observe(TINY[name], always(days), always(days, B))
        assert found.epsilon == pytest.approx(TINY[name].epsilon_after(days))


def test_memoizing_few_bits_bounds_what_is_told_of_a_value():
    filters = BloomFilters(num_bits=8, num_hashes=2, num_cohorts=1, hash_seed=0)
    answer = rappor(filters, PAPER)
    kept, fresh = (
        observe(answer, always(30), always(30, B), redrawn=redrawn) for redrawn in (False, True)
    )
    assert kept.upper < 27 / 32 < fresh.lower
    assert kept.epsilon == pytest.approx(answer.epsilon_after(30))
    assert kept.epsilon < answer.epsilon_forever
    assert fresh.epsilon == pytest.approx(30 * answer.epsilon_first)


@pytest.mark.slow("::test_memoizing_few_bits_bounds_what_is_told_of_a_value")
def test_memoizing_bounds_what_is_told_of_a_value_and_fresh_noise_does_not():
    filters = BloomFilters(num_bits=128, num_hashes=2, num_cohorts=1, hash_seed=0)
    answer = rappor(filters, PAPER)
    rows = [observed_after(answer, days) for days in (1, 30, 200)]
    # Of four bits that two values differ in, each is kept with 3/4: right with 27/32.
    assert rows[-1].value.middle == pytest.approx(27 / 32, abs=3e-4)
    assert rows[-1].value.epsilon == pytest.approx(answer.epsilon_forever)
    assert rows[-1].value_if_fresh.lower > 0.999
    assert rows[-1].value_if_fresh.epsilon == pytest.approx(200 * answer.epsilon_first)
    # A change redraws all 128 bits, so that memoizing shows it sooner than fresh noise would.
    assert rows[1].change.lower > 0.999 > rows[1].change_if_fresh.upper
    assert rows[1].change.epsilon > 100 * answer.epsilon_forever
    assert rows[1].one_day.epsilon < rows[1].change.epsilon
    assert rows[1].linked.lower > 0.999
    assert rows[0].one_day is None
    assert rows[0].change is None
    assert rows[0].change_if_fresh is None


@pytest.mark.parametrize("days", [2, 30, 1000])
def test_a_visible_change_of_one_bit_mean_has_its_closed_form(days):
    e = math.e
    answer = one_bit_mean(epsilon=1.0, maximum=4.0, num_steps=2)
    visible = (e**2 + 1) / (e + 1) ** 2
    assert answer.change_shows == pytest.approx(visible)
    found = observe(answer, always(days), changing(days))
    assert found.middle == pytest.approx((1 + visible) / 2, abs=3e-4)
    assert found.epsilon == math.inf


@pytest.mark.parametrize("name", ["dbitflip-gamma", "basic-rappor", "one-bit-mean"])
def test_permanent_responses_change_as_often_as_stated(name):
    answer, devices = TINY[name], 20_000
    public, pair = FARTHEST[name]
    memory = answer.begin(devices, rng=np.random.default_rng(1))
    memory = replace(memory, public=np.repeat(np.array(public, dtype=np.int64), devices, axis=0))
    kept = [answer.permanent(memory, np.full(devices, value)) for value in pair]
    changed = int((kept[0] != kept[1]).any(axis=1).sum())
    assert follows_binomial(changed, devices, answer.change_shows)
    assert not follows_binomial(changed, devices, 0.9 * answer.change_shows)


def follows_binomial(hits, trials, chance):
    return stats.binomtest(hits, trials, chance).pvalue > 1e-9


def test_fresh_noise_of_an_oracle():
    exact = observe(GRR, always(1), always(1, B))
    e = math.e
    assert exact.middle == pytest.approx(0.5 + (e - 1) / (e + 3) / 2)
    assert observe(GRR, always(7), always(7, B)).epsilon == 7
    one = observe(GRR, always(7), one_day(7))
    assert one.epsilon == 1
    assert one.middle == pytest.approx(exact.middle)
    assert observe(GRR, always(4), np.array([A, A, OTHER_DEVICE, OTHER_DEVICE])).upper == 0.5


def test_total_variation_of_products_is_bracketed():
    rng = np.random.default_rng(6)
    for certain in (0.0, 0.1):
        p, q = rng.dirichlet(np.ones(4), size=2)
        if certain:
            p, q = np.append(p * 0.9, 0.1), np.append(q, 0.0)
        losses = ExactLosses.of(
            np.log(p), np.log(np.where(q > 0, q, 1)) + np.where(q > 0, 0, -math.inf)
        )
        assert losses.largest == (math.inf if certain else pytest.approx(np.log(p / q).max()))
        p3, q3 = (np.einsum("a,b,c->abc", x, x, x).ravel() for x in (p, q))
        exact = np.maximum(p3 - q3, 0).sum()
        low, high = total_variation([(losses, 3)])
        assert low <= exact <= high
        assert high - low < 6e-4
    assert total_variation([]) == (0.0, 0.0)
    apart = ExactLosses.of(np.array([0.0]), np.array([-math.inf]))
    assert total_variation([(apart, 1)]) == (1.0, 1.0)


def test_as_many_outcomes_as_stated_are_enumerated_and_not_one_more(monkeypatch):
    # Of three days, none to all show a one.
    asked = TINY["basic-rappor"], always(3), always(3, B)
    monkeypatch.setattr(histories, "MOST_OUTCOMES", 4)
    assert observe(*asked).epsilon > 0
    monkeypatch.setattr(histories, "MOST_OUTCOMES", 3)
    with pytest.raises(InputError, match=r"at most 3 counts of ones .* groups of 3 days"):
        observe(*asked)


def test_histories_change_in_equal_parts():
    assert changing(5, 4).tolist() == [A, B, A, B, A]
    assert one_day(3).tolist() == [A, B, A]


@every(
    ("make", "message"),
    [
        (lambda: always(0), "days=0"),
        (lambda: changing(3, 3), "changes=3"),
        (lambda: changing(3, -1), "changes=-1"),
        (lambda: observe(GRR, always(2), always(3)), "one length"),
        (lambda: observed_after(GRR, 3, changes=0), "changes=0"),
        (
            lambda: observe(TINY["basic-rappor"], always(4000), changing(4000)),
            "ask about fewer",
        ),
        (
            lambda: observe(
                make_oracle(OracleSpec(name="olh", epsilon=1.0), 4), always(1), always(1, B)
            ),
            "try grr",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(make, message):
    with pytest.raises(InputError) as refusal:
        make()
    assert message in str(refusal.value)


def test_a_device_is_found_again_as_often_as_two_are_distinguished():
    # Of two pseudonyms one is the device: with one bit that is sent as it is, by hand. The right
    # one agrees; a wrong one agrees with 1 - 2 c (1 - c), and then it is a toss.
    answer = one_bit_mean(epsilon=1.0, maximum=1.0)
    c = 1 / (math.e + 1)
    agrees = 1 - 2 * c * (1 - c)
    found = find_device(
        answer, days=3, num_devices=2, num_trials=2_000,
        rng=np.random.default_rng(7), confidence=1 - 1e-9,
    )  # fmt: skip
    assert found.lower < 1 - agrees / 2 < found.upper
    assert found.by_chance == 0.5


def test_a_pseudonyms_score_is_the_likelihood_ratio_by_hand():
    answer = rappor(OwnBits(num_bits=2), BitResponse(f=0.5, p=0.4, q=0.9))
    # A permanent bit is 1 with chance 0.3; of a day under each pseudonym, both reports' chances.
    is_one, sent = 0.3, {1: (0.9, 0.4), 0: (0.1, 0.6)}
    ratios = []
    for x, y in itertools.product((0, 1), repeat=2):
        both = is_one * sent[x][0] * sent[y][0] + (1 - is_one) * sent[x][1] * sent[y][1]
        alone = [is_one * sent[z][0] + (1 - is_one) * sent[z][1] for z in (x, y)]
        ratios.append(both / alone[0] / alone[1])
    seen = [
        pseudonym_scores(answer, BitPair(is_one, is_one, 1), 1, 40, np.random.default_rng(seed))
        for seed in range(4)
    ]
    found = np.unique(np.round(np.exp(seen), 12))
    # Which of two different reports is the old one makes no difference.
    assert found == pytest.approx(np.unique(np.round(ratios, 12)))


def test_many_permanent_bits_are_a_fingerprint_and_noise_hides_it_for_a_while():
    def found(days, **response):
        answer = rappor(
            BloomFilters(num_bits=64, num_hashes=2, num_cohorts=1, hash_seed=0),
            BitResponse(f=0.5, **response),
        )
        return find_device(
            answer, days=days, num_devices=100, num_trials=60, rng=np.random.default_rng(8)
        )

    always_found = found(1)
    assert (always_found.right, always_found.upper) == (1, 1)
    # Who is right with less than that has 60 of 60 right in half a percent of all cases.
    assert always_found.lower == pytest.approx(0.005 ** (1 / 60))
    assert found(1, p=0.5, q=0.75).upper < 0.3
    assert found(30, p=0.5, q=0.75).lower > 0.7
