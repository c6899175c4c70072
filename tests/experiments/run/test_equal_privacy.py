"""Settings by their central guarantee: it is met, as nearly as it can be, or refused."""

from __future__ import annotations

import math

import pytest

import fedhh
from fedhh.accounting.terms import PrivacyTerms
from fedhh.experiments.run.equal_privacy import OutOfReachError, at_central_epsilon, chosen_settings
from fedhh.experiments.run.privacy import epsilon_of, privacy_of_run
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned

CLIENTS, DELTA = 50_000, 1e-8
WORDS = fedhh.Candidates(tuple("abcdefgh"))
LOCAL = {
    "selection, domains by votes": fedhh.LdpTrieHH(passes=1, depth=6, max_items=2),
    "selection and a validation round": fedhh.AdaptiveTrieHH(depth=6, max_items=2),
    "local hashing": fedhh.Pem(max_items=1),
    "two reports of a record": fedhh.Sfp(max_items=1),
    "Bloom filters": fedhh.Rappor(candidates=WORDS, max_items=2),
    "clients asked twice": fedhh.LdpMiner(candidates=WORDS),
    "padded sample": fedhh.Svim(candidates=WORDS),
}


def stated(protocol, unit: str, *, clients: int = CLIENTS, delta: float = DELTA):
    """What the whole report says of a plan, and not the quick way that the search goes."""
    settled = protocol.settle(num_clients=clients, seed=3)
    return privacy_of_run(settled, num_clients=clients, delta=delta).before_run(unit)


@pytest.mark.parametrize(
    ("name", "unit"),
    thinned(
        [
            *((name, "item") for name in LOCAL),
            ("selection, domains by votes", "user"),
            ("Bloom filters", "user"),
            ("local hashing", "user"),
        ]
    ),
)
def test_the_chosen_local_epsilon_gives_the_target_and_no_more(name: str, unit: str):
    protocol = LOCAL[name]
    found = at_central_epsilon(protocol, CLIENTS, unit=unit, epsilon=0.8, delta=DELTA)
    assert set(chosen_settings(protocol, found)) == {"local_epsilon"}
    central = stated(found, unit)
    assert 0.8 * (1 - 2e-3) <= epsilon_of(central) <= 0.8
    assert (central.delta, central.neighboring) == (DELTA, "replace-one")
    # Amplification is used: the local epsilon of a contribution is larger.
    assert found.local_epsilon > 0.8


def test_a_larger_target_gives_a_larger_local_epsilon():
    protocol = LOCAL["selection, domains by votes"]
    # From no amplification at all over the steep part to what shuffling hides well.
    chosen = [
        at_central_epsilon(protocol, 3_000, unit="item", epsilon=epsilon, delta=DELTA).local_epsilon
        for epsilon in (1e-3, 1.0, 6.0, 12.0)
    ]
    assert chosen == sorted(chosen)
    assert len(set(chosen)) == len(chosen)


@pytest.mark.parametrize(("unit", "share"), thinned([("item", 1), ("user", 2)]))
def test_where_nothing_amplifies_the_local_epsilon_is_the_central_one(unit: str, share: int):
    protocol = LOCAL["selection, domains by votes"]
    found = at_central_epsilon(protocol, 20, unit=unit, epsilon=4.0, delta=DELTA)
    assert found.local_epsilon == 4.0 / share
    # Beyond the epsilons for which amplification is computed, likewise.
    found = at_central_epsilon(protocol, 20, unit=unit, epsilon=90.0, delta=DELTA)
    assert found.local_epsilon == 90.0 / share


def test_targets_below_the_least_amplified_one_are_met_locally():
    protocol = LOCAL["local hashing"]
    found = at_central_epsilon(protocol, 200, unit="item", epsilon=1e-3, delta=DELTA)
    assert found.local_epsilon == pytest.approx(1e-3, rel=1e-9)
    assert epsilon_of(stated(found, "item", clients=200)) <= 1e-3


def test_a_central_protocol_gets_the_epsilon_and_the_delta():
    found = at_central_epsilon(fedhh.TrieHH(), 1_000_000, unit="user", epsilon=2.0, delta=1e-6)
    assert (found.central_epsilon, found.delta) == (2.0, 1e-6)
    central = stated(found, "user", clients=1_000_000, delta=1e-6)
    # The sample is a whole number of clients.
    assert 2.0 * (1 - 1e-2) <= epsilon_of(central) <= 2.0
    assert central.delta <= 1e-6
    looser = at_central_epsilon(fedhh.TrieHH(), 1_000_000, unit="user", epsilon=4.0, delta=1e-6)
    sizes = [
        each.settle(num_clients=1_000_000, seed=0).plan.sample_size for each in (found, looser)
    ]
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("unit", ["item", "user"])
def test_both_groups_of_blender_have_the_target(unit: str):
    found = at_central_epsilon(
        fedhh.Blender(max_items=2), CLIENTS, unit=unit, epsilon=0.8, delta=DELTA
    )
    assert found.opt_in_epsilon == 0.8
    settled = found.settle(num_clients=CLIENTS, seed=3)
    others = settled.plan.local.report(
        PrivacyTerms(num_clients=CLIENTS, delta=DELTA, alpha=0.5)
    ).before_run(unit)
    assert 0.8 * (1 - 2e-3) <= epsilon_of(others) <= 0.8
    assert epsilon_of(stated(found, unit)) == 0.8


