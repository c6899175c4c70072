from __future__ import annotations

import itertools
import math
import string
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.accounting.rounds import PlannedRound
from fedhh.clients.clients import Clients, Table
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.protocol import Answers
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Aggregate
from fedhh.questions.reports import amplified
from fedhh.server.ldpminer import LdpMiner
from fedhh.server.padded_sampling import (
    oracle_of_sample,
    padded_size,
    sample_counts,
    set_sizes,
)
from fedhh.server.rappor import Rappor
from fedhh.server.svim import Svim
from fedhh.simulation.fidelity import Fidelity
from fedhh.testing.statistics import follows_distribution
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.candidates import Candidates
from fedhh.words.lexicon import Lexicon
from tests import questions_of_each_kind as ask
from tests.asked_clients import answered
from tests.every import every

WORDS = ("a", "ab", "b", "bb")
ALPHABET = Alphabet(symbols="ab")
DOMAIN = Candidates(WORDS).spelled(ALPHABET)


def population_of(sets):
    """Return clients that hold these sets of places in WORDS, each word typed once."""
    sizes = [len(held) for held in sets]
    return Clients(
        Table(
            Lexicon(words=[*WORDS, "aaab"]),
            np.r_[0, np.cumsum(sizes)],
            np.array(list(itertools.chain(*sets)), dtype=np.int32),
            np.ones(sum(sizes), dtype=np.int32),
        ),
        name="sets",
    )


def heard(question, aggregate):
    """Return the answers to a question, as a server reads them."""
    size = question.domain_size
    planned = PlannedRound(layer=1, num_clients=1, smallest_domain=size, largest_domain=size)
    return Answers(planned=planned, question=question, aggregate=aggregate)


def question_of(
    kind=ask.members, *, size, epsilon=1.0, oracle="grr", itemsets=None, many=4, **fields
):
    return kind(
        cohort=Cohort(start=0, size=size), alphabet=ALPHABET, max_items=1, words=DOMAIN,
        itemsets=np.arange(many)[:, None] if itemsets is None else itemsets,
        epsilon=epsilon, oracle_name=oracle, **fields,
    )  # fmt: skip


def drawn(question, sets):
    """Return how many clients draw each value."""
    worker = ClientWorker(population_of(sets), seed=5)
    asked = replace(question, counts_only=True)
    return answered(worker, asked).aggregate.tally


def value_distribution(held, padded, num_candidates):
    """Return the distribution of a client's value after padding and sampling."""
    if len(held) >= padded:
        return {value: 1 / len(held) for value in held}
    dummies = range(num_candidates, num_candidates + padded - len(held))
    return dict.fromkeys((*held, *dummies), 1 / padded)


@every("held", [(), (1,), (0, 2), (0, 1, 3), (0, 1, 2, 3), (2, 4)])
def test_a_client_draws_from_its_padded_set_uniformly(held):
    size = 3_000
    tally = drawn(question_of(size=size, padded_size=3), [held] * size)
    distribution = value_distribution(
        [value for value in held if value < len(WORDS)], 3, len(WORDS)
    )
    values = np.repeat(np.arange(len(tally)), tally).tolist()
    assert len(tally) == len(WORDS) + 3
    assert follows_distribution(values, distribution)
    assert not follows_distribution(values, value_distribution([0, 1], 2, len(WORDS)))


@every("padded", [1, 2, 3])
@every("epsilon", [0.5, 2.0])
def test_a_report_of_a_padded_set_has_exactly_epsilon(epsilon, padded):
    candidates = 3

    def worst_ratio(num_dummies):
        spec = OracleSpec(name="grr", epsilon=amplified(epsilon, padded))
        oracle = make_pure_oracle(spec, candidates + num_dummies)
        space = oracle.report_space()
        distributions = []
        for held in itertools.chain(*(itertools.combinations(range(3), r) for r in range(4))):
            distribution = np.zeros(len(space))
            for value, chance in value_distribution(held, padded, candidates).items():
                # With fewer dummies, those beyond are the last one.
                last = candidates + num_dummies - 1
                distribution += chance * np.exp(oracle.log_prob(space, min(value, last)))
            distributions.append(distribution)
        return max(
            math.log((one / other).max()) for one in distributions for other in distributions
        )

    assert worst_ratio(padded) == pytest.approx(epsilon, rel=1e-9)
    if padded > 1:
        assert worst_ratio(1) > epsilon * 1.1


def test_a_query_says_the_privacy_of_the_client_and_not_of_its_randomizer():
    question = question_of(size=10, padded_size=4, epsilon=1.5)
    assert question.local_epsilon == 1.5
    assert question.channel.randomizer.epsilon == pytest.approx(math.log(4 * math.expm1(1.5) + 1))
    assert question_of(size=10, padded_size=4, oracle="olh").channel.randomizer.epsilon == 1.0
    assert amplified(1000.0, 8) == pytest.approx(1000 + math.log(8))


