"""One vote per client: its exact distribution, what it costs, and what it takes from a fake one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.oracles.client_votes import ClientVotes
from fedhh.testing import ALPHA
from fedhh.testing.statistics import follows_distribution
from fedhh.validation import InputError

CASES = [("ss", 1.0, 5, 2), ("ss", 0.2, 4, 3), ("grr", 1.0, 4, 3), ("none", math.inf, 4, 2)]


def client_votes(name: str, epsilon: float, size: int, items: int) -> ClientVotes:
    oracle = make_pure_oracle(OracleSpec(name=name, epsilon=epsilon), size)
    return ClientVotes(oracle=oracle, max_items=items)


def vote_distribution(votes: ClientVotes, values: list[int]) -> dict[tuple[int, ...], float]:
    """Return the exact distribution of which values a client votes for, by all its reports."""
    oracle = votes.oracle
    space = oracle.report_space()
    listed = np.asarray(oracle.supported_values(space))
    chances = [np.exp(oracle.log_prob(space, value)) for value in values]
    found: dict[tuple[int, ...], float] = {}
    for places in itertools.product(range(len(space)), repeat=len(values)):
        supported = set(listed[list(places)].ravel().tolist())
        vote = tuple(int(value in supported) for value in range(oracle.domain_size))
        chance = math.prod(float(chances[i][place]) for i, place in enumerate(places))
        found[vote] = found.get(vote, 0.0) + chance
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_vote_has_the_stated_probability_by_enumeration(case):
    votes = client_votes(*case)
    dummy = votes.oracle.domain_size - 1
    # The first values are contributed, the rest of the reports are dummies.
    values = [0, 1, dummy][: votes.max_items]
    exact = vote_distribution(votes, values)
    assert sum(exact.values()) == pytest.approx(1)
    for value in range(dummy):
        chance = sum(p for vote, p in exact.items() if vote[value])
        assert chance == pytest.approx(votes.p if value in values else votes.q, rel=1e-12)


@pytest.mark.parametrize("case", CASES[:3])
def test_added_votes_follow_that_distribution_jointly(case):
    votes = client_votes(*case)
    values = [1, 2, votes.oracle.domain_size - 1][: votes.max_items]
    rng = np.random.default_rng(5)
    draws = np.zeros((20_000, votes.oracle.domain_size), dtype=np.int64)
    reports = votes.oracle.privatize(np.tile(values, len(draws)), rng=rng)
    for row, own in zip(draws, np.split(reports, len(draws)), strict=True):
        votes.add_reports(own, out=row)
    exact = vote_distribution(votes, values)
    assert follows_distribution(draws, exact)
    # Controls: the distribution of another client, and that of one report fewer.
    assert not follows_distribution(
        draws, vote_distribution(votes, [value - 1 for value in values])
    )
    assert not follows_distribution(draws, vote_distribution(votes, values[:-1]))


def test_the_tally_of_many_clients_is_binomial_and_the_estimate_unbiased():
    votes = client_votes("ss", 3.0, 40, 5)
    clients, holders = 3_000, 700
    values = np.full((clients, 5), 39)
    values[:holders, 0] = 7
    values[:, 1] = np.arange(clients) % 5
    rng = np.random.default_rng(8)
    tally = np.zeros(40, dtype=np.int64)
    votes.add(values, rng=rng, out=tally)
    for value, held in ((7, holders), (20, 0), (3, clients // 5)):
        deviation = math.sqrt(float(votes.variance(held, clients)))
        z = (float(votes.estimate(tally, clients)[value]) - held) / deviation
        assert abs(z) < stats.norm.isf(ALPHA / 2)
    # Counted as reports, the same tally is far below what its estimate expects.
    assert votes.oracle.estimate(tally, clients * 5)[20] < -10


def test_chunks_of_clients_add_up_to_all_of_them(monkeypatch):
    votes = client_votes("grr", 2.0, 9, 4)
    values = np.random.default_rng(0).integers(0, 9, (50, 4))
    whole, parts = np.zeros(9, dtype=np.int64), np.zeros(9, dtype=np.int64)
    monkeypatch.setattr("fedhh.oracles.client_votes._NUMBERS_AT_ONCE", 30)
    rng = np.random.default_rng(1)
    votes.add(values, rng=rng, out=parts)
    rng = np.random.default_rng(1)
    reports = [votes.oracle.privatize(each.ravel(), rng=rng) for each in np.split(values[:49], 7)]
    reports.append(votes.oracle.privatize(values[49:].ravel(), rng=rng))
    votes.add_reports(np.concatenate(reports), out=whole)
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize(
    ("epsilon", "size", "items", "ratio"),
    [(8.0, 27_001, 10, 1.0014), (10.0, 1_000_001, 60, 1.0014)],
)
def test_what_it_costs_in_variance(epsilon, size, items, ratio):
    oracle = make_pure_oracle(
        OracleSpec(name="ss", epsilon=epsilon, params={"subset_size": "optimal"}), size
    )
    votes = ClientVotes(oracle=oracle, max_items=items)
    clients = 1_000
    measured = float(votes.variance(0, clients)) / float(oracle.variance(0, clients * items))
    q = oracle.q
    formula = (1 - (1 - q) ** items) * (1 - q) ** (1 - items) / (items * q)
    assert measured == pytest.approx(formula, rel=1e-9)
    assert measured == pytest.approx(ratio, abs=1e-4)


def test_a_fake_client_has_one_vote_for_its_target_where_it_had_one_for_each_report():
    votes = client_votes("ss", 1.0, 12, 6)
    report = np.zeros(votes.oracle.d, dtype=np.int64) + np.arange(votes.oracle.d)
    crafted = np.tile(report, (6, 1))
    tally = np.zeros(12, dtype=np.int64)
    votes.add_reports(crafted, out=tally)
    assert tally[0] == 1
    assert votes.oracle.aggregate(crafted)[0] == 6
    # It still supports as many targets as its reports have room for.
    spread = (np.arange(6 * votes.oracle.d) % 12).reshape(6, votes.oracle.d)
    tally[:] = 0
    votes.add_reports(spread, out=tally)
    assert tally.tolist() == [1] * 12


def test_oracles_whose_reports_have_no_list_are_refused_in_one_line():
    for name in ("oue", "olh"):
        with pytest.raises(InputError, match=r"votes_per_client='one'.*use ss or grr") as refused:
            client_votes(name, 1.0, 5, 2)
        assert "\n" not in str(refused.value)
    oue = make_pure_oracle(OracleSpec(name="oue", epsilon=1.0), 5)
    with pytest.raises(InputError, match="use ss or grr"):
        oue.supported_values(np.zeros((1, 5), dtype=np.int64))
