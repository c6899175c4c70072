from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.accounting.terms import PrivacyTerms
from fedhh.clients.clients import Clients, Table
from fedhh.oracles.bloom import NOTHING, BitResponse, BloomFilters, BloomReports
from fedhh.protocol import Answers
from fedhh.questions.question import Aggregate
from fedhh.server import rappor_decoding
from fedhh.server.rappor import Rappor
from fedhh.server.rappor_decoding import Decoded, decode, judged_filters
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.lexicon import Lexicon

FILTERS = BloomFilters(num_bits=64, num_hashes=2, num_cohorts=16, hash_seed=3)
REPORTS = BloomReports(filters=FILTERS, response=BitResponse.of_one_report(4.0, num_hashes=2))
KEYS = np.arange(200)
WORDS = ["".join(pair) for pair in itertools.product("abcdef", repeat=2)]


def tally_of(keys, seed, reports=REPORTS):
    rng = np.random.default_rng(seed)
    counts = np.zeros(reports.tally_size, dtype=np.int64)
    reports.add_noise_free_counts(keys, rng=rng, out=counts)
    return reports.sample_aggregate(counts, rng=rng)


def expected_tally(counts, others, reports=REPORTS):
    """Return the expected sums, rounded, where every cohort has the same part of each word."""
    cohorts, bits = reports.filters.num_cohorts, reports.filters.num_bits
    held = np.zeros((cohorts, bits))
    for key, count in enumerate(counts):
        masks = reports.filters.filters(np.arange(cohorts), np.full(cohorts, key))
        held += masks * (count / cohorts)
    total = sum(counts) + others
    held += others / cohorts * (1 - (1 - 1 / bits) ** reports.filters.num_hashes)
    response = reports.response
    ones = response.zero * total / cohorts + held * (response.one - response.zero)
    return np.rint(np.concatenate([ones.ravel(), np.full(cohorts, total / cohorts)])).astype(int)


def test_the_regression_finds_exactly_what_sums_without_noise_hold():
    counts = np.zeros(200, dtype=np.int64)
    counts[[3, 50, 120, 199]] = [160_000_000, 32_000_000, 16_000_000, 80_000_000]
    decoded = decode(REPORTS, expected_tally(counts, 64_000_000), KEYS)
    sure = decoded.z > 20
    assert decoded.candidates[sure].tolist() == [3, 50, 120, 199]
    assert decoded.estimate[sure] == pytest.approx(counts[[3, 50, 120, 199]], rel=2e-3)
    # A wrong family of hash functions explains nothing.
    other = replace(REPORTS, filters=replace(FILTERS, hash_seed=4))
    wrong = decode(other, expected_tally(counts, 64_000_000), KEYS)
    assert wrong.candidates[wrong.z > 20].tolist() != [3, 50, 120, 199]


def test_of_a_long_list_those_that_fit_take_part_and_keep_their_numbers(monkeypatch):
    counts = np.zeros(200, dtype=np.int64)
    counts[[3, 50, 120, 199]] = [160_000_000, 32_000_000, 16_000_000, 80_000_000]
    tally = expected_tally(counts, 64_000_000)
    whole = decode(REPORTS, tally, KEYS)
    monkeypatch.setattr(rappor_decoding, "_MOST_REGRESSED", 40)
    monkeypatch.setattr(rappor_decoding, "_SCREENED_AT_ONCE", 64)
    few = decode(REPORTS, tally, KEYS)
    assert len(few.candidates) <= 40
    for decoded in (whole, few):
        sure = decoded.z > 20
        assert decoded.candidates[sure].tolist() == [3, 50, 120, 199]
        assert decoded.estimate[sure] == pytest.approx(counts[[3, 50, 120, 199]], rel=5e-3)
    # Too short a list loses words.
    monkeypatch.setattr(rappor_decoding, "_MOST_REGRESSED", 2)
    assert set(decode(REPORTS, tally, KEYS).candidates) < {3, 50, 120, 199}


