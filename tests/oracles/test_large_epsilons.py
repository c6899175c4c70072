"""An epsilon whose exponential is no double: a report says all that it can."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.oracles import OracleSpec, make_oracle

VALUES = np.array([0, 3, 3, 7, 7, 7, 7, 15] * 100)


@pytest.mark.parametrize("epsilon", [800.0, 3000.0, 1e9])
@pytest.mark.parametrize("name", ["grr", "ss", "sue", "cms", "hcms", "hashtogram"])
def test_no_report_is_noise(name: str, epsilon: float) -> None:
    oracle = make_oracle(OracleSpec(name=name, epsilon=epsilon), 16)
    rng = np.random.default_rng(0)
    reports = oracle.privatize(VALUES, rng=rng)
    support = oracle.support(reports=reports, candidates=np.arange(16))
    # A report always supports the value that it was made of; of others, sketches support some.
    assert np.all(support >= np.bincount(VALUES, minlength=16))
    fused = oracle.support(oracle.aggregate(values=VALUES, rng=rng))
    assert np.all(fused >= np.bincount(VALUES, minlength=16))
    assert support.min() < len(VALUES) / 2
