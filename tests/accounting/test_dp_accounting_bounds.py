"""dp-accounting's bounds hold the truth between them, and no epsilon of ours is below the lower."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import optimize

import fedhh
from fedhh.accounting import (
    Use,
    account_shuffle,
    account_user,
    amplification,
    composed_epsilon,
    shuffle_bound,
    user_level,
)
from fedhh.accounting.bounds import composition
from fedhh.accounting.bounds.composition import FINE, QUICK, Precision, optimal_composition
from fedhh.accounting.terms import PrivacyTerms
from fedhh.experiments.config.built_in import SWEEPS, preset_names
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.sweep.axes import by_path
from fedhh.experiments.sweep.plan import NAMES_PROTOCOLS, load_sweep_table, parse_sweep
from fedhh.longitudinal.ledger import APPLE, account_audited_ledger, account_ledger
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
from fedhh.longitudinal.ledger.statements import PLD, reports_of
from fedhh.testing import LETTERS
from fedhh.words.candidates import Candidates
from tests.accounting.dp_accounting_bounds import bracket_of_reports, bracket_of_uses
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
def test_the_truth_of_shifted_gaussians_lies_between(distance, times, delta):
    truth = epsilon_of_shift(delta, distance * math.sqrt(times))
    lower, upper = bracket_of_uses([Use(bound=Shift(distance=distance), times=times)], delta=delta)
    assert lower <= truth <= upper
    assert upper - lower < 4e-3 * truth
    assert upper < 1.001 * truth


@pytest.mark.parametrize(("epsilon", "times", "delta"), [(1.0, 30, 1e-3), (0.3, 8, 1e-2)])
def test_the_truth_of_responses_as_curves_lies_between(epsilon, times, delta):
    truth = epsilon_of_responses(delta, {epsilon: times})
    uses = [Use(bound=Response(local_epsilon=epsilon), times=times)]
    lower, upper = bracket_of_uses(uses, delta=delta)
    assert 0.995 * truth < lower <= truth <= upper < 1.002 * truth


def test_the_truth_of_several_bounds_lies_between():
    uses = [Use(bound=Shift(distance=each), times=times) for each, times in ((0.3, 4), (0.2, 16))]
    truth = epsilon_of_shift(1e-6, 1.0)
    lower, upper = bracket_of_uses(uses, delta=1e-6)
    assert 0.998 * truth < lower <= truth <= upper < 1.001 * truth


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
def test_the_truth_of_reports_and_our_epsilon_lie_between(kinds, delta):
    epsilons, counts = list(kinds), list(kinds.values())
    lower, upper = bracket_of_reports(epsilons, counts, delta=delta)
    truth = epsilon_of_responses(delta, kinds)
    assert lower <= truth * (1 + 1e-9)
    assert truth <= upper * (1 + 1e-9)
    assert upper - lower < 5e-3 * truth
    assert lower <= optimal_composition(epsilons, counts, delta=delta) <= upper * 1.0001


@pytest.mark.parametrize("precision", [FINE, QUICK], ids=["fine", "quick"])
@pytest.mark.parametrize(
    ("bound", "local_epsilon", "num_reports", "domain_size", "times", "delta"),
    thinned(
        [
            ("clones", 1.0, 10, None, 3, 1e-2),
            ("clones", 8.0, 500_000, None, 60, 1e-10),
            ("blanket", 8.0, 50_000, 1_000, 10, 1e-10),
            ("clones-2023", 2.0, 500, None, 200, 1e-6),
            ("clones", 1.0, 10, None, 3, 1e-6),
            ("clones", 4.0, 2, None, 60, 1e-10),
        ]
    ),
)
def test_our_composition_of_shuffles_lies_between(
    bound, local_epsilon, num_reports, domain_size, times, delta, precision
):
    of_one = shuffle_bound(
        bound, local_epsilon=local_epsilon, num_reports=num_reports, domain_size=domain_size
    )
    holds([Use(bound=of_one, times=times)], delta=delta, precision=precision)


def test_our_epsilons_of_one_shuffle_lie_between():
    asked = {"local_epsilon": 1.0, "num_reports": 50, "delta": 1e-4}
    found = account_shuffle(**asked, domain_size=10)
    for name in ("clones", "blanket"):
        size = 10 if name == "blanket" else None
        bound = shuffle_bound(name, local_epsilon=1.0, num_reports=50, domain_size=size)
        lower, upper = bracket_of_uses([Use(bound=bound, times=1)], delta=1e-4)
        assert lower <= found.by(name).epsilon <= 1.002 * upper


def holds(uses: list[Use], *, delta: float, precision: Precision = FINE) -> float:
    """Return our composed epsilon of some uses, which is found to lie between the bounds."""
    ours = composed_epsilon(uses, delta=delta, precision=precision)
    lower, upper = bracket_of_uses(uses, delta=delta, precision=precision)
    assert lower <= ours <= 1.005 * upper
    # Else nothing would ever be refuted.
    assert lower > 0.98 * upper
    return ours


@pytest.fixture
def composed(monkeypatch):
    """Hold each composition of uses that an account makes against the bounds; list its epsilons."""
    found: list[float] = []

    def held(uses, *, delta, precision=FINE):
        found.append(holds(uses, delta=delta, precision=precision))
        return found[-1]

    monkeypatch.setattr(composition, "composed_epsilon", held)
    # A run's account remembers what it has composed.
    afresh = composition.remembered_epsilon.__wrapped__
    for module in (amplification, user_level):
        monkeypatch.setattr(module, "remembered_epsilon", afresh)
    return found


@pytest.mark.parametrize("name", thinned(reversed(preset_names())))
def test_the_plan_of_a_preset_and_its_baselines_is_not_refuted(name, composed):
    config = load_config(preset=name)
    for section in (config.protocol, *(config.baseline or ())):
        is_not_refuted(config.model_copy(update={"protocol": section, "baseline": None}), composed)


@pytest.fixture(params=[each for each in preset_names(SWEEPS) if "quick" not in each])
def cells(request):
    """Return the last cell of each protocol of a sweep."""
    table, origin = load_sweep_table(request.param)
    sweep = table["sweep"]
    groups = [{path: values} for path, values in by_path(sweep.pop("axes", {}))]
    sweep["linked"] = [last_of(dict(by_path(each))) for each in groups + sweep.get("linked", [])]
    sweep["seeds"] = 1
    return {cell.protocol: cell for cell in parse_sweep(table, origin).cells}.values()


def last_of(group):
    """Return the last values of a group of axes, or all that name protocols."""
    if not group.keys().isdisjoint(NAMES_PROTOCOLS):
        return group
    return {
        path: [values["to"]] if isinstance(values, dict) else values[-1:]
        for path, values in group.items()
    }


@pytest.mark.slow("::test_the_plan_of_a_preset_and_its_baselines_is_not_refuted")
def test_the_plans_of_a_sweep_are_not_refuted(cells, composed):
    # The cells come first: what a search for equal privacy tries is not held against the bounds.
    for cell in cells:
        is_not_refuted(cell.config, composed)


def is_not_refuted(config: Config, composed: list[float]) -> None:
    """Hold all that the account of a configuration's plan composes against the bounds."""
    clients = config.population.clients
    plan = settle(config, clients)[1].plan
    report = plan.report(PrivacyTerms(num_clients=clients, delta=config.privacy.delta, alpha=0.5))
    slots = {each.epsilon for each in report.guarantees if each.method.endswith("slots")}
    assert slots <= {*composed}


