"""Logs of runs and sums of pipelines, damaged as files and in what they say: read, or refused."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.log import Log
from fedhh.system import archive as archives
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
    return (path / "0.npz").read_bytes()


def damaged_notes(notes: Any, rng: random.Random) -> Any:
    """Return the JSON of an archive with some values replaced."""
    table = mutate_table(json.loads(notes.tobytes()), rng)
    try:
        text = json.dumps(table, default=str)
    except ValueError:  # An integer that Python does not write.
        text = '{"schema_version": ' + "9" * 5_000 + "}"
    return np.frombuffer(text.encode(), dtype=np.uint8)


def changed_array(array: Any, rng: random.Random) -> Any:
    """Return an array of the same type and shape with a value changed, or as it is if empty."""
    data = bytearray(array.tobytes())
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return np.frombuffer(bytes(data), array.dtype).reshape(array.shape)


def rebuilt(valid: bytes, rng: random.Random, *, forged: bool) -> bytes:
    """Return a whole archive whose content is damaged: its notes, or one of its arrays.

    Args:
        valid: An archive.
        rng: Chooses.
        forged: Whether the digest may be that of the damaged content.
    """
    with np.load(io.BytesIO(valid)) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    way = rng.choice(("notes", "value", "bytes", "compressed"))
    hurt = "notes" if way == "notes" else rng.choice(list(arrays))
    if way == "notes":
        arrays[hurt] = damaged_notes(arrays[hurt], rng)
    elif way == "value":
        arrays[hurt] = changed_array(arrays[hurt], rng)
    if forged and rng.random() < 0.5:
        del arrays["digest"]
        arrays["digest"] = archives._digest(arrays)
    file = io.BytesIO()
    packing = zipfile.ZIP_DEFLATED if way == "compressed" else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            data = member.getvalue()
            if way == "bytes" and name == hurt:
                data = mutate_bytes(data, rng)
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def test_damaged_logs_are_read_or_refused_in_one_line(
    tmp_path: Path, valid: bytes, record_property: Record
):
    path = tmp_path / "0.npz"

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
        path = rng.choice(sorted(copy.rglob("*.npz")))
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
