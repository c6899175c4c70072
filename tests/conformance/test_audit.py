"""Every registered oracle is audited: its code gives at most its stated epsilon, and close to it.

The reports of the suite's small domains are sampled; an oracle with public coins is audited with
its coins drawn too, as its reports show them.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.audit import audit_oracle
from fedhh.oracles import FrequencyOracle
from tests.conformance.test_oracles import CASES, small_oracle
from tests.thinned import thinned


def most_different_values(oracle: FrequencyOracle) -> tuple[int, int]:
    """The pair with the likeliest reports of the worst ratio; small sketches merge some values."""
    if oracle.epsilon == math.inf:
        return 0, 1
    space = oracle.report_space()
    distributions = np.array([oracle.log_prob(space, value) for value in range(oracle.domain_size)])

    def chance_of_the_worst(pair: tuple[int, int]) -> float:
        distribution, other = distributions[list(pair)]
        return float(np.exp(distribution)[distribution - other > 0.99 * oracle.epsilon].sum())

    return max(itertools.permutations(range(oracle.domain_size), 2), key=chance_of_the_worst)


@pytest.mark.parametrize(
    "case", thinned(CASES, single=True), ids=lambda case: "-".join(map(str, case))
)
def test_the_audited_epsilon_is_at_most_the_stated_one_and_close_to_it(case):
    name = case[0]
    oracle = small_oracle(case)
    epsilon = oracle.epsilon
    value, other = most_different_values(oracle)
    found = audit_oracle(
        oracle,
        num_samples=320_000,
        rng=np.random.default_rng(24),
        values=(value, other),
        confidence=1 - 1e-9,
    )
    assert found.at_least <= epsilon
    if name == "none":
        assert found.at_least > 8
    else:
        # The bound is at a confidence of 1 - 1e-9, so it may lie further below.
        assert found.at_least >= 0.85 * epsilon
