from __future__ import annotations

import math
import string
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.questions.question import Aggregate
from fedhh.server.blender import Blender
from fedhh.testing import LETTERS
from fedhh.testing.checks import holdings
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import Recording, answered
from tests.zipf_words import final_state, six_letter_words

SMALL = Blender(
    alphabet=LETTERS,
    clients_per_layer=6_000,
    opt_in_share=0.5,
    opt_in_epsilon=2.0,
    delta=1e-6,
    length=6,
    max_items=4,
)


def words_held(population: Clients, rows, longest: int) -> Counter[str]:
    words = [population.lexicon.words[word] for word in rows.word_ids]
    return Counter(word for word in words if len(word) <= longest)


def test_groups_are_disjoint_and_cover_the_cohort():
    head, opt_in, clients = SMALL.groups
    assert (head, opt_in, clients) == (1_500, 1_500, 3_000)
    cohorts = [each.cohort for each in SMALL.plan.layers]
    assert [(each.start, each.size) for each in cohorts] == [
        (0, 1_500), (1_500, 1_500), (3_000, 3_000)
    ]  # fmt: skip
    assert SMALL.plan.most_answers == 6_000


def test_plain_words_are_the_histogram_of_what_clients_hold(population):
    question = replace(SMALL, head_items=100, length=5).next_question(SMALL.initialize())
    clients = Recording(population)
    answer = answered(ClientWorker(clients, seed=1), question)
    expected = words_held(population, population.block(clients.asked), 5)
    messages = answer.aggregate.messages
    got: Counter[str] = Counter()
    for word, count in zip(
        SMALL.symbols.decode(messages[:, :-1].astype(np.uint16)), messages[:, -1], strict=True
    ):
        got[word] += int(count)
    assert got == expected
    assert max(map(len, got)) == 5 < max(map(len, population.lexicon.words))
    assert answer.aggregate.num_reports == 1_500 * 100
    assert answer.diagnostics.num_dummies == 1_500 * 100 - sum(expected.values())


def test_a_client_contributes_no_more_words_than_asked_for():
    population = Clients.from_rows(
        name="two words each",
        lexicon=Lexicon(words=["a", "b"]),
        clients=np.repeat(np.arange(500), 2),
        word_ids=np.tile([0, 1], 500),
        counts=np.tile([1, 3], 500),
        num_clients=500,
    )
    protocol = replace(SMALL, clients_per_layer=500, head_items=1)
    for sampler, expected in (("greedy", {2: 125}), ("random", None)):
        question = replace(protocol, sampler=sampler).next_question(protocol.initialize())
        messages = answered(ClientWorker(population, seed=0), question, range(1)).aggregate.messages
        counts = {int(row[0]): int(row[-1]) for row in messages}
        assert sum(counts.values()) == 125
        if expected is None:
            # By distinct words, not by typing.
            assert 40 < counts[1] < 85
        else:
            assert counts == expected


def test_without_noise_the_list_is_what_enough_clients_hold(population):
    protocol = replace(SMALL, opt_in_epsilon=100.0, head_items=100, max_words=10_000)
    question = protocol.next_question(protocol.initialize())
    clients = Recording(population)
    answer = answered(ClientWorker(clients, seed=1), question)
    state = protocol.finish_round(protocol.initialize(), question, answer.aggregate)
    expected = words_held(population, population.block(clients.asked), 6)
    listed = protocol.symbols.decode(state.own.head)
    slack = 12 * protocol.head_scale
    assert {w for w, c in expected.items() if c > protocol.threshold + slack} <= set(listed)
    assert set(listed) <= {w for w, c in expected.items() if c > protocol.threshold - slack}
    few = replace(protocol, max_words=3)
    assert (
        few.symbols.decode(few.finish_round(few.initialize(), question, answer.aggregate).own.head)
        == listed[:3]
    )


def test_the_curators_noise_is_a_fixed_draw_of_the_seed_and_laplace():
    drawn = SMALL.noise(1, 200_000, 3.0)
    assert (drawn == SMALL.noise(1, 200_000, 3.0)).all()
    assert (drawn != SMALL.noise(2, 200_000, 3.0)).all()
    assert (drawn != replace(SMALL, noise_seed=9).noise(1, 200_000, 3.0)).all()
    assert abs(np.abs(drawn).mean() - 3.0) < 6 * 3.0 / math.sqrt(200_000)
    assert abs((np.abs(drawn) > 6.0).mean() - math.exp(-2)) < 6 * math.sqrt(0.117 / 200_000)


