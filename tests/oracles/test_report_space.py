"""All possible reports are listed only where they are few; otherwise one line says how many."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from fedhh.oracles import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.base import LARGEST_REPORT_SPACE
from fedhh.validation import InputError
from tests.every import every

# Domains of 2**23 values make most spaces large; of a sketch it is the table.
LARGE = {
    "cms": {"num_hashes": 2, "num_cells": 1_000},
    "hcms": {"num_cells": 2**12},
    "hashtogram": {"num_cells": 2**22},
    "flh": {"num_hashes": 2**20},
    "bassily-smith": {"num_hashes": 2**21},
    "dbitflip": {"num_bits": 12},
}


def oracle(name: str, domain_size: int, epsilon: float = 3.0, **params: int):
    spec = OracleSpec(name=name, epsilon=math.inf if name == "none" else epsilon, params=params)
    return make_oracle(spec, domain_size)


@every("name", [name for name in ORACLES if name != "blh"])
def test_too_many_reports_are_refused_before_anything_is_allocated(name):
    # A hash function has as many cells as e**epsilon; pgr limits its field.
    epsilon = {"olh": 20.0, "pgr": 2.0}.get(name, 3.0)
    large = oracle(name, 2**23, epsilon, **LARGE.get(name, {}))
    assert large.report_bits > 1
    tracemalloc.start()
    with pytest.raises(InputError, match="at most 4,194,304 numbers in all possible reports"):
        large.report_space()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6


def test_a_hash_function_with_two_cells_has_two_reports_whatever_the_domain():
    assert len(oracle("blh", 2**23).report_space()) == 2


@pytest.mark.parametrize(
    ("name", "domain_size", "params", "size"),
    [
        ("grr", LARGEST_REPORT_SPACE, {}, LARGEST_REPORT_SPACE),
        ("oue", 17, {}, 17 * 2**17),
        ("dbitflip", 9, {"num_bits": 6}, 6 * math.comb(9, 6) * 2**6),
        ("cms", 5, {"num_hashes": 2, "num_cells": 15}, 2 * 2**15 * 2),
        ("hcms", 5, {"num_hashes": 2, "num_cells": 16}, 2 * 16 * 2 * 3),
        ("the", 3, {"steps": 2, "reach": 0.0}, 3 * 3**3),
    ],
)
def test_all_reports_that_may_be_listed_are(name, domain_size, params, size):
    assert oracle(name, domain_size, **params).report_space().size == size


@pytest.mark.parametrize(
    ("name", "domain_size", "params"),
    [
        ("grr", LARGEST_REPORT_SPACE + 1, {}),
        ("oue", 18, {}),
        ("dbitflip", 18, {"num_bits": 6}),
        ("cms", 5, {"num_hashes": 2, "num_cells": 18}),
    ],
)
def test_one_step_further_they_are_refused(name, domain_size, params):
    with pytest.raises(InputError, match=r"4,194,304 numbers .* got 2\*\*\d+\.\d reports of"):
        oracle(name, domain_size, **params).report_space()


def test_subsets_are_listed_by_how_many_there_are():
    few, many = (oracle("ss", domain_size, 0.5) for domain_size in (20, 30))
    assert few.report_space().size == few.d * math.comb(20, few.d)
    assert many.d * math.comb(30, many.d) > LARGEST_REPORT_SPACE
    with pytest.raises(InputError, match="of SubsetSelection with domain_size=30"):
        many.report_space()
