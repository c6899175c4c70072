"""Discovery by two servers: all layers of the same uploads, and what they cost together."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.noise_privacy import noise_epsilon
from fedhh.experiments.run.equal_privacy import at_central_epsilon
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.experiments.run.regime import regime_of_run
from fedhh.experiments.run.sentences import privacy_sentence, sentence
from fedhh.questions.noise_shares import NoiseShares, noise_of
from fedhh.server.two_servers import TwoServers
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.questions_of_each_kind import sending

CLIENTS = 3_000
SMALL = TwoServers(alphabet=LETTERS, depth=6, eta_max=20, max_items=4, delta=1e-6)


def settled(**change: object) -> TwoServers:
    return replace(SMALL, **change).settle(num_clients=CLIENTS, seed=0)


def moved_delta(noise: NoiseShares, moves: list[int], epsilon: float) -> float:
    """The divergence of counts that move, over all values of each but the rarest."""
    masses = noise.distribution().masses
    masses = masses[masses > 1e-10]
    two_sided = np.concatenate([masses[:0:-1], masses])
    here = there = np.ones(1)
    for move in moves:
        padding = np.zeros(move)
        here = np.outer(here, np.concatenate([two_sided, padding])).ravel()
        there = np.outer(there, np.concatenate([padding, two_sided])).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def test_every_layer_is_about_the_same_clients():
    plan = settled().plan
    assert len(plan.layers) > 3
    cohorts = {each.cohort for each in plan.layers}
    assert len(cohorts) == 1
    (cohort,) = cohorts
    assert (cohort.start, cohort.size, cohort.redraw) == (0, CLIENTS, None)
    assert plan.most_rounds_per_client == len(plan.layers)
    assert (plan.most_asked, plan.most_uploads) == (CLIENTS, CLIENTS)
    assert plan.most_answers == len(plan.layers) * CLIENTS


@pytest.mark.parametrize("noise", ["discrete-laplace", "skellam"])
def test_an_item_moves_two_counts_of_every_layer(noise):
    # Two layers, four counts: enumerated.
    protocol = settled(depth=2, skip_free_layers=False, noise=noise, noise_std=1.2)
    plan = protocol.plan
    assert len(plan.layers) == 2
    epsilon = plan.epsilon("item", 1e-3)
    assert moved_delta(plan.noise, [1] * 4, epsilon) <= 1e-3 * (1 + 1e-5)
    assert moved_delta(plan.noise, [1] * 4, epsilon * 0.995) > 1e-3
    assert moved_delta(noise_of(noise, 0.6), [1] * 4, epsilon) > 1e-3


def test_a_user_moves_two_counts_of_every_layer_by_all_its_words():
    protocol = settled(depth=1, skip_free_layers=False, noise_std=1.0, max_items=3)
    plan = protocol.plan
    assert len(plan.layers) == 1
    epsilon = plan.epsilon("user", 1e-3)
    dearest = moved_delta(plan.noise, [3, 3], epsilon)
    assert 0.98e-3 < dearest <= 1e-3 * (1 + 1e-5)
    # Words with other prefixes move more counts, by less, and cost less.
    for moves in ([2, 1, 3], [1, 2, 1, 2]):
        assert moved_delta(plan.noise, moves, epsilon) <= dearest


@pytest.mark.parametrize("noise", ["discrete-laplace", "skellam"])
def test_a_user_that_votes_in_each_layer_moves_its_counts_by_one(noise):
    # One layer of two words, four counts: enumerated.
    protocol = settled(
        depth=1, skip_free_layers=False, noise=noise, noise_std=1.2, max_items=2,
        participation="every-round",
    )  # fmt: skip
    plan = protocol.plan
    assert not plan.uploads_once
    epsilon = plan.epsilon("user", 1e-3)
    assert 0.98e-3 < moved_delta(plan.noise, [1] * 4, epsilon) <= 1e-3 * (1 + 1e-5)
    assert moved_delta(noise_of(noise, 0.6), [1] * 4, epsilon) > 1e-3
    two = settled(
        depth=2, skip_free_layers=False, noise=noise, noise_std=8.0, max_items=3,
        participation="every-round",
    ).plan  # fmt: skip
    assert two.epsilon("user", 1e-6) == noise_epsilon(two.noise, counts=12, delta=1e-6)
    assert two.epsilon("item", 1e-6) == noise_epsilon(two.noise, counts=4, delta=1e-6)


def test_votes_of_each_layer_are_for_prefixes_that_are_left():
    population = small_population(CLIENTS)
    shared = {"noise": "skellam", "unit": "user", "max_items": 1}
    once = fedhh.simulate(replace(SMALL, **shared), population, seed=0)
    fresh = fedhh.simulate(
        replace(SMALL, **shared, participation="every-round"), population, seed=0
    )
    assert once.protocol.noise_std == fresh.protocol.noise_std
    assert fresh.metrics.precision == 1
    assert fresh.metrics.coverage > once.metrics.coverage
    cost = fresh.cost
    assert cost["clients_asked"] == cost["reports"] == len(fresh.layers) * CLIENTS
    assert cost["download_bits_per_client_max"] > 0
    assert "same clients and compose" in fresh.privacy.before_run("user").assumptions


def test_layers_add_up():
    short, long = (settled(depth=depth, noise_std=8.0).plan for depth in (4, 8))
    assert len(short.layers) + 4 == len(long.layers)
    assert short.epsilon("item", 1e-6) < long.epsilon("item", 1e-6)
    layers = len(long.layers)
    assert long.epsilon("item", 1e-6) == noise_epsilon(long.noise, counts=2 * layers, delta=1e-6)
    one_layer = noise_epsilon(long.noise, counts=2, delta=1e-6)
    assert long.epsilon("item", 1e-6) > math.sqrt(layers) / 2 * one_layer


@pytest.mark.parametrize(
    ("unit", "noise", "max_items"),
    [
        ("item", "discrete-laplace", 4),
        ("user", "discrete-laplace", 4),
        ("item", "skellam", 4),
        ("user", "skellam", 1),
    ],
)
def test_the_noise_follows_from_a_central_epsilon(unit, noise, max_items):
    protocol = replace(SMALL, noise=noise, max_items=max_items)
    found = at_central_epsilon(protocol, CLIENTS, unit=unit, epsilon=0.7, delta=1e-8)
    fitted = found.settle(num_clients=CLIENTS, seed=3)
    report = privacy_of_run(fitted, num_clients=CLIENTS, delta=1e-8)
    central = report.before_run(unit)
    assert 0.7 * (1 - 1e-3) <= central.epsilon <= 0.7
    assert (central.delta, central.neighboring, central.trust) == (1e-8, "replace-one", "central")
    assert f"all {len(fitted.plan.layers)} layers" in central.assumptions
    assert report.best(unit, "local").epsilon == math.inf


def test_where_no_bound_is_proven_none_is_stated():
    protocol = settled(noise="skellam", noise_std=5.0)
    report = privacy_of_run(protocol, num_clients=CLIENTS, delta=1e-6)
    user = report.before_run("user")
    assert isinstance(user.epsilon, NotApplicable)
    assert "share a prefix" in user.epsilon.reason
    assert math.isfinite(report.before_run("item").epsilon)
    with pytest.raises(InputError, match=r'noise="discrete-laplace", max_items=1 or unit="item"'):
        settled(noise="skellam", unit="user")


def test_words_are_found_by_one_upload_of_all_clients():
    population = small_population(CLIENTS)
    result = fedhh.simulate(replace(SMALL, central_epsilon=4.0), population, seed=0)
    assert result.metrics.precision == 1.0
    assert result.metrics.coverage > 0.3
    assert (result.layers["num_clients"] == CLIENTS).all()
    assert "two servers do not work together" in privacy_sentence(result)
    std = result.protocol.noise_std
    assert result.discoveries["std_error"].to_numpy() == pytest.approx(std)
    # Every client holds at most four words, so that each word of each is uploaded and counted.
    off = result.discoveries["estimated_clients"] - result.discoveries["true_clients"]
    assert np.abs(off).max() < 8 * std
    cost = result.cost
    assert (cost["clients_asked"], cost["reports"]) == (CLIENTS, 4 * CLIENTS)
    assert math.isnan(cost["upload_bits_per_client_max"])
    assert cost["download_bits_per_client_max"] == 0


def test_what_noise_hides_is_not_laid_on_the_number_of_prefixes():
    population = small_population(CLIENTS)
    noisy = fedhh.simulate(replace(SMALL, eta_max=100), population, seed=0)
    assert set(noisy.layers["kept_by"]) == {"threshold"}
    assert regime_of_run(noisy.layers) is None
    # The most votes decide where more than eta_max exceed the noise.
    few = fedhh.simulate(replace(SMALL, eta_max=8, central_epsilon=8.0), population, seed=0)
    assert "votes" in set(few.layers["kept_by"])
    assert regime_of_run(few.layers).limit == "eta_max"


def test_a_run_that_finds_nothing_says_what_would_help():
    result = fedhh.simulate(replace(SMALL, noise_std=2_000.0), small_population(CLIENTS), seed=0)
    assert result.metrics.discovered == 0
    assert sentence(result).endswith("ask more clients, or raise central_epsilon.")


@pytest.mark.slow("::test_the_noise_follows_from_a_central_epsilon")
def test_a_configuration_runs_it_whole(tmp_path):
    out = fedhh.run(
        "small", out=tmp_path / "run",
        settings=[
            "protocol.name=two-servers", "protocol.max_items=2", "protocol.depth=6",
            "population.clients=3_000", "execution.workers=0",
        ],
    )  # fmt: skip
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["cost"]["upload_bits_per_client_max"] is None
    before = [
        each["epsilon"] for each in result["privacy"]["guarantees"]
        if (each["trust"], each["unit"], each["best"]) == ("central", "item", True)
    ]  # fmt: skip
    assert len(before) == 1
    assert 1 - 1e-3 <= before[0] <= 1


def test_a_query_with_less_noise_is_refused():
    protocol = settled()
    question = protocol.next_question(protocol.initialize())
    protocol.plan.check_question(question)
    with pytest.raises(InputError, match="as planned, got Disc"):
        protocol.plan.check_question(sending(question, noise=noise_of("discrete-laplace", 0.1)))
