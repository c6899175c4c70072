"""Events of dp-accounting: its own accountants read from them what fedhh states."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from pathlib import Path

import dp_accounting
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import fedhh
from fedhh.accounting.bounds.composition import optimal_composition
from fedhh.accounting.dp_event import (
    NEIGHBORS,
    NoDpEventError,
    event_of_plan,
    event_of_reports,
    expression,
)
from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import PlannedRound
from fedhh.longitudinal.ledger import APPLE, Charge, Ledger
from fedhh.longitudinal.ledger.statements import reports_of
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.blender import Blender
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.ldpminer import LdpMiner
from fedhh.server.rappor import Rappor
from fedhh.server.rappor_unknown import RapporUnknown
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.server.sfp import Sfp
from fedhh.server.svim import Svim
from fedhh.server.tee_histogram import TeeHistogram
from fedhh.server.triehh import TrieHH
from fedhh.server.two_servers import TwoServers
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from tests.every import every
from tests.thinned import thinned

KNOWN = Candidates(["ab", "ac", "ba", "bb", "cc", "dd"])
LOCAL = {
    "ldp-triehh": LdpTrieHH(clients_per_layer=300, depth=4, max_items=3, local_epsilon=6.0),
    "reusing": LdpTrieHH(
        clients_per_layer=300, depth=4, local_epsilon=2.0, participation="every-round"
    ),
    "adaptive": AdaptiveTrieHH(depth=4, local_epsilon=6.0),
    "sfp": Sfp(length=4, num_puzzles=16, max_items=2),
    "rappor": Rappor(candidates=KNOWN, bloom_bits=32, bloom_cohorts=8, max_items=2),
    "rappor-unknown": RapporUnknown(local_epsilon=24.0, length=4),
    "svim": Svim(candidates=KNOWN, keep=2),
    "ldpminer": LdpMiner(candidates=KNOWN, keep=2, padded_size=2),
}


def plan_of(protocol):
    return protocol.settle(num_clients=20_000, seed=1).plan


def epsilons(event: dp_event.DpEvent) -> list[float]:
    """Epsilons of all randomized responses of an event."""
    if isinstance(event, dp_event.ComposedDpEvent):
        return [epsilon for each in event.events for epsilon in epsilons(each)]
    assert isinstance(event, dp_event.RandomizedResponseDpEvent)
    assert event.num_buckets == 2
    return [math.log(2 / event.noise_parameter - 1)]


@pytest.mark.parametrize(
    ("kinds", "counts", "delta"),
    thinned(
        [
            ([2.0], [1], 1e-6),
            ([1.0], [10], 1e-3),
            ([0.5], [12], 1e-6),
            ([2.0, 6.0], [3, 3], 1e-4),
            ([1.0, 0.25, 3.0], [4, 8, 1], 1e-6),
        ]
    ),
)
def test_its_accountant_finds_what_fedhh_states_of_pure_reports(kinds, counts, delta):
    event = event_of_reports(kinds, counts)
    ours = optimal_composition(kinds, counts, delta=delta)
    theirs = PLDAccountant(NEIGHBORS).compose(event)
    # Every loss is rounded up to a multiple of 1e-4.
    assert ours - 1e-6 <= theirs.get_epsilon(delta) <= ours + 1e-4 * sum(counts) + 1e-6
    by_moments = RdpAccountant(neighboring_relation=NEIGHBORS).compose(event)
    assert by_moments.get_epsilon(delta) >= ours * (1 - 1e-9)


def test_without_delta_epsilons_add_up():
    accountant = PLDAccountant(NEIGHBORS).compose(event_of_reports([2.0, 6.0], [2, 1]))
    assert accountant.get_epsilon(0) == pytest.approx(10.0, abs=4e-4)


@every("name", LOCAL)
def test_a_plan_has_the_local_epsilon_of_its_report(name):
    plan = plan_of(LOCAL[name])
    uses = plan.most_rounds_per_client
    for unit in ("item", "user"):
        stated = plan.local_guarantee(unit).epsilon
        assert math.fsum(epsilons(event_of_plan(plan, unit=unit))) == pytest.approx(stated)
    per_use = len(plan.randomizers) if name == "sfp" else 1
    assert len(epsilons(event_of_plan(plan))) == plan.max_items * uses * per_use


def test_reports_of_one_record_are_events_of_their_own():
    event = event_of_plan(plan_of(LOCAL["sfp"]), unit="item")
    first, second = sorted(epsilons(event))
    assert first < second
    assert NEIGHBORS is NeighboringRelation.REPLACE_ONE


def test_a_ledger_composes_to_what_its_report_states():
    ledger = Ledger(charges=APPLE.charges[:1], num_days=3, delta=1e-3)
    caps = {"quicktype": APPLE.caps["quicktype"]}
    event = event_of_reports(*reports_of(ledger.charges, ledger.most_in_lifetime(caps)))
    assert len(epsilons(event)) == 2 * 2 * 3
    stated = ledger.before(caps).guarantee("user", "PLD").epsilon
    found = PLDAccountant(NEIGHBORS).compose(event).get_epsilon(1e-3)
    assert stated - 1e-6 <= found <= stated + 12e-4 + 1e-6


def test_no_record_costs_nothing_and_none_randomized_everything():
    charges = [Charge(use_case="a", epsilon=2.0), Charge(use_case="b", epsilon=math.inf)]
    assert event_of_reports(*reports_of(charges, [0, 0])) == dp_event.NoOpDpEvent()
    assert event_of_reports(*reports_of(charges, [5, 1])) == dp_event.NonPrivateDpEvent()
    assert epsilons(event_of_reports(*reports_of(charges, [2, 0]))) == pytest.approx([2.0, 2.0])


def test_plain_votes_have_no_local_privacy():
    triehh = plan_of(TrieHH(clients_per_layer=300, threshold=6, depth=4))
    blender = plan_of(Blender(length=4, opt_in_share=0.3, delta=1e-6))
    for plan in (triehh, blender, plan_of(SecAggTrieHH(depth=4)), plan_of(TwoServers(depth=4))):
        event = event_of_plan(plan, unit="item")
        assert event == dp_event.NonPrivateDpEvent()
        assert PLDAccountant(NEIGHBORS).compose(event).get_epsilon(1e-6) == math.inf
    # Those who did not opt in have privacy of their own.
    assert epsilons(event_of_plan(blender.local, unit="item")) == pytest.approx(
        [blender.local.local_epsilon]
    )


@every(
    ("protocol", "reason"),
    [
        (LOCAL["ldp-triehh"], "shuffled"),
        (TrieHH(clients_per_layer=300, threshold=6, depth=4), "threshold"),
        (Blender(length=4, opt_in_share=0.3, delta=1e-6), "noisy threshold"),
        (SecAggTrieHH(depth=4), "some may be missing"),
        (TwoServers(depth=4), "the same words in every layer"),
        (TeeHistogram(length=4), "nobody else's"),
    ],
)
def test_what_has_no_event_says_why(protocol, reason):
    with pytest.raises(NoDpEventError, match=reason) as found:
        event_of_plan(plan_of(protocol), trust="central")
    assert isinstance(found.value, InputError)


def test_of_other_mechanisms_only_what_they_state_is_known():
    @dataclass(frozen=True, kw_only=True)
    class Own(Plan):
        pass

    layer = PlannedRound(pass_index=0, layer=1, num_clients=10, smallest_domain=2, largest_domain=2)
    assert event_of_plan(Own(layers=(layer,))) == dp_event.NonPrivateDpEvent()
    own = Own(layers=(replace(layer, local_epsilon=2.0),))
    assert epsilons(event_of_plan(own)) == pytest.approx([2.0])
    with pytest.raises(NoDpEventError, match="a mechanism of its own"):
        event_of_plan(own, trust="central")


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 100_001), (701.0, 1)])
def test_what_is_too_much_for_an_event(epsilon, count):
    with pytest.raises(NoDpEventError):
        event_of_reports([epsilon], [count])


@pytest.mark.parametrize("wrong", [{"unit": "day"}, {"trust": "both"}])
def test_units_and_readers_are_those_of_a_run(wrong):
    with pytest.raises(InputError, match="Unknown"):
        event_of_plan(plan_of(LOCAL["ldp-triehh"]), **wrong)


@pytest.mark.parametrize(
    "event",
    [
        event_of_reports([2.0], [1]),
        event_of_reports([2.0, 6.0, 2.0], [3, 1, 2]),
        dp_event.ComposedDpEvent([]),
        dp_event.ComposedDpEvent([dp_event.ComposedDpEvent([dp_event.NoOpDpEvent()] * 2)] * 3),
        dp_event.NonPrivateDpEvent(),
    ],
)
def test_an_expression_is_the_event(event):
    assert eval(expression(event), vars(dp_accounting.dp_event)) == event


def test_one_module_imports_dp_accounting():
    package = Path(fedhh.__file__).parent
    importing = set()
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "dp_accounting" in text else ():
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if any(name.split(".")[0] == "dp_accounting" for name in names):
                importing.add(str(path.relative_to(package)))
    assert importing == {"accounting/dp_event.py"}
