import math

import numpy as np
from fedhh_extras.random_bits import BitTrieHH, RandomBits

import fedhh
from fedhh.testing import ProtocolTrial, protocol_checks, small_population
from tests.every import every

POPULATION = small_population(12_000)
TRIAL = ProtocolTrial(
    BitTrieHH(alphabet="abcdef", depth=3, eta_max=9, max_items=2, local_epsilon=8.0),
    population=POPULATION,
)


@every("check", protocol_checks(TRIAL))
def test_bit_triehh(check):
    check(TRIAL)


def test_a_bit_has_the_epsilon_that_it_states():
    channel = RandomBits(size=5, epsilon=2.0)
    # What is drawn tells nothing; of the bit, the worst ratio is that of truth and lie.
    assert math.isclose(channel.p / channel.q, math.exp(2.0))
    assert math.isclose((1 / 5 - channel.q) / (1 / 5 - channel.p), math.exp(2.0))


def test_frequent_words_are_found_with_counts_within_their_errors():
    found = fedhh.simulate(TRIAL.protocol, POPULATION, seed=0).discoveries
    assert len(found) >= 2
    assert found["true_clients"].min() > 4 * np.median(POPULATION.word_counts().holders)
    errors = found["estimated_clients"] - found["true_clients"]
    assert (errors < 5 * found["std_error"]).all()


def test_fake_clients_send_what_honest_ones_do_who_hold_the_target():
    fakes = fedhh.Adversary(clients=12_000, targets=("fed",))
    result = fedhh.simulate(TRIAL.protocol, POPULATION, seed=0, adversary=fakes)
    assert result.adversary.targets_found == 1
