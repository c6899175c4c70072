"""What a live page gets of a run, of a sweep, and of what happens over time, while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from fedhh.experiments.report.explorer.chunks import columns_of, round_chunk
from fedhh.experiments.report.explorer.run_page import EMPTY_RUN, facts_of
from fedhh.experiments.report.explorer.server import LiveServer
from fedhh.experiments.report.explorer.study_page import EMPTY_STUDY, EMPTY_SWEEP, sweep_data
from fedhh.experiments.run.candidates import survivors, vote_ranges
from fedhh.experiments.run.round_record import RoundRecord
from fedhh.experiments.run.time_left import FinishedRound, RunWork
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.experiments.study.kinds import LivePage
from fedhh.experiments.sweep.directory import (
    DONE,
    FAILED,
    description_of,
    label_results,
    result_row,
)
from fedhh.experiments.sweep.execution import FinishedCell
from fedhh.experiments.sweep.plan import Sweep

MOST_CANDIDATES = 1_000
"""Of a round, with the most votes, on a live page: the report has more, and says who holds them."""


def live_run(title: str) -> LiveServer:
    """Return the server of a run's live page."""
    manifest = {
        "kind": "run",
        "overlays": False,
        "title": title,
        "runs": [],
        "comparison": None,
        "measures": None,
        "sample": {"nearest": 0, "sampled": 0, "missed": 0},
        "most": MOST_CANDIDATES,
    }
    server = LiveServer(title, manifest)
    server.say("status", "clients are drawn; the first round follows")
    return server


class LiveRun(Callbacks):
    """Tells a page of a run and its baselines, one after the other.

    What takes time is made when a page asks for it, so that a run that nobody watches is not
    slowed.
    """

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self._run = -1

    def phase(self, text: str, done: int = 0, of: int = 0) -> None:
        if of:
            self._server.say("status", f"{text}: {done:,} of {of:,} clients")

    def start(self, work: Work) -> None:
        assert isinstance(work, RunWork)
        protocol, population = work.protocol, work.population
        self._run += 1
        run = {
            **EMPTY_RUN,
            **facts_of(protocol),
            "name": protocol.title,
            "population": population.name,
            "clients": population.num_clients,
        }
        self._server.say("run", run)
        self._server.say("status", f"{protocol.title} asks {population.num_clients:,} clients")

    def finish(self, unit: str, result: FinishedRound) -> None:
        """Tell a round's row, and have its candidates ready."""
        data = {"run": self._run, "layer": result.row.columns()}
        round_record = result.round_record
        self._server.say(
            "round", data, chunk=None if round_record is None else lambda: _round(round_record)
        )


def _round(round_record: RoundRecord) -> dict[str, Any]:
    rows = survivors(round_record, MOST_CANDIDATES)
    return {**round_chunk(rows), "ranges": columns_of(vote_ranges(round_record, None))}


def live_sweep(plan: Sweep) -> LiveServer:
    """Return the server of a sweep's live page."""
    title = plan.title or "Sweep"
    manifest = {**EMPTY_SWEEP, "title": title, "best": plan.best}
    return LiveServer(title, manifest)


class LiveSweepPage(Callbacks):
    """Tells a page of a sweep's results."""

    def __init__(self, server: LiveServer, plan: Sweep) -> None:
        self._server = server
        self._plan = plan
        self._rows: list[dict[str, Any]] = []
        self._left = 0

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return sum(row["status"] == FAILED for row in self._rows)

    def start(self, work: Work) -> None:
        self._left = work.total - work.done
        self._server.say("status", f"{self._left:,} runs to go, {work.done:,} done before")

    def finish(self, unit: str, result: FinishedCell) -> None:
        self._left -= 1
        self._rows.append(result_row(result.cell, result.record))
        self._server.say("status", f"{self._left:,} runs to go, {self.failed:,} failed")
        if any(row["status"] == DONE for row in self._rows):
            rows = tuple(self._rows)
            self._server.say("results", {}, chunk=partial(self._results, rows))

    def _results(self, rows: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        description = description_of(self._plan)
        table, described = label_results(pd.DataFrame(rows), description, "the sweep")
        return {**sweep_data(table, described), "live": True}


Charts = Callable[[Any], list[dict[str, Any]]]
"""Makes charts of what the last unit returned."""


def live_study(title: str, charts: Charts) -> LivePage:
    """Return the live page of what happens unit by unit: days, or periods.

    Args:
        title: What it is of.
        charts: Called when a page asks, with what the last finished unit returned.
    """
    server = LiveServer(title, {**EMPTY_STUDY, "title": title})
    return LivePage(server=server, callbacks=LiveStudyPage(server, charts))


class LiveStudyPage(Callbacks):
    """Tells a page of the units that are done."""

    def __init__(self, server: LiveServer, charts: Charts) -> None:
        self._server, self._charts = server, charts
        self._noun, self._left = "", 0

    def phase(self, text: str, done: int = 0, of: int = 0) -> None:
        self._server.say("status", text)

    def start(self, work: Work) -> None:
        self._noun, self._left = work.noun, work.total - work.done
        self._server.say("status", f"{self._left:,} {work.noun} to go")

    def finish(self, unit: str, result: Any) -> None:
        self._left -= 1
        self._server.say("status", f"{unit} is done, {self._left:,} {self._noun} to go")
        self._server.say("results", {}, chunk=partial(self._page, result))

    def _page(self, result: Any) -> dict[str, Any]:
        return {"charts": self._charts(result)}
