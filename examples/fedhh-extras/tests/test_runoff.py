from dataclasses import replace

import numpy as np
from fedhh_extras.runoff import Runoff

import fedhh
from fedhh.testing import ProtocolTrial, protocol_checks, small_population
from tests.every import every

POPULATION = small_population(4_000)
HELD = sorted(POPULATION.lexicon.words, key=len)[:6]
TRIAL = ProtocolTrial(
    Runoff(alphabet="abcdef", candidates=fedhh.Candidates(tuple(HELD)), keep=3),
    population=POPULATION,
)


@every("check", protocol_checks(TRIAL))
def test_runoff(check):
    check(TRIAL)


def test_the_most_frequent_words_of_the_list_win_with_counts_within_their_errors():
    protocol = replace(TRIAL.protocol, local_epsilon=12.0)
    found = fedhh.simulate(protocol, POPULATION, seed=0).discoveries
    assert len(found) == 3
    errors = found["estimated_clients"] - found["true_clients"]
    assert (np.abs(errors) < 5 * found["std_error"]).all()
