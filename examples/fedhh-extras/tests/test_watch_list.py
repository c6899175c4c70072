import numpy as np
from fedhh_extras.watch_list import WatchList

import fedhh
from fedhh.testing import ProtocolTrial, protocol_checks, small_population
from tests.every import every

POPULATION = small_population(4_000)
ORDER = np.argsort(-POPULATION.word_counts().holders, kind="stable")
HELD = [POPULATION.lexicon.words[place] for place in ORDER[:4]]
TRIAL = ProtocolTrial(
    WatchList(alphabet="abcdef", candidates=fedhh.Candidates((*HELD, "fafafa")), local_epsilon=6.0),
    population=POPULATION,
)


@every("check", protocol_checks(TRIAL))
def test_watch_list(check):
    check(TRIAL)


def test_held_words_of_the_list_are_found_and_others_are_not():
    found = fedhh.simulate(TRIAL.protocol, POPULATION, seed=0).discoveries
    assert set(found["word"]) <= set(HELD)
    assert len(found) >= 2
    errors = found["estimated_clients"] - found["true_clients"]
    assert (np.abs(errors) < 5 * found["std_error"]).all()
