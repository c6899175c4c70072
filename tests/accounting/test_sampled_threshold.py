from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from fedhh.accounting.guarantees import NotApplicable, PrivacyReport
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.sampled_threshold import (
    SampledThreshold,
    epsilon_of_rounds,
    triehh_epsilon,
    triehh_parameters,
)
from fedhh.accounting.terms import PrivacyTerms
from fedhh.server.triehh import TrieHH
from fedhh.validation import InputError
from tests.accounting.exact_losses import Response, delta_of_responses
from tests.accounting.sampled_votes_enumerated import one_prefix_delta, worst_delta
from tests.every import every
from tests.thinned import thinned


def report_of(n: int, m: int, threshold: int, *, rounds: int, delta: float) -> PrivacyReport:
    layers = [
        PlannedRound(pass_index=0, layer=layer, num_clients=m, smallest_domain=3, largest_domain=3)
        for layer in range(1, rounds + 1)
    ]
    plan = SampledThreshold(layers=tuple(layers), sample_size=m, threshold=threshold)
    return plan.report(PrivacyTerms(num_clients=n, delta=delta, alpha=0.95))


def claimed(n: int, m: int, threshold: int, *, rounds: int, delta: float) -> tuple[float, float]:
    """Epsilon and delta of a user that a run's report claims."""
    best = report_of(n, m, threshold, rounds=rounds, delta=delta).best("user", "central")
    assert not isinstance(best.epsilon, NotApplicable)
    return best.epsilon, best.delta


# The last is the edge of the published theorem, where m is the root of n.
ISSUE = [(1_000, 17, 14, 1e-10), (300, 10, 9, 1e-5), (20, 4, 4, 0.1), (225, 15, 14, 1.3e-11)]


@pytest.mark.parametrize(("n", "m", "threshold", "delta"), ISSUE)
def test_no_delta_is_claimed_below_the_chance_of_a_sample_that_shows_a_swap(n, m, threshold, delta):
    # All but m - theta + 1 clients hold a prefix: it is dropped if all of the others are sampled,
    # and after a replacement never.
    lacking = m - threshold + 1
    shows = Fraction(math.comb(m, lacking), math.comb(n, lacking))
    assert shows > delta
    for asked in (delta, 1.0001 * float(shows)):
        epsilon, stated = claimed(n, m, threshold, rounds=1, delta=asked)
        assert math.isinf(epsilon) or stated >= shows
    assert math.isinf(claimed(n, m, threshold, rounds=1, delta=0.999 * float(shows))[0])


@pytest.mark.parametrize(
    ("n", "epsilon", "delta"), thinned([(300, 4.0, 1e-5), (1_000, 2.75, 1e-10), (600, 6.0, 1e-3)])
)
def test_what_a_target_gives_keeps_to_it_for_every_number_of_holders(n, epsilon, delta):
    protocol = TrieHH(alphabet="abc", delta=delta, central_epsilon=epsilon, depth=10)
    settled = protocol.settle(num_clients=n, seed=0)
    m, threshold = settled.clients_per_layer, settled.threshold
    assert not isinstance(m, str)
    assert not isinstance(threshold, str)
    stated, at = claimed(n, m, threshold, rounds=11, delta=delta)
    assert stated <= epsilon
    assert at == delta
    # One of eleven rounds alone; and all of them for a prefix that must be kept in each.
    assert one_prefix_delta(n, m, threshold, stated) <= delta


TRIES = [
    # words of clients, clients, sample, threshold, rounds, deltas
    (("a", "b", ""), 24, 4, 4, 1, (0.17, 0.2, 0.4)),
    (("aa", "b", ""), 24, 4, 4, 2, (0.31, 0.35, 0.5)),
    (("aa", "ab", ""), 24, 5, 4, 2, (0.1, 0.15, 0.3)),
    (("aa", "ab", "b", ""), 12, 4, 3, 2, (0.3, 0.4, 0.6)),
    (("aaa", "b", ""), 24, 5, 4, 3, (0.15, 0.2, 0.4)),
    (("aaa", "aab", ""), 24, 5, 4, 3, (0.15, 0.2, 0.4)),
    (("aaa", "bbb", ""), 26, 5, 4, 3, (0.1, 0.2, 0.4)),
]


