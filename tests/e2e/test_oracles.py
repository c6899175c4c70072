"""`fedhh oracles`: what they print, draw and refuse."""

from __future__ import annotations

import math

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


# Independently computed reference: the deviation of the item of rank 10 in Apple's figure 4b.
CMS_FIGURE = {(16, 2048): 63_210, (256, 256): 42_583, (1024, 2048): 12_074, (4096, 65536): 9_620}


def test_the_deviation_of_count_mean_sketch_is_apples_figure(answer, monkeypatch):
    # Sketches of all the figure's values take long to draw; below, of fewer.
    monkeypatch.setattr("fedhh.oracles.sketch_errors._SIMULATED", ())
    found = answer("oracles", "size")
    surface = {(e["num_cells"], e["num_hashes"]): e["deviation"] for e in found["surface"]}
    assert {size: round(surface[size]) for size in CMS_FIGURE} == CMS_FIGURE
    assert round(found["floor"]) == 9_595


@pytest.mark.slow("::test_variances_are_those_of_the_fields_table")
def test_drawn_sketches_deviate_as_the_formula_says(answer):
    found = answer("oracles", "size", "--values", "30000", "--reports", "30000000")
    surface = {(e["num_cells"], e["num_hashes"]): e["deviation"] for e in found["surface"]}
    assert len(found["simulated"]) == 2
    # sqrt(n e^(epsilon / 2)) / (e^(epsilon / 2) - 1) at epsilon 2.
    assert found["floor"] == pytest.approx(math.sqrt(30_000_000 * math.e) / (math.e - 1))
    for each in found["simulated"]:
        formula = surface[each["num_cells"], each["num_hashes"]]
        assert each["deviation"] == pytest.approx(formula, rel=0.05)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "--local-epsilon", "0", "--domain-size", "9"), "epsilon=0"),
        (("compare", "--local-epsilon", "1", "--domain-size", "1"), "domain_size=1"),
        (("size", "--values", "100"), "values=100"),
        (("size", "--rank", "0"), "rank=0"),
        (("size", "--reports", "10"), "reports=10"),
    ],
)
def test_impossible_cases_are_refused_in_one_line(refused, words, message):
    assert message in refused("oracles", *words)
