"""The floor of Adaptive TrieHH's cohorts: its guarantee before the run against LDP TrieHH's."""

from __future__ import annotations

import math
import string
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from fedhh.accounting.bounds.selection import reachable_blanket
from fedhh.accounting.terms import PrivacyTerms
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.validation import Validation
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.accounting.heard import heard
from tests.zipf_words import final_state


def settled(protocol, num_clients, **settings):
    return protocol(**settings).settle(num_clients=num_clients, seed=0)


def planned(protocol):
    """Return what the guarantee follows from: fewest clients, and the extreme domains."""
    layers = protocol.plan.layers
    return (
        min(layer.num_clients for layer in layers),
        min(layer.smallest_domain for layer in layers),
        max(layer.largest_domain for layer in layers),
    )


def dominance(protocol):
    """Return what the blanket's delta falls with, and the two weights that it rises with."""
    cohort, smallest, largest = planned(protocol)
    blanket = reachable_blanket(
        local_epsilon=protocol.local_epsilon,
        num_reports=max(2, cohort * protocol.max_items),
        smallest_domain=smallest,
        largest_domain=largest,
    )
    growth = math.exp(protocol.local_epsilon)
    return cohort, blanket.one, (growth + 1) * blanket.one + blanket.both


GRID = product(
    (20_000, 300_000, 701_225, 2_000_000, 15_000_000),
    (1, 10, 60),
    (1.0, 4.0, 8.0, 10.0),
    (string.ascii_lowercase, "printable"),
)


@pytest.mark.parametrize("num_clients", [20_000, 300_000])
def test_a_plan_of_default_settings_dominates_that_of_ldp_triehh(num_clients):
    ours, papers, free = (
        dominance(settled(protocol, num_clients, **floor))
        for protocol, floor in (
            (AdaptiveTrieHH, {}),
            (LdpTrieHH, {}),
            (AdaptiveTrieHH, {"least_cohort": 1}),
        )
    )
    assert ours[0] >= papers[0] > free[0]
    assert ours[1] <= papers[1]
    assert ours[2] <= papers[2]


@pytest.mark.slow("::test_a_plan_of_default_settings_dominates_that_of_ldp_triehh")
def test_every_plan_dominates_that_of_ldp_triehh():
    for num_clients, max_items, epsilon, alphabet in GRID:
        same = {"max_items": max_items, "local_epsilon": epsilon, "alphabet": alphabet}
        ours = dominance(settled(AdaptiveTrieHH, num_clients, **same))
        papers = dominance(settled(LdpTrieHH, num_clients, **same))
        # Delta rises with both weights and falls with the reports: `dominating_blanket`.
        assert ours[0] >= papers[0]
        assert ours[1] <= papers[1]
        assert ours[2] <= papers[2]
    # The control: without the floor, the first is not so.
    free = settled(AdaptiveTrieHH, 300_000, least_cohort=1)
    assert dominance(free)[0] < dominance(settled(LdpTrieHH, 300_000))[0]


def before_run(protocol, num_clients):
    """Return the item- and user-level epsilons that the plan claims before the run."""
    records = [
        heard(
            pass_index=layer.pass_index,
            layer=layer.layer,
            num_clients=layer.num_clients,
            num_reports=layer.num_clients * protocol.max_items,
            domain_size=layer.largest_domain,
            num_kept=1,
            decides=True,
            kept_by="posterior",
        )
        for layer in protocol.plan.layers
    ]
    report = protocol.plan.report(
        PrivacyTerms(num_clients=num_clients, delta=1e-10, alpha=0.95), records
    )
    return [report.before_run(unit).epsilon for unit in ("item", "user")]


@pytest.mark.slow("::test_a_plan_of_default_settings_dominates_that_of_ldp_triehh")
def test_both_epsilons_before_the_run_are_no_larger():
    num_clients = 2_000_000
    same = {"max_items": 10, "local_epsilon": 8.0}
    ours = before_run(settled(AdaptiveTrieHH, num_clients, **same), num_clients)
    papers = before_run(settled(LdpTrieHH, num_clients, **same), num_clients)
    for mine, theirs in zip(ours, papers, strict=True):
        assert mine <= theirs * (1 + 1e-9)
    # The control: without the floor, they are larger.
    free = settled(AdaptiveTrieHH, num_clients, least_cohort=1, **same)
    for mine, theirs in zip(before_run(free, num_clients), papers, strict=True):
        assert mine > 1.2 * theirs


