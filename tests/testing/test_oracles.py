"""The conformance suite finds what is wrong with an oracle, and says which property it is."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from fedhh.oracles import GeneralizedRandomizedResponse as Grr
from fedhh.oracles import Identity, OptimizedUnaryEncoding
from fedhh.testing import ConformanceError, check_oracle, oracle_checks
from tests.thinned import thinned
from tests.wrong_oracles import KeepsItsValueTooOften


class UnderstatesItsEpsilon(Grr):
    @property
    def p(self):
        return replace_epsilon(self, 1.1).p

    @property
    def q(self):
        return replace_epsilon(self, 1.1).q

    def log_prob(self, reports, value):
        return replace_epsilon(self, 1.1).log_prob(reports, value)


def replace_epsilon(oracle, factor):
    return Grr(epsilon=factor * oracle.epsilon, domain_size=oracle.domain_size)


class ProbabilitiesMissSome(Grr):
    def log_prob(self, reports, value):
        return super().log_prob(reports, value) - 1e-6


class EstimatesTooMuch(Grr):
    def estimate(self, tally, num_reports):
        return super().estimate(tally, num_reports) + 0.01 * num_reports


class StatesHalfItsVariance(Grr):
    def variance(self, count, num_reports):
        return super().variance(count, num_reports) / 2


class SharesCoins(Grr):
    """Neighbours who hold 0 and 1 lie together."""

    def privatize(self, values, *, rng):
        reports = super().privatize(values, rng=rng)
        pairs = np.flatnonzero((values[:-1:2] == 0) & (values[1::2] == 1)) * 2
        lied = reports[pairs] != 0
        reports[pairs[lied] + 1] = 0
        return reports


class CountsOneReportForAll(Grr):
    def _add_values(self, values, out, *, rng):
        reports = self.privatize(values, rng=rng)
        self._add_reports(np.repeat(reports[:1], len(reports)), out)


class SortsItsCandidates(Grr):
    def _support_of_reports(self, reports, candidates):
        return super()._support_of_reports(reports, np.sort(candidates))


class CountsAtMostThree(Grr):
    def _support_of_reports(self, reports, candidates):
        return np.minimum(super()._support_of_reports(reports, candidates), 3)


class ListsAReportTwice(Grr):
    def report_space(self):
        return np.append(super().report_space(), 0)


class AggregateIsNoSum(Grr):
    def _add_reports(self, reports, out):
        super()._add_reports(reports, out)
        out += 1


class OwnGenerator(Grr):
    def privatize(self, values, *, rng):
        return super().privatize(values, rng=np.random.default_rng())


class WritesIntoValues(Grr):
    def privatize(self, values, *, rng):
        reports = super().privatize(values, rng=rng)
        values[:] = reports
        return reports


class OverwritesOut(Grr):
    def _add_values(self, values, out, *, rng):
        out[:] = 0
        super()._add_values(values, out, rng=rng)


class ForgetsABit(Grr):
    @property
    def report_bits(self):
        return super().report_bits - 0.1


class ClaimsASketch(Grr):
    is_sketch = True


class CountsValuesTwice(Grr):
    def noise_free_counts(self, values, *, rng, out=None):
        return super().noise_free_counts(np.repeat(values, 2), rng=rng, out=out)

    def sample_aggregate(self, counts, *, rng):
        return super().sample_aggregate(counts // 2, rng=rng)


class TakesAnyValue(Grr):
    def _check_values(self, values, name="values"):
        numbers = np.asarray(values, dtype=np.int64).ravel()
        return (
            numbers % self.domain_size if name == "values" else super()._check_values(values, name)
        )

    def _add_values(self, values, out, *, rng):
        super()._add_values(self._check_values(values), out, rng=rng)


class TakesAnyEpsilon(Grr):
    def __post_init__(self):
        pass


class CanBeChanged(Grr):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class TellsByItsLengthAlone(Grr):
    def privatize(self, values, *, rng):
        reports = super().privatize(values, rng=rng)
        # As GRR, except that a report alone of the largest value has an axis more.
        return reports[:, None] if list(values) == [self.domain_size - 1] else reports


class LessNoiseWithLessEpsilon(Grr):
    def variance(self, count, num_reports):
        return super().variance(count, num_reports) * (self.epsilon / 2) ** 9


@pytest.mark.parametrize("kind", thinned([Grr, OptimizedUnaryEncoding]))
def test_a_right_oracle_passes_on_two_values(kind):
    check_oracle(kind, cases=[(1.0, 2)])


@functools.cache
def failures(oracle) -> dict[str, str]:
    """What the checks say of an oracle; the same for all tests that ask."""
    found = {}
    for check in oracle_checks(oracle):
        try:
            check(oracle, seed=11)
        except ConformanceError as failure:
            found[check.name] = str(failure)
    return found


MOMENTS = "estimates_are_unbiased_with_the_stated_variance"
REPORTS = "reports_follow_the_distribution_and_are_independent"
AGGREGATES = "aggregates_of_values_follow_the_distribution"
WRONG = {
    UnderstatesItsEpsilon: {"epsilon_is_exact"},
    ProbabilitiesMissSome: {"probabilities_sum_to_one", MOMENTS},
    CountsAtMostThree: {"aggregates_merge_and_hold_the_support"},
    EstimatesTooMuch: {MOMENTS},
    StatesHalfItsVariance: {MOMENTS},
    SharesCoins: {REPORTS},
    CountsOneReportForAll: {AGGREGATES},
    SortsItsCandidates: {"aggregates_merge_and_hold_the_support"},
    # What reports support is found in their aggregate.
    AggregateIsNoSum: {
        "aggregates_merge_and_hold_the_support",
        "no_reports_give_zeros",
        MOMENTS,
        AGGREGATES,
        "sampled_aggregates_follow_the_distribution",
    },
    OwnGenerator: {"same_seed_gives_the_same_bits"},
    WritesIntoValues: {"inputs_are_left_as_they_were", "same_seed_gives_the_same_bits"},
    OverwritesOut: {"aggregates_are_added_to_the_given_array"},
    ForgetsABit: {"report_bits_are_enough"},
    ClaimsASketch: {"sketches_are_as_large_for_any_domain"},
    CountsValuesTwice: {"noise_free_counts_add_up"},
    TakesAnyValue: {"wrong_arguments_are_refused"},
    TakesAnyEpsilon: {"bad_settings_are_refused"},
    LessNoiseWithLessEpsilon: {"more_privacy_means_more_noise"},
    CanBeChanged: {"parameters_cannot_change"},
    TellsByItsLengthAlone: {"reports_have_one_size_and_type"},
}


@pytest.mark.slow("::test_a_failure_names_the_check_the_oracle_the_value_and_the_bound")
@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.__name__)
def test_a_wrong_oracle_fails_the_checks_of_what_is_wrong_and_no_others(wrong):
    assert set(failures(wrong(epsilon=2.0, domain_size=4))) == WRONG[wrong]


@pytest.mark.slow("::test_the_check_of_what_is_wrong_finds_it")
def test_subset_selection_that_keeps_its_value_too_often_does_not_follow_its_distribution():
    oracle = KeepsItsValueTooOften(epsilon=0.5, domain_size=4)
    assert set(failures(oracle)) == {REPORTS}
    with pytest.raises(ConformanceError, match=rf"^{REPORTS}: KeepsItsValueTooOften"):
        check_oracle(KeepsItsValueTooOften)


@pytest.mark.parametrize(
    ("oracle", "name"),
    [
        (
            lambda: ListsAReportTwice(epsilon=2.0, domain_size=4),
            "reports_of_the_space_are_distinct",
        ),
        (
            lambda: KeepsItsValueTooOften(epsilon=0.5, domain_size=4),
            REPORTS,
        ),
    ],
)
def test_the_check_of_what_is_wrong_finds_it(oracle, name):
    (check,) = (each for each in oracle_checks(oracle()) if each.name == name)
    with pytest.raises(ConformanceError, match=f"^{name}: "):
        check(oracle(), seed=11)


@pytest.mark.slow("::test_the_check_of_what_is_wrong_finds_it")
def test_a_report_listed_twice_is_found():
    found = failures(ListsAReportTwice(epsilon=2.0, domain_size=4))
    assert "5 reports, of which 4 are different" in found["reports_of_the_space_are_distinct"]


def failure(oracle, name: str) -> str:
    """What one check says of an oracle."""
    (check,) = (each for each in oracle_checks(oracle) if each.name == name)
    with pytest.raises(ConformanceError) as found:
        check(oracle, seed=11)
    return str(found.value)


def test_a_failure_names_the_check_the_oracle_the_value_and_the_bound():
    message = failure(StatesHalfItsVariance(epsilon=2.0, domain_size=4), MOMENTS)
    assert message.startswith(f"{MOMENTS}: StatesHalfItsVariance(epsilon=2.0, domain_size=4")
    assert "the variance of estimates of true counts [1 0 2 0]" in message
    message = failure(UnderstatesItsEpsilon(epsilon=2.0, domain_size=4), "epsilon_is_exact")
    assert "is 2.2" in message
    assert "expected 2.0" in message


def test_an_error_of_the_oracle_is_a_failure_of_the_check():
    class Crashes(Grr):
        def report_space(self):
            return super().report_space()[7]

    with pytest.raises(ConformanceError, match=r"probabilities_sum_to_one: .*raised IndexError"):
        check_oracle(Crashes)


@pytest.mark.slow("tests/conformance/test_oracles.py::test_a_registered_oracle_passes")
def test_right_oracles_pass_as_a_whole():
    check_oracle(Grr, cases=[(1.0, 3)])
    check_oracle(Identity, cases=[(math.inf, 4)])