def test_few_estimates_are_within_their_errors_and_nobodys_words_are_not_significant():
    keys = np.concatenate([np.repeat([5, 9], [3_000, 2_000]), np.full(5_000, NOTHING)])
    errors, false, doubtful = [], 0, 0
    for seed in range(5):
        decoded = decode(REPORTS, tally_of(keys, seed), KEYS)
        for key, count in ((5, 3_000), (9, 2_000)):
            (place,) = np.flatnonzero(decoded.candidates == key)
            errors.append((decoded.estimate[place] - count) / decoded.variance[place] ** 0.5)
        p_values = decoded.p_value[~np.isin(decoded.candidates, [5, 9])]
        false += bool((p_values < 0.05 / len(KEYS)).any())
        doubtful += bool((p_values < 0.05).any())
    assert abs(np.mean(errors)) < 1.5
    assert 0.2 < np.var(errors) < 3
    assert false <= 2 < doubtful


@pytest.mark.slow(
    "::test_few_estimates_are_within_their_errors_and_nobodys_words_are_not_significant"
)
def test_estimates_are_as_far_off_as_their_standard_errors_say():
    keys = np.repeat([5, 9, 70], [3_000, 2_000, 1_000])
    keys = np.concatenate([keys, np.full(4_000, NOTHING)])
    errors = []
    for seed in range(20):
        decoded = decode(REPORTS, tally_of(keys, seed), KEYS)
        for key, count in ((5, 3_000), (9, 2_000), (70, 1_000)):
            (place,) = np.flatnonzero(decoded.candidates == key)
            errors.append((decoded.estimate[place] - count) / decoded.variance[place] ** 0.5)
    # 60 numbers of mean 0 and variance 1, but for the words' own spread, which counts as noise.
    assert abs(np.mean(errors)) < 0.6
    assert 0.35 < np.var(errors) < 2


@pytest.mark.slow(
    "::test_few_estimates_are_within_their_errors_and_nobodys_words_are_not_significant"
)
def test_words_that_nobody_holds_are_rarely_significant():
    keys = np.concatenate([np.full(5_000, 7), np.full(5_000, NOTHING)])
    false, doubtful = 0, 0
    for seed in range(40):
        decoded = decode(REPORTS, tally_of(keys, seed), KEYS)
        p_values = decoded.p_value[decoded.candidates != 7]
        false += bool((p_values < 0.05 / len(KEYS)).any())
        doubtful += bool((p_values < 0.05).any())
    # With a chance of 0.05 each, 10 of 40 happen once in 10^4.
    assert false <= 9
    assert doubtful > 20


def test_the_correction_counts_all_candidates_and_not_those_that_were_selected():
    decoded = Decoded(
        candidates=np.array([2, 5, 7]),
        estimate=np.array([30.0, 50.0, 40.0]),
        variance=np.ones(3),
        z=np.ones(3),
        # 0.05 / 10 candidates is 0.005; 0.05 / 3 selected would be 0.017.
        p_value=np.array([0.0049, 0.0051, 0.0001]),
    )
    codes = np.arange(10, dtype=np.uint16)[:, None]
    protocol = Rappor(candidates=Candidates(WORDS), clients_per_layer=100, hash_seed=1)
    question = protocol.next_question(protocol.initialize())
    planned = protocol.plan.layers[0]
    answers = Answers(planned=planned, question=question, aggregate=Aggregate.empty(0))
    heard = judged_filters(answers, REPORTS, decoded, codes, familywise_error=0.05)
    found = heard.found
    assert heard.decision.threshold_estimate == 30.0
    assert found.codes.ravel().tolist() == [7, 2]
    assert found.estimate.tolist() == [40.0, 30.0]


def test_how_a_words_reports_spread_over_cohorts_is_noise():
    filters = BloomFilters(num_bits=64, num_hashes=1, num_cohorts=2, hash_seed=3)
    reports = BloomReports(filters=filters, response=BitResponse(f=1e-12))
    decoded = decode(reports, expected_tally([1_000], 0, reports), np.arange(1))
    # No coin flips a bit: all that varies is which cohort each report is in, and a bit that 500 of
    # 1,000 reports set has variance 1,000 / 4. Their sum, taken as independent, has twice that.
    assert decoded.estimate == pytest.approx([1_000], rel=1e-3)
    assert decoded.variance == pytest.approx([500], rel=1e-3)