def test_the_default_floor_is_the_papers_cohort_and_the_rest_is_front_loaded():
    ours = settled(AdaptiveTrieHH, 2_000_000)
    papers = settled(LdpTrieHH, 2_000_000)
    assert ours.least_cohort == papers.clients_per_layer == 66_666
    *sizes, validation = [layer.num_clients for layer in ours.plan.layers]
    assert sizes[-1] == min(sizes) == 66_666
    assert sizes[0] > 3 * sizes[-1]
    assert validation == 200_000
    assert 2_000_000 - 16 <= sum(sizes) + validation <= 2_000_000
    assert ours.settle(num_clients=2_000_000, seed=0) == ours


def test_the_validation_round_is_raised_to_the_floor():
    ours = settled(AdaptiveTrieHH, 2_000_000, validation_share=0.01)
    assert ours.plan.layers[-1].num_clients == ours.least_cohort == 66_666
    assert 2_000_000 - 16 <= ours.plan.most_answers <= 2_000_000
    assert (
        planned(settled(AdaptiveTrieHH, 2_000_000, validation_share=0.01, least_cohort=1))[0] < 21e3
    )


def test_of_a_part_of_the_clients_the_floor_is_that_parts():
    ours = settled(AdaptiveTrieHH, 2_000_000, clients_per_layer=6_000)
    assert ours.plan.most_answers == 100_000
    assert ours.least_cohort == 100_000 // 30
    assert planned(ours)[0] == 100_000 // 30


def test_where_too_many_layers_share_the_clients_all_are_alike():
    # One layer and the validation round share what two passes of LDP TrieHH would have.
    ours = settled(AdaptiveTrieHH, 100_000, depth=1, validation_share=0.02)
    sizes = [layer.num_clients for layer in ours.plan.layers]
    assert ours.least_cohort == (100_000 - 1) // 2
    assert sizes == [50_001, 49_999]


@pytest.mark.parametrize("least_cohort", [0, "all"])
def test_bad_floors_are_refused(least_cohort):
    with pytest.raises(InputError, match="least_cohort"):
        AdaptiveTrieHH(least_cohort=least_cohort)


def test_a_floor_that_the_clients_cannot_pay_is_refused():
    with pytest.raises(InputError, match=r"least_cohort <= 6,428, or ask more clients"):
        settled(AdaptiveTrieHH, 100_000, least_cohort=9_000)
    assert planned(settled(AdaptiveTrieHH, 100_000, least_cohort=6_428))[0] == 6_428


def asked_to_validate(protocol, codes):
    run = SimpleNamespace(found=SimpleNamespace(codes=codes))
    return Validation(protocol).ask(protocol.plan.layers[-1], run)


def test_few_found_words_are_validated_in_a_domain_no_smaller_than_a_layers():
    population = small_population(3_000)
    protocol = AdaptiveTrieHH(alphabet=LETTERS, depth=4, eta_max=20, max_items=2, local_epsilon=2.0)
    ours = protocol.settle(num_clients=3_000, seed=0)
    code = np.zeros((1, 5), dtype=np.uint16)
    for few in (code, np.zeros((0, 5), dtype=np.uint16)):
        few[:, 0] = 3
        question = asked_to_validate(ours, few)
        assert (question is None) == (not len(few))
    question = asked_to_validate(ours, code)
    assert question.domain_size == len(LETTERS) + 2 == ours.plan.layers[-1].smallest_domain
    # What fills up has no name, so that no client says it: "d" alone was found.
    assert question.names.finished.tolist() == [[3, *[0] * (ours.longest_word)]]
    plain = LdpTrieHH(alphabet=LETTERS, depth=4, clients_per_layer=300, false_discovery_rate=0.1)
    assert asked_to_validate(plain, code).domain_size == 2
    assert final_state(ours, population).place == len(ours.plan.layers)
