"""`fedhh oracles`: what they print, draw and refuse."""

from __future__ import annotations

import pytest

from fedhh.oracles import ORACLES


@pytest.mark.slow("::test_variances_are_those_of_the_fields_table")
def test_oracles_stand_side_by_side_with_one_recommended(answer):
    found = answer("oracles", "compare", "--local-epsilon", "10", "--domain-size", "1000000")
    rows = {row["name"]: row for row in found["oracles"]}
    assert set(rows) | set(found["refused"]) == set(ORACLES) - {"none"}
    assert found["recommended"] == "ss"
    assert rows["ss"]["variance"] == pytest.approx(1.796e-4, rel=5e-4)
    assert rows["sue"]["relative_to_oue"] == pytest.approx(37.6, rel=0.01)
    assert rows["olh"]["aggregate_size"] is None
    sketches = {name for name, row in rows.items() if row["is_sketch"]}
    assert sketches == {"cms", "hcms", "hashtogram", "flh", "bassily-smith"}
    assert "485,210,757" in found["refused"]["pgr"]


def test_variances_are_those_of_the_fields_table(answer):
    found = answer("oracles", "compare", "--local-epsilon", "4", "--domain-size", "100")
    assert found["recommended"] == "grr"
    variances = {f"{row['variance']:.4g}" for row in found["oracles"]}
    assert variances >= {"0.05312", "0.05588", "0.07602", "0.181", "1.076", "0.2852"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "--local-epsilon", "0", "--domain-size", "9"), "epsilon=0"),
        (("compare", "--local-epsilon", "1", "--domain-size", "1"), "domain_size=1"),
    ],
)
def test_impossible_cases_are_refused_in_one_line(refused, words, message):
    assert message in refused("oracles", *words)