def test_frequent_words_are_found_none_is_invented_and_estimates_are_within_their_errors():
    population = six_letter_words(100_000, seed=0)
    protocol = Blender(alphabet=string.ascii_lowercase, max_items=1, local_epsilon=4.0)
    settled = protocol.settle(num_clients=100_000, seed=0)
    state = final_state(settled, population)
    found = settled.discoveries(state)
    ids = population.lexicon.ids(found.words)
    assert (ids >= 0).all()
    assert set(np.argsort(-population.word_counts().typed)[:8].tolist()) <= set(ids.tolist())
    expected = population.word_counts().typed[ids] * 0.95
    assert (np.abs(found.estimate - expected) < 5 * np.sqrt(found.variance)).all()
    # Each group alone says less.
    share = state.own.share * 95_000
    assert len(share) == len(found)
    assert (found.variance < np.sort(state.own.variance * 95_000**2)[::-1]).all()
    assert found.variance.max() < state.own.variance.max() * 95_000**2


def test_no_word_with_enough_holders_ends_the_run_after_the_first_round(population):
    protocol = replace(SMALL, opt_in_epsilon=0.01)
    state = final_state(protocol, population)
    assert len(state.history) == 1
    assert len(protocol.discoveries(state)) == 0
    # What the other clients would have given is in the claim all the same.
    report = privacy_of_run(protocol, state.history, num_clients=6_000)
    planned = privacy_of_run(protocol, num_clients=6_000)
    assert report.guarantees == planned.guarantees
    methods = {each.method for each in report.guarantees}
    assert {"opted in: Laplace and threshold", "others: clones, groups", "either group"} <= methods
    assert report.before_run("user").epsilon == planned.before_run("user").epsilon > 20


def test_each_group_has_its_guarantee(population):
    state = final_state(SMALL, population)
    report = privacy_of_run(SMALL, state.history, num_clients=6_000, delta=1e-6)
    named = {(g.method, g.unit, g.trust): g for g in report.guarantees}
    opted = named["opted in: Laplace and threshold", "user", "central"]
    assert (opted.epsilon, opted.delta, opted.neighboring) == (2.0, 1e-6, "replace-one")
    assert "Avent et al. (2017)" in opted.theorem
    assert "opted in" in opted.assumptions
    local = named["others: randomizer", "user", "local"]
    assert (local.epsilon, local.delta) == (8.0 * 4, 0.0)
    assert named["others: randomizer", "item", "local"].epsilon == 8.0
    assert "did not opt in" in local.assumptions
    # What holds for everybody is no better than what holds for either.
    assert report.best("user", "local").epsilon == math.inf
    central = [g for g in report.guarantees if g.trust == "central" and g.unit == "user"]
    others = min(g.epsilon for g in central if g.method.startswith("others: clones"))
    assert report.best("user", "central").epsilon == max(2.0, others) == others
    assert report.before_run("user").epsilon == others


@pytest.mark.parametrize("target", [1e-9, 1e-3])
def test_what_holds_for_both_groups_has_the_larger_of_their_deltas(population, target):
    state = final_state(SMALL, population)
    report = privacy_of_run(SMALL, state.history, num_clients=6_000, delta=target)
    assert SMALL.delta == 1e-6
    for unit in ("item", "user"):
        assert report.best(unit, "central").delta == max(1e-6, target)


def test_only_who_opted_in_is_asked_for_plain_words(population):
    state = SMALL.initialize()
    oracles = []
    for _ in range(3):
        question = SMALL.next_question(state)
        answer = answered(ClientWorker(population, seed=0), question)
        state = SMALL.finish_round(state, question, answer.aggregate)
        oracles.append((question.local_epsilon, question.cohort.start, question.pad))
    assert oracles == [(math.inf, 0, True), (math.inf, 1_500, True), (8.0, 3_000, True)]
    unpadded = replace(SMALL, pad=False)
    state, pads = unpadded.initialize(), []
    for _ in range(3):
        question = unpadded.next_question(state)
        answer = answered(ClientWorker(population, seed=0), question)
        state = unpadded.finish_round(state, question, answer.aggregate)
        pads.append(question.pad)
    # How many words a client holds is for nobody but the curator; the others chose not to hide it.
    assert pads == [True, True, False]
    assert question.channel.oracle == OracleSpec(name="grr", epsilon=8.0)


