"""TrieHH by secure aggregation: exact privacy of a tiny sum, dropouts, runs, bad input."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.accounting.noisy_sums import WRAP_CHANCE, SecureSums, allowed_dropouts, least_modulus
from fedhh.audit import EpsilonDelta, audit
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.run.equal_privacy import at_central_epsilon
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.experiments.run.sentences import privacy_sentence
from fedhh.questions.noise_shares import NoiseShares, noise_of
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.testing.statistics import distribution_p_value
from fedhh.validation import InputError, RunFailedError
from fedhh.words.trie import PrefixTrie
from tests.asked_clients import answered
from tests.audited_run import audit_run
from tests.questions_of_each_kind import sending
from tests.thinned import thinned

CLIENTS = 3_000
SMALL = SecAggTrieHH(alphabet=LETTERS, depth=6, eta_max=20, max_items=4, delta=1e-6)
NOISES = ("discrete-laplace", "skellam")


def residues(noise: NoiseShares, count: int, modulus: int, part: float = 1.0) -> np.ndarray:
    """The exact distribution of a count with noise, modulo M: ``(M,)``."""
    masses = noise.distribution(part).masses
    k = np.arange(len(masses))
    law = np.bincount((count + k) % modulus, weights=masses, minlength=modulus)
    return law + np.bincount((count - k[1:]) % modulus, weights=masses[1:], minlength=modulus)


def swap_delta(noise: NoiseShares, modulus: int, epsilon: float, items: int, part: float) -> float:
    """The divergence of a client's items moving elsewhere, over all residues of all counts."""
    here = there = np.ones(1)
    for before, after in [(3, 2), (1, 2)] * items:
        here = np.outer(here, residues(noise, before, modulus, part)).ravel()
        there = np.outer(there, residues(noise, after, modulus, part)).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize(("max_items", "modulus"), [(1, 9), (1, 64), (2, 13)])
@pytest.mark.parametrize("max_dropout", [0.0, 0.3])
def test_no_swap_shows_in_all_residues_beyond_the_stated_privacy(
    name, max_items, modulus, max_dropout
):
    protocol = replace(
        SMALL, noise=name, max_items=max_items, unit="user", max_dropout=max_dropout, delta=1e-3,
        central_epsilon=1.5,
    ).settle(num_clients=CLIENTS, seed=0)  # fmt: skip
    plan = protocol.plan
    epsilon = plan.epsilon("user", 1e-3)
    part = plan.least_part
    assert 1.5 * (1 - 1e-4) <= epsilon <= 1.5
    assert part == pytest.approx(1 - max_dropout, abs=1e-9)
    delta = swap_delta(plan.noise, modulus, epsilon, max_items, part)
    # Wrapping around is post-processing: it hides, and never shows.
    assert delta <= 1e-3
    if modulus == 64:
        assert delta > 0.99e-3
    # Half the noise is refuted by the same sums.
    half = noise_of(name, plan.noise.std / 2)
    assert swap_delta(half, modulus, epsilon, max_items, part) > 1e-3


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize(("depth", "modulus"), [(2, 15), (3, 9)])
@pytest.mark.parametrize("max_dropout", [0.0, 0.3])
def test_layers_that_ask_everybody_show_all_together_no_more_than_stated(
    name, depth, modulus, max_dropout
):
    protocol = replace(
        SMALL, participation="every-round", depth=depth, skip_free_layers=False, noise=name,
        max_items=1, unit="user", max_dropout=max_dropout, delta=1e-3, central_epsilon=6,
    ).settle(num_clients=CLIENTS, seed=0)  # fmt: skip
    plan = protocol.plan
    assert len(plan.layers) == plan.most_rounds_per_client == depth
    epsilon = plan.epsilon("user", 1e-3)
    assert 6 * (1 - 1e-4) <= epsilon <= 6
    assert swap_delta(plan.noise, modulus, epsilon, depth, plan.least_part) <= 1e-3
    # The noise of a client that answers in one layer alone is refuted.
    auto = {"clients_per_layer": "auto", "noise_std": "auto", "modulus": "auto"}
    once = replace(protocol, participation="one-round", **auto)
    once = once.settle(num_clients=CLIENTS, seed=0).plan
    assert swap_delta(once.noise, modulus, epsilon, depth, plan.least_part) > 1e-3


def test_everybody_votes_in_every_layer_and_more_is_found():
    population = small_population(CLIENTS)
    protocol = replace(SMALL, participation="every-round", noise="skellam", max_items=1)
    result = fedhh.simulate(protocol, population, seed=0)
    plan = result.protocol.plan
    assert {(each.cohort.start, each.num_clients) for each in plan.layers} == {(0, CLIENTS)}
    assert (result.layers["num_clients"] == CLIENTS).all()
    assert result.privacy.before_run("item").epsilon == result.privacy.before_run("user").epsilon
    assert any("All 6 layers" in each for each in result.privacy.notes)
    once = fedhh.simulate(replace(SMALL, max_items=1), population, seed=0)
    assert result.metrics.coverage > once.metrics.coverage + 0.02
    assert result.metrics.precision == 1