@every("epsilon", [0.5, 1.0, 4.0])
@every("padded", [1, 2, 7])
def test_the_oracle_is_that_with_the_smaller_variance(padded, epsilon):
    for candidates in (2, 5, 20, 200, 2_000, 50_000):
        spec = OracleSpec(name="grr", epsilon=amplified(epsilon, padded))
        response = make_pure_oracle(spec, candidates + padded)
        hashing = make_pure_oracle(OracleSpec(name="oue", epsilon=epsilon), candidates + padded)
        other = "grr" if response.variance(0, 1) < hashing.variance(0, 1) else "oue"
        assert oracle_of_sample(candidates, padded, epsilon, "oue") == other


def test_sizes_of_sets_are_counted_and_noise_is_not():
    sets = [(0, 4)] * 300 + [(0, 1)] * 500 + [()] * 200
    question = question_of(ask.sizes, size=1_000)
    assert drawn(question, sets).tolist() == [200, 300, 500, 0, 0]
    oracle = question.channel.randomizer

    def sizes_of(estimates):
        tally = np.rint(1_000 * oracle.q + np.array(estimates) * (oracle.p - oracle.q))
        tally = tally.astype(np.int64)
        answers = Aggregate(tally=tally, num_reports=1_000, num_clients=1_000)
        return set_sizes(heard(question, answers))

    assert sizes_of([200, 300, 500, 0, 0]) == pytest.approx([200, 300, 500, 0, 0], abs=4)
    # What comes after all holders is noise; what goes below 0 is, too.
    assert sizes_of([200, 300, 500, -60, 60]) == pytest.approx([200, 300, 500, 0, 0], abs=4)
    assert sizes_of([200, -50, 550, 250, 0]) == pytest.approx([200, 0, 550, 250, 0], abs=4)
    # What the sum misses is shared by all sizes up to the largest.
    assert sizes_of([191, 291, 491, -5, 30]) == pytest.approx([200, 300, 500, 0, 0], abs=4)
    # A size has a standard error of 44 clients; where 100 are missing, 100 more are no noise.
    assert sizes_of([200, 300, 400, 0, 100]) == pytest.approx([200, 300, 400, 0, 100], abs=4)


def test_a_size_that_only_noise_shows_is_hardly_ever_taken_for_the_largest():
    """One in six draws misses the true sum by a standard error or more; sizes must not grow."""
    question = question_of(ask.sizes, size=2_000, epsilon=1.0, oracle="oue", many=40)
    oracle, rng = question.channel.randomizer, np.random.default_rng(6)
    held = np.array([20, 380, 800, 600, 200, *[0] * 36])
    lengths = []
    for _ in range(400):
        support = rng.binomial(held, oracle.p) + rng.binomial(2_000 - held, oracle.q)
        tally = Aggregate(tally=support, num_reports=2_000, num_clients=2_000)
        sizes = set_sizes(heard(question, tally))
        assert sizes.sum() == pytest.approx(2_000)
        assert (sizes >= 0).all()
        lengths.append(padded_size(sizes))
    assert np.mean(np.array(lengths) <= 2) < 0.02
    assert np.mean(np.array(lengths) >= 7) < 0.04


def test_padding_leaves_nine_of_ten_sets_whole():
    assert padded_size(np.array([100.0, 10, 10, 10])) == 3
    assert padded_size(np.array([100.0, 91, 9, 0])) == 1
    assert padded_size(np.array([100.0, 89, 11, 0])) == 2
    # A tenth itself is too much.
    assert padded_size(np.array([100.0, 90, 10, 0])) == 2
    assert padded_size(np.array([100.0, 0, 0])) == 1


def test_counts_are_scaled_by_the_padding_and_by_what_larger_sets_lost():
    # 900 clients hold one word, 100 hold three; with L = 1 two of three are lost.
    question = question_of(size=1_000, padded_size=1, epsilon=12.0)
    sampled = np.array([900 + 33, 34, 33, 0, 0])
    tally = np.rint(question.channel.randomizer.q * 1_000 + sampled).astype(np.int64)
    aggregate = Aggregate(tally=tally, num_reports=1_000, num_clients=1_000)
    sizes = np.array([0, 90.0, 0, 10, 0])
    plain, corrected = (sample_counts(heard(question, aggregate), each) for each in (None, sizes))
    assert plain.estimate == pytest.approx(sampled[:4], abs=0.1)
    assert corrected.estimate.sum() == pytest.approx(1_200, abs=0.5)
    assert corrected.variance == pytest.approx(plain.variance * 1.2**2, rel=1e-3)


