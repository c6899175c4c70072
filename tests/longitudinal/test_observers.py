"""What all reports of a device say: against enumeration of whole sequences of reports."""

import itertools
import math

import numpy as np
import pytest

from fedhh.longitudinal.memoization import (
    OTHER_DEVICE,
    A,
    B,
    BitPair,
    FreshAnswer,
    MemoizedDBitFlip,
    MemoizedOneBitMean,
    MemoizedRappor,
    OwnBits,
    always,
    changing,
    distinguish,
    find_device,
    guess_value,
    histories,
    history_epsilon,
    observed_after,
    one_day,
    response_changes,
)
from fedhh.longitudinal.memoization.histories import describe
from fedhh.longitudinal.memoization.losses import ExactLosses, total_variation
from fedhh.longitudinal.memoization.observer import pseudonym_scores
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.bloom import BitResponse, BloomFilters
from fedhh.validation import InputError
from tests.every import every
from tests.longitudinal.memoized_histories import PAPER, TINY, distribution_of
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
    "dbitflip-numbers": ([[1, 2]], (2.0, 4.0)),
}
NAMES = pytest.mark.parametrize("name", FARTHEST)
GRR = FreshAnswer(oracle=make_oracle(OracleSpec(name="grr", epsilon=1.0), 4))


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
    with np.errstate(invalid="ignore"):
        assert history_epsilon(TINY[name], first, second).epsilon == pytest.approx(
            worst_ratio(p, q)
        )
    found = distinguish(TINY[name], first, second)
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
    found = distinguish(TINY[name], always(2), np.array([A, OTHER_DEVICE]))
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
        histories = always(days), always(days, B)
        found = distinguish(TINY[name], *histories, redrawn=True)
        assert found.lower - 1e-9 <= (1 + variation(first, second)) / 2 <= found.upper + 1e-9
        epsilon = history_epsilon(TINY[name], *histories, redrawn=True).epsilon
        assert epsilon == pytest.approx(days * TINY[name].epsilon_first)


@NAMES
def test_the_epsilon_of_a_value_is_the_answers_own(name):
    for days in (1, 4, 40):
        found = history_epsilon(TINY[name], always(days), always(days, B))
        assert found.epsilon == pytest.approx(TINY[name].epsilon_after(days))
        assert found.delta == 0


def test_memoizing_few_bits_bounds_what_is_told_of_a_value():
    filters = BloomFilters(num_bits=8, num_hashes=2, num_cohorts=1, hash_seed=0)
    answer = MemoizedRappor(filters=filters, response=PAPER)
    histories = always(30), always(30, B)
    kept, fresh = (distinguish(answer, *histories, redrawn=redrawn) for redrawn in (False, True))
    assert kept.upper < 27 / 32 < fresh.lower
    kept, fresh = (
        history_epsilon(answer, *histories, redrawn=redrawn).epsilon for redrawn in (False, True)
    )
    assert kept == pytest.approx(answer.epsilon_after(30))
    assert kept < answer.epsilon_forever
    assert fresh == pytest.approx(30 * answer.epsilon_first)


@pytest.mark.slow("::test_memoizing_few_bits_bounds_what_is_told_of_a_value")
def test_memoizing_bounds_what_is_told_of_a_value_and_fresh_noise_does_not():
    answer = MemoizedRappor(
        filters=BloomFilters(num_bits=128, num_hashes=2, num_cohorts=1, hash_seed=0),
        response=PAPER,
    )
    rows = observed_after(answer, [1, 30, 200])
    # Of four bits that two values differ in, each is kept with 3/4: right with 27/32.
    assert rows[-1].value_distinguished.middle == pytest.approx(27 / 32, abs=3e-4)
    assert rows[-1].value.epsilon == pytest.approx(answer.epsilon_forever)
    assert rows[-1].value_distinguished_if_fresh.lower > 0.999
    assert rows[-1].value_if_fresh.epsilon == pytest.approx(200 * answer.epsilon_first)
    # A change redraws all 128 bits, so that memoizing shows it sooner than fresh noise would.
    assert rows[1].change_distinguished.lower > 0.999 > rows[1].change_distinguished_if_fresh.upper
    assert rows[1].change.epsilon > 100 * answer.epsilon_forever
    assert rows[1].one_day.epsilon < rows[1].change.epsilon
    assert rows[1].linked.lower > 0.999
    assert rows[0].one_day is None
    assert rows[0].change is None
    assert rows[0].change_distinguished is None
    assert rows[0].change_distinguished_if_fresh is None