@pytest.mark.parametrize("name", NOISES)
def test_sums_modulo_m_follow_their_exact_distribution(name):
    # Noise of two or more in modulus 7 wraps around all the time.
    protocol = replace(SMALL, noise=name, noise_std=3.0, eta_max=400)
    settled = protocol.settle(num_clients=CLIENTS, seed=0)
    question = sending(settled.next_question(settled.initialize()), modulus=7)
    drawn, known = [], []
    for seed in range(8):
        worker = ClientWorker(small_population(CLIENTS), seed=seed)
        aggregate = answered(worker, question).aggregate
        silent = answered(worker, sending(question, noise=noise_of(name, 0.05))).aggregate
        # At this little noise hardly any sum has any, and none of more than one.
        drawn.append(question.votes(aggregate))
        known.append(silent.tally[: question.num_candidates])
    sums, counts = np.concatenate(drawn), np.concatenate(known)
    empty = sums[counts == 0]
    assert len(empty) > 1_500
    for std, expected in ((3.0, True), (1.2, False)):
        law = residues(noise_of(name, std), 0, 7)
        distribution = {int(r if r <= 3 else r - 7): float(law[r]) for r in range(7)}
        p = distribution_p_value(empty, distribution)
        assert (p > 1e-9) == expected


def test_the_modulus_leaves_room_for_all_votes_and_all_noise():
    for name in NOISES:
        noise = noise_of(name, 4.0)
        least = least_modulus(noise, num_clients=100, num_sums=50)
        tails = noise.distribution().tails
        # A sum of 100 votes wraps around where noise exceeds this, up or down.
        beyond = least // 2 - 1 - 100
        wraps = 2 * 50 * tails[beyond + 1]
        assert wraps <= WRAP_CHANCE
        assert 2 * 50 * tails[beyond - 2] > WRAP_CHANCE / 30
    settled = SMALL.settle(num_clients=CLIENTS, seed=0)
    assert settled.least_modulus <= settled.modulus < 2 * settled.least_modulus
    assert settled.modulus.bit_count() == 1
    # The vector of a layer, of so many bits for each candidate.
    question = settled.next_question(settled.initialize())
    upload = question.report_bits * question.max_items
    assert upload == pytest.approx(question.num_candidates * math.log2(settled.modulus))


@pytest.mark.parametrize("unit", thinned(["item", "user"]))
@pytest.mark.parametrize("name", NOISES)
def test_the_noise_follows_from_a_central_epsilon(unit, name):
    protocol = replace(SMALL, noise=name, max_dropout=0.1)
    found = at_central_epsilon(protocol, CLIENTS, unit=unit, epsilon=0.7, delta=1e-8)
    assert (found.central_epsilon, found.unit, found.delta) == (0.7, unit, 1e-8)
    settled = found.settle(num_clients=CLIENTS, seed=3)
    report = privacy_of_run(settled, num_clients=CLIENTS, delta=1e-8)
    central = report.before_run(unit)
    assert 0.7 * (1 - 1e-3) <= central.epsilon <= 0.7
    assert (central.delta, central.neighboring, central.trust) == (1e-8, "replace-one", "central")
    assert "secure aggregation" in central.assumptions
    assert f"M = {settled.modulus:,}" in central.assumptions
    share = settled.plan.fewest_shares(settled.plan.layers[0]) / settled.clients_per_layer
    assert f"at least {share:.4%}" in central.assumptions
    assert report.best(unit, "local").epsilon == math.inf
    pure = [each for each in report.guarantees if each.delta == 0 and each.trust == "central"]
    assert len(pure) == (2 if name == "discrete-laplace" else 0)
    for each in pure:
        assert each.epsilon >= report.before_run(each.unit).epsilon * (1 - 1e-6)


def test_a_given_noise_follows_from_no_epsilon():
    with pytest.raises(InputError, match=r'noise_std="auto" for central_epsilon=1, got'):
        replace(SMALL, noise_std=5.0).with_central_epsilon(1.0, unit="item")


