from dataclasses import replace

import pytest
from fedhh_extras.significant import SignificantTrieHH

from fedhh.testing import ProtocolTrial, protocol_checks, small_population

TRIAL = ProtocolTrial(
    SignificantTrieHH(alphabet="abcdef", clients_per_layer=500, depth=4, eta_max=20),
    population=small_population(4_000),
)


@pytest.mark.parametrize("check", protocol_checks(TRIAL), ids=str)
def test_significant_triehh(check):
    check(TRIAL)


def test_fewer_prefixes_are_kept_when_more_significance_is_asked_for():
    kept = []
    for least_z in (1.0, 4.0):
        protocol = replace(TRIAL.protocol, least_z=least_z)
        trial = ProtocolTrial(protocol, population=TRIAL.population)
        kept.append(sum(summary.num_kept for summary in trial.summaries(0)))
    assert 0 < kept[1] < kept[0]