def test_the_variance_is_that_of_sampling_and_of_the_randomizer():
    size = 500
    question = question_of(size=size, padded_size=2, epsilon=4.0)
    population = population_of([(0,)] * 300 + [()] * 200)
    estimates = []
    for seed in range(120):
        answer = answered(ClientWorker(population, seed=seed), question)
        counts = sample_counts(heard(question, answer.aggregate))
        estimates.append(counts.estimate[0])
    spread = float(counts.variance[0])
    assert np.mean(estimates) == pytest.approx(300, abs=5 * math.sqrt(spread / 120))
    # The variance of 120 draws is off by so much but once in 10^5.
    assert 0.5 < np.var(estimates) / spread < 1.6
    # Without sampling it would be off.
    assert question.channel.randomizer.variance(150, size) * 4 < spread / 3


def test_candidates_may_be_several_words_of_which_a_client_has_all():
    itemsets = np.array([[0, 1, -1], [0, 1, 2], [3, -1, -1]])
    question = question_of(ask.sizes, size=4, itemsets=itemsets)
    assert drawn(question, [(0, 1), (0, 1, 2, 3), (1, 2), (3,)]).tolist() == [1, 2, 0, 1]


@pytest.fixture(scope="module")
def sets_of_letters():
    """20,000 clients with two to four of 200 words each, by Zipf's law."""
    rng = np.random.default_rng(3)
    words = [a + b for a in string.ascii_lowercase[:20] for b in string.ascii_lowercase[:10]]
    distribution = 1 / np.arange(1, 201)
    drawn = rng.choice(200, size=(20_000, 4), p=distribution / distribution.sum())
    return Clients.from_rows(
        name="sets",
        lexicon=Lexicon(words=rng.permutation(words).tolist()),
        clients=np.repeat(np.arange(20_000), 4),
        word_ids=drawn.ravel(),
        num_clients=20_000,
    )


def test_frequent_words_are_found_and_the_report_is_about_the_client(sets_of_letters):
    population = sets_of_letters
    known = Candidates(population.lexicon.words)
    result = fedhh.simulate(Svim(candidates=known, keep=20, local_epsilon=4.0), population, seed=0)
    top = np.argsort(-population.word_counts().holders)[:8]
    held = {population.lexicon.words[i]: int(population.word_counts().holders[i]) for i in top}
    found = result.discoveries.set_index("word")
    assert len(found) == 20
    assert set(held) <= set(found.index)
    for word, clients in held.items():
        row = found.loc[word]
        # What larger sets lost is corrected in the mean over all words alone.
        assert abs(row["estimated_clients"] - clients) < 5 * row["std_error"] + 0.05 * clients
    for unit in ("item", "user"):
        best = result.privacy.best(unit, "local")
        assert best.epsilon == 4.0
        assert "padding and sampling" in best.theorem
        assert "one report" in best.assumptions


def test_a_randomizer_that_counts_its_outputs_is_asked_about_values():
    size = 4_000
    question = question_of(size=size, padded_size=1, epsilon=2.0, oracle="pgr")
    population = population_of([(0,)] * 3_000 + [(3,)] * 1_000)
    answer = answered(ClientWorker(population, seed=1), question)
    assert question.tally_size > question.domain_size
    counts = sample_counts(heard(question, answer.aggregate))
    error = counts.estimate - [3_000, 0, 0, 1_000]
    assert (np.abs(error) < 6 * np.sqrt(counts.variance)).all()


@pytest.mark.slow("::test_counts_are_scaled_by_the_padding_and_by_what_larger_sets_lost")
def test_svim_finds_more_than_ldpminer_and_counts_better(sets_of_letters):
    population = sets_of_letters
    known = {"candidates": Candidates(population.lexicon.words), "keep": 20, "local_epsilon": 4.0}
    top = np.argsort(-population.word_counts().holders)[:20]
    held = {population.lexicon.words[i]: int(population.word_counts().holders[i]) for i in top}
    most = list(held)[:3]
    hits, errors = {}, {}
    for protocol in (Svim(**known), LdpMiner(**known, padded_size=4)):
        for seed in range(3):
            *_, last = fedhh.rounds(protocol, population, seed=seed)
            found = protocol.discoveries(last.state)
            scaled = found.estimate / found.num_clients * 20_000
            counts = dict(zip(found.words, scaled, strict=True))
            name = protocol.name
            hits[name] = hits.get(name, 0) + len(set(held) & set(counts))
            error = sum(abs(counts.get(word, 0) - held[word]) / held[word] for word in most)
            errors[name] = errors.get(name, 0.0) + error
    assert hits["svim"] > hits["ldpminer"] + 5
    assert errors["svim"] < errors["ldpminer"] / 2