def test_fewer_clients_drop_out_than_allowed_and_the_run_says_what_that_was_worth():
    population = small_population(CLIENTS)
    protocol = replace(SMALL, max_dropout=0.3, dropout=0.1)
    result = fedhh.simulate(protocol, population, seed=1)
    plan = result.protocol.plan
    asked = np.array([each.num_clients for each in plan.layers])
    arrived = result.layers["num_clients"].to_numpy()
    assert (arrived < asked).all()
    part = float((arrived / asked).min())
    assert 0.8 < part < 0.97
    report = result.privacy
    before, best = report.before_run("item"), report.best("item", "central")
    assert before.epsilon == plan.epsilon("item", 1e-10, part=plan.least_part)
    assert best.realised
    assert best.epsilon == plan.epsilon("item", 1e-10, part=part) < before.epsilon
    assert "secure aggregation" in privacy_sentence(result)
    # The server knows how much noise arrived.
    expected = np.sqrt(arrived / asked) * plan.noise.std
    assert result.layers["noise_std"].to_numpy() == pytest.approx(expected)
    again = fedhh.simulate(protocol, population, seed=1)
    assert again.layers["num_clients"].tolist() == arrived.tolist()


def test_a_layer_that_lacks_more_shares_than_allowed_is_not_published():
    population = small_population(CLIENTS)
    # Half of all cohorts lack more than the mean.
    protocol = replace(SMALL, max_dropout=0.2, dropout=0.2)
    published: list[int] = []
    rounds = (each.aggregate.num_clients for each in fedhh.rounds(protocol, population, seed=0))
    with pytest.raises(RunFailedError, match=r"secagg-triehh: in pass 1, layer \d, \d+ of") as why:
        published.extend(rounds)
    settled = protocol.settle(num_clients=CLIENTS, seed=0)
    size = settled.clients_per_layer
    assert all(each >= size - allowed_dropouts(0.2, size) for each in published)
    assert f"layer {len(published) + settled.plan.layers[0].layer}," in str(why.value)
    assert f"max_dropout=0.2 allows {allowed_dropouts(0.2, size)}" in str(why.value)
    assert "\n" not in str(why.value)


def test_a_part_of_a_cohort_is_rounded_to_clients_in_favor_of_privacy():
    assert [allowed_dropouts(0.29, each) for each in (100, 99, 3)] == [29, 28, 0]
    plan = replace(SMALL, max_dropout=0.29).settle(num_clients=CLIENTS, seed=0).plan
    for each in plan.layers:
        fewest = plan.fewest_shares(each)
        assert fewest - 1 < each.num_clients * 0.71 <= fewest


def test_words_are_found_and_none_is_made_up_by_noise():
    population = small_population(CLIENTS)
    result = fedhh.simulate(replace(SMALL, central_epsilon=4.0), population, seed=0)
    assert result.metrics.precision == 1.0
    assert result.metrics.coverage > 0.25
    found = result.discoveries
    std = result.protocol.noise_std
    # Sums are estimates, and the noise is known.
    cohort = result.protocol.clients_per_layer
    assert (found["std_error"] >= std * CLIENTS / cohort * (1 - 1e-9)).all()
    held = found["true_clients"].to_numpy() * cohort / CLIENTS
    off = found["estimated_clients"].to_numpy() * cohort / CLIENTS - held
    assert np.median(np.abs(off)) < 4 * (std + math.sqrt(held.max()))
    top = fedhh.simulate(replace(SMALL, pruning="top-eta"), population, seed=0)
    assert (top.layers["num_kept"] <= 20).all()


def test_cohorts_are_disjoint_and_a_second_pass_leaves_out_what_was_found():
    population = small_population(CLIENTS)
    result = fedhh.simulate(replace(SMALL, passes=2, central_epsilon=8.0), population, seed=0)
    plan = result.protocol.plan
    assert plan.most_rounds_per_client == 1
    ends = [(each.start, each.start + each.size) for each in
            (x.cohort for x in plan.layers)]  # fmt: skip
    assert all(one[1] == other[0] for one, other in itertools.pairwise(ends))
    assert not result.discoveries["word"].duplicated().any()
    assert set(result.discoveries["pass"]) == {1, 2}


def test_a_configuration_runs_it_and_comes_back():
    config = load_config(settings=[
        "protocol.name=secagg-triehh", "protocol.max_dropout=0.1", "protocol.noise=skellam",
        "protocol.depth=5", "privacy.delta=1e-6", "population.clients=20_000",
    ])  # fmt: skip
    resolved, protocol = settle(config, 20_000)
    assert isinstance(protocol, SecAggTrieHH)
    assert isinstance(protocol.plan, SecureSums)
    assert resolved.protocol.noise_std == protocol.noise_std
    assert settle(resolved, 20_000)[1] == protocol


