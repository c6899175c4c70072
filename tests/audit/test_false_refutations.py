"""Honest code is hardly ever refuted: bounds hold together, whatever events were tried."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.audit import (
    audit_answer,
    audit_device,
    audit_oracle,
    neighboring_histories,
    stated_records,
    telling_epsilon,
)
from fedhh.audit.devices import LEVELS
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.memoization import dbitflip, one_bit_mean
from fedhh.oracles import GeneralizedRandomizedResponse, OracleSpec, make_oracle
from tests.faulty_devices import CappedDevice

ORACLES = [("grr", 4), ("ss", 20), ("oue", 6), ("olh", 20), ("hr", 20)]
CAP = Cap(amount=2)
ANSWERS = [
    (one_bit_mean(epsilon=1.0, maximum=1.0), 0.0, 1.0),
    (one_bit_mean(epsilon=2.0, maximum=1.0, gamma=0.2), 0.0, 1.0),
    (dbitflip(epsilon=2.0, num_buckets=4, num_drawn=4), 0, 1),
]


def of_oracles(rounds):
    for seed in range(rounds):
        for name, size in ORACLES:
            oracle = make_oracle(OracleSpec(name=name, epsilon=1.0), size)
            rng = np.random.default_rng([1, seed])
            yield audit_oracle(oracle, num_samples=4_000, rng=rng, confidence=0.99)


def of_devices(rounds):
    for seed in range(rounds):
        for level in LEVELS:
            histories = neighboring_histories(level, num_days=4, events_per_day=5)
            epsilon = telling_epsilon(4.0, stated_records(4.0, CAP, histories).times)
            response = GeneralizedRandomizedResponse(epsilon=epsilon, domain_size=2)
            rng = np.random.default_rng([2, seed])
            device = CappedDevice(oracle=response, cap=CAP)
            yield audit_device(device, histories, num_devices=300, rng=rng)


def of_answers(rounds):
    for seed in range(rounds):
        for answer, low, high in ANSWERS:
            rng = np.random.default_rng([3, seed])
            histories = np.full(8, low), np.full(8, high)
            yield audit_answer(answer, *histories, num_devices=400, rng=rng)


def test_a_few_honest_audits_are_not_refuted():
    found = [each.refuted for kind in (of_devices, of_answers) for each in kind(1)]
    assert len(found) == 6
    assert not any(found)


@pytest.mark.slow("::test_a_few_honest_audits_are_not_refuted")
def test_at_most_one_honest_audit_in_two_hundred_is_refuted():
    found = [each.refuted for kind in (of_oracles, of_devices, of_answers) for each in kind(19)]
    assert len(found) == 209
    assert sum(found) <= 1