def test_groups_are_disjoint_shares_of_all_clients():
    settled = Svim(candidates=Candidates(WORDS), alphabet="ab").settle(num_clients=10_000, seed=0)
    assert settled.group_sizes == (4_000, 1_000, 4_999)
    assert settled.oracle == "olh"
    tiny = replace(settled, clients_per_layer=1)
    # However the shares are rounded, no group is empty.
    for first, second in ((0.4, 0.1), (0.98, 0.01), (0.01, 0.98), (0.01, 0.01), (0.6, 0.39)):
        shares = replace(tiny, candidate_share=first, size_share=second)
        assert shares.group_sizes == (1, 1, 1)
    report = privacy_of_run(
        settled,
        [settled.finish_round(settled.initialize(), question := settled.next_question(
            settled.initialize()), Aggregate(
                tally=np.ones(question.tally_size, dtype=np.int64), num_reports=4_000,
                num_clients=4_000)).history[0]],
        num_clients=10_000,
    )  # fmt: skip
    assert report.best("user", "local").epsilon == 8.0


def test_the_last_group_is_corrected_for_the_sizes_that_the_second_reported():
    # Nearly no noise; a third of the clients in each group.
    protocol = Svim(
        candidates=Candidates(WORDS), alphabet="ab", keep=3, local_epsilon=12.0,
        candidate_share=1 / 3, size_share=1 / 3, clients_per_layer=1_000, oracle="oue",
    )  # fmt: skip
    state = protocol.initialize()
    # Members, sizes from 0, members: 920 hold one word and 80 three, so that L is 1, two words of
    # each of the 80 are lost, and each report stands for 1 + 160 / 1,000.
    for truth in ([400, 300, 200, 100, 0], [0, 920, 0, 80, 0], [900, 60, 40, 0, 0]):
        question = protocol.next_question(state)
        oracle = question.channel.randomizer
        tally = np.rint(1_000 * oracle.q + np.array(truth) * (oracle.p - oracle.q))
        answers = Aggregate(tally=tally.astype(int), num_reports=1_000, num_clients=1_000)
        state = protocol.finish_round(state, question, answers)
    assert padded_size(state.own.sizes) == 1
    found = protocol.discoveries(state)
    assert found.words == [WORDS[0], WORDS[1], WORDS[2]]
    assert found.estimate == pytest.approx([1_044, 69.6, 46.4], rel=0.02)


def test_settings_that_mean_nothing_are_refused():
    known = Candidates(WORDS)
    with pytest.raises(InputError, match=r"Expected candidates for svim.*population\.candidates"):
        Svim()
    with pytest.raises(InputError, match=r"candidates that the alphabet can spell, got 0 of 4"):
        Svim(candidates=known, alphabet="xyz")
    with pytest.raises(InputError, match=r"candidate_share \+ size_share < 1"):
        Svim(candidates=known, candidate_share=0.6, size_share=0.4)
    with pytest.raises(InputError, match="local_epsilon"):
        Svim(candidates=known, local_epsilon=0.0)


def test_a_tally_drawn_at_once_finds_the_same_words():
    population = population_of([(0,)] * 2_000 + [(3,)] * 1_000)
    known = Candidates(population.lexicon.words)
    protocol = Svim(candidates=known, keep=2, oracle="oue", local_epsilon=4.0)
    held = {population.lexicon.words[i] for i in (0, 3)}
    for name in ("exact-tally", "per-report"):
        found = fedhh.simulate(protocol, population, seed=0, fidelity=Fidelity(name=name))
        assert set(found.layers["fidelity"]) == {name}
        assert set(found.discoveries["word"]) == held


@pytest.mark.slow("::test_a_tally_drawn_at_once_finds_the_same_words")
def test_tallies_drawn_at_once_find_the_same_words(sets_of_letters):
    known = {"candidates": Candidates(sets_of_letters.lexicon.words), "local_epsilon": 4.0}
    top = np.argsort(-sets_of_letters.word_counts().holders)[:5]
    held = {sets_of_letters.lexicon.words[i] for i in top}
    for protocol in (
        Svim(**known, keep=5, oracle="oue"),
        LdpMiner(**known, keep=5, padded_size=4),
        Rappor(**known, max_items=4),
    ):
        found = []
        for name in ("exact-tally", "per-report"):
            result = fedhh.simulate(protocol, sets_of_letters, seed=0, fidelity=Fidelity(name=name))
            assert set(result.layers["fidelity"]) == {name}
            found.append(set(result.discoveries["word"].head(5)))
        # Five words are distinguished well, and the fifth from the sixth sometimes is not.
        assert all(len(held & each) >= 4 for each in found)


def test_a_round_of_sizes_keeps_all_and_states_no_threshold():
    question = question_of(ask.sizes, size=40)
    aggregate = Aggregate(
        tally=np.full(question.tally_size, 8, dtype=np.int64), num_reports=40, num_clients=40
    )
    decision = heard(question, aggregate).decision()
    assert (decision.threshold, decision.num_kept, decision.num_candidates) == (0, 4, 4)
    assert math.isnan(decision.threshold_z)
