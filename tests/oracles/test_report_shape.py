"""How many ones a report has: exact limits, what they detect, and what evades them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from fedhh.oracles import OracleSpec, SubsetSelection, make_oracle
from fedhh.oracles.bloom_filters import BitResponse, BloomFilters, BloomReports
from fedhh.oracles.report_shape import NoisyBits, noisy_bits, shape_test
from fedhh.testing import ALPHA
from fedhh.validation import InputError

RATE = 1e-3
FILTERS = BloomFilters(num_bits=128, num_hashes=2, num_cohorts=8, hash_seed=1)
BLOOM = BloomReports(filters=FILTERS, response=BitResponse(f=0.5, p=0.25, q=0.75))


def oracle(name: str, **params: int):
    return make_oracle(OracleSpec(name=name, epsilon=2.0, params=params), 400)


def ones_of(name: str, n: int, rng: np.random.Generator) -> tuple[object, np.ndarray]:
    """Return what makes honest reports, and the ones of some of them."""
    values = rng.integers(0, 400, n)
    if name == "bloom":
        values[::4] = -1
        return BLOOM, BLOOM.privatize(values, rng=rng)[1].sum(axis=1)
    made = oracle(name, **({"num_hashes": 4, "num_cells": 256} if name == "cms" else {}))
    reports = made.privatize(values, rng=rng)
    return made, (made._unpack(reports) if name == "cms" else reports).sum(axis=1, dtype=np.int64)


def test_tails_are_those_of_all_reports_by_enumeration():
    bits = NoisyBits(num_bits=5, fewest_set=0, most_set=2, p=0.7, q=0.2)
    lower, upper = bits.tails(np.arange(6))
    for ones in range(6):
        at_most, at_least = [], []
        for num_set in range(3):
            chances = {
                sent: np.prod([
                    (bits.p if i < num_set else bits.q) if bit
                    else 1 - (bits.p if i < num_set else bits.q)
                    for i, bit in enumerate(sent)
                ])
                for sent in itertools.product((0, 1), repeat=5)
            }  # fmt: skip
            at_most.append(sum(p for sent, p in chances.items() if sum(sent) <= ones))
            at_least.append(sum(p for sent, p in chances.items() if sum(sent) >= ones))
        assert lower[ones] == pytest.approx(max(at_most), rel=1e-12)
        assert upper[ones] == pytest.approx(max(at_least), rel=1e-12)


@pytest.mark.parametrize("name", ["sue", "oue", "cms", "bloom"])
def test_honest_reports_are_rejected_no_more_often_than_stated(name):
    rng = np.random.default_rng(6)
    made, ones = ones_of(name, 20_000, rng)
    test = shape_test(made, RATE)
    assert 0 < test.false_alarm_rate <= RATE
    rejected = int(test.rejects(ones).sum())
    assert stats.binom.sf(rejected - 1, len(ones), RATE) > ALPHA
    assert test.p_value(rejected, len(ones)) > ALPHA
    # One step further in on each side, either tail has more than its half.
    lower, upper = noisy_bits(made).tails(np.array([test.fewest, test.most]))
    assert lower[0] > RATE / 2
    assert upper[1] > RATE / 2


@pytest.mark.parametrize("name", ["sue", "oue", "cms", "bloom"])
def test_reports_that_support_targets_alone_or_everything_are_rejected(name):
    made, ones = ones_of(name, 1_000, np.random.default_rng(7))
    test = shape_test(made, RATE)
    size = noisy_bits(made).num_bits
    assert test.rejects(np.array([1, 10, size])).all()
    # Among 100,000 reports, one in 200 of them is no chance; among honest ones nothing is.
    assert test.p_value(500 + 100, 100_000) < 1e-100
    # Who pads up to the usual number of ones, with any others, is not detected.
    assert not test.rejects(np.array([round(float(np.mean(ones)))])).any()


def test_on_subset_selection_the_power_is_the_false_alarm_rate():
    made = SubsetSelection(epsilon=2.0, domain_size=400, subset_size="optimal")
    test = shape_test(made, RATE)
    honest = made.privatize(np.arange(400), rng=np.random.default_rng(0))
    crafted = np.tile(np.arange(made.d), (400, 1))
    members = [np.full(400, reports.shape[1]) for reports in (honest, crafted)]
    assert [test.rejects(each).mean() for each in members] == [test.false_alarm_rate] * 2 == [0, 0]
    assert test.rejects(np.array([made.d - 1, made.d + 1])).all()


def test_reports_without_a_number_of_ones_are_refused_in_one_line():
    for name in ("olh", "grr"):
        with pytest.raises(InputError, match="use sue, oue, cms, ss") as refused:
            shape_test(oracle(name), RATE)
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="false_alarm_rate"):
        shape_test(oracle("sue"), 0.0)
