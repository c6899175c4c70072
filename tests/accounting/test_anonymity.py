"""Approximate k-anonymity against independent values, enumeration and simulation."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from fedhh.accounting import (
    LayerAnonymity,
    NotApplicable,
    anonymity,
    paper_subset_size,
    probability_surfacing,
)
from fedhh.accounting.anonymity import VARIANTS
from fedhh.oracles import SubsetSelection
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned

GBOARD = {"domain_size": 1_000_001, "num_kept": 10_000, "num_reports": 30_000_000}


def _reference():
    text = Path(__file__).with_name("anonymity_reference.csv").read_text().splitlines()
    yield from csv.DictReader(line for line in text if not line.startswith("#"))


@every("row", list(_reference()))
def test_k_is_that_of_an_independent_reference(row):
    layer = LayerAnonymity(
        local_epsilon=float(row["local_epsilon"]),
        domain_size=int(row["domain_size"]),
        subset_size=int(row["subset_size"]),
        num_kept=int(row["kept"]),
        num_reports=int(row["reports"]),
        variant=row["variant"],
    )
    once, twice = (anonymity([layer] * passes, alpha=0.95) for passes in (1, 2))
    if not row["k"]:
        assert isinstance(once.k, NotApplicable)
        return
    assert (-1 if once.k is None else once.k) == int(row["k"])
    assert (-1 if twice.k is None else twice.k) == int(row["k_two_passes"])
    assert once.probability == pytest.approx(float(row["probability"]), abs=1e-6)


def test_gboards_case_has_the_known_ks():
    def k(local_epsilon, variant):
        size = paper_subset_size(local_epsilon, GBOARD["domain_size"])
        layer = LayerAnonymity(
            local_epsilon=local_epsilon, subset_size=size, variant=variant, **GBOARD
        )
        return anonymity([layer], alpha=0.95)

    assert k(10.0, "tight").k == 49
    # The printed lemma does not give the published 45 at the deployed epsilon: not even k = 0.
    assert k(10.0, "lemma").k is None
    assert k(10.0, "lemma").probability == pytest.approx(0.142, abs=5e-4)
    assert k(8.0, "lemma").k == 45


def share_kept(layer: LayerAnonymity, held: int, rounds: int) -> float:
    """Share of simulated layers that keep a value held by few, all others holding the dummy."""
    oracle = SubsetSelection(epsilon=layer.local_epsilon, domain_size=layer.domain_size)
    assert oracle.d == layer.subset_size
    values = np.full(layer.num_reports, layer.domain_size - 1, dtype=np.int64)
    values[:held] = 0
    rng = np.random.default_rng(4)
    kept = 0
    for _ in range(rounds):
        votes = oracle.aggregate(values=values, rng=rng)[:-1]
        kept += votes[0] >= np.partition(votes, -layer.num_kept)[-layer.num_kept]
    return kept / rounds


@pytest.mark.slow("::test_k_is_that_of_an_independent_reference")
@pytest.mark.parametrize(("reports", "held"), [(1000, 0), (1000, 8), (2000, 2)])
def test_the_tight_bound_is_what_simulation_shows(reports, held):
    # The allowance: 0.002 for the independence approximation and six standard errors (1e-9).
    layer = LayerAnonymity(
        local_epsilon=4.0, domain_size=1351, subset_size=25, num_kept=50, num_reports=reports
    )
    rounds = 8_000
    share = share_kept(layer, held, rounds)
    bound = probability_surfacing([layer], held)
    error = 6 * math.sqrt(bound * (1 - bound) / rounds)
    assert bound - 0.02 - error <= share <= bound + 0.002 + error
    # Negative control: a bound for fewer holders than there are does not pass.
    assert share_kept(layer, held + 12, 1000) > bound + 0.002 + error


def test_the_printed_lemma_is_looser_than_the_tight_bound():
    common = {"local_epsilon": 4.0, "domain_size": 1351, "subset_size": 25, "num_kept": 50}
    for held in (0, 5, 20):
        tight, lemma = (
            probability_surfacing(
                [LayerAnonymity(**common, num_reports=1000, variant=variant)], held
            )
            for variant in VARIANTS
        )
        assert lemma > tight


def test_the_probability_rises_with_the_count_and_combines_over_passes():
    layer = LayerAnonymity(
        local_epsilon=4.0, domain_size=1351, subset_size=25, num_kept=50, num_reports=10_000
    )
    values = [probability_surfacing([layer], count) for count in (0, 1, 5, 30, 200, 10_000)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(1)
    other = LayerAnonymity(
        local_epsilon=4.0, domain_size=2000, subset_size=36, num_kept=50, num_reports=10_000
    )
    both = probability_surfacing([layer, other], 5)
    alone = probability_surfacing([other], 5)
    assert both == pytest.approx(1 - (1 - values[2]) * (1 - alone), rel=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_layer_that_keeps_everything_claims_nothing(variant):
    layer = LayerAnonymity(
        local_epsilon=4.0, domain_size=101, subset_size=5, num_kept=100, num_reports=1000,
        variant=variant,
    )  # fmt: skip
    found = anonymity([layer], alpha=0.95)
    assert isinstance(found.k, NotApplicable)
    assert "keeps 100 of 100" in str(found.k)
    assert isinstance(layer.probability_kept(0), NotApplicable)
    deciding = LayerAnonymity(
        local_epsilon=4.0, domain_size=101, subset_size=5, num_kept=99, num_reports=1000,
        variant=variant,
    )  # fmt: skip
    assert deciding.decides
    assert isinstance(deciding.probability_kept(0), float)


@every(("s", "d"), [(3, 1), (3, 2), (4, 3), (28, 27), (10**6, 1), (10**6, 999_999)])
@every("n", [2, 1000, 10**7])
def test_extreme_layers_give_probabilities(s, d, n):
    for variant in VARIANTS:
        layer = LayerAnonymity(
            local_epsilon=3.0, domain_size=s, subset_size=d, num_kept=1, num_reports=n,
            variant=variant,
        )  # fmt: skip
        assert variant == "lemma" or 0 <= layer.mean_subset_size <= d
        for count in (0, n // 2, n):
            found = layer.probability_kept(count)
            assert isinstance(found, NotApplicable) or 0 <= found <= 1


def test_wrong_input_is_named():
    layer = {"local_epsilon": 4.0, "domain_size": 101, "subset_size": 5, "num_kept": 9,
             "num_reports": 1000}  # fmt: skip
    for change, message in (
        ({"variant": "tigth"}, "Unknown variant 'tigth'; did you mean 'tight'?"),
        ({"num_kept": 0}, "num_kept >= 1"),
        ({"subset_size": 101}, "subset_size < domain_size=101"),
    ):
        with pytest.raises(InputError, match=message.replace("?", r"\?")):
            LayerAnonymity(**{**layer, **change})
    with pytest.raises(InputError, match="alpha=1"):
        anonymity([LayerAnonymity(**layer)], alpha=1)
    with pytest.raises(InputError, match="count <= num_reports=1000"):
        LayerAnonymity(**layer).probability_kept(1001)


@pytest.mark.parametrize("local_epsilon", thinned([0.5, 2.0, 4.0]))
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.9, 0.99])
def test_k_is_the_largest_count_that_surfaces_rarely_enough(local_epsilon, alpha):
    layer = LayerAnonymity(
        local_epsilon=local_epsilon, domain_size=60, subset_size=9, num_kept=5, num_reports=40
    )
    for layers in ([layer], [layer] * 3):
        rare = [n for n in range(41) if probability_surfacing(layers, n) <= 1 - alpha]
        assert anonymity(layers, alpha=alpha).k == (max(rare) if rare else None)


def test_a_count_above_a_layers_reports_is_all_of_its_reports():
    small, large = (
        LayerAnonymity(
            local_epsilon=1.0, domain_size=60, subset_size=16, num_kept=5, num_reports=reports
        )
        for reports in (20, 60)
    )
    alone = [layer.probability_kept(layer.num_reports) for layer in (small, large)]
    both = probability_surfacing([small, large], 60)
    assert both == pytest.approx(1 - (1 - alone[0]) * (1 - alone[1]), rel=1e-12)
    assert all(0 < each < 1 for each in alone)
