from __future__ import annotations

import itertools

import numpy as np
import pytest

import fedhh
from fedhh.clients.clients import Clients
from fedhh.questions.choice import PaddedMember, SetSize
from fedhh.server.ldpminer import LdpMiner
from fedhh.server.padded_sampling import padded_size
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.lexicon import Lexicon

WORDS = ["".join(pair) for pair in itertools.product("abcdef", repeat=2)]


@pytest.fixture(scope="module")
def baskets():
    """20,000 clients with three of 36 words each, the first of them by half of the clients."""
    rng = np.random.default_rng(4)
    distribution = np.r_[[0.2] * 3, [0.4 / 33] * 33]
    drawn = rng.choice(36, size=(20_000, 3), p=distribution / distribution.sum())
    return Clients.from_rows(
        name="baskets", lexicon=Lexicon(words=WORDS), clients=np.repeat(np.arange(20_000), 3),
        word_ids=drawn.ravel(), num_clients=20_000,
    )  # fmt: skip


def test_both_rounds_ask_everybody_with_half_of_epsilon(baskets):
    protocol = LdpMiner(
        candidates=Candidates(WORDS), alphabet="abcdef", keep=3, padded_size=3, local_epsilon=4.0
    )
    rounds = list(fedhh.rounds(protocol, baskets, seed=0))
    first, second = (each.question for each in rounds)
    assert (first.channel.oracle.name, second.channel.oracle.name) == ("bassily-smith", "sue")
    assert (first.channel.oracle.epsilon, second.channel.oracle.epsilon) == (2.0, 2.0)
    assert (first.cohort.size, second.cohort.size) == (20_000, 20_000)
    assert (first.num_candidates, second.num_candidates) == (36, 6)
    found = protocol.discoveries(rounds[-1].state)
    assert set(found.words) == set(WORDS[:3])
    for word, estimate, variance in zip(found.words, found.estimate, found.variance, strict=True):
        true = baskets.word_counts().holders[WORDS.index(word)]
        assert abs(estimate - true) < 5 * variance**0.5


@pytest.mark.parametrize(
    ("settings", "uses", "share"),
    [({}, 2, 1 / 2), ({"padded_size": 3}, 2, 1 / 2), ({"false_discovery_rate": 0.1}, 3, 1 / 3)],
)
def test_a_plan_claims_the_clients_epsilon_over_all_its_rounds(settings, uses, share):
    protocol = miner(local_epsilon=6.0, **settings).settle(num_clients=20_000, seed=0)
    plan = protocol.plan
    assert plan.most_rounds_per_client == uses
    assert protocol.round_epsilon == pytest.approx(6 * share)
    assert plan.local_epsilon * uses == pytest.approx(6.0)


@pytest.mark.slow("::test_a_plan_claims_the_clients_epsilon_over_all_its_rounds")
def test_epsilon_is_the_clients_over_all_its_rounds(baskets):
    for rate, rounds in ((0.0, 2), (0.1, 3)):
        protocol = LdpMiner(
            candidates=Candidates(WORDS), alphabet="abcdef", keep=3, padded_size=3,
            local_epsilon=6.0, false_discovery_rate=rate,
        )  # fmt: skip
        result = fedhh.simulate(protocol, baskets, seed=0)
        assert result.cost["rounds"] == rounds
        assert protocol.round_epsilon == pytest.approx(6 / rounds)
        for unit in ("item", "user"):
            assert result.privacy.best(unit, "local").epsilon == pytest.approx(6.0)


def test_an_epsilon_too_small_to_share_is_refused():
    with pytest.raises(InputError, match="epsilon_of_a_round"):
        LdpMiner(candidates=Candidates(WORDS), local_epsilon=1.5e-6)


def miner(*, kind=LdpMiner, **settings):
    fields = {"candidates": Candidates(WORDS), "alphabet": "abcdef", "keep": 3}
    return kind(**{**fields, "local_epsilon": 4.0, **settings})


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_the_size_is_asked_of_clients_whom_no_other_round_asks(baskets, rate):
    protocol = miner(false_discovery_rate=rate).settle(num_clients=20_000, seed=0)
    assert protocol.padded_size == "asked"
    rounds = list(fedhh.rounds(protocol, baskets, seed=0))
    first, *others = (each.question for each in rounds)
    assert isinstance(first.choice, SetSize)
    assert [type(each.choice) for each in others[:2]] == [PaddedMember] * 2
    # Of 20,000, or of what the validation round leaves of them, a tenth.
    assert first.cohort.size == pytest.approx(2_000 * (0.75 if rate else 1), abs=1)
    last = first.cohort.start + first.cohort.size
    for each in others:
        assert each.cohort.redraw is None
        assert each.cohort.start == last
        assert each.cohort.start + each.cohort.size <= 20_000
        assert each.local_epsilon == pytest.approx(4.0 / (3 if rate else 2))
    assert first.local_epsilon == pytest.approx(4.0 / (3 if rate else 2))
    # Most clients hold two or three words; the two rounds pad to what was heard.
    assert padded_size(rounds[0].state.own.sizes) == 3
    assert {each.choice.padded_size for each in others[:2]} == {3}


@pytest.mark.slow("::test_a_plan_claims_the_clients_epsilon_over_all_its_rounds")
def test_the_size_counts_as_no_further_use_of_a_client(baskets):
    result = fedhh.simulate(miner(local_epsilon=6.0), baskets, seed=0)
    assert result.cost["rounds"] == 3
    assert result.protocol.plan.most_rounds_per_client == 2
    for unit in ("item", "user"):
        assert result.privacy.best(unit, "local").epsilon == pytest.approx(6.0)


def test_more_clients_than_there_are_next_to_those_of_the_size_are_refused(baskets):
    with pytest.raises(InputError, match="clients_per_layer <= 18,000"):
        miner(clients_per_layer=20_000).settle(num_clients=20_000, seed=0)
    miner(clients_per_layer=18_000).settle(num_clients=20_000, seed=0)
    miner(clients_per_layer=20_000, padded_size=3).settle(num_clients=20_000, seed=0)


def test_clients_with_one_word_are_not_padded():
    rng = np.random.default_rng(5)
    single = Clients.from_rows(
        name="single", lexicon=Lexicon(words=WORDS), clients=np.arange(5_000),
        word_ids=rng.integers(36, size=5_000), num_clients=5_000,
    )  # fmt: skip
    *_, last = fedhh.rounds(miner(), single, seed=0)
    assert padded_size(last.state.own.sizes) == 1