@pytest.mark.parametrize("days", [2, 30, 1000])
def test_a_visible_change_of_one_bit_mean_has_its_closed_form(days):
    e = math.e
    answer = MemoizedOneBitMean(epsilon=1.0, maximum=4.0, num_steps=2)
    visible = (e**2 + 1) / (e + 1) ** 2
    public = np.empty((1, 0), dtype=np.int64)
    assert response_changes(answer, 0.0, 4.0, public) == pytest.approx([visible])
    found = distinguish(answer, always(days), changing(days))
    assert found.middle == pytest.approx((1 + visible) / 2, abs=3e-4)
    assert history_epsilon(answer, always(days), changing(days)).epsilon == math.inf
    # A small change moves the rounded value only if alpha lies between.
    p = 1 / (e + 1)
    moved = p * 0.5 + (1 - p) * 0.5
    assert response_changes(answer, 0.5, 1.5, public) == pytest.approx([0.5 * moved])
    assert response_changes(answer, 0.5, 0.5, public) == pytest.approx([0.0])


def test_a_change_between_buckets_that_were_not_drawn():
    h = math.exp(0.5)
    drawn = np.array([[0, 1], [2, 3], [1, 2]])
    answer = MemoizedDBitFlip(epsilon=1.0, num_buckets=4, num_drawn=2)
    unequal = 2 * h / (h + 1) ** 2
    kept = (h**2 + 1) / (h + 1) ** 2
    one = 1 - (1 - unequal) ** 2
    both = 1 - (1 - kept) ** 2
    mixed = 1 - (1 - kept) * (1 - unequal)
    assert response_changes(answer, 0, 1, drawn) == pytest.approx([both, one, mixed])
    shared = MemoizedDBitFlip(epsilon=1.0, num_buckets=4, num_drawn=2, only_drawn=True)
    assert response_changes(shared, 0, 1, drawn) == pytest.approx([both, 0.0, mixed])


@pytest.mark.parametrize("name", ["dbitflip", "one-bit-mean", "dbitflip-only-drawn"])
def test_permanent_responses_change_as_often_as_stated(name):
    answer = TINY[name]
    state = answer.begin(20_000, rng=np.random.default_rng(1))
    kept = [answer.permanent(state, np.full(20_000, value)) for value in (1, 3)]
    changed = (kept[0] != kept[1]).any(axis=1).sum()
    stated = response_changes(answer, 1, 3, state.public)
    spread = math.sqrt(float((stated * (1 - stated)).sum()))
    assert abs(changed - stated.sum()) < 6.2 * spread
    assert abs(changed - 0.8 * stated.sum()) > 6.2 * spread


def test_guesses_of_simulated_devices_agree_with_the_exact_ones():
    answer = TINY["basic-rappor"]
    for redrawn in (False, True):
        exact = distinguish(answer, always(4), always(4, B), redrawn=redrawn)
        found = guess_value(
            answer, [0, 1], days=4, num_devices=4_000,
            rng=np.random.default_rng(2), redrawn=redrawn, confidence=1 - 1e-9,
        )  # fmt: skip
        assert found.lower < exact.middle < found.upper
        assert found.lower <= found.right <= found.upper
        assert 0.5 < found.posterior < found.right
        assert (found.num_values, found.num_devices) == (2, 4_000)


