"""Populations, the command line and Ray, that several tests share."""

from __future__ import annotations

import functools
import gc
import io
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import typer

    from fedhh.clients.clients import Clients
    from fedhh.words.lexicon import Lexicon

# What is heavy is imported by the fixture that uses it: pytest-xdist's main process, which runs no
# test, reads this file, too, before it starts the others.

# The same examples every time, however slow the machine: a failure is the change's own. In CI also
# what it takes to see one again elsewhere. `--hypothesis-profile=default` looks for new ones.
settings.register_profile("stable", derandomize=True, deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "stable")

# To look for cycles less often saves a twentieth.
gc.set_threshold(50_000, 20, 100)

SLOW_EXAMPLES = {
    "fedhh.experiments.sweep.objects.sweep_over": (
        "tests/experiments/sweep/test_objects.py::test_what_cannot_run_is_refused_in_one_line"
    ),
}
"""Examples of docstrings that take long, and their siblings."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no cycles among modules and tests, which stay to the end."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow(SLOW_EXAMPLES[item.name]))


RAY_CORES = 3
"""As many as the most workers of a test."""


@pytest.fixture(autouse=True)
def heard() -> None:
    """What is logged is heard, also after a command of an earlier test that was to be quiet."""
    for name in ("fedhh", "matplotlib"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def population() -> Clients:
    from fedhh.testing import small_population

    return small_population(6_000)


@pytest.fixture(scope="session")
def virtual_lexicon() -> Lexicon:
    """The words of all virtual populations, which share them as long as somebody has them."""
    from fedhh.clients.drawn import DrawnClients

    return DrawnClients("chat", 1, seed=0).lexicon


@pytest.fixture
def drawn_figures() -> None:
    """For tests of what files of figures hold: the command line draws them, if coarsely."""


@functools.cache
def blank(kind: str) -> bytes:
    """Return the smallest figure of a format."""
    from matplotlib.figure import Figure

    content = io.BytesIO()
    Figure(figsize=(0.1, 0.1)).savefig(content, format=kind)
    return content.getvalue()


def save_blank(_: Any, target: Path, kind: str) -> None:
    target.write_bytes(blank(kind))


@functools.cache
def made(commands: typer.Typer) -> Any:
    """What commands are made into when they are called, which takes longer than most of them."""
    import typer.main

    return typer.main.get_command(commands)


@pytest.fixture
def command(request, monkeypatch, capfd):
    """The command line in this process: words to its exit code and what it printed.

    Its figures are made but left blank in their files, which would take longer than all else;
    those of tests/experiments/report are drawn in full.
    """
    from fedhh.cli import app as cli
    from fedhh.cli import minute_lines
    from fedhh.experiments.report import style

    monkeypatch.setattr(style, "DPI", 40)
    if "drawn_figures" not in request.fixturenames:
        monkeypatch.setattr(style, "save", save_blank)

    def call(
        *words: str, cwd: Path | None = None, commands: typer.Typer | None = None
    ) -> subprocess.CompletedProcess[str]:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["fedhh", *words])
        # main() installs handlers of signals, which are the test runner's to keep.
        monkeypatch.setattr(cli, "stop_at_signals", lambda _: None)
        # What is printed does not depend on how fast this machine is.
        monkeypatch.setattr(minute_lines, "SECONDS", 1e6)
        with pytest.raises(SystemExit) as end:
            cli.main(made(commands or cli.app))
        output, complaint = capfd.readouterr()
        return subprocess.CompletedProcess(words, int(end.value.code or 0), output, complaint)

    return call


@pytest.fixture(scope="session")
def shelf(tmp_path_factory) -> tuple[Path, dict[tuple[str, ...], tuple[Path, str]]]:
    return tmp_path_factory.mktemp("shelf"), {}


@pytest.fixture
def once(command, shelf):
    """Run words into a directory `mine` that all tests share, which must only read it.

    Returns the directory and what a person saw.
    """
    folder, known = shelf

    def run(*words: str) -> tuple[Path, str]:
        if words not in known:
            place = folder / str(len(known))
            place.mkdir()
            done = command(*words, "--out", "mine", cwd=place)
            assert (done.returncode, done.stderr) == (0, "")
            known[words] = place / "mine", done.stdout
        return known[words]

    return run


@pytest.fixture
def own_modules() -> Iterator[None]:
    """Modules next to configurations are trusted, and forgotten after the test."""
    from tests.own_modules import own_modules

    with own_modules(trusted=True):
        yield


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that start or join a Ray of their own: this process has none yet."""
    ray = pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray.shutdown()


@pytest.fixture
def ray_here(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Ray's tasks and actors in this process, on copies: what was asked of how many where.

    As Ray does, a call gets the value of a reference that stands for an argument, and of no other.
    """
    pytest.importorskip("ray")
    from fedhh.simulation.executor import InProcessExecutor
    from fedhh.simulation.ray import cluster, executor, tasks

    asked = []

    def copied(value):
        return pickle.loads(pickle.dumps(value))

    def called(function, arguments):
        values = [each.value if isinstance(each, Stored) else each for each in arguments]
        return copied(function)(*copied(values))

    def on_ray(function, calls, *, num_workers, address):
        asked.append(("cells", num_workers, address))
        for number, call in enumerate(calls):
            yield number, called(function, call)

    def in_process(worker, *, num_workers, address):
        asked.append(("clients", num_workers, address))
        return InProcessExecutor(copied(worker))

    monkeypatch.setattr(cluster, "check_cluster", lambda address: None)
    monkeypatch.setattr(cluster, "running_ray", lambda num_workers, address: nullcontext())
    monkeypatch.setattr(cluster, "stored", Stored)
    monkeypatch.setattr(tasks, "map_on_ray", on_ray)
    monkeypatch.setattr(tasks, "computed", lambda *call: Stored(called(call[0], call[1:])))
    monkeypatch.setattr(executor, "RayExecutor", in_process)
    return asked


class Stored:
    """A reference to a value, which only Ray takes out, and nobody can copy."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self):
        raise TypeError("a reference inside an argument")


@pytest.fixture(scope="session")
def end_of_ray() -> Iterator[None]:
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


@pytest.fixture
def shared_ray(end_of_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process's one local Ray: whatever wants Ray joins it and leaves it running.

    Started for the first test that asks for it; it ends with the session, or for `no_ray`.
    """
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    join_shared_ray()


def join_shared_ray() -> None:
    """Start this process's one local Ray, if it is not there."""
    pytest.importorskip("ray")
    # Before ray itself: it sets what ray reads when it is imported.
    from fedhh.simulation.ray.cluster import ray, start_ray

    if not ray.is_initialized():
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("RAY_ADDRESS", raising=False)
            start_ray(RAY_CORES, "")
