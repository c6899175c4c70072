"""Standard deviations of a count by the size of a Count Mean Sketch."""

from __future__ import annotations

import math

import pytest

from fedhh.oracles.comparison import compare_oracles
from fedhh.oracles.sketch_errors import cms_variance


def test_deviations_fall_with_the_size_and_stay_above_the_floor():
    found = cms_variance(num_reports=10**6, num_values=10_000, simulated=[(64, 64)])
    # sqrt(n e) / (e - 1)
    assert found.floor == pytest.approx(math.sqrt(10**6 * math.e) / (math.e - 1))
    assert (found.surface > found.floor).all()
    assert (found.surface[1:] < found.surface[:-1]).all()
    assert list(found.simulated) == [(64, 64)]
    again = cms_variance(num_reports=10**6, num_values=10_000, simulated=[(64, 64)], seed=1)
    assert again.simulated != found.simulated
    assert found.count == pytest.approx(10**6 / 10 / sum(1 / n for n in range(1, 10_001)))


def test_a_comparison_as_a_dictionary_has_every_oracle():
    found = compare_oracles(epsilon=2.0, domain_size=100)
    rows = {row["name"]: row for row in found.to_dict()["oracles"]}
    assert rows["oue"]["relative_to_oue"] == 1.0
    assert rows["grr"]["relative_to_oue"] == found.relative_to_oue("grr") > 1.0
    assert set(rows) | set(found.refused) >= {"ss", "pgr", "cms"}