def test_guesses_among_many_values_stay_bounded_only_if_memoized():
    filters = OwnBits(num_bits=8)
    answer = MemoizedRappor(filters=filters, response=BitResponse(f=0.5, p=0.25, q=0.75))
    found = [
        guess_value(answer, range(8), days=40, num_devices=600,
                    rng=np.random.default_rng(3), redrawn=redrawn)
        for redrawn in (False, True)
    ]  # fmt: skip
    # Uniform prior on 8 values: no guess is better than e**epsilon / (e**epsilon + 7).
    ceiling = 9 / 16
    assert found[0].upper < ceiling < found[1].lower
    numbers = guess_value(
        TINY["dbitflip-numbers"], [0.0, 1.0, 4.0], days=3, num_devices=300,
        rng=np.random.default_rng(4), redrawn=True,
    )  # fmt: skip
    assert numbers.lower > 1 / 3


def test_fresh_noise_of_an_oracle():
    exact = distinguish(GRR, always(1), always(1, B))
    e = math.e
    assert exact.middle == pytest.approx(0.5 + (e - 1) / (e + 3) / 2)
    assert history_epsilon(GRR, always(7), always(7, B)).epsilon == 7
    assert history_epsilon(GRR, always(7), one_day(7)).epsilon == 1
    assert distinguish(GRR, always(7), one_day(7)).middle == pytest.approx(exact.middle)
    assert distinguish(GRR, always(4), np.array([A, A, OTHER_DEVICE, OTHER_DEVICE])).upper == 0.5
    found = guess_value(
        GRR, [0, 1], days=5, num_devices=3_000, rng=np.random.default_rng(5), confidence=1 - 1e-9
    )
    five = distinguish(GRR, always(5), always(5, B))
    # Two values among four: the reports of the others say nothing.
    assert found.lower < five.middle < found.upper


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
    assert history_epsilon(*asked).epsilon > 0
    monkeypatch.setattr(histories, "MOST_OUTCOMES", 3)
    with pytest.raises(InputError, match=r"at most 3 counts of ones .* groups of 3 days"):
        history_epsilon(*asked)


def test_histories_in_words():
    assert describe(always(3)) == "always A"
    assert describe(changing(4)) == "A from day 0, B from day 2"
    assert describe(changing(40, 9)) == "9 changes between A and B"
    assert changing(5, 4).tolist() == [A, B, A, B, A]
    assert one_day(3).tolist() == [A, B, A]


@every(
    ("make", "message"),
    [
        (lambda: always(0), "days=0"),
        (lambda: changing(3, 3), "changes=3"),
        (lambda: changing(3, -1), "changes=-1"),
        (lambda: distinguish(GRR, always(2), always(3)), "one length"),
        (lambda: observed_after(GRR, [3], changes=0), "changes=0"),
        (
            lambda: distinguish(TINY["basic-rappor"], always(4000), changing(4000)),
            "ask about fewer",
        ),
        (
            lambda: distinguish(
                FreshAnswer(oracle=make_oracle(OracleSpec(name="olh", epsilon=1.0), 4)),
                always(1), always(1, B),
            ),
            "try grr",
        ),
        (
            lambda: guess_value(GRR, [1, 1], days=1, num_devices=1, rng=np.random.default_rng(0)),
            "two different values",
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
    answer = MemoizedOneBitMean(epsilon=1.0, maximum=1.0)
    c = 1 / (math.e + 1)
    agrees = 1 - 2 * c * (1 - c)
    found = find_device(
        answer, days=3, num_devices=2, num_trials=2_000,
        rng=np.random.default_rng(7), confidence=1 - 1e-9,
    )  # fmt: skip
    assert found.lower < 1 - agrees / 2 < found.upper
    assert found.by_chance == 0.5


def test_a_pseudonyms_score_is_the_likelihood_ratio_by_hand():
    answer = MemoizedRappor(filters=OwnBits(num_bits=2), response=BitResponse(f=0.5, p=0.4, q=0.9))
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
        answer = MemoizedRappor(
            filters=BloomFilters(num_bits=64, num_hashes=2, num_cohorts=1, hash_seed=0),
            response=BitResponse(f=0.5, **response),
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
    with pytest.raises(InputError, match="Expected memoized bits"):
        find_device(GRR, days=1, num_devices=2, num_trials=1, rng=np.random.default_rng(0))
