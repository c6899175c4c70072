from __future__ import annotations

import math

import pytest

from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.triehh import account_triehh
from fedhh.mechanisms.sampled_threshold import triehh_delta


def test_a_run_claims_the_theorem_for_users_and_nothing_against_the_server():
    report = account_triehh(num_clients=650_000, sample_size=14_286, threshold=15, num_rounds=10)
    for unit in ("item", "user"):
        assert math.isinf(report.best(unit, "local").epsilon)
        central = report.best(unit, "central")
        assert central.epsilon == pytest.approx(4.0, rel=1e-3)
        assert central.delta == triehh_delta(15) < 2.3e-12
        assert "Zhu et al. (2020)" in central.theorem
        assert not central.claimed_in_paper
    assert report.anonymity == ()


def test_settings_outside_the_theorem_have_no_central_privacy():
    report = account_triehh(num_clients=1_000, sample_size=200, threshold=5, num_rounds=10)
    assert math.isinf(report.best("user", "central").epsilon)
    reasons = [
        each.epsilon for each in report.guarantees if isinstance(each.epsilon, NotApplicable)
    ]
    assert len(reasons) == 2
    assert "sample_size" in str(reasons[0])
