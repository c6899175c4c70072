"""Protocols whose clients trust an aggregator: what they ask, publish and state."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chisquare, norm

import fedhh
from fedhh.accounting.noisy_histogram import histogram_release
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config.built_in import preset_text
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.experiments.run.run import run_config
from fedhh.questions.question import Aggregate
from fedhh.server.tee_histogram import publish
from fedhh.testing import LETTERS, small_population
from fedhh.testing.checks import holdings
from fedhh.validation import InputError
from tests.accounting.releases_enumerated import laplace_cdf
from tests.asked_clients import Recording, answered
from tests.every import every
from tests.thinned import thinned

ALPHA = 1e-9
SHARED = {"alphabet": LETTERS, "length": 6, "central_epsilon": 4.0, "delta": 1e-4}
PROTOCOLS = {
    "tee-histogram": fedhh.TeeHistogram(**SHARED, max_items=3),
    "weighted-gaussian": fedhh.WeightedGaussianSelection(**SHARED, max_items=3),
    "dp-sips": fedhh.DpSips(**SHARED, max_items=3),
    "sample-and-threshold": fedhh.SampleAndThreshold(**SHARED, max_items=3, sample_rate=0.2),
}


def asked(protocol, population, seed=1):
    """Return the first question of a run, and its answer."""
    settled = protocol.settle(num_clients=population.num_clients, seed=seed)
    question = settled.next_question(settled.initialize())
    worker = ClientWorker(population, seed=seed)
    return settled, question, answered(worker, question).aggregate


def two_words(num_clients: int):
    """Return clients of which all hold a, and every second b, too."""
    second = np.arange(0, num_clients, 2)
    return fedhh.Clients.from_rows(
        name="one word or two",
        lexicon=small_population(10).lexicon.__class__(words=["a", "b"]),
        clients=np.concatenate([np.arange(num_clients), second]),
        word_ids=np.concatenate([np.zeros(num_clients, int), np.ones(len(second), int)]),
        counts=np.ones(num_clients + len(second), dtype=int),
        num_clients=num_clients,
    )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_held_words_with_most_holders_are_found_and_no_others(name):
    population = small_population(3_000)
    result = fedhh.simulate(PROTOCOLS[name], population, seed=0)
    found = result.discoveries
    assert len(found) > 3
    assert result.metrics.precision == 1.0
    top = population.lexicon.words[int(np.argmax(population.word_counts().holders))]
    assert top in set(found["word"])
    assert found["pass"].eq(1).all()


@pytest.mark.parametrize("name", ["tee-histogram", "sample-and-threshold"])
def test_estimates_are_of_contributors_and_within_their_errors(name):
    population = two_words(4_000)
    result = fedhh.simulate(replace(PROTOCOLS[name], max_items=2), population, seed=0)
    found = result.discoveries.set_index("word")
    assert list(found.index) == ["a", "b"]
    for word, contributors in (("a", 4_000), ("b", 2_000)):
        row = found.loc[word]
        assert abs(row["estimated_clients"] - contributors) < 6 * row["std_error"]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_z_says_how_often_noise_alone_is_below_a_noisy_count(noise):
    protocol = fedhh.TeeHistogram(
        alphabet=LETTERS, length=6, central_epsilon=1.0, delta=0.05, max_items=2, noise=noise
    )
    found = fedhh.simulate(protocol, two_words(60), seed=0).discoveries
    scale = protocol.settle(num_clients=60, seed=0).release.scale
    noisy = found["estimated_clients"].to_numpy()
    above = laplace_cdf(-noisy, scale) if noise == "laplace" else norm.sf(noisy, scale=scale)
    assert len(found) == 2
    np.testing.assert_allclose(norm.sf(found["z"]), above, rtol=1e-6)


def merged(question, messages):
    return question.channel.one_row_each(question.names, messages)


def test_weights_are_one_over_the_root_of_a_clients_words():
    _, question, aggregate = asked(PROTOCOLS["weighted-gaussian"], two_words(1_000))
    rows = {(row[0], row[-2]): row[-1] for row in merged(question, aggregate.messages).tolist()}
    a, b = 1, 2
    assert rows == {(a, 1): 500, (a, 2): 500, (b, 2): 500}
    result = fedhh.simulate(PROTOCOLS["weighted-gaussian"], two_words(4_000), seed=0)
    found = result.discoveries.set_index("word")
    for word, weight in (("a", 2_000 + 2_000 / math.sqrt(2)), ("b", 2_000 / math.sqrt(2))):
        assert abs(found.loc[word, "estimated_clients"] - weight) < 6 * found.loc[word, "std_error"]


def test_later_rounds_leave_out_what_was_found():
    population = small_population(3_000)
    protocol = PROTOCOLS["dp-sips"].settle(num_clients=3_000, seed=4)
    state = protocol.initialize()
    asked_in = []
    while (question := protocol.next_question(state)) is not None:
        clients = Recording(population)
        answer = answered(ClientWorker(clients, seed=4), question)
        before = set(protocol.discoveries(state).words)
        sent = protocol.symbols.decode(answer.aggregate.messages[:, :6].astype(np.uint16))
        assert before.isdisjoint(sent)
        assert len(clients.asked) == 3_000
        state = protocol.finish_round(state, question, answer.aggregate)
        asked_in.append(len(before))
    assert asked_in[0] == 0 < asked_in[-1]
    assert len(state.history) == 3


def test_each_word_of_a_client_is_sent_with_the_rate_of_the_sample():
    protocol = replace(PROTOCOLS["sample-and-threshold"], sample_rate=0.3)
    sent: Counter[int] = Counter()
    population = two_words(2_000)
    for seed in range(20):
        _, _, aggregate = asked(protocol, population, seed=seed)
        for row in aggregate.messages.tolist():
            sent[row[0]] += row[-1]
    for word, holders in ((1, 40_000), (2, 20_000)):
        tail = min(binom.cdf(sent[word], holders, 0.3), binom.sf(sent[word] - 1, holders, 0.3))
        assert tail > ALPHA
        assert binom.cdf(sent[word], holders, 0.33) < ALPHA
    # Every report slot counts, sent or not: how many words a client holds shows nowhere.
    assert aggregate.num_reports == 2_000 * 3


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("min_contributors", [0, 5])
def test_what_is_published_has_the_stated_distribution(noise, min_contributors):
    release = histogram_release(
        epsilon=1.0, delta=0.05, max_items=1, noise=noise, min_contributors=min_contributors
    )
    count = 9
    noisy, is_published = publish(release, np.full(60_000, count), rng=np.random.default_rng(5))
    noisy = noisy[is_published]
    expected = 60_000 * release.release_chance(count)
    spread = math.sqrt(expected * (1 - expected / 60_000) + 1)
    assert abs(len(noisy) - expected) < 7 * spread

    def p_value(of_scale: float) -> float:
        start = count - 1.5 * release.scale if min_contributors else release.threshold
        edges = np.linspace(start, count + 3 * release.scale, 20)
        if noise == "laplace":
            below = laplace_cdf(edges - count, of_scale)
        else:
            from scipy.special import ndtr

            below = ndtr((edges - count) / of_scale)
        chances = np.diff(below) / (below[-1] - below[0])
        observed = np.histogram(noisy, edges)[0]
        return float(chisquare(observed, chances * observed.sum()).pvalue)

    assert p_value(release.scale) > ALPHA
    assert p_value(0.8 * release.scale) < ALPHA
    assert p_value(1.25 * release.scale) < ALPHA


@pytest.mark.parametrize("name", PROTOCOLS)
def test_no_query_lets_who_reads_it_compute_the_noise(name):
    protocol = replace(PROTOCOLS[name], length=30).settle(num_clients=3_000, seed=77)
    assert protocol.noise_seed == 77
    question = protocol.next_question(protocol.initialize())
    told = {int(value) for _, value in holdings(question, "question") if isinstance(value, int)}
    assert question.names.keys.point in told
    assert 77 not in told
    planned = protocol.plan.layers[0]
    drawn = protocol.noise_of(planned.layer).normal(size=100)
    assert (protocol.noise_of(planned.layer).normal(size=100) == drawn).all()
    for value in told:
        guess = replace(protocol, noise_seed=value).noise_of(planned.layer).normal(size=100)
        assert (guess != drawn).all()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_guarantee_is_the_plans_and_holds_before_the_run(name):
    population = small_population(3_000)
    result = fedhh.simulate(PROTOCOLS[name], population, seed=0, delta=1e-4)
    planned = privacy_of_run(result.protocol, num_clients=3_000, delta=1e-4)
    assert result.privacy.guarantees == planned.guarantees
    user = planned.before_run("user")
    assert user.epsilon <= 4.0
    assert (user.delta, user.neighboring, user.unit) == (1e-4, "replace-one", "user")
    assert "fedhh.accounting." in user.theorem
    assert planned.before_run("item").epsilon <= user.epsilon
    for unit in ("item", "user"):
        assert planned.best(unit, "local").epsilon == math.inf


@pytest.mark.parametrize("name", PROTOCOLS)
def test_k_is_the_most_contributors_that_are_rarely_published(name):
    protocol = PROTOCOLS[name].settle(num_clients=3_000, seed=0)
    plan = protocol.plan
    (claim,) = privacy_of_run(protocol, num_clients=3_000, delta=1e-4, alpha=0.9).anonymity
    assert plan.release_chance(claim.k) == claim.probability <= 0.1
    assert plan.release_chance(claim.k + 1) > 0.1
    assert plan.release_chance(0) == 0


def test_a_minimum_of_contributors_is_a_certain_k():
    protocol = fedhh.TeeHistogram(**SHARED, min_contributors=20)
    settled = protocol.settle(num_clients=3_000, seed=0)
    (claim,) = privacy_of_run(settled, num_clients=3_000, alpha=1 - 1e-12).anonymity
    assert (claim.k, claim.probability) == (19, 0.0)
    result = fedhh.simulate(protocol, small_population(3_000), seed=0)
    assert result.discoveries["true_clients"].min() >= 20


def test_a_run_without_a_word_says_how_many_contributors_one_needs():
    from fedhh.experiments.run.sentences import sentence

    result = fedhh.simulate(
        fedhh.TeeHistogram(alphabet=LETTERS, central_epsilon=0.01), small_population(500), seed=0
    )
    assert not len(result.discoveries)
    text = sentence(result)
    assert "A word is published in half of all cases from 4,607 contributors on" in text


@every(
    ("name", "changes", "message"),
    [
        ("tee-histogram", {"central_epsilon": 0.0}, "1e-06 <= central_epsilon"),
        ("tee-histogram", {"noise": "uniform"}, "Unknown noise 'uniform'"),
        ("tee-histogram", {"min_contributors": -1}, "min_contributors"),
        (
            "tee-histogram",
            {"min_contributors": 5, "central_epsilon": 1e-6, "max_items": 1_000},
            "larger epsilon or delta of one contributor",
        ),
        ("weighted-gaussian", {"delta": 0.0}, "0 < delta"),
        ("dp-sips", {"num_rounds": 0}, "num_rounds"),
        ("dp-sips", {"max_items": 0}, "max_items >= 1"),
        ("sample-and-threshold", {"sample_rate": 1.0}, "0 < sample_rate < 1"),
        (
            "sample-and-threshold",
            {"sample_rate": "auto", "threshold": 5},
            'threshold="auto" with sample_rate="auto"',
        ),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(name, changes, message):
    with pytest.raises(InputError, match=message):
        replace(PROTOCOLS[name], **changes)


def test_a_sample_too_large_for_the_privacy_is_refused_with_the_largest():
    protocol = replace(PROTOCOLS["sample-and-threshold"], sample_rate=0.999, central_epsilon=0.1)
    with pytest.raises(InputError, match=r"Expected sample_rate <= 0\.\d+, the largest with"):
        protocol.settle(num_clients=3_000, seed=0)


def test_a_threshold_too_low_for_any_epsilon_states_none():
    protocol = replace(PROTOCOLS["sample-and-threshold"], sample_rate=0.5, threshold=2)
    report = privacy_of_run(protocol.settle(num_clients=3_000, seed=0), num_clients=3_000)
    assert "no epsilon is proven at delta=0.0001" in str(report.before_run("user").epsilon)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_answers_of_another_query_and_too_few_clients_are_refused(name):
    protocol = PROTOCOLS[name].settle(num_clients=3_000, seed=0)
    question = protocol.next_question(protocol.initialize())
    size = question.channel.message_size(question.names)
    with pytest.raises(ValueError, match=f"messages of {size} numbers, got None"):
        protocol.finish_round(protocol.initialize(), question, Aggregate.empty(0))
    with pytest.raises(InputError, match="clients_per_layer <= 2,999"):
        protocol.check_population(2_999)


def test_rows_about_one_word_are_added_up_in_any_order():
    _, question, aggregate = asked(PROTOCOLS["dp-sips"], small_population(3_000))
    rows = aggregate.messages
    twice = np.concatenate([rows[::-1], rows])
    both = merged(question, twice)
    assert (both[:, :-1] == merged(question, rows)[:, :-1]).all()
    assert (both[:, -1] == 2 * merged(question, rows)[:, -1]).all()
    kinds = {tuple(row) for row in both[:, :-1].tolist()}
    assert len(kinds) == len(both)
    assert merged(question, rows[:0]).shape == (0, question.channel.message_size(question.names))


@pytest.mark.parametrize("name", thinned(PROTOCOLS))
def test_a_config_runs_by_name_and_the_same_seed_gives_the_same_words(name):
    table = {
        "population": {"source": "chat", "clients": 1_500},
        "protocol": {"name": name, "central_epsilon": 8.0, "max_items": 2},
        "privacy": {"delta": 1e-3},
        "execution": {"workers": 0},
    }
    if name == "sample-and-threshold":
        table["protocol"]["sample_rate"] = 0.2
    config = parse_config(table, "test")
    population = fedhh.synthetic_population("chat", 1_500, seed=0)
    results = [run_config(config, population)[1] for _ in range(2)]
    assert results[0].discoveries.equals(results[1].discoveries)
    assert len(results[0].discoveries)
    user = results[0].privacy.before_run("user")
    assert user.epsilon <= 8.0
    assert user.delta == 1e-3
    other = run_config(config.model_copy(update={"seed": 1}), population)[1]
    assert not other.discoveries.equals(results[0].discoveries)


def test_the_preset_has_the_published_bound():
    config = parse_config(tomllib.loads(preset_text("gboard-today")), "gboard-today")
    protocol = build_protocol(config).settle(num_clients=15_000_000, seed=0)
    assert round(protocol.release.threshold, 2) == 34.53
    user = privacy_of_run(protocol, num_clients=15_000_000, delta=1e-8).before_run("user")
    assert (user.epsilon, user.delta) == (1.0987, 1e-8)