@pytest.fixture(scope="module")
def typing():
    """9,000 clients with a word each: 20 of 36 words are held, the rest by nobody."""
    held = np.repeat(np.arange(20), np.r_[[1_500] * 4, [300] * 8, [75] * 8])
    return Clients(
        Table(
            Lexicon(words=WORDS),
            np.arange(len(held) + 1),
            held.astype(np.int32),
            np.ones(len(held), dtype=np.int32),
        ),
        name="typing",
    )


SMALL = Rappor(
    alphabet="abcdef", candidates=Candidates(WORDS), local_epsilon=6.0, max_items=1,
    bloom_bits=64, bloom_cohorts=16,
)  # fmt: skip


def test_frequent_words_are_found_with_counts_and_words_next_to_the_list_are_not(typing):
    result = fedhh.simulate(SMALL, typing, seed=1)
    found = result.discoveries.set_index("word")
    assert set(WORDS[:12]) <= set(found.index) <= set(WORDS[:20])
    assert (
        (found["estimated_clients"] - found["true_clients"]).abs() < 5 * found["std_error"]
    ).all()
    half = replace(SMALL, candidates=Candidates([*WORDS[:2], "zz"]), alphabet="abcdefz")
    state = list(fedhh.rounds(half, typing, seed=1))[-1].state
    assert set(half.discoveries(state).words) == set(WORDS[:2])


def test_a_plan_states_what_one_report_and_what_all_would_tell():
    one_time = SMALL.settle(num_clients=9_000, seed=0)
    found = one_time.plan.report(PrivacyTerms(num_clients=9_000, delta=1e-6, alpha=0.95))
    assert found.best("item", "local").epsilon == 6.0
    assert "epsilon_1" in found.best("item", "local").theorem
    assert any("epsilon 6 together" in note for note in found.notes)
    twice = replace(SMALL, local_epsilon=1.0, irr_p=0.5, irr_q=0.75, max_items=2)
    settled = twice.settle(num_clients=9_000, seed=0)
    assert settled.plan.local_epsilon == 1.0
    assert settled.response.epsilon_of_one_report(2) == pytest.approx(1.0, rel=1e-8)
    assert settled.response.epsilon_of_all_reports(settled.bloom_hashes) > 3.5


@pytest.mark.slow("::test_a_plan_states_what_one_report_and_what_all_would_tell")
def test_a_run_states_what_one_report_and_what_all_would_tell(typing):
    one_time = fedhh.simulate(SMALL, typing, seed=1).privacy
    assert one_time.best("item", "local").epsilon == 6.0
    assert "epsilon_1" in one_time.best("item", "local").theorem
    assert any("epsilon 6 together" in note for note in one_time.notes)
    twice = replace(SMALL, local_epsilon=1.0, irr_p=0.5, irr_q=0.75, max_items=2)
    settled = twice.settle(num_clients=9_000, seed=0)
    assert settled.plan.local_epsilon == 1.0
    assert settled.response.epsilon_of_one_report(2) == pytest.approx(1.0, rel=1e-8)
    assert settled.response.epsilon_of_all_reports(settled.bloom_hashes) > 3.5
    report = fedhh.simulate(twice, typing, seed=1).privacy
    assert (report.best("item", "local").epsilon, report.best("user", "local").epsilon) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"irr_p": 0.5, "irr_q": 0.75}, r"Expected epsilon < 2\.197"),
        ({"irr_p": 0.5, "irr_q": 0.5}, "Expected p < q"),
        ({"candidates": Candidates()}, r"Expected candidates for rappor"),
        ({"bloom_cohorts": 2**16, "bloom_hashes": 64}, r"candidates x bloom_cohorts"),
        ({"bloom_bits": 1}, "bloom_bits"),
    ],
)
def test_settings_that_mean_nothing_are_refused_in_one_line(changes, message):
    with pytest.raises(InputError, match=message) as refused:
        replace(SMALL, **changes)
    assert "\n" not in str(refused.value)
