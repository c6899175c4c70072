"""A live page in a real browser, and its server, which answers nobody else."""

from __future__ import annotations

import http.client
import re
import tomllib
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
import pytest

from fedhh.cli.live import followed
from fedhh.experiments.report.explorer.chunks import unpacked
from fedhh.experiments.report.explorer.live import LiveRun, LiveSweepPage, live_run, live_sweep
from fedhh.experiments.report.explorer.server import LiveServer
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.kinds import LivePage
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import open_study
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.validation import RunFailedError
from tests.explorer.test_sweep_page import SWEEP, labels
from tests.fuzz.work import undrawn

POPULATION = small_population(3_000)
PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=400, depth=5, passes=1, eta_max=20, max_items=2
)


def following(title: str) -> AbstractContextManager[LivePage]:
    server = live_run(title)
    return followed(LivePage(server=server, callbacks=LiveRun(server)))


def follow(live: LivePage, folder: Path | None, protocol: LdpTrieHH = PROTOCOL) -> RunResult:
    callbacks = [live.callbacks]
    return simulate(protocol, POPULATION, seed=4, log_in=folder, callbacks=callbacks)


def get(address: str, path: str = "", **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=10)
    connection.request("GET", path or parts.path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def events(address: str) -> str:
    return get(address, urlsplit(address).path + "events")[1].decode()


def test_only_who_knows_the_token_and_the_name_is_answered():
    with LiveServer("T", {"kind": "run"}) as server:
        address = server.address
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
        assert get(address)[0] == 200
        assert get(address, "/")[0] == 404
        assert get(address, "/" + "x" * 32 + "/")[0] == 404
        assert get(address, urlsplit(address).path + "chunk/../../etc")[0] == 404
        assert get(address, Host="attacker.example")[0] == 403
        assert get(address, Host=f"attacker.example:{urlsplit(address).port}")[0] == 403
    with pytest.raises(ConnectionRefusedError):
        get(address)


def test_a_page_that_comes_late_hears_everything_and_pieces_are_made_when_asked_for():
    made = []
    with LiveServer("T", {"kind": "run"}) as server:
        server.say("round", {"run": 0}, chunk=lambda: made.append(1) or {"x": [1]})
        assert made == []
        path = urlsplit(server.address).path
        status, text = get(server.address, path + "chunk/live-0")
        assert (status, unpacked(text.decode())) == (200, {"x": [1]})
        assert get(server.address, path + "chunk/live-0")[1] == text
        assert made == [1]
        server.end_with("bye")


@pytest.mark.parametrize("recorded", [True, False])
def test_a_followed_run_has_the_same_result(tmp_path, recorded):
    folder = tmp_path if recorded else None
    plain = simulate(PROTOCOL, POPULATION, seed=4)
    with following("T") as live:
        result = follow(live, folder)
    assert result.discoveries.equals(plain.discoveries)


def test_the_page_follows_a_run_and_stays_when_it_ends(page, tmp_path):
    with following("hostile </script><i>") as live:
        server = live.server
        page.open(server.address, ready=".live")
        follow(live, tmp_path)
        page.has("layer 5", ".player")
        page.wait(
            lambda: page.script("return document.querySelectorAll('.plot svg rect').length") > 3
        )
        said = page.search("e")
        assert "dropped" in said or "It was discovered in layer" in said
        assert "hostile </script><i>" in page.text("h1")
        messages, asked = page.logs()
        assert messages == []
        assert all(url.startswith(server.address) for url in asked)
        server.end_with("fedhh report DIR writes it.")
    page.has("The run has ended. fedhh report DIR writes it.", ".live")
    assert page.script("return document.querySelector('.icicle') !== null")


def test_a_live_page_does_not_take_a_candidate_for_a_discovery(page, tmp_path):
    protocol = replace(PROTOCOL, false_discovery_rate=0.05)
    with following("T") as live:
        server = live.server
        page.open(server.address, ready=".live")
        result = simulate(protocol, POPULATION, seed=4, log_in=tmp_path, callbacks=[live.callbacks])
        page.wait(lambda: page.text(".step") == "validation round")
        assert result.candidates is not None
        words = result.candidates.candidates.query("fate == 'word' and layer < 6")["prefix"]
        found = set(result.discoveries["word"])
        for word in (
            next(w for w in words if w in found),
            next(w for w in words if w not in found),
        ):
            said = page.search(word)
            assert ("It was discovered." in said) == (word in found)
            assert ("the report says whether the validation round returned it" in said) == (
                word not in found
            )
        assert page.logs()[0] == []
        server.end_with("bye")


def test_the_page_of_a_run_that_fails_says_so(page):
    colors = []

    def fail() -> None:
        with following("T") as live:
            server = live.server
            page.open(server.address, ready=".live")
            page.has("Live: clients are drawn; the first round follows.", ".live")
            colors.append(page.script(COLOR))
            raise RunFailedError("Ray's head is gone <i>; go on with --resume.")

    with pytest.raises(RunFailedError):
        fail()
    page.has("The run failed. Ray's head is gone <i>; go on with --resume.", ".live")
    assert colors != [page.script(COLOR)]  # not the one of a run that goes well
    assert page.logs()[0] == []


COLOR = "return getComputedStyle(document.querySelector('.live')).borderLeftColor"


@pytest.mark.parametrize(
    ("source", "settings", "points", "chosen"),
    [
        ("pipeline-small", ("pipeline.days=2", "pipeline.devices=400"), 4 * 2, "error"),
        (
            "weekly-small",
            (
                "population.clients=2000", "longitudinal.min_devices=100", "longitudinal.days=14",
                "longitudinal.lifetime_days=60",
            ),
            None,
            "asked",
        ),
    ],
)  # fmt: skip
def test_the_page_follows_days_and_periods(page, tmp_path, source, settings, points, chosen):
    out = tmp_path / "out"
    settings = (*settings, "execution.workers=0")
    kind, study = open_study(Request(source=source, settings=settings, out=out))
    live = kind.live(study)
    first = []

    class Chooses(Callbacks):
        def finish(self, unit, result):
            if not first:
                page.wait(lambda: drawn_points(page))
                page.choose("y", chosen)
                first.extend(drawn_points(page))

    page.size(1400)
    with undrawn(), followed(live):
        page.open(live.server.address, ready=".live")
        study.run([live.callbacks, Chooses()])
        if points is None:
            points = len(pd.read_parquet(out / "periods.parquet"))
        page.wait(lambda: len(drawn_points(page)) == points)
        # What the reader chose stays, and what was there is there.
        assert len(first) == points / 2
        assert set(first) <= set(drawn_points(page))
        live.end(out)
    page.has("fedhh report", ".live")
    messages, asked = page.logs()
    assert messages == []
    assert all(url.startswith(live.server.address) for url in asked)


def drawn_points(page) -> list[str]:
    return labels(page, "[data-part=chart1]")


def test_the_page_follows_a_sweep(page, tmp_path):
    plan = parse_sweep(tomllib.loads(SWEEP.replace("seeds = 3", "seeds = 1")), "x")
    server = live_sweep(plan)
    live = LivePage(server=server, callbacks=LiveSweepPage(server, plan))
    with followed(live):
        page.open(server.address, ready=".live")
        sweep.run_sweep(plan, tmp_path / "out", workers=0, callbacks=[live.callbacks])
        page.wait(
            lambda: page.script("return document.querySelectorAll('[data-points] > *').length") == 4
        )
        page.has("4 runs", ".facts-line")
        live.end(tmp_path / "out")
    page.has("fedhh report", ".live")
    messages, _ = page.logs()
    assert messages == []