@pytest.mark.parametrize(("kinds", "n", "m", "threshold", "rounds", "deltas"), thinned(TRIES))
def test_no_swap_of_a_few_clients_exceeds_delta_over_all_rounds(
    kinds, n, m, threshold, rounds, deltas
):
    settings = {"num_clients": n, "sample_size": m, "threshold": threshold}
    finite = 0
    for delta in deltas:
        epsilon = triehh_epsilon(**settings, num_rounds=rounds, delta=delta)
        if math.isinf(epsilon):
            continue
        finite += 1
        exact = worst_delta(kinds, **settings, rounds=rounds, epsilon=epsilon)
        assert exact <= Fraction(delta)
    assert finite > 0


def test_the_delta_of_many_rounds_is_tight_where_one_event_decides():
    settings = {"num_clients": 24, "sample_size": 4, "threshold": 4}
    for rounds, kinds in ((1, ("a", "")), (2, ("aa", "")), (3, ("aaa", ""))):
        exact = float(worst_delta(kinds, **settings, rounds=rounds, epsilon=6.0))
        assert exact == pytest.approx(1 - (1 - 4 / 24) ** rounds)
        asked = {**settings, "num_rounds": rounds}
        assert triehh_epsilon(**asked, delta=0.999 * exact) == math.inf
        assert triehh_epsilon(**asked, delta=1.02 * exact) < 6


def test_epsilon_falls_in_delta_and_in_the_threshold_and_rises_with_rounds_and_samples():
    base = {"num_clients": 100_000, "sample_size": 5_000, "threshold": 12, "num_rounds": 8}

    def epsilon(**changes) -> float:
        return triehh_epsilon(**{**base, "delta": 1e-8, **changes})

    assert epsilon(delta=1e-6) < epsilon() < epsilon(delta=1e-10)
    assert epsilon(threshold=16) < epsilon() < epsilon(threshold=9)
    assert epsilon(num_rounds=1) < epsilon() < epsilon(num_rounds=12)
    assert epsilon(sample_size=2_500) < epsilon() < epsilon(sample_size=10_000)


def test_what_keeps_nothing_costs_nothing_and_asking_all_hides_nothing():
    assert triehh_epsilon(
        num_clients=100, sample_size=5, threshold=6, num_rounds=3, delta=1e-9
    ) == 0  # fmt: skip
    everybody = {"num_clients": 100, "sample_size": 100, "threshold": 6, "num_rounds": 3}
    assert triehh_epsilon(**everybody, delta=0.5) == math.inf


def test_parameters_of_few_clients_are_best_among_their_neighbors():
    target = {"num_clients": 2_000, "num_rounds": 3, "delta": 1e-3}
    got = triehh_parameters(**target, epsilon=2.0)

    def epsilon_of(threshold: int, sample_size: int) -> float:
        return triehh_epsilon(**target, threshold=threshold, sample_size=sample_size)

    assert epsilon_of(got.threshold, got.sample_size) <= 2.0
    assert epsilon_of(got.threshold, math.ceil(1.02 * got.sample_size)) > 2.0
    for threshold in (got.threshold - 1, got.threshold + 1):
        share = threshold / got.threshold
        assert epsilon_of(threshold, math.ceil(1.03 * share * got.sample_size)) > 2.0


@pytest.mark.slow("::test_parameters_of_few_clients_are_best_among_their_neighbors")
@pytest.mark.parametrize(("epsilon", "delta"), thinned([(0.5, 1e-6), (2.0, 1e-10)]))
def test_parameters_are_best_among_their_neighbors_within_the_target(epsilon, delta):
    target = {"num_clients": 200_000, "num_rounds": 11, "delta": delta}
    got = triehh_parameters(**target, epsilon=epsilon)
    share = got.threshold / got.sample_size

    def epsilon_of(threshold: int, sample_size: int) -> float:
        return triehh_epsilon(**target, threshold=threshold, sample_size=sample_size)

    assert epsilon_of(got.threshold, got.sample_size) <= epsilon
    assert epsilon_of(got.threshold, math.ceil(1.003 * got.sample_size)) > epsilon
    for threshold in (got.threshold - 1, got.threshold + 1):
        assert epsilon_of(threshold, math.ceil(1.005 * threshold / share)) > epsilon


