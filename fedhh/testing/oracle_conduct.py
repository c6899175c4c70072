"""How any frequency oracle has to behave: sums, seeds, arrays, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from fedhh.oracles.base import FrequencyOracle, Reports, Tally, Values
from fedhh.testing.checks import Checks, expect, expect_added, expect_frozen, expect_refusal

CHECKS: Checks[FrequencyOracle] = Checks()
"""What holds for any number of values and reports."""


def _fused(oracle: FrequencyOracle, values: Values, *, rng: np.random.Generator) -> Tally:
    return oracle.aggregate(values=values, rng=rng)


def _made(oracle: FrequencyOracle, values: Values, *, rng: np.random.Generator) -> Reports:
    return oracle.privatize(values, rng=rng)


_ALONE = 32
"""Values whose reports are looked at alone."""
_WAYS: dict[str, Callable[..., Reports]] = {"privatize": _made, "aggregate": _fused}
"""From values to what leaves a device."""


def _is_private(oracle: FrequencyOracle) -> bool:
    return oracle.epsilon < math.inf


def _some_reports(oracle: FrequencyOracle, seed: int) -> Reports:
    rng = np.random.default_rng(seed)
    return oracle.privatize(np.arange(60) % oracle.domain_size, rng=rng)


@CHECKS.add()
def _support_adds_over_reports(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    candidates = np.minimum([2, 0, 2, 1], oracle.domain_size - 1)
    total = oracle.support(reports=reports, candidates=candidates)
    parts = [oracle.support(reports=r, candidates=candidates) for r in (reports[:25], reports[25:])]
    expect(total.dtype == np.int64, f"support returns {total.dtype}, expected int64")
    expect(
        np.array_equal(total, parts[0] + parts[1]),
        f"the support in 60 reports is {total}, but in the first 25 and in the others it adds up "
        f"to {parts[0] + parts[1]}",
    )


@CHECKS.add()
def _support_follows_the_order_of_candidates(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    candidates = np.minimum([2, 0, 2, 1], oracle.domain_size - 1)
    total = oracle.support(reports=reports, candidates=candidates).tolist()
    single = [int(oracle.support(reports=reports, candidates=candidates[[i]])[0]) for i in range(4)]
    expect(
        total == single,
        f"the support of candidates {candidates} is {total}, but asked one by one it is {single}",
    )


@CHECKS.add()
def _aggregates_merge_and_hold_the_support(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    everything = np.arange(oracle.domain_size)
    whole = oracle.aggregate(reports)
    first, second = oracle.aggregate(reports[:25]), oracle.aggregate(reports[25:])
    expect(
        whole.shape == (oracle.aggregate_size,) and whole.dtype == np.int64,
        f"aggregate returns {whole.shape} of {whole.dtype}, expected ({oracle.aggregate_size},) "
        "of int64 by aggregate_size",
    )
    expect(
        np.array_equal(whole, first + second),
        "the aggregate of 60 reports differs from the sum of those of the first 25 and the others",
    )
    support = oracle.support(reports=reports)
    for asked, found in (
        ("of all values", oracle.support(whole, everything)),
        ("without candidates", oracle.support(whole)),
        ("of two aggregates", oracle.support(np.stack([first, second])).sum(axis=0)),
        ("of all values in two", oracle.support(np.stack([first, second]), everything).sum(axis=0)),
    ):
        expect(
            np.array_equal(found, support),
            f"support {asked} is {found}, but in the reports themselves it is {support}",
        )


@CHECKS.add()
def _sketches_are_as_large_for_any_domain(oracle: FrequencyOracle, seed: int) -> None:
    larger = replace(oracle, domain_size=10 * oracle.domain_size)
    expect(
        not oracle.is_sketch or larger.aggregate_size == oracle.aggregate_size,
        f"is_sketch is True, but aggregate_size is {oracle.aggregate_size} for "
        f"{oracle.domain_size} values and {larger.aggregate_size} for {larger.domain_size}",
    )


@CHECKS.add()
def _no_reports_give_zeros(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nobody = np.array([], dtype=np.int64)
    reports = oracle.privatize(nobody, rng=rng)
    expect(len(reports) == 0, f"privatize made {len(reports)} reports of no value")
    support = oracle.support(reports=reports, candidates=np.array([0, 1]))
    expect(support.tolist() == [0, 0], f"the support in no report is {support}, expected zeros")
    fused = oracle.aggregate(values=nobody, rng=rng)
    expect(not fused.any(), f"aggregate of no value is {fused}, expected zeros")


@CHECKS.add()
def _aggregates_are_added_to_the_given_array(oracle: FrequencyOracle, seed: int) -> None:
    values = np.arange(500) % oracle.domain_size
    reports = _some_reports(oracle, seed)

    def of_values(out: Tally | None) -> Tally:
        return oracle.aggregate(values=values, rng=np.random.default_rng(seed), out=out)

    expect_added("aggregate of values", of_values, oracle.aggregate_size)
    expect_added("aggregate of reports", partial(oracle.aggregate, reports), oracle.aggregate_size)


@CHECKS.add()
def _same_seed_gives_the_same_bits(oracle: FrequencyOracle, seed: int) -> None:
    values = np.arange(3_000) % oracle.domain_size
    for name, draw in _WAYS.items():
        first, again, other = (
            draw(oracle, values, rng=np.random.default_rng(each)) for each in (seed, seed, seed + 1)
        )
        expect(np.array_equal(first, again), f"{name} drew differently from two rngs of one seed")
        if oracle.epsilon < math.inf:
            expect(
                not np.array_equal(first, other), f"{name} drew alike from rngs of different seeds"
            )


@CHECKS.add()
def _inputs_are_left_as_they_were(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.arange(50) % oracle.domain_size
    kept = values.copy()
    reports = oracle.privatize(values, rng=rng)
    oracle.aggregate(values=values, rng=rng)
    expect(np.array_equal(values, kept), "privatize or aggregate changed the values")
    shown = reports.copy()
    oracle.support(reports=reports, candidates=np.array([1, 0]))
    aggregate = oracle.aggregate(reports)
    expect(np.array_equal(reports, shown), "support or aggregate changed the reports")
    summed = aggregate.copy()
    oracle.support(aggregate, np.array([1, 0]))
    expect(np.array_equal(aggregate, summed), "support changed the aggregate")


@CHECKS.add()
def _reports_have_one_size_and_type(oracle: FrequencyOracle, seed: int) -> None:
    """A device sends a report alone, whose size and type must not follow from its value."""
    reports = _some_reports(oracle, seed)
    form = reports.shape[1:], reports.dtype
    expect(reports.dtype.kind in "biuf", f"privatize returns {reports.dtype}, expected numbers")
    rng = np.random.default_rng(seed)
    for value in np.unique(np.linspace(0, oracle.domain_size - 1, _ALONE).astype(np.int64)):
        alone = oracle.privatize(np.array([value]), rng=rng)
        expect(
            (alone.shape[1:], alone.dtype) == form,
            f"a report of value {value} alone has shape {alone.shape[1:]} of {alone.dtype}, but "
            f"among others {form[0]} of {form[1]}",
        )


@CHECKS.add()
def _report_bits_are_enough(oracle: FrequencyOracle, seed: int) -> None:
    size = len(oracle.report_space())
    expect(
        2**oracle.report_bits >= size - 1e-9,
        f"report_bits={oracle.report_bits} cannot tell {size} reports apart, expected at least "
        f"{math.log2(size)}",
    )


@CHECKS.add()
def _variance_is_never_negative(oracle: FrequencyOracle, seed: int) -> None:
    variances = oracle.variance(np.array([0, 50, 100]), 100)
    expect((variances >= 0).all(), f"variance() is {variances} for counts 0, 50, 100 of 100")


@CHECKS.add(_is_private)
def _more_privacy_means_more_noise(oracle: FrequencyOracle, seed: int) -> None:
    noisier = replace(oracle, epsilon=oracle.epsilon / 2)
    before, after = float(oracle.variance(0, 100)), float(noisier.variance(0, 100))
    expect(after > before, f"half the epsilon takes the variance from {before} to {after}")


@CHECKS.add()
def _wrong_values_are_refused(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong: list[list[object]] = [[-1, 0], [0, oracle.domain_size], [0.5], [[0, 1]], [True]]
    for values in wrong:
        for name, draw in _WAYS.items():
            expect_refusal(
                f"{name} of the values {values}",
                partial(draw, oracle, np.array(values), rng=rng),
                naming="values",
            )


@CHECKS.add()
def _wrong_candidates_are_refused(oracle: FrequencyOracle, seed: int) -> None:
    reports = oracle.privatize(np.array([0]), rng=np.random.default_rng(seed))
    beyond = np.array([oracle.domain_size])
    expect_refusal(
        f"support of the candidate {oracle.domain_size}",
        lambda: oracle.support(reports=reports, candidates=beyond),
        naming="candidates",
    )


@CHECKS.add()
def _an_out_array_of_another_shape_is_refused(oracle: FrequencyOracle, seed: int) -> None:
    for shape in ((oracle.aggregate_size + 1,), (oracle.aggregate_size, 1)):
        expect_refusal(
            f"aggregate into out of shape {shape}",
            partial(
                oracle.aggregate,
                values=np.array([0]),
                rng=np.random.default_rng(seed),
                out=np.zeros(shape, dtype=np.int64),
            ),
            naming="out",
        )


@CHECKS.add()
def _bad_settings_are_refused(oracle: FrequencyOracle, seed: int) -> None:
    bad: list[tuple[str, float]] = [("epsilon", each) for each in (0.0, -1.0, math.nan)]
    bad += [("domain_size", each) for each in (1, 0, 2.5)]
    if oracle.epsilon < math.inf:
        # Only the null mechanism may promise nothing.
        bad.append(("epsilon", math.inf))
    for name, value in bad:
        expect_refusal(
            f"{name}={value}",
            partial(replace, oracle, **{name: value}),
            naming=name,
        )


@CHECKS.add()
def _parameters_cannot_change(oracle: FrequencyOracle, seed: int) -> None:
    expect_frozen(oracle)
