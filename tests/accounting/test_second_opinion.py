"""Second opinions: dp-accounting's bounds hold the truth between them, and fedhh's numbers too."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import pytest
from scipy import optimize

import fedhh
from fedhh.accounting import NotApplicable, Use, composed_epsilon, shuffle_bound
from fedhh.accounting.bounds.composition import FINE, QUICK
from fedhh.accounting.second_opinion import (
    RefutedClaimError,
    SecondOpinion,
    opinion_on_shuffle,
    opinion_on_uses,
)
from fedhh.longitudinal.ledger import Charge
from fedhh.longitudinal.ledger.dp_accounting_bridge import opinion_on_charges
from fedhh.longitudinal.ledger.statements import PLD, guarantees
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from tests.accounting.exact_losses import Response, Shift, delta_of_responses, delta_of_shift
from tests.thinned import thinned


def epsilon_of_shift(delta: float, distance: float) -> float:
    def excess(epsilon: float) -> float:
        return math.log(delta_of_shift(epsilon, distance) / delta)

    return float(optimize.brentq(excess, 1e-6, 12 * distance, xtol=1e-12))


def epsilon_of_responses(delta: float, kinds: dict[float, int]) -> float:
    """Return the exact epsilon of independent randomized responses, by enumeration."""

    def excess(epsilon: float) -> float:
        return delta_of_responses(kinds, epsilon) - delta

    whole = math.fsum(epsilon * count for epsilon, count in kinds.items())
    return float(optimize.brentq(excess, 0.0, whole, xtol=1e-12))


@pytest.mark.parametrize(
    ("distance", "times", "delta"),
    thinned([(1.0, 1, 1e-6), (0.1, 60, 1e-10), (0.5, 3, 1e-2), (0.02, 600, 1e-10)]),
)
def test_the_truth_of_shifted_gaussians_lies_between_its_bounds(distance, times, delta):
    truth = epsilon_of_shift(delta, distance * math.sqrt(times))
    opinion = opinion_on_uses([Use(bound=Shift(distance=distance), times=times)], delta=delta)
    assert opinion.lower <= truth <= opinion.upper
    assert opinion.upper - opinion.lower < 4e-3 * truth
    assert opinion.upper < 1.001 * truth


@pytest.mark.parametrize(("epsilon", "times", "delta"), [(1.0, 30, 1e-3), (0.3, 8, 1e-2)])
def test_the_truth_of_responses_as_curves_lies_between_its_bounds(epsilon, times, delta):
    truth = epsilon_of_responses(delta, {epsilon: times})
    opinion = opinion_on_uses(
        [Use(bound=Response(local_epsilon=epsilon), times=times)], delta=delta
    )
    assert 0.995 * truth < opinion.lower <= truth <= opinion.upper < 1.002 * truth


def test_several_bounds_compose():
    uses = [Use(bound=Shift(distance=each), times=times) for each, times in ((0.3, 4), (0.2, 16))]
    truth = epsilon_of_shift(1e-6, 1.0)
    opinion = opinion_on_uses(uses, delta=1e-6)
    assert 0.998 * truth < opinion.lower <= truth <= opinion.upper < 1.001 * truth


@pytest.mark.parametrize(
    ("kinds", "delta"),
    thinned(
        [
            ({1.0: 30}, 1e-3),
            ({2.0: 20, 6.0: 20, 4.0: 10}, 1e-6),
            ({1.2345: 12, 0.77: 20, 0.1001: 9}, 1e-4),
            ({4.0: 700}, 1e-10),
            ({0.01: 5_000}, 1e-10),
        ]
    ),
)
def test_the_truth_of_records_lies_between_its_bounds(kinds, delta):
    charges = [Charge(use_case=str(epsilon), epsilon=epsilon) for epsilon in kinds]
    opinion = opinion_on_charges(charges, list(kinds.values()), delta=delta)
    truth = epsilon_of_responses(delta, kinds)
    assert opinion.lower <= truth * (1 + 1e-9)
    assert truth <= opinion.upper * (1 + 1e-9)
    assert opinion.upper - opinion.lower < 5e-3 * truth
    assert opinion.lower <= opinion.epsilon


FEW = {"local_epsilon": 1.0, "num_reports": 10}
THREE = [Use(bound=shuffle_bound("clones", **FEW), times=3)]


@cache
def of_three() -> SecondOpinion:
    return opinion_on_shuffle("clones", **FEW, times=3, delta=1e-2)


def test_a_composition_of_few_reports_is_not_refuted():
    found = of_three()
    assert found.lower <= found.epsilon <= 1.002 * found.upper
    assert 0.99 * found.upper < found.lower
    assert found.difference == found.epsilon - found.upper
    quick = opinion_on_uses(THREE, delta=1e-2, precision=QUICK)
    assert quick.epsilon == composed_epsilon(THREE, delta=1e-2, precision=QUICK)


def test_what_is_stated_of_few_reports_is_held_to_the_lower_bound():
    found = of_three()
    again = opinion_on_uses(THREE, delta=1e-2, stated=found.lower)
    assert again.epsilon == found.lower
    assert (again.lower, again.upper) == (found.lower, found.upper)
    assert found.epsilon == composed_epsilon(THREE, delta=1e-2, precision=FINE)
    with pytest.raises(RefutedClaimError, match="at least"):
        opinion_on_uses(THREE, delta=1e-2, stated=(1 - 1e-9) * found.lower)


def test_of_few_reports_nothing_stated_is_no_difference():
    found = opinion_on_uses(THREE, delta=1e-2, stated=NotApplicable("too small"))
    assert found.difference is None
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["epsilon"] is None
    assert "too small" in content["reason"]
    assert content["lower"] == of_three().lower


@pytest.mark.slow("::test_a_composition_of_few_reports_is_not_refuted")
@pytest.mark.parametrize(
    ("bound", "local_epsilon", "num_reports", "domain_size", "times", "delta"),
    [
        ("clones", 8.0, 500_000, None, 60, 1e-10),
        ("blanket", 8.0, 50_000, 1_000, 10, 1e-10),
        ("clones-2023", 2.0, 500, None, 200, 1e-6),
        ("clones", 1.0, 10, None, 3, 1e-6),
        ("clones", 4.0, 2, None, 60, 1e-10),
    ],
)
def test_fedhhs_compositions_are_not_refuted(
    bound, local_epsilon, num_reports, domain_size, times, delta
):
    opinion = opinion_on_shuffle(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=domain_size,
        times=times,
        delta=delta,
    )
    assert opinion.lower <= opinion.epsilon <= 1.002 * opinion.upper
    assert 0.99 * opinion.upper < opinion.lower
    assert opinion.difference == opinion.epsilon - opinion.upper


@cache
def of_twenty() -> SecondOpinion:
    return opinion_on_shuffle("clones", local_epsilon=4.0, num_reports=10_000, times=20, delta=1e-8)


@pytest.mark.slow("::test_what_is_stated_of_few_reports_is_held_to_the_lower_bound")
def test_a_claim_below_the_lower_bound_is_an_error():
    bound = shuffle_bound("clones", local_epsilon=4.0, num_reports=10_000)
    wrong = (1 - 1e-9) * of_twenty().lower
    with pytest.raises(RefutedClaimError, match="at least"):
        opinion_on_uses([Use(bound=bound, times=20)], delta=1e-8, stated=wrong)


@pytest.mark.slow("::test_what_is_stated_of_few_reports_is_held_to_the_lower_bound")
def test_what_is_stated_stays_what_it_is():
    found = of_twenty()
    bound = shuffle_bound("clones", local_epsilon=4.0, num_reports=10_000)
    uses = [Use(bound=bound, times=20)]
    for stated in (found.lower, 2 * found.upper):
        again = opinion_on_uses(uses, delta=1e-8, stated=stated)
        assert again.epsilon == stated
        assert again.to_dict()["epsilon"] == stated
        assert (again.lower, again.upper) == (found.lower, found.upper)
    assert found.epsilon == composed_epsilon(uses, delta=1e-8, precision=FINE)


def test_every_composition_of_a_ledger_is_held_to_the_lower_bound():
    charge = Charge(use_case="emoji", epsilon=1.0)
    stated = guarantees("user", [charge], [50], delta=1e-6)
    lower = opinion_on_charges([charge], [50], delta=1e-6, stated=stated).lower
    for place, each in enumerate(stated):
        wrong = [*stated]
        wrong[place] = replace(each, epsilon=lower * (1 - 1e-9))
        with pytest.raises(RefutedClaimError, match=each.method):
            opinion_on_charges([charge], [50], delta=1e-6, stated=wrong)


@pytest.mark.slow("::test_of_few_reports_nothing_stated_is_no_difference")
def test_where_fedhh_states_nothing_there_is_no_difference():
    nothing = NotApplicable("too small")
    bound = shuffle_bound("clones", local_epsilon=4.0, num_reports=10_000)
    found = opinion_on_uses([Use(bound=bound, times=20)], delta=1e-8, stated=nothing)
    assert found.difference is None
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["epsilon"] is None
    assert "too small" in content["reason"]
    assert content["lower"] == of_twenty().lower


@pytest.mark.parametrize("delta", [9.9e-11, 1e-14, 0.2])
def test_small_deltas_are_refused(delta):
    bound = shuffle_bound("clones", local_epsilon=4.0, num_reports=100)
    with pytest.raises(InputError, match="delta"):
        opinion_on_uses([Use(bound=bound, times=2)], delta=delta)
    with pytest.raises(InputError, match="delta"):
        opinion_on_charges([Charge(use_case="a", epsilon=1.0)], [3], delta=delta)


def test_too_many_or_too_few_records_are_refused():
    bound = shuffle_bound("clones", local_epsilon=4.0, num_reports=100)
    with pytest.raises(InputError, match="100,001"):
        opinion_on_uses([Use(bound=bound, times=100_001)], delta=1e-6)
    charges = [Charge(use_case="a", epsilon=1.0), Charge(use_case="b", epsilon=math.inf)]
    for counts in ([1, 0], [100_001, 0], [3, 1], [0, 0]):
        with pytest.raises(InputError, match="reports"):
            opinion_on_charges(charges, counts, delta=1e-6)


POPULATION = fedhh.synthetic_population("chat", 4_000, seed=0)


def test_a_small_run_has_an_opinion_on_what_it_composed():
    protocol = fedhh.LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=20, depth=2, max_items=2, local_epsilon=1.0,
        oracle="grr", passes=1,
    )  # fmt: skip
    population = small_population(100)
    result = fedhh.simulate(protocol, population, seed=0, delta=1e-3)
    (opinion,) = result.second_opinion()
    assert opinion.claim == "user, clones, slots"
    (stated,) = (
        each for each in result.privacy.guarantees
        if (each.unit, each.method) == ("user", "clones, slots")
    )  # fmt: skip
    assert (opinion.epsilon, opinion.delta) == (stated.epsilon, stated.delta)
    assert 0.98 * opinion.upper < opinion.lower <= opinion.epsilon <= opinion.upper * 1.005


@pytest.mark.slow("::test_a_small_run_has_an_opinion_on_what_it_composed")
@pytest.mark.parametrize(
    ("protocol", "claims"),
    thinned([
        (
            fedhh.LdpTrieHH(clients_per_layer=500, depth=4, max_items=3, local_epsilon=6.0),
            {"user, clones, slots", "user, blanket, slots", "user, blanket, any domain, slots"},
        ),
        (
            fedhh.LdpTrieHH(
                clients_per_layer=800,
                depth=3,
                max_items=3,
                local_epsilon=6.0,
                participation="every-round",
            ),
            {
                "item, clones", "item, blanket, any domain", "item, clones-2023",
                "user, clones, slots", "user, blanket, any domain, slots",
            },
        ),
        (fedhh.LdpTrieHH(clients_per_layer=500, depth=4, local_epsilon=6.0, pad=False), set()),
        (
            fedhh.Blender(length=4, opt_in_share=0.3, delta=1e-6, oracle="grr", max_items=2),
            {"user, others: clones, slots"},
        ),
        (
            # A group that is asked once, and is smaller, would be the worst: nothing composed.
            fedhh.LdpMiner(
                candidates=Candidates(POPULATION.lexicon.words[:50]), keep=5, size_share=0.5
            ),
            {"item, clones", "item, clones-2023", "user, clones, slots"},
        ),
        (fedhh.TrieHH(clients_per_layer=300, threshold=6, depth=4), set()),
        (fedhh.SecAggTrieHH(depth=4), set()),
    ]),
    ids=["ldp-triehh", "reusing", "unpadded", "blender", "ldpminer", "triehh", "secagg-triehh"],
)  # fmt: skip
def test_a_run_has_an_opinion_on_each_epsilon_that_it_composed(protocol, claims):
    result = fedhh.simulate(protocol, POPULATION, seed=0)
    opinions = result.second_opinion()
    assert {each.claim for each in opinions} == claims
    stated = {f"{each.unit}, {each.method}": each for each in result.privacy.guarantees}
    for each in opinions:
        assert each.epsilon == stated[each.claim].epsilon
        assert each.delta == stated[each.claim].delta
        # The same bound for the same clients: were it another one, no such range would hold it.
        assert each.lower <= each.epsilon <= each.upper * 1.005
        assert each.lower > 0.98 * each.upper


@pytest.mark.slow("::test_a_composition_of_few_reports_is_not_refuted")
def test_the_precision_of_a_run_is_that_of_its_opinion():
    bound = shuffle_bound("clones", local_epsilon=2.0, num_reports=500)
    uses = [Use(bound=bound, times=20)]
    quick = opinion_on_uses(uses, delta=1e-6, precision=QUICK)
    assert quick.epsilon == composed_epsilon(uses, delta=1e-6, precision=QUICK)
    assert quick.lower <= quick.epsilon


@pytest.mark.slow("::test_small_deltas_are_refused")
def test_a_run_with_a_small_delta_has_none():
    protocol = fedhh.LdpTrieHH(clients_per_layer=300, depth=2, local_epsilon=6.0)
    result = fedhh.simulate(protocol, POPULATION, seed=0, delta=1e-12)
    with pytest.raises(InputError, match="1e-12"):
        result.second_opinion()


def test_a_ledgers_stated_number_is_its_optimal_composition():
    charges = [Charge(use_case="a", epsilon=8.0, reports=(2.0, 6.0))]
    found = opinion_on_charges(charges, [40], delta=1e-8)
    stated = guarantees("user", charges, [40], delta=1e-8)
    assert found.epsilon == next(each.epsilon for each in stated if each.method == PLD)
    # One record: its reports add up, and no composition of them is claimed to be less.
    assert opinion_on_charges(charges, [1], delta=1e-8).epsilon == 8.0
