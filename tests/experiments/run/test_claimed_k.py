"""The claimed k stands wherever the central epsilon does."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import fedhh
from fedhh.experiments.report.comparison import comparison_table
from fedhh.experiments.report.run_figures import of_whom
from fedhh.experiments.report.run_tables import summary_rows
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.privacy import claimed_k
from fedhh.experiments.run.sentences import privacy_sentence
from fedhh.testing import LETTERS, small_population

SMALL = {"alphabet": LETTERS, "local_epsilon": 6.0}
VALIDATED = {
    "adaptive": fedhh.AdaptiveTrieHH(**SMALL, depth=4, eta_max=25, max_items=4, anonymity_k=7),
    "blender": fedhh.Blender(**SMALL, length=4, false_discovery_rate=0.05, anonymity_k=7),
    "grr": fedhh.LdpTrieHH(
        **SMALL, depth=4, eta_max=25, oracle="grr", false_discovery_rate=0.05, anonymity_k=7
    ),
}


def run(protocol):
    return fedhh.simulate(protocol, small_population(3_000), seed=0)


@pytest.mark.parametrize("name", VALIDATED)
def test_every_protocol_with_a_validation_round_claims_its_k(name):
    protocol = VALIDATED[name]
    report = run(protocol).privacy
    assert claimed_k(report) == 7
    # Without the round there is no claim by design.
    plain = run(replace(protocol, false_discovery_rate=0.0)).privacy
    assert claimed_k(plain) != 7
    # Nor with a rate that alpha does not allow.
    loose = run(replace(protocol, false_discovery_rate=0.2)).privacy
    assert claimed_k(loose) != 7


def test_k_stands_in_the_brief_the_tables_the_figures_and_the_columns():
    result = run(VALIDATED["adaptive"])
    assert "k = 7 at alpha 0.95" in privacy_sentence(result)
    assert ("k-anonymity", "k = 7") in [row[:2] for row in summary_rows(result)]
    assert "k 7 at alpha 0.95" in of_whom(result)
    flat = flat_result(result, delta=1e-10)
    assert (flat["claimed_k"], flat["alpha"]) == (7, 0.95)
    plain = flat_result(run(replace(VALIDATED["adaptive"], false_discovery_rate=0.0)), delta=1e-10)
    assert (plain["claimed_k"], plain["alpha"]) == (None, None)
    table = comparison_table(
        pd.DataFrame(
            [
                {"protocol": name, "seed": 0, **row}
                for name, row in (("validated", flat), ("plain", plain))
            ]
        ),
        {"title": "Both", "axes": ["protocol"]},
    )
    assert [record.get("claimed_k_mean") for record in table.records] == [7, None]
    assert "alpha 0.95" in table.note
