"""The calendar of a run whose devices are not always there, on its page."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedhh
from fedhh.experiments.report.explorer.document import write_report
from fedhh.experiments.report.explorer.run_page import run_page
from fedhh.experiments.run.stored_result import read_result
from tests.explorer.conftest import run_in

SETTINGS = (
    "protocol.name=ldp-triehh", "protocol.depth=3", "protocol.passes=1", "protocol.eta_max=20",
    "protocol.clients_per_layer=auto", "devices.check_in=papaya",
    "protocol.participation=one-round", "protocol.max_items=10", "protocol.false_discovery_rate=0",
)  # fmt: skip


@pytest.fixture(scope="module")
def waited(tmp_path_factory) -> Path:
    """Layers that wait: at their deadline, half of a cohort has not answered yet."""
    return run_in(
        tmp_path_factory.mktemp("waited"), fedhh.synthetic_population("chat", 2_000, seed=0),
        *SETTINGS, "devices.deadline_hours=4", "devices.least_share=0.6",
    )  # fmt: skip


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """The second layer has too few answers at its deadline: about as many as are expected."""
    return run_in(
        tmp_path_factory.mktemp("stopped"), fedhh.synthetic_population("chat", 2_000, seed=0),
        *SETTINGS, "devices.deadline_hours=4", "devices.least_share=0.2117",
        "devices.when_missed=stop", "seed=3",
    )  # fmt: skip


def test_a_page_has_a_row_for_each_round_and_the_totals(waited):
    (run,) = run_page([waited]).manifest["runs"]
    result = read_result(waited).result
    said = run["calendar"]
    assert said["days"] == result.calendar.days > 0
    assert said["share_served"] == result.calendar.share_served
    assert said["missed"] is None
    rows = [
        dict(zip(said["rounds"]["columns"], row, strict=True)) for row in said["rounds"]["rows"]
    ]
    layers = result.layers.to_dict("records")
    assert len(rows) == len(layers) == 3
    for row, layer in zip(rows, layers, strict=True):
        assert row["opens, day"] == f"{layer['opened_hours'] / 24:,.2f}"
        assert row["closes, day"] == f"{layer['closed_hours'] / 24:,.2f}"
        assert float(row["waited, h"]) > 0
        answered, asked, least = (
            int(row[name].replace(",", "")) for name in ("answered", "asked", "least")
        )
        assert least <= answered == layer["num_clients"] < asked


def test_a_run_that_stopped_says_at_which_layer(stopped):
    (run,) = run_page([stopped]).manifest["runs"]
    assert run["calendar"]["missed"].startswith("Pass 1, layer 2 had ")
    assert run["calendar"]["rounds"]["rows"][-1][4] == "missed"


def test_a_run_whose_devices_always_answer_has_no_calendar(ldp):
    (run,) = run_page([ldp]).manifest["runs"]
    assert run["calendar"] is None


def test_the_page_shows_the_calendar(page, waited, stopped, ldp):
    file = write_report(waited)
    page.open(file, ready=".words tbody tr")
    shown = page.script(
        "return [...document.querySelectorAll('[aria-label=calendar] tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    (run,) = run_page([waited]).manifest["runs"]
    assert shown == run["calendar"]["rounds"]["rows"]
    cards = page.cards()
    assert cards["days to the result"] == f"{run['calendar']['days']:.1f}"
    assert f"{100 * run['calendar']['share_served']:.1f}" in page.text(".cards")
    page.quiet(file.as_uri())
    file = write_report(stopped)
    page.open(file)
    assert page.has(run_page([stopped]).manifest["runs"][0]["calendar"]["missed"])
    assert "days until it stopped" in page.cards()
    page.quiet(file.as_uri())
    file = write_report(ldp)
    page.open(file, ready=".words tbody tr")
    assert "Calendar" not in page.text()
    assert "days to the result" not in page.cards()
