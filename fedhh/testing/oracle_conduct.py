"""How any frequency oracle has to behave: sums, seeds, arrays, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from fedhh.oracles.base import FrequencyOracle, Reports, Tally
from fedhh.testing.checks import (
    Checks,
    expect,
    expect_added,
    expect_equal,
    expect_frozen,
    expect_refusal,
    expect_same,
)

CHECKS: Checks[FrequencyOracle] = Checks()
"""What holds for any number of values and reports."""

_ALONE = 32
"""Values whose reports are looked at alone."""


def _ways(oracle: FrequencyOracle) -> dict[str, Callable[..., Reports]]:
    """Return what makes what leaves a device of ``(values, *, rng)``."""
    return {
        "privatize": oracle.privatize,
        "aggregate": lambda values, *, rng: oracle.aggregate(values=values, rng=rng),
    }


def _is_private(oracle: FrequencyOracle) -> bool:
    return oracle.epsilon < math.inf


def _some_reports(oracle: FrequencyOracle, seed: int) -> Reports:
    rng = np.random.default_rng(seed)
    return oracle.privatize(np.arange(60) % oracle.domain_size, rng=rng)


@CHECKS.add()
def _aggregates_merge_and_hold_the_support(oracle: FrequencyOracle, seed: int) -> None:
    reports = _some_reports(oracle, seed)
    everything = np.arange(oracle.domain_size)
    whole = oracle.aggregate(reports)
    parts = np.stack([oracle.aggregate(reports[:25]), oracle.aggregate(reports[25:])])
    expect(
        whole.shape == (oracle.aggregate_size,) and whole.dtype == np.int64,
        f"aggregate returns {whole.shape} of {whole.dtype}, expected ({oracle.aggregate_size},) "
        "of int64 by aggregate_size",
    )
    expect_equal(
        whole, parts.sum(axis=0), "the aggregate of 60 reports, against 25 and the others,"
    )
    support = oracle.support(reports=reports)
    for asked, found in (
        ("of all values", oracle.support(whole, everything)),
        ("without candidates", oracle.support(whole)),
        ("of two aggregates", oracle.support(parts).sum(axis=0)),
        ("of all values in two", oracle.support(parts, everything).sum(axis=0)),
    ):
        expect_equal(found, support, f"support {asked}, against that in the reports,")
    candidates = np.minimum([2, 0, 2, 1], oracle.domain_size - 1)
    asked = f"candidates {candidates}"
    found = oracle.support(reports=reports, candidates=candidates)
    expect(found.dtype == np.int64, f"support returns {found.dtype}, expected int64")
    expect_equal(found, support[candidates], f"the support of {asked}, against that of all values,")


@CHECKS.add()
def _sketches_are_as_large_for_any_domain(oracle: FrequencyOracle, seed: int) -> None:
    larger = replace(oracle, domain_size=10 * oracle.domain_size)
    if oracle.is_sketch:
        size = larger.aggregate_size
        expect_equal(size, oracle.aggregate_size, "aggregate_size of ten times the values")


@CHECKS.add()
def _no_reports_give_zeros(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nobody = np.array([], dtype=np.int64)
    reports = oracle.privatize(nobody, rng=rng)
    expect(len(reports) == 0, f"privatize made {len(reports)} reports of no value")
    support = oracle.support(reports=reports, candidates=np.array([0, 1]))
    expect_equal(support, [0, 0], "the support in no report")
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
    for name, draw in _ways(oracle).items():
        first, again, other = (
            draw(values, rng=np.random.default_rng(each)) for each in (seed, seed, seed + 1)
        )
        expect(np.array_equal(first, again), f"{name} drew differently from two rngs of one seed")
        if _is_private(oracle):
            expect(
                not np.array_equal(first, other), f"{name} drew alike from rngs of different seeds"
            )


@CHECKS.add()
def _inputs_are_left_as_they_were(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.arange(50) % oracle.domain_size
    reports = oracle.privatize(values.copy(), rng=rng)
    aggregate = oracle.aggregate(reports.copy())
    given = {"values": values, "reports": reports, "aggregate": aggregate}
    kept = {name: each.copy() for name, each in given.items()}
    oracle.privatize(values, rng=rng)
    oracle.aggregate(values=values, rng=rng)
    oracle.aggregate(reports)
    oracle.support(reports=reports, candidates=np.array([1, 0]))
    oracle.support(aggregate, np.array([1, 0]))
    expect_same(given, kept, "what was given", "privatize, aggregate or support changed it")


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
    least = math.log2(len(oracle.report_space()))
    expect(
        oracle.report_bits >= least - 1e-9,
        f"report_bits is {oracle.report_bits}, expected at least {least} to tell reports apart",
    )


@CHECKS.add(_is_private)
def _more_privacy_means_more_noise(oracle: FrequencyOracle, seed: int) -> None:
    noisier = replace(oracle, epsilon=oracle.epsilon / 2)
    before, after = float(oracle.variance(0, 100)), float(noisier.variance(0, 100))
    expect(after > before, f"half the epsilon takes the variance from {before} to {after}")


@CHECKS.add()
def _wrong_arguments_are_refused(oracle: FrequencyOracle, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong: list[list[object]] = [[-1, 0], [0, oracle.domain_size], [0.5], [[0, 1]], [True]]
    for values in wrong:
        for name, draw in _ways(oracle).items():
            made = partial(draw, np.array(values), rng=rng)
            expect_refusal(f"{name} of the values {values}", made, naming="values")
    reports, beyond = _some_reports(oracle, seed), np.array([oracle.domain_size])
    asked = partial(oracle.support, reports=reports, candidates=beyond)
    expect_refusal(f"support of the candidate {beyond[0]}", asked, naming="candidates")
    for shape in ((oracle.aggregate_size + 1,), (oracle.aggregate_size, 1)):
        out = np.zeros(shape, dtype=np.int64)
        added = partial(oracle.aggregate, values=np.array([0]), rng=rng, out=out)
        expect_refusal(f"aggregate into out of shape {shape}", added, naming="out")


@CHECKS.add()
def _bad_settings_are_refused(oracle: FrequencyOracle, seed: int) -> None:
    bad: list[tuple[str, float]] = [("epsilon", each) for each in (0.0, -1.0, math.nan)]
    bad += [("domain_size", each) for each in (1, 0, 2.5)]
    if _is_private(oracle):
        # Only the null mechanism may promise nothing.
        bad.append(("epsilon", math.inf))
    for name, value in bad:
        expect_refusal(f"{name}={value}", partial(replace, oracle, **{name: value}), naming=name)


@CHECKS.add()
def _parameters_cannot_change(oracle: FrequencyOracle, seed: int) -> None:
    expect_frozen(oracle)
