"""What every frequency oracle must do: exact laws by enumeration, then the code against the laws.

A subclass provides the fixture ``oracle``. Oracles with public coins (a hash seed in the report)
are enumerated given one seed, so what holds only on average over seeds is theirs to test.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from fedhh.oracles import FrequencyOracle, PureOracle
from fedhh.validation import InputError
from tests.chi_square import follows_law, rows

SINGLE_REPORTS = 6_000
JOINT_TALLIES = 4_000


def report_law(oracle: FrequencyOracle, value: int) -> dict[tuple[int, ...], float]:
    space = oracle.report_space()
    return dict(zip(rows(space), np.exp(oracle.log_prob(space, value)).tolist(), strict=True))


def tally_law(oracle: FrequencyOracle, values: list[int]) -> dict[tuple[int, ...], float]:
    """The law of the tally of one report per value, by enumeration of all reports."""
    space = oracle.report_space()
    candidates = np.arange(oracle.domain_size)
    tallies = rows(
        np.array([oracle.tally(space[i : i + 1], candidates) for i in range(len(space))])
    )
    law = {(0,) * oracle.domain_size: 1.0}
    for value in values:
        single: dict[tuple[int, ...], float] = defaultdict(float)
        for tally, probability in zip(
            tallies, np.exp(oracle.log_prob(space, value)).tolist(), strict=True
        ):
            single[tally] += probability
        total: dict[tuple[int, ...], float] = defaultdict(float)
        for (a, pa), (b, pb) in itertools.product(law.items(), single.items()):
            total[tuple(x + y for x, y in zip(a, b, strict=True))] += pa * pb
        law = dict(total)
    return law


def skip_if_public(oracle: FrequencyOracle) -> None:
    if oracle.has_public_coins:
        pytest.skip("holds on average over the public coins; tested with the oracle")


class OracleSuite:
    """Tests of one oracle on a domain small enough to enumerate."""

    def test_probabilities_of_all_reports_sum_to_one(self, oracle):
        for value in range(oracle.domain_size):
            total = np.exp(oracle.log_prob(oracle.report_space(), value)).sum()
            assert total == pytest.approx(1, abs=1e-12)

    def test_reports_of_the_space_are_distinct(self, oracle):
        space = rows(oracle.report_space())
        assert len(set(space)) == len(space)

    def test_worst_log_ratio_is_exactly_epsilon(self, oracle):
        space = oracle.report_space()
        logs = np.array([oracle.log_prob(space, v) for v in range(oracle.domain_size)])
        with np.errstate(invalid="ignore"):
            spread = logs.max(axis=0) - logs.min(axis=0)
        assert np.nanmax(spread) == pytest.approx(oracle.epsilon, abs=1e-12)

    def test_reports_support_held_values_with_p_and_others_with_q(self, oracle):
        skip_if_public(oracle)
        assert isinstance(oracle, PureOracle)
        for value in range(oracle.domain_size):
            law = tally_law(oracle, [value])
            support = sum(np.array(tally) * probability for tally, probability in law.items())
            expected = np.where(np.arange(oracle.domain_size) == value, oracle.p, oracle.q)
            assert support == pytest.approx(expected, abs=1e-12)

    def test_estimates_are_unbiased_with_the_stated_variance(self, oracle):
        skip_if_public(oracle)
        values = [0, 1, 1]
        counts = np.bincount(values, minlength=oracle.domain_size)
        law = tally_law(oracle, values)
        estimates = np.array([oracle.estimate(np.array(t), len(values)) for t in law])
        weights = np.array(list(law.values()))[:, None]
        mean = (weights * estimates).sum(axis=0)
        variance = (weights * (estimates - mean) ** 2).sum(axis=0)
        assert mean == pytest.approx(counts, abs=1e-10)
        assert variance == pytest.approx(oracle.variance(counts, len(values)), abs=1e-10)

    def test_privatize_draws_from_the_exact_law(self, oracle):
        skip_if_public(oracle)
        rng = np.random.default_rng(11)
        for value in (0, oracle.domain_size - 1):
            reports = oracle.privatize(np.full(100_000, value), rng=rng)
            assert follows_law(rows(reports), report_law(oracle, value))

    def test_reports_of_different_clients_are_independent(self, oracle):
        skip_if_public(oracle)
        rng = np.random.default_rng(12)
        reports = rows(oracle.privatize(np.tile([0, 1], 50_000), rng=rng))
        first, second = report_law(oracle, 0), report_law(oracle, 1)
        pairs = {
            a + b: p * q for (a, p), (b, q) in itertools.product(first.items(), second.items())
        }
        drawn = [a + b for a, b in zip(reports[::2], reports[1::2], strict=True)]
        assert follows_law(drawn, pairs)

    def test_fused_tally_of_one_report_has_the_exact_law(self, oracle):
        skip_if_public(oracle)
        rng = np.random.default_rng(13)
        value = np.array([1])
        drawn = [tuple(oracle.privatize_and_tally(value, rng=rng)) for _ in range(SINGLE_REPORTS)]
        assert follows_law(drawn, tally_law(oracle, [1]))

    def test_fused_tally_of_three_reports_has_the_exact_joint_law(self, oracle):
        skip_if_public(oracle)
        rng = np.random.default_rng(14)
        values = [0, 2, 2]
        drawn = [
            tuple(oracle.privatize_and_tally(np.array(values), rng=rng))
            for _ in range(JOINT_TALLIES)
        ]
        assert follows_law(drawn, tally_law(oracle, values))

    def test_sampled_tally_has_the_exact_joint_law_where_it_is_offered(self, oracle):
        if not hasattr(oracle, "sample_tally"):
            pytest.skip("no exact tally without reports")
        rng = np.random.default_rng(15)
        values = [0, 2, 2]
        counts = np.bincount(values, minlength=oracle.domain_size)
        drawn = [tuple(oracle.sample_tally(counts, 3, rng=rng)) for _ in range(JOINT_TALLIES)]
        assert follows_law(drawn, tally_law(oracle, values))

    def test_approximate_tally_has_the_exact_law_of_each_entry(self, oracle):
        skip_if_public(oracle)
        rng = np.random.default_rng(16)
        values = [0, 2, 2]
        counts = np.bincount(values, minlength=oracle.domain_size)
        drawn = np.array(
            [oracle.approximate_sample_tally(counts, 3, rng=rng) for _ in range(JOINT_TALLIES)]
        )
        joint = tally_law(oracle, values)
        for entry in range(oracle.domain_size):
            law: dict[int, float] = defaultdict(float)
            for tally, probability in joint.items():
                law[tally[entry]] += probability
            assert follows_law(drawn[:, entry].tolist(), law)

    def test_tally_adds_over_reports_and_follows_the_order_of_candidates(self, oracle):
        rng = np.random.default_rng(17)
        reports = oracle.privatize(np.arange(60) % oracle.domain_size, rng=rng)
        candidates = np.array([2, 0, 2, 1])
        total = oracle.tally(reports, candidates)
        parts = oracle.tally(reports[:25], candidates) + oracle.tally(reports[25:], candidates)
        assert total.dtype == np.int64
        assert total.tolist() == parts.tolist()
        single = [oracle.tally(reports, np.array([c]))[0] for c in candidates]
        assert total.tolist() == single

    def test_no_reports_give_a_tally_of_zeros(self, oracle):
        rng = np.random.default_rng(18)
        nobody = np.array([], dtype=np.int64)
        reports = oracle.privatize(nobody, rng=rng)
        assert len(reports) == 0
        assert oracle.tally(reports, np.array([0, 1])).tolist() == [0, 0]
        assert not oracle.privatize_and_tally(nobody, rng=rng).any()

    def test_fused_tally_is_added_to_the_given_array(self, oracle):
        values = np.arange(500) % oracle.domain_size
        fresh = oracle.privatize_and_tally(values, rng=np.random.default_rng(19))
        out = np.full(oracle.domain_size, 1_000)
        result = oracle.privatize_and_tally(values, rng=np.random.default_rng(19), out=out)
        assert result is out
        assert fresh.dtype == np.int64
        assert (out - 1_000).tolist() == fresh.tolist()

    def test_same_seed_gives_the_same_bits_and_another_seed_others(self, oracle):
        values = np.arange(3_000) % oracle.domain_size

        def draw(seed):
            rng = np.random.default_rng(seed)
            return oracle.privatize(values, rng=rng), oracle.privatize_and_tally(values, rng=rng)

        first, again, other = draw(1), draw(1), draw(2)
        assert np.array_equal(first[0], again[0])
        assert np.array_equal(first[1], again[1])
        if oracle.epsilon < math.inf:
            assert not np.array_equal(first[0], other[0])
            assert not np.array_equal(first[1], other[1])

    def test_inputs_are_left_as_they_were(self, oracle):
        values = np.arange(50) % oracle.domain_size
        kept = values.copy()
        rng = np.random.default_rng(20)
        reports = oracle.privatize(values, rng=rng)
        oracle.privatize_and_tally(values, rng=rng)
        shown = reports.copy()
        oracle.tally(reports, np.array([1, 0]))
        assert np.array_equal(values, kept)
        assert np.array_equal(reports, shown)

    def test_wire_size_is_enough_for_every_report(self, oracle):
        assert 2**oracle.report_bits >= len(oracle.report_space()) - 1e-9

    def test_more_privacy_means_more_noise_but_never_a_negative_variance(self, oracle):
        variances = oracle.variance(np.array([0, 50, 100]), 100)
        assert (variances >= 0).all()
        if oracle.epsilon < math.inf:
            noisier = replace(oracle, epsilon=oracle.epsilon / 2)
            assert (noisier.variance(0, 100) > variances[0]).all()

    @pytest.mark.parametrize("values", [[-1, 0], [0, 99], [0.5], [[0, 1]], [True]], ids=str)
    def test_values_outside_the_domain_are_refused(self, oracle, values):
        rng = np.random.default_rng(21)
        with pytest.raises(InputError, match="Expected values"):
            oracle.privatize(np.array(values), rng=rng)
        with pytest.raises(InputError, match="Expected values"):
            oracle.privatize_and_tally(np.array(values), rng=rng)

    def test_candidates_outside_the_domain_are_refused(self, oracle):
        reports = oracle.privatize(np.array([0]), rng=np.random.default_rng(22))
        with pytest.raises(InputError, match="Expected candidates"):
            oracle.tally(reports, np.array([oracle.domain_size]))

    @pytest.mark.parametrize("shape", [2, (4, 1)])
    def test_an_out_array_of_another_shape_is_refused(self, oracle, shape):
        with pytest.raises(InputError, match="Expected out of shape"):
            oracle.privatize_and_tally(
                np.array([0]), rng=np.random.default_rng(23), out=np.zeros(shape, dtype=np.int64)
            )

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
    def test_an_epsilon_that_means_nothing_is_refused(self, oracle, epsilon):
        with pytest.raises(InputError, match="epsilon"):
            replace(oracle, epsilon=epsilon)

    def test_only_the_null_mechanism_takes_an_infinite_epsilon(self, oracle):
        if oracle.epsilon < math.inf:
            with pytest.raises(InputError, match="epsilon"):
                replace(oracle, epsilon=math.inf)

    @pytest.mark.parametrize("size", [1, 0, 2.5])
    def test_a_domain_of_less_than_two_values_is_refused(self, oracle, size):
        with pytest.raises(InputError, match="domain_size"):
            replace(oracle, domain_size=size)

    def test_parameters_are_public_and_cannot_change(self, oracle):
        with pytest.raises(FrozenInstanceError):
            oracle.epsilon = 3.0
