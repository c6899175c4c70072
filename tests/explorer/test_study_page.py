"""Pages of pipelines and repeated collections, in a real browser; and where comparisons go."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from fedhh.experiments.report.explorer.document import write_report
from fedhh.validation import InputError
from tests.explorer.conftest import HOSTILE
from tests.explorer.test_sweep_page import labels
from tests.fuzz.work import call, undrawn

PIPELINE = ("pipeline", "run", "--preset", "pipeline-small", "--days", "2", "--devices", "400")
MONTHS = (
    "longitudinal", "run", "--preset", "weekly-small", "--protocol", "ldp-triehh",
    "--set", "population.clients=2000", "--set", "longitudinal.min_devices=100",
    "--set", "longitudinal.days=14", "--set", "longitudinal.lifetime_days=60",
)  # fmt: skip


def finished(folder, *words):
    with undrawn():
        call(*words, "--workers", "0", "--out", folder, "-q")
    return folder


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("pipeline") / "out", *PIPELINE)


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("months") / "out", *MONTHS)


def test_a_pipeline_has_its_table_its_days_and_its_losses(page, pipeline):
    file = write_report(pipeline)
    assert file == pipeline / "report.html"
    page.size(1400)
    page.open(file, ready=".plot svg [data-points] > *")
    days = pd.read_parquet(pipeline / "days.parquet")
    shown = labels(page)
    assert len(shown) == len(days) == 4 * 2
    first = days.iloc[0]
    assert f"day 1, use case {first['use_case']}, records sent {first['sent']:,}" in shown
    assert page.cards()["devices"] == "400"
    assert page.cards()["records sent"] == f"{days['sent'].sum():,}"
    assert "all together" in page.text("table")
    page.choose("y", "error")
    assert page.wait(lambda: "chart1.metric=error" in page.script("return location.hash"))
    before = labels(page)
    page.open(f"{file.as_uri()}#chart1.metric=error", ready=".plot svg [data-points] > *")
    assert page.wait(lambda: labels(page) == before)
    page.quiet(file.as_uri())


@pytest.mark.parametrize("width", [1400, 390])
def test_a_repeated_collection_has_its_periods_and_losses(page, months, width):
    file = write_report(months)
    page.size(width)
    page.open(file, ready=".plot svg [data-points] > *")
    periods = pd.read_parquet(months / "periods.parquet")
    shown = [each for each in labels(page) if each.startswith("first day")]
    assert len(shown) == len(periods) == 2
    for (_, row), each in zip(periods.iterrows(), shown, strict=True):
        assert f"coverage of what was typed in the period {row['coverage']:.1%}" in each
    losses = pd.read_parquet(months / "losses.parquet")
    assert page.cards()["local epsilon in a year"] == f"{losses['year_basic'][0]:g}"
    assert "Privacy loss of a device" in page.text()
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    page.quiet(file.as_uri())


def test_text_of_a_directory_is_text(page, months, tmp_path):
    shutil.copytree(months, tmp_path / "mine")
    record = json.loads((tmp_path / "mine" / "result.json").read_text())
    record["table"]["title"] = HOSTILE[0]
    record["table"]["rows"][0][0] = record["table"]["note"] = HOSTILE[1]
    record["table"]["skipped"] = [HOSTILE[1]]
    (tmp_path / "mine" / "result.json").write_text(json.dumps(record))
    file = write_report(tmp_path / "mine")
    page.open(file, ready=".plot")
    assert page.text("h1") == HOSTILE[0]
    assert page.text().count(HOSTILE[1]) == 3
    assert HOSTILE[1] not in file.read_text(encoding="utf-8")
    page.quiet(file.as_uri())


def test_a_damaged_table_is_one_line(months, tmp_path):
    shutil.copytree(months, tmp_path / "mine")
    (tmp_path / "mine" / "report.html").unlink(missing_ok=True)
    pd.DataFrame({"protocol": [1]}).to_parquet(tmp_path / "mine" / "periods.parquet")
    with pytest.raises(InputError, match=r"periods\.parquet is damaged"):
        write_report(tmp_path / "mine")
    assert not (tmp_path / "mine" / "report.html").exists()


def test_a_comparison_never_takes_the_place_of_a_runs_own_page(adaptive, ldp):
    own = write_report(adaptive)
    before = own.read_bytes()
    file = write_report(adaptive, ldp)
    assert file == adaptive / f"compared-with-{ldp.name}.html"
    assert own.read_bytes() == before
    for out in (own, ldp / "report.html", adaptive / ".." / adaptive.name / "report.html"):
        with pytest.raises(InputError, match=r"page of one of the runs; give .* another --out"):
            write_report(adaptive, ldp, out=out)
    assert own.read_bytes() == before
    file.unlink()
