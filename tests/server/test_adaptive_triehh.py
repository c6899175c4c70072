"""Adaptive TrieHH: its cohorts, its plan, and what it makes of the votes of several layers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fedhh
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import make_pure_oracle
from fedhh.protocol import Answers
from fedhh.server.adaptive.adaptive_triehh import AdaptiveState, AdaptiveTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Broadcast, InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.testing.protocol_trial import run_rounds
from fedhh.validation import InputError
from fedhh.words.alphabet import END
from fedhh.words.known_words import named_list
from tests.every import every
from tests.thinned import thinned

SMALL = {"alphabet": LETTERS, "depth": 6, "eta_max": 25, "max_items": 4, "local_epsilon": 6.0}
FULL = AdaptiveTrieHH(**SMALL)


@pytest.fixture(scope="module")
def clients():
    return small_population(4_000)


def run(protocol, population, seed=0):
    """Return the settled protocol, and its finished rounds."""
    settled = protocol.settle(num_clients=population.num_clients, seed=seed)
    settled.check_population(population.num_clients)
    executor = InProcessExecutor(ClientWorker(population, seed=seed))
    return settled, list(rounds(settled, executor))


def sizes_of(protocol, num_clients=100_000):
    settled = protocol.settle(num_clients=num_clients, seed=0)
    return [layer.num_clients for layer in settled.plan.layers]


@every("clients_per_layer", ["auto", 777, 1_000])
@every("depth", [8, 15])
def test_front_loaded_cohorts_shrink_and_add_up_to_the_flat_ones(depth, clients_per_layer):
    loaded = AdaptiveTrieHH(
        depth=depth, clients_per_layer=clients_per_layer, eta_max=1_000, least_cohort=1
    )
    flat = replace(loaded, front_loaded=False)
    *sizes, validation = sizes_of(loaded)
    *flat_sizes, flat_validation = sizes_of(flat)
    assert sum(sizes) == sum(flat_sizes)
    assert max(flat_sizes) - min(flat_sizes) <= 1
    assert validation == flat_validation
    # As many up to rounding in the first layers, a quarter of one part in the last.
    assert all(a >= b - 1 for a, b in pairwise(sizes))
    assert sizes[0] > 1.1 * flat_sizes[0]
    if depth == 15:
        assert sizes[0] / sizes[-1] == pytest.approx(8, rel=0.01)
    if clients_per_layer == "auto":
        assert 100_000 - depth <= sum(sizes) + validation <= 100_000
        assert validation == pytest.approx(10_000, abs=depth)
    else:
        # N says what is asked in all, however many layers are free.
        assert sum(sizes) == clients_per_layer * depth


def test_no_client_is_asked_twice_and_all_that_are_planned_are_asked(clients):
    settled, done = run(replace(FULL, depth=15, local_epsilon=8.0), clients)
    cohorts = [each.question.cohort for each in done]
    planned = [layer.num_clients for layer in settled.plan.layers]
    assert [c.size for c in cohorts] == planned
    assert [c.start for c in cohorts] == np.cumsum([0, *planned[:-1]]).tolist()
    assert all(c.redraw is None for c in cohorts)
    assert sum(planned) <= clients.num_clients
    assert (done[-1].question.pass_index, done[-1].question.layer) == (0, 16)


def test_found_words_are_asked_about_in_all_later_layers(clients):
    _, done = run(FULL, clients)
    first = done[0].question.layer
    carried = 0
    for before, after in pairwise(done):
        state, question = before.state, after.question
        assert isinstance(state.own, AdaptiveState)
        assert np.array_equal(
            question.names.finished[:, : state.found.codes.shape[1]], state.found.codes
        )
        assert question.domain_size == question.names.num_extensions + len(state.found.codes) + 1
        assert len(state.own.evidence.votes) == len(state.found.codes)
        carried = max(carried, len(state.found.codes))
    assert carried > 5
    # Words of later layers have been asked about fewer times, and none by the layer it ended in.
    last = done[-2].state
    for layer, reports in zip(last.found.layer, last.own.evidence.num_reports, strict=True):
        asked = [s.num_reports for s in last.history if s.layer > layer >= first]
        assert reports == sum(asked)
    # Where nothing is validated, nothing is asked about again.
    _, silent = run(replace(FULL, false_discovery_rate=0.0), clients)
    assert all(len(each.question.names.finished) == 0 for each in silent[1:])


@pytest.mark.parametrize(
    "more", [{"participation": "every-round"}, {"participation": "epochs", "epochs": 2}]
)
def test_where_clients_answer_again_the_validation_round_alone_validates(clients, more):
    settled, done = run(replace(FULL, max_items=1, local_epsilon=8.0, **more), clients)
    *layers, validation = settled.plan.layers
    each_round = [1_000] * 4 + [1_333] * 3 if "epochs" in more else [4_000] * 7
    assert [each.num_clients for each in (*layers, validation)] == each_round
    assert settled.least_cohort == 1
    assert all(len(each.question.names.finished) == 0 for each in done[1:-1])
    kept_by = [each.kept_by for each in done[-1].state.history]
    assert kept_by == ["posterior"] * (len(done) - 1) + ["validation"]
    words = settled.discoveries(done[-1].state).words
    held = set(clients.lexicon.words)
    assert len(words) > 10
    assert sum(word in held for word in words) >= len(words) - 1


def shares_said(question, population, draws=4):
    """Return the mean share of clients that say each extension, over some draws of what they do."""
    counts = np.zeros(question.names.num_extensions)
    for seed in range(1_000, 1_000 + draws):
        executor = InProcessExecutor(ClientWorker(population, seed=seed))
        answer = executor.answer(Broadcast.to_all(replace(question, counts_only=True)))
        counts += answer.aggregate.tally[: len(counts)]
    return counts / draws / question.cohort.size


def calibration(population, protocol, seeds):
    """Return the posterior of prefixes in all layers, and whether each is held often enough."""
    believed, held = [], []
    for seed in seeds:
        settled = protocol.settle(num_clients=population.num_clients, seed=seed)
        executor = InProcessExecutor(ClientWorker(population, seed=seed))
        layers = {each.layer: each for each in settled.plan.layers}
        for each in run_rounds(settled, executor):
            planned = layers[each.question.layer]
            if planned.validates:
                continue
            answers = Answers(planned=planned, question=each.question, aggregate=each.aggregate)
            posterior = settled.hear(each.before, answers).posterior
            shares = shares_said(each.question, population)
            numbers = np.arange(len(shares))
            longer = (numbers % settled.symbols.size != END) & ~np.isnan(posterior[numbers])
            believed.append(posterior[numbers[longer]])
            held.append(shares[longer] >= 0.8 * settled._least_share)
    return np.concatenate(believed), np.concatenate(held)


def test_of_prefixes_kept_at_a_posterior_as_many_are_held():
    population = small_population(4_000, words_per_client=2)
    protocol = replace(FULL, max_items=1, participation="every-round", eta_max=60)
    believed, held = calibration(population, protocol, range(2))
    sure, unlikely = believed >= 0.9, believed < 0.1
    assert min(sure.sum(), unlikely.sum()) > 50
    assert held[sure].mean() > 0.9
    assert held[unlikely].mean() < 0.1


@pytest.mark.slow("::test_of_prefixes_kept_at_a_posterior_as_many_are_held")
@pytest.mark.parametrize("local_epsilon", [6.3, 8.4])
def test_of_chat_prefixes_kept_at_a_posterior_at_least_as_many_are_held(local_epsilon):
    population = fedhh.synthetic_population("chat", 30_000, seed=3)
    protocol = AdaptiveTrieHH(
        depth=8, eta_max=500, max_items=1, local_epsilon=local_epsilon, participation="every-round"
    )
    believed, held = calibration(population, protocol, range(3))
    for low, high in ((0.0, 0.01), (0.01, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        here = (believed >= low) & (believed < high)
        assert here.sum() > 50
        expected, deviation = believed[here].mean(), np.sqrt(here.sum()) / 2 / here.sum()
        # It is rather too low than too high: at most by as much as between .3 and .6.
        assert held[here].mean() > expected - 4 * deviation
        assert held[here].mean() < 2.2 * expected + 4 * deviation


def test_words_are_estimated_by_the_validation_round_alone(clients):
    settled = FULL.settle(num_clients=clients.num_clients, seed=0)
    done = list(run_rounds(settled, InProcessExecutor(ClientWorker(clients, seed=0))))
    found, validation = settled.discoveries(done[-1].after), done[-1]
    codes = validation.question.names.finished
    row_of = {word: row for row, word in enumerate(settled.symbols.decode(codes))}
    rows = [row_of[word] for word in found.words]
    oracle = make_pure_oracle(settled.oracle_spec, validation.question.domain_size)
    expected = oracle.estimate(validation.aggregate.tally[rows], validation.aggregate.num_reports)
    assert len(found) > 5
    assert found.estimate == pytest.approx(expected)
    assert (found.num_clients == validation.question.cohort.size).all()
    assert (found.interval_z >= 1.9599).all()


def test_the_votes_of_a_found_word_are_counted_from_every_later_tally(clients):
    settled = FULL.settle(num_clients=clients.num_clients, seed=0)
    done = list(run_rounds(settled, InProcessExecutor(ClientWorker(clients, seed=0))))
    votes: dict[bytes, int] = {}
    for each in done[:-1]:
        asked = {word.tobytes(): 0 for word in each.before.found.codes}
        first = each.question.domain_size - 1 - len(asked)
        votes |= {word: votes.get(word, 0) for word in asked}
        for number, word in enumerate(asked, start=first):
            votes[word] += int(each.aggregate.tally[number])
    last = done[-2].after
    counted = [votes.get(word.tobytes(), 0) for word in last.found.codes]
    assert last.own.evidence.votes.tolist() == counted
    assert sum(count > 0 for count in counted) > 10
    # The validation round's votes come on top, and decide with them.
    answers, size = done[-1].aggregate, done[-1].question.domain_size
    in_all = np.array(counted) + answers.tally[: len(counted)]
    by_chance = (
        last.own.evidence.expected
        + answers.num_reports * make_pure_oracle(settled.oracle_spec, size).q
    )
    row_of = {word.tobytes(): row for row, word in enumerate(last.found.codes)}
    returned = [row_of[word.tobytes()] for word in done[-1].after.found.codes]
    assert len(returned) > 5
    assert (in_all[returned] > by_chance[returned] + 1).all()


def test_frequent_words_are_found_where_eta_limits_too():
    many = small_population(30_000, num_words=300, words_per_client=2)
    frequent = np.argsort(-many.word_counts().typed)[:8]
    none = named_list("none")
    crowded = replace(FULL, eta_max=50, max_items=2, local_epsilon=8.0, known_words=none)
    settled, done = run(crowded, many)
    words = set(settled.discoveries(done[-1].state).words)
    assert {many.lexicon.words[word] for word in frequent} <= words


@pytest.mark.slow("::test_frequent_words_are_found_where_eta_limits_too")
def test_frequent_words_are_found_where_eta_limits_and_clients_are_many():
    # Two words of a client are drawn by a Zipf law: the first of them has hundreds of limits.
    many = small_population(100_000, num_words=1_000, words_per_client=2)
    frequent = np.argsort(-many.word_counts().typed)[:25]
    none = named_list("none")
    crowded = replace(FULL, eta_max=150, max_items=2, local_epsilon=8.0, known_words=none)
    settled, done = run(crowded, many)
    words = set(settled.discoveries(done[-1].state).words)
    assert {many.lexicon.words[word] for word in frequent} <= words


def test_words_take_no_prefixs_place(clients):
    _, done = run(replace(FULL, front_loaded=False, local_epsilon=8.0), clients)
    assert max(s.num_kept for s in done[-1].state.history if s.kept_by == "posterior") > 25
    assert all(each.question.names.trie.width <= 25 for each in done[1:])


@pytest.mark.parametrize("local_epsilon", [2.0, 4.0, 8.0, 12.0])
@pytest.mark.parametrize("max_items", [1, 10, 60])
def test_the_eta_rule_is_monotone_in_the_clients_and_stays_within_its_bounds(
    local_epsilon, max_items
):
    sizes = [10**k for k in range(3, 10)]
    protocol = AdaptiveTrieHH(local_epsilon=local_epsilon, max_items=max_items)
    etas = [protocol.settle(num_clients=n, seed=0).eta_max for n in sizes]
    assert etas == sorted(etas)
    assert all(1_000 <= eta <= 30_000 for eta in etas)
    # As many as the clients that are asked allow, whatever the population.
    some = replace(protocol, clients_per_layer=1_000)
    assert (
        some.settle(num_clients=10**9, seed=0).eta_max
        == some.settle(num_clients=16_700, seed=0).eta_max
    )
    # Between its bounds, 15 % of B over the share that is 2.5 deviations of its noise.
    if (local_epsilon, max_items) == (8.0, 60):
        settled = protocol.settle(num_clients=10**6, seed=0)
        oracle = make_pure_oracle(settled.oracle_spec, 100_000)
        deviation = (float(oracle.variance(0, 1)) * 60 / 10**6) ** 0.5
        assert settled.eta_max == round(0.15 * 60 / (2.5 * deviation))
        assert 1_000 < settled.eta_max < 30_000
    settled = protocol.settle(num_clients=10**6, seed=0)
    assert settled.settle(num_clients=10**6, seed=0) == settled


@pytest.mark.parametrize(
    "change",
    thinned(
        [
            {},
            {"alphabet": "ab", "eta_max": 3},
            {"alphabet": "ab", "eta_max": 1, "skip_free_layers": False},
            {"alphabet": "a", "eta_max": 2},
            {"front_loaded": False, "eta_max": 2},
            {"alphabet": "ab", "eta_max": 5, "depth": 9},
            {"false_discovery_rate": 0.0, "eta_max": 4, "alphabet": "abc"},
        ],
        keep=2,
    ),
)
def test_domains_lie_between_the_planned_ones(clients, change):
    protocol = replace(FULL, **{"local_epsilon": 4.0, **change})
    for seed in range(3):
        settled, done = run(protocol, clients, seed)
        planned = {(each.pass_index, each.layer): each for each in settled.plan.layers}
        for each in done:
            layer = planned[each.question.pass_index, each.question.layer]
            size = each.question.domain_size
            assert layer.smallest_domain <= size <= layer.largest_domain
            assert each.question.cohort.size >= layer.num_clients
    # No layer is planned wider than eta_max prefixes and all words found so far.
    size = settled.symbols.size
    largest = max(each.largest_domain for each in settled.plan.layers[:-1])
    first = settled.plan.layers[0].largest_domain
    widest = max(settled.eta_max * size, first)
    widest += settled.depth * (settled.eta_max + first)
    assert largest <= widest


@every(
    ("change", "message"),
    [
        ({"eta_max": "aut"}, 'an integer .*eta_max.* or "auto", got'),
        ({"false_discovery_rate": 1.0}, "0 <= false_discovery_rate < 1, got"),
        ({"false_discovery_rate": float("nan")}, "got false_discovery_rate=nan"),
        ({"validation_share": 0.0}, "0 < validation_share < 1, got validation_share=0.0"),
        ({"validation_share": 1.5}, "got validation_share=1.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(change, message):
    with pytest.raises(InputError, match=message) as refused:
        replace(FULL, **change)
    assert "\n" not in str(refused.value)


def test_too_few_clients_for_the_layers_are_refused_with_their_number():
    protocol = AdaptiveTrieHH(depth=15, eta_max=1_000, skip_free_layers=False)
    with pytest.raises(InputError, match=r"at least 60 clients for 15 layers .* got 45; .*<= 3"):
        replace(protocol, least_cohort=4).settle(num_clients=66, seed=0)
    assert sizes_of(protocol, num_clients=17) == [1] * 16
    flat = replace(protocol, front_loaded=False)
    assert sizes_of(flat, num_clients=17) == [1] * 16
    with pytest.raises(
        InputError, match="16 clients, without the validation round's part fewer than the 15"
    ):
        flat.settle(num_clients=16, seed=0)


def test_without_a_validation_round_likely_words_are_returned(clients):
    settled, done = run(replace(FULL, false_discovery_rate=0.0, local_epsilon=8.0), clients)
    words = settled.discoveries(done[-1].state).words
    assert all(s.kept_by == "posterior" for s in done[-1].state.history)
    assert len(words) > 10
    held = set(clients.lexicon.words)
    assert sum(word in held for word in words) > 0.7 * len(words)
    assert np.isnan(settled.discoveries(done[-1].state).interval_z).all()
