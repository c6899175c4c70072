"""A server accepts the reports that an oracle can send, all of them, and no other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.oracles import (
    ORACLES,
    FrequencyOracle,
    GeneralizedRandomizedResponse,
    OracleSpec,
    make_oracle,
)
from fedhh.oracles.report_checks import FLAWS, Flaw, check_reports
from fedhh.validation import InputError
from tests.every import every

_SKETCH = {"num_hashes": 3, "num_cells": 4}
_GRID = {"steps": 1, "reach": 0.3}
PARAMS = {
    "cms": _SKETCH,
    "hcms": _SKETCH,
    "hashtogram": {"num_hashes": 3},
    "flh": {"num_hashes": 3},
    "bassily-smith": {"num_hashes": 3},
    "she": _GRID,
    "the": _GRID,
    "dbitflip": {"num_bits": 2},
}
SIZES = ((2, 1.0), (3, 2.0), (5, 0.4))


def oracle_of(name, size=5, epsilon=0.4):
    epsilon = math.inf if name == "none" else epsilon
    return make_oracle(OracleSpec(name=name, epsilon=epsilon, params=PARAMS.get(name, {})), size)


def rows_of(reports):
    return {tuple(np.ravel(each).tolist()) for each in reports}


def near_misses(space):
    """Return all reports of the same size whose numbers are up to one beyond those sent."""
    flat = space.reshape(len(space), -1).astype(np.int64)
    axes = [
        range(int(low) - 1, int(high) + 2)
        for low, high in zip(flat.min(0), flat.max(0), strict=True)
    ]
    if space.dtype == np.uint8:
        axes = [range(3)] * flat.shape[1]
    assert math.prod(map(len, axes)) < 400_000
    everything = np.array(list(itertools.product(*axes)), dtype=space.dtype)
    return everything.reshape(-1, *space.shape[1:])


@every(("size", "epsilon"), [*SIZES, (70, 2.0)])
@every("name", ORACLES)
def test_every_honest_report_is_accepted(name, size, epsilon):
    oracle = oracle_of(name, size, epsilon)
    reports = oracle.privatize(np.arange(1_000) % size, rng=np.random.default_rng(3))
    check = check_reports(oracle, reports)
    assert check.accepted.shape == (1_000,)
    assert check.accepted.all()
    assert check.refused == {}


@every(("size", "epsilon"), SIZES)
@every("name", ORACLES)
def test_what_is_accepted_is_the_space_of_reports(name, size, epsilon):
    oracle = oracle_of(name, size, epsilon)
    space = oracle.report_space()
    assert check_reports(oracle, space).accepted.all()
    if name in ("olh", "blh"):
        # Its first three numbers are any hash function; the space is that of one.
        cells = np.arange(-2, oracle.num_cells + 2)
        reports = np.c_[np.full((len(cells), 3), [-(2**63), 0, 2**63 - 1]), cells]
        assert (
            check_reports(oracle, reports).accepted == (cells >= 0) & (cells < oracle.num_cells)
        ).all()
        return
    everything = near_misses(space)
    check = check_reports(oracle, everything)
    assert rows_of(everything[check.accepted]) == rows_of(space)
    assert check.accepted.sum() + sum(check.refused.values()) == len(everything)
    # Negative control: there was something to refuse.
    assert check.refused


@every("name", ORACLES)
def test_other_types_sizes_and_numbers_are_refused(name):
    oracle = oracle_of(name)
    good = oracle.privatize(np.arange(6) % 5, rng=np.random.default_rng(1))
    other_types = (np.float64, np.int32, np.int16, np.complex128, np.bool_, object, "U3", ">i8")
    for dtype in other_types:
        check = check_reports(oracle, good.astype(dtype))
        assert check.refused == {Flaw.TYPE: 6}
        assert not check.accepted.any()
    sizes = (good[..., None], good.reshape(6, -1)[:, :0], np.repeat(good.reshape(6, -1), 2, axis=1))
    for other in sizes:
        assert check_reports(oracle, other).refused == {Flaw.SIZE: 6}
    assert check_reports(oracle, np.array(1, dtype=good.dtype)).refused == {Flaw.SIZE: 1}
    for nothing in (None, [0, 1], 3, "report", {}, good.tolist()):
        assert check_reports(oracle, nothing).refused == {Flaw.TYPE: 1}
    assert check_reports(oracle, good[:0]).codes.shape == (0,)
    # Any one number that no report has at its place makes the whole report wrong.
    far = np.iinfo(good.dtype).max
    spoiled = good.copy().reshape(6, -1)
    spoiled[np.arange(6), -1] = far
    if not (name == "cms" and oracle.num_cells % 64 == 0):
        check = check_reports(oracle, spoiled.reshape(good.shape))
        assert not check.accepted.any()
        assert sum(check.refused.values()) == 6


def test_why_a_report_is_refused_is_counted_once():
    subsets = oracle_of("ss", 8, 0.7)
    assert subsets.d == 3
    reports = np.array([[0, 1, 2], [1, 1, 2], [2, 1, 0], [0, 1, 8], [-1, 0, 0], [2, 1, 2]])
    check = check_reports(subsets, reports)
    codes = [None if not code else FLAWS[code - 1] for code in check.codes.tolist()]
    expected = [None, Flaw.REPEATED, Flaw.ORDER, Flaw.DOMAIN, Flaw.DOMAIN, Flaw.REPEATED]
    assert codes == expected
    assert check.refused == {Flaw.DOMAIN: 2, Flaw.REPEATED: 2, Flaw.ORDER: 1}
    # Entries 2 v and 2 v + 1 are about one value.
    bits = oracle_of("dbitflip")
    assert check_reports(bits, np.array([[0, 1], [1, 2], [3, 0]])).refused == {
        Flaw.REPEATED: 1,
        Flaw.ORDER: 1,
    }
    rows = oracle_of("hcms")
    wrong = np.array([[3, 0, 1], [-1, 0, 9], [0, 4, 1], [0, 0, 0], [2, 3, -1]])
    assert check_reports(rows, wrong).refused == {Flaw.ROW: 2, Flaw.DOMAIN: 2}


class Rounded(GeneralizedRandomizedResponse):
    """A plug-in's oracle with reports of its own type."""

    def privatize(self, values, *, rng):
        return super().privatize(values, rng=rng).astype(np.int32)


