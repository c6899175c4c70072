"""A sweep's page in a real browser."""

from __future__ import annotations

import re
import shutil
import tomllib

import pytest

from fedhh.experiments.report.explorer.document import write_report
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.directory import read_results
from fedhh.experiments.sweep.intervals import summarize
from fedhh.experiments.sweep.plan import parse_sweep
from tests.explorer.conftest import INSTALL

EPSILON, CLIENTS = "privacy.local_epsilon", "protocol.clients_per_layer"

SWEEP = """
[population]
source = "chat"
clients = 6_000
[protocol]
name = "ldp-triehh"
depth = 5
eta_max = 30
passes = 1
max_items = 2
[sweep]
title = "A & <i>B</i>"
seeds = 3
[sweep.axes]
"privacy.local_epsilon" = [2.0, 8.0]
"protocol.clients_per_layer" = [300, 900]
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory, adaptive):
    out = tmp_path_factory.mktemp("sweep") / "out"
    sweep.run_sweep(parse_sweep(tomllib.loads(SWEEP), "x"), out, workers=0)
    table, _ = read_results(out)
    shutil.copytree(adaptive, out / "cells" / table["cell"][0])
    write_report(out)
    return out


@pytest.fixture
def opened(page, directory):
    file = directory / "report.html"
    page.size(1400)
    page.open(file, ready=".plot svg [data-points] > *")
    yield page
    page.quiet(file.as_uri())


def test_drawing_for_a_width_raises_no_error(page, directory):
    heard = "window.errors = []; addEventListener('error', (event) => errors.push(event.message))"
    script = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": heard})
    page.size(1400)
    page.open(directory / "report.html", ready=".plot svg [data-points] > *")
    page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    drawn = (
        "return Math.max(...[...document.querySelectorAll('.plot svg')]"
        ".map((it) => it.getBoundingClientRect().width))"
    )
    before = page.script(drawn)
    page.size(390)
    assert page.wait(lambda: page.script(drawn) < before)
    # A notice that was not delivered is raised in the frame after.
    page.script(
        "window.passed = 0; requestAnimationFrame(() => requestAnimationFrame(() => passed = 1))"
    )
    assert page.wait(lambda: page.script("return window.passed"))
    assert page.script("return window.errors") == []


def labels(page, within: str = "") -> list[str]:
    return page.script(
        "return [...document.querySelectorAll(arguments[0])].map((it) => it.ariaLabel)",
        f"{within} [data-points] > *",
    )


def test_points_are_means_with_the_intervals_of_the_tables(opened, directory):
    table, _ = read_results(directory)
    assert opened.text("h1") == "A & <i>B</i>"
    summary = summarize(table, [EPSILON, CLIENTS], "coverage")
    shown = labels(opened)
    assert len(shown) == 4
    for row in summary.to_dict("records"):
        mean, low, high = (f"{row[name]:.1%}" for name in ("mean", "low", "high"))
        assert any(f"contributions {mean} [{low}, {high}]" in each for each in shown), (mean, shown)
    assert all("3 runs" in each and "mean also over" not in each for each in shown)


def test_a_mean_over_settings_says_so(opened):
    opened.choose("Color", "")
    shown = opened.wait(lambda: labels(opened) if len(labels(opened)) == 2 else None)
    assert all("6 runs, a mean also over clients per layer" in each for each in shown)


def test_the_map_has_a_cell_for_each_setting_and_opens_runs(opened, directory):
    opened.choose("Picture", "map")
    opened.choose("Panels", "")
    opened.wait(
        lambda: opened.script("return document.querySelectorAll('[data-points] rect').length") == 4
    )
    table, _ = read_results(directory)
    cell = table["cell"][0]
    links = set()
    for i in range(4):
        opened.script(
            "document.querySelectorAll('[data-points] rect')[arguments[0]]"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true}))",
            i,
        )
        assert "seed 0:" in opened.text(".details")
        links |= set(
            opened.script(
                "return [...document.querySelectorAll('.details a')]"
                ".map((it) => it.getAttribute('href'))"
            )
        )
    assert links == {f"cells/{cell}/report.html"}
    assert (directory / "cells" / cell / "report.html").exists()


def test_axes_and_metric_are_the_readers_choice(opened):
    opened.choose("x", CLIENTS)
    opened.choose("Color", EPSILON)
    opened.choose("y", "precision")
    opened.choose("Panels", EPSILON)
    assert opened.wait(
        lambda: any(
            "precision (share of discoveries that are held)" in each for each in labels(opened)
        )
    )
    assert opened.script("return document.querySelector('.plot svg[aria-label]').ariaLabel") == (
        "precision (share of discoveries that are held) over clients per layer"
    )


def test_coverage_stands_over_central_epsilon_a_point_for_each_setting(opened, directory):
    table, _ = read_results(directory)
    opened.press("Coverage over central epsilon")
    shown = opened.wait(lambda: [each for each in labels(opened) if "central epsilon" in each])
    assert len(shown) == 4
    central = "central_epsilon_before_run"
    places = sorted(float(re.findall(r"before the run ([0-9.]+)", each)[0]) for each in shown)
    means = table.groupby([EPSILON, CLIENTS])[central].mean()
    assert places == pytest.approx(sorted(means), abs=0.006)
    kept = opened.script("return location.hash")
    assert f"x={central}" in kept
    opened.open(f"{directory.as_uri()}/report.html{kept}", ready=".plot svg [data-points] > *")
    assert labels(opened) == shown


@pytest.mark.parametrize(("kind", "head"), [("SVG", b"<svg"), ("PNG", b"\x89PNG")])
def test_the_picture_is_saved(opened, kind: str, head: bytes):
    assert opened.saved(f"Save {kind}", kind.lower()).startswith(head)


def test_skipping_says_what_to_install():
    assert "apt-get install chromium chromium-driver" in INSTALL
