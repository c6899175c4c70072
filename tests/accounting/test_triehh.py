from __future__ import annotations

import math

import pytest

from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.trusted import account_triehh
from fedhh.mechanisms.sampled_threshold import triehh_epsilon

SETTINGS = {"num_clients": 650_000, "sample_size": 14_286, "threshold": 15, "num_rounds": 10}


def test_a_run_claims_its_privacy_for_users_and_nothing_against_the_server():
    report = account_triehh(**SETTINGS, delta=2.3e-12)
    for unit in ("item", "user"):
        assert math.isinf(report.best(unit, "local").epsilon)
        central = report.best(unit, "central")
        assert central.epsilon == triehh_epsilon(**SETTINGS, delta=2.3e-12)
        # A tenth of what the paper states at this delta.
        assert central.epsilon == pytest.approx(0.42, abs=0.01)
        assert central.delta == 2.3e-12
        assert central.neighboring == "swap"
        assert "docs/accounting.md, section 8" in central.theorem
        assert not central.claimed_in_paper
    assert report.anonymity == ()


def test_settings_without_a_bound_have_no_central_privacy():
    report = account_triehh(
        num_clients=1_000, sample_size=17, threshold=14, num_rounds=11, delta=1e-10
    )
    assert math.isinf(report.best("user", "central").epsilon)
    reasons = [
        each.epsilon for each in report.guarantees if isinstance(each.epsilon, NotApplicable)
    ]
    assert len(reasons) == 2
    assert "delta=1e-10 for sample_size=17 of num_clients=1,000, threshold=14" in str(reasons[0])
