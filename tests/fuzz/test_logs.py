"""Logs of runs and sums of pipelines, damaged as files and in what they say: read, or refused."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
from pathlib import Path

import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.log import Log
from fedhh.testing import LETTERS, small_population
from tests.fuzz.cases import Record, feed, survives
from tests.fuzz.mutation import mutate_bytes, mutate_table
from tests.fuzz.work import RESUME, call, make

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=20, depth=3, passes=1, eta_max=5, max_items=2
)
WHOLE = 0.1
"""Share of files that are not damaged at all, and must be accepted."""


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("valid")
    executor = InProcessExecutor(ClientWorker(small_population(200), seed=1))
    first = next(rounds(PROTOCOL, executor))
    answer = Answer(aggregate=first.aggregate, diagnostics=first.diagnostics)
    Log(path, run="mine").write(0, first.question, answer, 0.0)
    return (path / "0.arrays").read_bytes()


def rebuilt(valid: bytes, rng: random.Random, *, forged: bool) -> bytes:
    """Return an archive in which what is said, or the bytes of its arrays, are damaged.

    Args:
        valid: An archive.
        rng: Chooses.
        forged: Whether the digest may be that of the damaged content.
    """
    digest, text, data = valid.split(b"\n", 2)
    if rng.random() < 0.5:
        table = mutate_table(json.loads(text), rng)
        try:
            text = json.dumps(table, default=str).encode()
        except ValueError:  # An integer that Python does not write.
            text = b'{"schema_version": ' + b"9" * 5_000 + b"}"
    else:
        data = mutate_bytes(data, rng)
    if forged and rng.random() < 0.5:
        digest = hashlib.sha256(text + b"\n" + data).hexdigest().encode()
    return b"\n".join((digest, text, data))


def test_damaged_logs_are_read_or_refused_in_one_line(
    tmp_path: Path, valid: bytes, record_property: Record
):
    path = tmp_path / "0.arrays"

    def run(rng: random.Random) -> bool:
        data = mutate_bytes(valid, rng)
        if rng.random() < 0.6:
            data = rebuilt(valid, rng, forged=True)
        path.write_bytes(data)
        return survives(lambda: Log(tmp_path, run="mine").read(), data)

    feed("log", run, record_property)


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.mark.slow("::test_damaged_logs_are_read_or_refused_in_one_line")
def test_a_run_with_a_damaged_log_goes_on_or_stays_as_it_is(
    tmp_path: Path, record_property: Record, monkeypatch: pytest.MonkeyPatch
):
    """A resume that is accepted gives the run's own words; one that is refused changes no file."""
    figures = ("experiments.report.run_figures", "longitudinal.report.pipeline_figures")
    for module in figures:
        monkeypatch.setattr(f"fedhh.{module}.write_figure", lambda *_, **__: Path())
    for kind in ("run", "pipeline"):
        make(tmp_path, kind)
        (tmp_path / kind / "result.json").unlink()
    tables = {"run": "discoveries.csv", "pipeline": "published.csv"}

    def run(rng: random.Random) -> bool:
        kind = rng.choice(("run", "run", "pipeline"))
        made, copy = tmp_path / kind, tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made, copy)
        path = rng.choice(sorted(copy.rglob("*.arrays")))
        is_whole = rng.random() < WHOLE
        if not is_whole:
            whole = path.read_bytes()
            makes = rng.random() < 0.7
            path.write_bytes(
                rebuilt(whole, rng, forged=False) if makes else mutate_bytes(whole, rng)
            )
        before = content(copy)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            accepted = survives(lambda: call(*RESUME[kind], copy, "-q"), path)
        if accepted:
            assert (copy / tables[kind]).read_bytes() == (made / tables[kind]).read_bytes()
        else:
            assert content(copy) == before
            assert not is_whole
        return accepted

    feed("resume", run, record_property)
