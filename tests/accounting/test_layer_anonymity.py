"""Which layers claim k-anonymity by what they keep: votes, a posterior, a validation round."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.accounting import NotApplicable
from fedhh.accounting.layer_anonymity import anonymity_of_run, claim_of_validation
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.sources import VALIDATION
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.oracles import OracleSpec
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.evidence import benjamini_hochberg
from fedhh.testing import LETTERS, small_population
from tests.accounting.heard import heard
from tests.every import every
from tests.thinned import thinned
from tests.zipf_words import final_state

SS = OracleSpec(name="ss", epsilon=4.0, params={"subset_size": "optimal"})


def record(layer, kept_by, **changes):
    whole = {"num_clients": 20_000, "num_reports": 80_000, "domain_size": 1_351}
    decision = {"num_kept": 20, "decides": True, "kept_by": kept_by}
    return heard(**{"layer": layer, **whole, **decision, **changes})


def plan(rate=0.0, **changes):
    planned = PlannedRound(
        layer=1,
        num_clients=20_000,
        smallest_domain=2,
        largest_domain=1_351,
        max_items=4,
        local_epsilon=4.0,
    )
    stated = {"layers": (planned,), "randomizers": (SS,)}
    return LocalReports(**{**stated, "false_discovery_rate": rate, **changes})


def claims(*records, rate=0.0, alpha=0.95, k=20):
    """Return the claims of each layer, then that of the run."""
    found = anonymity_of_run(records, plan(rate, anonymity_k=k), alpha=alpha)
    assert len(found) == len(records) + 1
    return found


def test_layers_kept_by_the_posterior_claim_nothing_and_say_why():
    for claim in claims(record(1, "posterior"), record(2, "posterior")):
        assert isinstance(claim.k, NotApplicable)
        assert "keeps candidates by what all layers showed, not by its votes" in str(claim.k)
        assert claim.probability is None
    # The control: by its votes, the same layer has a claim.
    assert claims(record(1, "votes"))[0].k > 0


@every(
    ("rate", "alpha", "holds"),
    [
        (0.05, 0.95, True),
        (0.1, 0.9, True),
        (0.3, 0.7, True),
        (0.01, 0.95, True),
        (0.0500001, 0.95, False),
        (0.05, 0.9500001, False),
        (0.2, 0.95, False),
    ],
)
@every("kept_by", ["validation", "evidence"])
def test_a_validation_round_claims_its_k_exactly_if_its_rate_allows(kept_by, rate, alpha, holds):
    layers = [record(1, "posterior"), record(9, kept_by, num_kept=12, domain_size=41)]
    for k in (0, 20, 300):
        unclaimed, validation, run = claims(*layers, rate=rate, alpha=alpha, k=k)
        assert isinstance(unclaimed.k, NotApplicable)
        for claim in (validation, run):
            assert claim.k == (k if holds else None)
            assert claim.probability == rate
            assert claim.theorem == VALIDATION
            assert claim.alpha == alpha
        assert (validation.layer, run.layer) == (9, None)


@pytest.mark.parametrize("shape", [{}, {"num_kept": 0}, {"num_kept": 40, "decides": False}])
def test_what_the_validation_round_kept_does_not_matter(shape):
    last = record(9, "validation", **{"num_kept": 12, "domain_size": 41, **shape})
    assert claims(record(1, "posterior"), last, rate=0.05)[-1].k == 20
    # It holds before the run: also if no word was found and the round was not asked.
    assert claims(record(1, "posterior"), rate=0.05)[-1].k == 20


def test_of_votes_and_a_validation_round_the_larger_claim_counts():
    by_votes = claims(record(2, "votes"))[-1].k
    assert by_votes == 39
    layers = [record(2, "votes"), record(9, "validation", num_kept=12, domain_size=41)]
    for k in (0, 1, 5_000):
        found = claims(*layers, rate=0.05, k=k)
        assert found[1].k == k
        assert found[-1].k == max(by_votes, k)


OTHERS = {
    "grr": (OracleSpec(name="grr", epsilon=4.0),),
    "two": (SS, SS),
    "sketch": (OracleSpec(name="olh", epsilon=4.0),),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_validation_round_claims_its_k_for_every_randomizer(name):
    layers = [record(1, "votes"), record(2, "validation")]
    settings = {"randomizers": OTHERS[name], "anonymity_k": 20}
    (claim,) = anonymity_of_run(layers, plan(0.05, **settings), alpha=0.95)
    assert (claim.k, claim.layer, claim.variant) == (20, None, "tight")
    assert claim.smallest_cohort == 20_000
    # Without the round, these randomizers have no claim.
    assert anonymity_of_run(layers[:1], plan(0.0, **settings), alpha=0.95) == []


@pytest.mark.parametrize("name", ["cms", "hcms", "flh", "hashtogram"])
def test_reports_that_share_hash_functions_claim_nothing(name):
    layers = [record(1, "votes"), record(2, "validation")]
    sketch = OracleSpec(name=name, epsilon=4.0)
    settings = {"randomizers": (sketch,), "anonymity_k": 20}
    (claim,) = anonymity_of_run(layers, plan(0.05, **settings), alpha=0.95)
    assert "share hash functions" in str(claim.k)
    # What counts is the validation round's randomizer.
    (claim,) = anonymity_of_run(
        layers, plan(0.05, validation_randomizer=SS, **settings), alpha=0.95
    )
    assert claim.k == 20


def test_whoever_passes_has_a_p_value_of_at_most_the_rate():
    rng = np.random.default_rng(0)
    for rate in (0.05, 0.3):
        p = rng.random((500, 6)) ** 4
        chosen = np.array([benjamini_hochberg(each, rate) for each in p])
        assert chosen.any(axis=1).mean() > 0.5
        assert (p[chosen] <= rate).all()
        # A word that no client holds has a uniform p-value, whatever the others' are.
        p[:, 0] = np.linspace(0, 1, 500, endpoint=False) + 0.001
        assert np.mean([benjamini_hochberg(each, rate)[0] for each in p]) <= rate


@pytest.mark.parametrize(
    ("validation", "expected"),
    [
        (None, True),
        (SS, True),
        (OracleSpec(name="ss", epsilon=4.0, params={"subset_size": "paper"}), False),
        (OracleSpec(name="grr", epsilon=4.0), False),
    ],
)
def test_a_validation_round_through_another_randomizer_is_not_subset_selection_alone(
    validation, expected
):
    assert plan(validation_randomizer=validation).is_subset_selection is expected
    sketch = (OracleSpec(name="olh", epsilon=4.0),)
    assert not plan(randomizers=sketch, validation_randomizer=validation).is_subset_selection


@pytest.mark.slow("::test_a_validation_round_claims_its_k_exactly_if_its_rate_allows")
@pytest.mark.parametrize(
    ("change", "kept_by"),
    thinned(
        [
            ({}, "evidence"),
            ({"false_discovery_rate": 0.0}, "posterior"),
            ({"false_discovery_rate": 0.2}, "evidence"),
        ]
    ),
)
def test_a_run_claims_what_its_last_round_allows(change, kept_by):
    population = small_population(4_000)
    protocol = AdaptiveTrieHH(
        **{
            "alphabet": LETTERS,
            "depth": 4,
            "eta_max": 20,
            "max_items": 2,
            **change,
        }
    ).settle(num_clients=population.num_clients, seed=0)
    summaries = final_state(protocol, population).history
    assert summaries[-1].kept_by == kept_by
    report = privacy_of_run(protocol, summaries, num_clients=population.num_clients)
    *layers, run = report.anonymity
    assert len(layers) == len(summaries)
    assert all(isinstance(each.k, NotApplicable) for each in layers[:-1])
    assert run.k == layers[-1].k or isinstance(run.k, NotApplicable)
    if kept_by != "posterior":
        assert run.k == (20 if protocol.false_discovery_rate <= 0.05 else None)
    if kept_by == "posterior":
        assert isinstance(run.k, NotApplicable)


def test_only_a_validation_rounds_claim_holds_before_the_run():
    layers = [record(1, "votes"), record(2, "validation")]
    of_votes, validation, run = claims(*layers, rate=0.05)
    assert (of_votes.realised, validation.realised) == (True, False)
    assert run.realised == (run.k == of_votes.k)
    assert not claims(*layers, rate=0.05, k=5_000)[-1].realised
    assert claim_of_validation(plan(0.05, anonymity_k=20), alpha=0.95).k == 20
    assert anonymity_of_run((), plan(0.05, anonymity_k=20), alpha=0.95)[-1].k == 20
    assert anonymity_of_run((), plan(), alpha=0.95) == []