MANY = {"clients_per_layer": 500, "max_items": 3, "local_epsilon": 6.0}


@pytest.mark.parametrize(
    ("protocol", "compositions"),
    thinned([
        (
            fedhh.LdpTrieHH(
                alphabet=LETTERS, clients_per_layer=20, depth=2, max_items=2, local_epsilon=1.0,
                oracle="grr", passes=1,
            ),
            1,
        ),
        (fedhh.LdpTrieHH(**MANY, depth=4), 1),
        (fedhh.LdpTrieHH(**MANY, depth=3, participation="every-round"), 3),
        (fedhh.LdpTrieHH(**MANY, depth=4, pad=False), 0),
        (fedhh.Blender(length=4, opt_in_share=0.3, delta=1e-6, oracle="grr", max_items=2), 1),
        (
            # A group that is asked once, and is smaller, would be the worst: nothing composed.
            fedhh.LdpMiner(
                candidates=Candidates([f"word{place}" for place in range(50)]), keep=5,
                size_share=0.5,
            ),
            1,
        ),
        (fedhh.TrieHH(clients_per_layer=300, threshold=6, depth=4), 0),
    ]),
    ids=["small", "ldp-triehh", "every-round", "unpadded", "blender", "ldpminer", "triehh"],
)  # fmt: skip
def test_what_a_plan_composes_is_not_refuted(protocol, compositions, composed):
    plan = protocol.settle(num_clients=4_000, seed=0).plan
    plan.report(PrivacyTerms(num_clients=4_000, delta=1e-6, alpha=0.5))
    assert len({*composed}) == compositions


def test_the_slots_of_a_user_are_not_refuted(composed):
    asked = {"local_epsilon": 0.5, "num_clients": 50, "max_items": 2, "delta": 1e-2}
    found = account_user(**asked, domain_size=3)
    assert [found.by(f"{each}, slots").epsilon for each in ("clones", "blanket")] == composed


@pytest.mark.parametrize("preset", thinned(["apple", *CONFIGURATIONS]))
def test_a_ledgers_composition_is_not_refuted(preset):
    asked = {"num_days": 30, "delta": 1e-8}
    found = (
        account_ledger(APPLE, **asked) if preset == "apple"
        else account_audited_ledger(preset, **asked)
    )  # fmt: skip
    kinds = zip(*reports_of(found.rules.charges, found.most_in_lifetime(30)), strict=True)
    epsilons, counts = zip(*((each, count) for each, count in kinds if count), strict=True)
    lower, upper = bracket_of_reports(epsilons, counts, delta=1e-8)
    assert lower <= found.report.guarantee("user", PLD).epsilon <= upper * (1 + 1e-9)
    assert lower > 0.98 * upper


def test_a_composition_of_too_few_uses_is_refuted():
    bound = shuffle_bound("clones", local_epsilon=1.0, num_reports=10)
    lower, _ = bracket_of_uses([Use(bound=bound, times=3)], delta=1e-2)
    assert composed_epsilon([Use(bound=bound, times=2)], delta=1e-2) < lower
    better = replace(bound, num_reports=12)
    assert composed_epsilon([Use(bound=better, times=3)], delta=1e-2) < lower
