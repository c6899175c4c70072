"""How a frequency oracle has to behave, whatever its law: sums, seeds, arrays, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from functools import partial

import numpy as np

from fedhh.oracles.base import FrequencyOracle, Reports, Tally
from fedhh.testing.checks import Checks, expect, expect_refusal

CHECKS: Checks[FrequencyOracle] = Checks()
"""What holds for any number of values and reports."""


def _is_private(oracle: FrequencyOracle) -> bool:
    return oracle.epsilon < math.inf


def _some_reports(oracle: FrequencyOracle, seed: int) -> Reports:
    rng = np.random.default_rng(seed)
    return oracle.privatize(np.arange(60) % oracle.domain_size, rng=rng)


@CHECKS.add()
def _tally_adds_over_reports(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    candidates = np.array([2, 0, 2, 1])
    total = oracle.tally(reports, candidates)
    parts = oracle.tally(reports[:25], candidates) + oracle.tally(reports[25:], candidates)
    expect(total.dtype == np.int64, f"tally returns {total.dtype}, expected int64")
    expect(
        total.tolist() == parts.tolist(),
        f"the tally of 60 reports is {total}, but those of the first 25 and of the others add up "
        f"to {parts}",
    )


@CHECKS.add()
def _tally_follows_the_order_of_candidates(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    candidates = np.array([2, 0, 2, 1])
    total = oracle.tally(reports, candidates).tolist()
    single = [int(oracle.tally(reports, np.array([c]))[0]) for c in candidates]
    expect(
        total == single,
        f"the tally of candidates {candidates} is {total}, but asked one by one it is {single}",
    )


@CHECKS.add()
def _aggregates_merge_and_hold_the_tally(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    everything = np.arange(oracle.domain_size)
    whole = oracle.aggregate(reports)
    parts = oracle.aggregate(reports[:25]) + oracle.aggregate(reports[25:])
    expect(
        whole.shape == (oracle.aggregate_size,) and whole.dtype == np.int64,
        f"aggregate returns {whole.shape} of {whole.dtype}, expected ({oracle.aggregate_size},) "
        "of int64 by aggregate_size",
    )
    expect(
        np.array_equal(whole, parts),
        "the aggregate of 60 reports differs from the sum of those of the first 25 and the others",
    )
    tally = oracle.tally(reports, everything)
    for name, support in (
        ("support", oracle.support(whole, everything)),
        ("support_of_all", oracle.support_of_all(whole[None])[0]),
    ):
        expect(
            np.array_equal(support, tally),
            f"{name} of an aggregate is {support}, but the tally of its reports is {tally}",
        )


@CHECKS.add()
def _fixed_aggregates_do_not_grow_with_the_domain(oracle: FrequencyOracle, seed: int) -> None:
    if not oracle.has_fixed_aggregate:
        return
    larger = replace(oracle, domain_size=10 * oracle.domain_size)
    expect(
        larger.aggregate_size == oracle.aggregate_size,
        f"has_fixed_aggregate is True, but aggregate_size is {oracle.aggregate_size} for "
        f"{oracle.domain_size} values and {larger.aggregate_size} for {larger.domain_size}",
    )


@CHECKS.add()
def _no_reports_give_zeros(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nobody = np.array([], dtype=np.int64)
    reports = oracle.privatize(nobody, rng=rng)
    expect(len(reports) == 0, f"privatize made {len(reports)} reports of no value")
    tally = oracle.tally(reports, np.array([0, 1]))
    expect(tally.tolist() == [0, 0], f"the tally of no report is {tally}, expected zeros")
    fused = oracle.privatize_and_tally(nobody, rng=rng)
    expect(not fused.any(), f"privatize_and_tally of no value is {fused}, expected zeros")


_Fused = Callable[..., Tally]


@CHECKS.add()
def _fused_tallies_are_added_to_the_given_array(oracle: FrequencyOracle, seed: int) -> None:
    values = np.arange(500) % oracle.domain_size
    ways: list[tuple[_Fused, int]] = [
        (oracle.privatize_and_tally, oracle.domain_size),
        (oracle.privatize_and_aggregate, oracle.aggregate_size),
    ]
    for method, size in ways:
        fresh = method(values, rng=np.random.default_rng(seed))
        out = np.full(size, 1_000)
        result = method(values, rng=np.random.default_rng(seed), out=out)
        name = getattr(method, "__name__", str(method))
        expect(result is out, f"{name} returns another array than out")
        expect(fresh.dtype == np.int64, f"{name} returns {fresh.dtype}, expected int64")
        expect(
            np.array_equal(out - 1_000, fresh),
            f"{name} added {out - 1_000} to out, but returns {fresh} without it",
        )


@CHECKS.add()
def _same_seed_gives_the_same_bits(oracle: FrequencyOracle, seed: int) -> None:
    values = np.arange(3_000) % oracle.domain_size
    for name in ("privatize", "privatize_and_tally", "privatize_and_aggregate"):
        draw = getattr(oracle, name)
        first, again, other = (
            draw(values, rng=np.random.default_rng(each)) for each in (seed, seed, seed + 1)
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
    oracle.privatize_and_tally(values, rng=rng)
    expect(np.array_equal(values, kept), "privatize or privatize_and_tally changed the values")
    shown = reports.copy()
    oracle.tally(reports, np.array([1, 0]))
    expect(np.array_equal(reports, shown), "tally changed the reports")
    aggregate = oracle.aggregate(reports)
    summed = aggregate.copy()
    oracle.support(aggregate, np.array([1, 0]))
    expect(np.array_equal(aggregate, summed), "support changed the aggregate")


@CHECKS.add()
def _report_bits_are_enough(oracle: FrequencyOracle, seed: int) -> None:
    size = len(oracle.report_space())
    expect(
        2**oracle.report_bits >= size - 1e-9,
        f"report_bits={oracle.report_bits} cannot tell {size} reports apart, expected at least "
        f"{math.log2(size)}",
    )


@CHECKS.add()
def _values_per_report_are_those_of_reports(oracle: FrequencyOracle, seed: int) -> None:
    stated = oracle.values_per_report
    shape = _some_reports(oracle, seed).shape
    expect(
        stated is None or shape == (60, stated),
        f"values_per_report is {stated}, but 60 reports have the shape {shape}",
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
    wrong: list[list[object]] = [[-1, 0], [0, 99], [0.5], [[0, 1]], [True]]
    for values in wrong:
        for method in (oracle.privatize, oracle.privatize_and_tally):
            name = getattr(method, "__name__", "privatize")
            expect_refusal(
                f"{name} of the values {values}",
                partial(method, np.array(values), rng=rng),
                naming="values",
            )


@CHECKS.add()
def _wrong_candidates_are_refused(oracle: FrequencyOracle, seed: int) -> None:
    reports = oracle.privatize(np.array([0]), rng=np.random.default_rng(seed))
    beyond = np.array([oracle.domain_size])
    expect_refusal(
        f"tally of the candidate {oracle.domain_size}",
        lambda: oracle.tally(reports, beyond),
        naming="candidates",
    )


@CHECKS.add()
def _an_out_array_of_another_shape_is_refused(oracle: FrequencyOracle, seed: int) -> None:
    for shape in ((2,), (4, 1)):
        expect_refusal(
            f"privatize_and_tally into out of shape {shape}",
            partial(
                oracle.privatize_and_tally,
                np.array([0]),
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
    try:
        oracle.epsilon = 3.0  # type: ignore[misc]
    except FrozenInstanceError:
        return
    raise AssertionError("epsilon can be assigned to; expected a frozen dataclass")