@pytest.mark.slow("::test_parameters_of_few_clients_are_best_among_their_neighbors")
def test_many_more_prefixes_are_kept_than_by_the_published_theorem():
    # The paper has a threshold of 15 votes and a sample of 14,286 for this target.
    got = triehh_parameters(num_clients=650_000, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    assert got.threshold / got.sample_size < 15 / 14_286 / 6


def test_targets_that_a_population_cannot_meet_are_refused():
    with pytest.raises(InputError, match="Raise epsilon or delta, or ask a larger population"):
        triehh_parameters(num_clients=1_000, epsilon=0.1, delta=1e-10, num_rounds=10)


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="threshold >= 1, got threshold=0"):
        triehh_epsilon(num_clients=9, sample_size=2, threshold=0, num_rounds=1, delta=0.1)
    with pytest.raises(InputError, match="0 < delta < 1"):
        triehh_epsilon(num_clients=9, sample_size=2, threshold=2, num_rounds=1, delta=0.0)
    with pytest.raises(InputError, match="0 < delta < 1"):
        triehh_parameters(num_clients=1_000, epsilon=1.0, delta=1.0, num_rounds=10)


def response_deltas(pure: float):
    """Deltas of one binary randomized response, in both orders the same."""
    bound = Response(local_epsilon=pure)
    return np.vectorize(bound.delta)


@every("rounds", [1, 2, 3, 10, 31])
@every("delta", [1e-2, 1e-6, 1e-10])
def test_randomized_responses_compose_as_they_do_exactly(rounds, delta):
    pure = 0.25
    got = epsilon_of_rounds(response_deltas(pure), lowest=pure, num_rounds=rounds, delta=delta)
    assert delta_of_responses({pure: rounds}, got) <= delta
    assert delta_of_responses({pure: rounds}, 0.99 * got - 1e-6) > delta or got == 0


def test_what_is_lost_in_every_round_adds_up():
    pure, lost = 0.5, 1e-4
    round_of = response_deltas(pure)

    def deltas(epsilons):
        return lost + (1 - lost) * round_of(epsilons)

    asked = {"lowest": 0.1, "num_rounds": 5}
    assert epsilon_of_rounds(deltas, delta=4.9e-4, **asked) == math.inf
    got = epsilon_of_rounds(deltas, delta=1e-3, **asked)
    any_lost = -math.expm1(5 * math.log1p(-lost))
    assert any_lost + (1 - any_lost) * delta_of_responses({pure: 5}, got) <= 1e-3
    assert got <= 5 * pure


SETTINGS = {"num_clients": 650_000, "sample_size": 14_286, "threshold": 15, "num_rounds": 10}


def test_a_run_claims_its_privacy_for_users_and_nothing_against_the_server():
    report = report_of(650_000, 14_286, 15, rounds=10, delta=2.3e-12)
    for unit in ("item", "user"):
        assert math.isinf(report.best(unit, "local").epsilon)
        central = report.best(unit, "central")
        assert central.epsilon == triehh_epsilon(**SETTINGS, delta=2.3e-12)
        # A tenth of what the paper states at this delta.
        assert central.epsilon == pytest.approx(0.42, abs=0.01)
        assert central.delta == 2.3e-12
        assert central.neighboring == "replace-one"
        assert "docs/accounting.md, section 8" in central.theorem
    assert report.anonymity == ()


def test_settings_without_a_bound_have_no_central_privacy():
    report = report_of(1_000, 17, 14, rounds=11, delta=1e-10)
    assert math.isinf(report.best("user", "central").epsilon)
    reasons = [
        each.epsilon for each in report.guarantees if isinstance(each.epsilon, NotApplicable)
    ]
    assert len(reasons) == 2
    assert "delta=1e-10 for sample_size=17 of num_clients=1,000, threshold=14" in str(reasons[0])
