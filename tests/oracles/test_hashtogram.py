from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedhh.oracles import HadamardCountMeanSketch, Hashtogram
from fedhh.validation import InputError

ORACLE = Hashtogram(epsilon=2.0, domain_size=50, num_hashes=16, num_cells=32)


def test_a_report_is_one_of_the_hadamard_sketch_with_an_odd_coefficient():
    # The sign is the lowest bit of the signed cell, so H[2 l + 1, cell] = sign H[l, cell // 2].
    twin = HadamardCountMeanSketch(epsilon=2.0, domain_size=50, num_hashes=16, num_cells=64)
    for row, coefficient, sign in itertools.product(range(3), range(32), (-1, 1)):
        mine = np.array([[row, coefficient, sign]])
        theirs = np.array([[row, 2 * coefficient + 1, sign]])
        even = np.array([[row, 2 * coefficient, sign]])
        candidates = np.arange(50)
        assert (
            ORACLE.support(reports=mine, candidates=candidates)
            == twin.support(reports=theirs, candidates=candidates)
        ).all()
        assert (
            ORACLE.support(reports=mine, candidates=candidates)
            != twin.support(reports=even, candidates=candidates)
        ).any()


def test_a_number_of_cells_that_no_hadamard_matrix_has_is_refused():
    with pytest.raises(InputError, match=r"power of two .*, got num_cells=48; use 64"):
        replace(ORACLE, num_cells=48)
    with pytest.raises(InputError, match="num_cells >= 1, got num_cells=0"):
        replace(ORACLE, num_cells=0)