def test_no_query_lets_who_reads_it_compute_the_curators_noise(population):
    # So long that words are named by a random polynomial, which its seed must give.
    protocol = replace(SMALL, length=30, noise_seed=None).settle(num_clients=6_000, seed=77)
    assert protocol.noise_seed == 77
    question = protocol.next_question(protocol.initialize())
    assert question.names.num_keys == 2**61 - 1
    told = {int(value) for _, value in holdings(question, "question") if isinstance(value, int)}
    assert question.names.keys.point in told
    drawn = protocol.noise(1, 1_000, 1.0)
    for value in told:
        guess = replace(protocol, noise_seed=value).noise(1, 1_000, 1.0)
        assert (guess != drawn).all()
    # Who has the run's seed can compute it: that is what no question may carry.
    assert (replace(protocol, noise_seed=77).noise(1, 1_000, 1.0) == drawn).all()
    others = replace(protocol, noise_seed=78)
    assert others.next_question(others.initialize()).names.keys != question.names.keys


def test_a_word_without_votes_gets_the_variance_of_the_noise_alone():
    # Randomized response among two words and the dummy: nobody's report names the second word.
    head, opt_in, clients = SMALL.groups
    protocol = replace(SMALL, max_items=1)
    question = protocol.next_question(protocol.initialize())
    messages = np.zeros((2, 7), dtype=np.int64)
    messages[:, 0] = [1, 2]
    messages[:, -1] = 700
    state = protocol.finish_round(
        protocol.initialize(),
        question,
        Aggregate(
            tally=np.zeros(0, dtype=np.int64),
            num_reports=head,
            num_clients=head,
            messages=messages,
        ),
    )
    answers = [([700, 700, 100], opt_in), ([1_500, 0, 1_500], clients)]
    for votes, number in answers:
        question = protocol.next_question(state)
        state = protocol.finish_round(
            state,
            question,
            Aggregate(
                tally=np.array(votes, dtype=np.int64), num_reports=number, num_clients=number
            ),
        )
    oracle = make_pure_oracle(question.channel.oracle, 3)
    curated = float(state.own.variance[1])
    alone = float(oracle.variance(0, clients)) / clients**2
    blended = curated * alone / (curated + alone)
    found = protocol.discoveries(state)
    place = found.words.index(protocol.symbols.decode(state.own.head[1:])[0])
    assert math.isclose(found.variance[place], blended * clients**2)
    # Without the floor, a variance of 0 would leave the curator's estimate no weight at all.
    assert found.estimate[place] > oracle.estimate(np.array([0]), clients)[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opt_in_share": 1.0}, "0 < opt_in_share < 1"),
        ({"opt_in_epsilon": 0.0}, "1e-06 <= opt_in_epsilon"),
        ({"opt_in_epsilon": 0.01, "delta": 0.9}, "Expected a smaller delta"),
        ({"oracle": "oue"}, "Unknown oracle 'oue'"),
        ({"head_items": 0}, "head_items >= 1"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **changes)


def test_populations_and_groups_that_are_too_small_are_refused():
    with pytest.raises(InputError, match="clients_per_layer <= 5,999"):
        SMALL.check_population(5_999)
    with pytest.raises(InputError, match="at least 2 clients in each group, got 1 that find"):
        replace(SMALL, clients_per_layer="auto", opt_in_share=0.01).settle(num_clients=200, seed=0)
    validated = replace(SMALL, false_discovery_rate=0.1)
    with pytest.raises(InputError, match=r"7,000 clients.*clients_per_layer <= 5,250"):
        validated.check_population(7_000)


def test_answers_of_another_query_are_refused():
    question = SMALL.next_question(SMALL.initialize())
    with pytest.raises(ValueError, match="messages of 7 numbers, got None"):
        SMALL.finish_round(SMALL.initialize(), question, Aggregate.empty(0))