class Noisy(GeneralizedRandomizedResponse):
    """Another one, of which nothing is known but what it sends: two real numbers."""

    report_form = FrequencyOracle.report_form

    def privatize(self, values, *, rng):
        return rng.normal(size=(len(values), 2))


class Boxed(Noisy):
    """One whose reports cannot be checked."""

    def privatize(self, values, *, rng):
        return np.array([None] * len(values), dtype=object)


def test_a_plug_ins_reports_have_the_type_and_size_of_those_that_it_makes():
    oracle = Rounded(epsilon=1.0, domain_size=4)
    assert check_reports(oracle, np.array([0, 3, 4], dtype=np.int32)).refused == {Flaw.DOMAIN: 1}
    assert check_reports(oracle, np.array([0, 3, 4])).refused == {Flaw.TYPE: 3}


def test_of_real_numbers_only_finite_ones_are_accepted():
    oracle = Noisy(epsilon=1.0, domain_size=4)
    reports = oracle.privatize(np.zeros(5, dtype=np.int64), rng=np.random.default_rng(0))
    assert check_reports(oracle, reports).accepted.all()
    reports[:3, 1] = np.nan, np.inf, -np.inf
    assert check_reports(oracle, reports).refused == {Flaw.DOMAIN: 3}
    assert check_reports(oracle, reports[:, :1]).refused == {Flaw.SIZE: 5}
    with pytest.raises(InputError, match="as arrays of numbers, got object; override report_form"):
        check_reports(Boxed(epsilon=1.0, domain_size=4), reports)