@pytest.mark.slow("::test_a_layer_that_lacks_more_shares_than_allowed_is_not_published")
def test_a_run_that_lacks_shares_ends_with_its_line_and_no_result(tmp_path):
    settings = [
        "protocol.name=secagg-triehh", "protocol.max_items=2", "protocol.depth=9",
        "protocol.max_dropout=0.1", "protocol.dropout=0.1", "population.clients=3_000",
        "execution.workers=0",
    ]  # fmt: skip
    with pytest.raises(RunFailedError, match=r"clients dropped out, and max_dropout=0\.1 allows"):
        fedhh.run("small", out=tmp_path / "failed", settings=settings)
    assert not (tmp_path / "failed" / "result.json").exists()
    out = fedhh.run("small", out=tmp_path / "run", settings=[*settings, "protocol.dropout=0.02"])
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    best = [
        each for each in result["privacy"]["guarantees"]
        if (each["trust"], each["unit"], each["best"]) == ("central", "item", True)
    ]  # fmt: skip
    before, realised = sorted(best, key=lambda each: each["realised"])
    assert realised["epsilon"] < before["epsilon"] <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"dropout": 0.2, "max_dropout": 0.1},
            r"dropout <= max_dropout=0\.1, .* got dropout=0\.2; set max_dropout >= 0\.2",
        ),
        ({"max_dropout": 1.0}, r"0 <= max_dropout < 1, got max_dropout=1\.0"),
        ({"modulus": 1}, "modulus"),
        ({"noise_std": 0.0}, "noise_std"),
        ({"noise": "gaussian"}, "Unknown noise 'gaussian'"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"modulus": 500},
            r'modulus >= 1,\d+ for sums of 500 votes .* got modulus=500, .* set modulus="auto", '
            r"or clients_per_layer <= \d+",
        ),
        ({"modulus": 16}, r'modulus >= .* set modulus="auto"\.'),
        ({"central_epsilon": 1e-6}, r"an epsilon of at least .* got 1e-06; ask for more"),
        ({"clients_per_layer": 2_000}, r"clients_per_layer <= \d+"),
        ({"passes": 100, "depth": 100}, "The population has 3,000 clients, fewer than"),
    ],
)
def test_what_does_not_fit_the_population_is_refused_before_anything_runs(change, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change).settle(num_clients=CLIENTS, seed=0)


def test_a_query_with_less_noise_or_another_modulus_is_refused():
    settled = SMALL.settle(num_clients=CLIENTS, seed=0)
    question = settled.next_question(settled.initialize())
    settled.plan.check_question(question)
    with pytest.raises(InputError, match="as planned, got Disc"):
        settled.plan.check_question(sending(question, noise=noise_of("discrete-laplace", 0.1)))
    with pytest.raises(InputError, match="as planned, got 8"):
        settled.plan.check_question(sending(question, modulus=8))


@pytest.mark.parametrize("name", NOISES)
def test_an_audit_of_votes_refutes_half_the_noise(name):
    protocol = replace(SMALL, noise=name, delta=1e-3)
    settled = protocol.settle(num_clients=CLIENTS, seed=0)
    claimed = settled.plan.epsilon("item", 1e-3)
    question = settled.next_question(settled.initialize())
    # Words that no client holds, so that every candidate is one draw of the noise.
    pairs = itertools.product(LETTERS, repeat=3)
    codes = settled.symbols.encode(["".join(each) for each in pairs], width=7)
    names = replace(
        question.names, trie=PrefixTrie.empty(7), finished=np.repeat(codes, 300, axis=0)
    )
    question = sending(replace(question, names=names), num_candidates=names.num_candidates)
    worker = ClientWorker(small_population(CLIENTS, num_words=40), seed=0)

    def audited(std: float) -> float:
        asked = sending(question, noise=noise_of(name, std))
        sums = asked.votes(answered(worker, asked).aggregate)
        sums = sums[np.abs(sums) < 40]
        # Of two candidates, a client holds the first, or the second.
        noise = sums[: len(sums) // 4 * 4].reshape(2, 2, -1)
        shown = []
        for (first, second), (one, other) in zip(noise, ((1, 0), (0, 1)), strict=True):
            if name == "skellam":
                shown.append((first + one - second - other).astype(np.float64))
            else:
                shown.append(1.0 * (first + one >= 1) + (second + other <= 0))
        claim = EpsilonDelta(epsilon=claimed, delta=1e-3)
        return audit(shown[0], shown[1], claim, confidence=1 - 1e-6).at_least

    assert 0.3 < audited(settled.noise_std) <= claimed
    assert audited(settled.noise_std / 2) > claimed


def test_a_run_can_be_audited():
    protocol = SecAggTrieHH(alphabet=LETTERS, depth=3, eta_max=6, max_items=2, delta=1e-6)
    found = audit_run(
        protocol, small_population(400), num_runs=8, delta=1e-3, confidence=0.9, seed=2
    )
    (claimed,) = {each.epsilon for each in found.claims if each.best}
    assert found.found.at_least <= claimed <= 1
