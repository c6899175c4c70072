"""Votes of an audited layer: a worker's, of the stated distribution, fresh each time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.oracles import ORACLES, OracleSpec, SubsetSelection
from fedhh.testing import follows_distribution
from tests.audited_votes import AuditedVotes, audit_votes
from tests.thinned import thinned

SPEC = OracleSpec(name="ss", epsilon=1.5)
RUNS = 1_500


def test_no_run_of_a_layer_is_drawn_twice():
    def layer():
        return AuditedVotes(SPEC, domain_size=9, num_reports=1, holds=0, seed=3)

    once, twice = layer(), layer()
    together = once.differences(200)
    assert (np.r_[twice.differences(100), twice.differences(100)] == together).all()
    assert (together[:100] != together[100:]).any()


def votes(domain_size: int, holds: int) -> np.ndarray:
    layer = AuditedVotes(SPEC, domain_size=domain_size, num_reports=1, holds=holds, seed=3)
    return layer.differences(RUNS)


def distribution_of_difference(domain_size: int, holds: int) -> dict[float, float]:
    """The distribution of one report's votes for the first value less those for the second."""
    oracle = SubsetSelection(epsilon=SPEC.epsilon, domain_size=domain_size)
    pair = (domain_size - 3, domain_size - 2) if domain_size > 2 else (0, 1)
    space = oracle.report_space()
    chances = np.exp(oracle.log_prob(space, pair[holds]))
    difference = (space == pair[0]).any(axis=1).astype(int) - (space == pair[1]).any(axis=1)
    return {float(each): float(chances[difference == each].sum()) for each in (-1, 0, 1)}


@pytest.mark.parametrize("holds", [0, 1])
def test_few_votes_of_one_report_have_the_randomizers_distribution(holds):
    layer = AuditedVotes(SPEC, domain_size=9, num_reports=1, holds=holds, seed=3)
    drawn = layer.differences(600).tolist()
    assert follows_distribution(drawn, distribution_of_difference(9, holds))
    assert not follows_distribution(drawn, distribution_of_difference(9, 1 - holds))


def test_an_audit_of_few_votes_sees_what_messages_hide(monkeypatch):
    common = {"domain_size": 5, "num_samples": 500, "confidence": 1 - 1e-9, "seed": 2}
    assert audit_votes(SPEC, **common).at_least <= SPEC.epsilon
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    assert audit_votes(SPEC, **common).at_least > SPEC.epsilon


@pytest.mark.slow("::test_few_votes_of_one_report_have_the_randomizers_distribution")
@pytest.mark.parametrize("domain_size", thinned([2, 3, 4, 9]))
@pytest.mark.parametrize("holds", [0, 1])
def test_one_reports_votes_have_the_randomizers_distribution(domain_size, holds):
    drawn = votes(domain_size, holds).tolist()
    assert follows_distribution(drawn, distribution_of_difference(domain_size, holds))
    # The control: the other value's distribution.
    assert not follows_distribution(drawn, distribution_of_difference(domain_size, 1 - holds))


def test_the_votes_are_a_workers(monkeypatch):
    asked = []
    answer = ClientWorker.answer

    def watched(self, broadcast, blocks):
        asked.append((type(broadcast.question.channel).__name__, blocks))
        return answer(self, broadcast, blocks)

    monkeypatch.setattr(ClientWorker, "answer", watched)
    AuditedVotes(SPEC, domain_size=5, num_reports=4, holds=0, seed=1).differences(3)
    assert asked == [("Reports", [0]), ("Reports", [1]), ("Reports", [2])]


def test_a_layer_has_one_holder_among_dummies():
    spec = OracleSpec(name="none", epsilon=math.inf)
    for holds, expected in ((0, 1.0), (1, -1.0)):
        layer = AuditedVotes(spec, domain_size=5, num_reports=7, holds=holds, seed=1)
        assert set(layer.differences(4)) == {expected}
    layer = AuditedVotes(spec, domain_size=5, num_reports=7, holds=2, seed=1)
    assert layer.tally()[layer.values].tolist() == [0, 0, 7]
    # With two values the other one is the dummy, and the others contribute it.
    layer = AuditedVotes(spec, domain_size=2, num_reports=7, holds=0, seed=1)
    assert set(layer.differences(4)) == {-5.0}


@pytest.mark.slow("::test_an_audit_of_few_votes_sees_what_messages_hide")
def test_an_audit_of_votes_sees_what_messages_hide(monkeypatch):
    common = {"domain_size": 20, "num_samples": 8_000, "confidence": 1 - 1e-9, "seed": 2}
    assert audit_votes(SPEC, **common).at_least <= SPEC.epsilon
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    assert audit_votes(SPEC, **common).at_least > SPEC.epsilon