AGGREGATED = {
    "Laplace": fedhh.TeeHistogram(max_items=10),
    "Gaussian": fedhh.TeeHistogram(max_items=60, noise="gaussian"),
    "minimum of contributors": fedhh.TeeHistogram(max_items=20, min_contributors=20),
    "weights": fedhh.WeightedGaussianSelection(max_items=5),
    "rounds of weights": fedhh.DpSips(max_items=5),
    "sample": fedhh.SampleAndThreshold(max_items=1),
}


@pytest.mark.parametrize("unit", thinned(["item", "user"]))
@pytest.mark.parametrize("name", thinned(AGGREGATED, keep=3))
def test_a_trusted_aggregator_has_the_target_and_no_more(name: str, unit: str):
    protocol = AGGREGATED[name]
    found = at_central_epsilon(protocol, CLIENTS, unit=unit, epsilon=0.8, delta=DELTA)
    central = stated(found, unit)
    assert 0.8 * (1 - 2e-3) <= epsilon_of(central) <= 0.8
    assert (central.delta, central.neighboring) == (DELTA, "replace-one")
    if unit == "user":
        assert chosen_settings(protocol, found) == {"central_epsilon": 0.8, "delta": DELTA}
    # Where noise hides an item of many better than a user, the user's epsilon is larger.
    better = unit == "item" and name in {"Laplace", "Gaussian", "minimum of contributors"}
    assert (found.central_epsilon > 0.8) == better


def test_one_item_of_many_is_hidden_by_laplace_noise_where_a_user_is_by_gaussian():
    protocol = fedhh.TeeHistogram(max_items=60)
    of_user, of_item = (
        at_central_epsilon(protocol, CLIENTS, unit=unit, epsilon=0.8, delta=DELTA)
        for unit in ("user", "item")
    )
    assert of_user.release.noise == "gaussian"
    assert of_item.noise == "laplace"
    assert of_item.central_epsilon == pytest.approx(60 * 0.8)
    assert of_item.release.std < of_user.release.std


def test_a_given_threshold_follows_from_no_epsilon():
    protocol = fedhh.SampleAndThreshold(sample_rate=0.1, threshold=20)
    with pytest.raises(InputError, match=r'Expected threshold="auto" for central_epsilon=1'):
        at_central_epsilon(protocol, CLIENTS, unit="user", epsilon=1.0)


@pytest.mark.parametrize(
    ("protocol", "clients", "epsilon", "message"),
    [
        (
            fedhh.LdpTrieHH(oracle="none"),
            CLIENTS,
            1.0,
            "LDP TrieHH: .* got none: without a randomizer",
        ),
        (fedhh.Sfp(max_items=100), 10**9, 8.0, "16, the largest with amplification"),
    ],
)
def test_what_no_settings_reach_is_refused(protocol, clients, epsilon, message):
    with pytest.raises(OutOfReachError, match=message):
        at_central_epsilon(protocol, clients, unit="item", epsilon=epsilon, delta=DELTA)


@every(
    ("change", "message"),
    [
        ({"unit": "word"}, "Unknown unit 'word'"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": math.nan}, "epsilon=nan"),
        ({"epsilon": math.inf}, "epsilon=inf"),
        ({"delta": 0.0}, "1e-14 <= delta <= 0.1"),
        ({"num_clients": 3}, "The population has 3 clients"),
    ],
)
def test_wrong_targets_are_named(change, message):
    arguments = {"num_clients": CLIENTS, "unit": "item", "epsilon": 1.0, "delta": DELTA} | change
    clients = arguments.pop("num_clients")
    with pytest.raises(InputError, match=message):
        at_central_epsilon(fedhh.LdpTrieHH(), clients, **arguments)


def test_a_given_sample_follows_from_no_epsilon():
    protocol = fedhh.TrieHH(clients_per_layer=1_000, threshold=20)
    with pytest.raises(InputError, match=r'clients_per_layer="auto" and threshold="auto"'):
        at_central_epsilon(protocol, CLIENTS, unit="item", epsilon=1.0)
