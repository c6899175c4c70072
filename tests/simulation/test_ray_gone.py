"""A killed raylet, or head, ends a run in one line with code 1; it goes on to the same bits.

So does a run whose own process was killed, from its directory alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.processes import python, start, wait_until
from tests.waiting import ORACLE, write_waiting

pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow(
        "tests/simulation/test_ray_watch.py::test_a_raylet_that_is_gone_is_named_with_the_cure"
    ),
    pytest.mark.usefixtures("own_modules"),
]

SMALL = (
    "run", "--preset", "small", "--trust", "--set", "population.clients=20000",
    "--set", f"protocol.oracle={ORACLE}",
)  # fmt: skip
FILES = ("discoveries.csv", "candidates.parquet", "layers.parquet")
# The command, which waits for a cluster's head for a moment only: for how long otherwise is held by
# tests/simulation/test_ray_watch.py.
IMPATIENT = (
    "from fedhh.cli.app import main\n"
    "from fedhh.simulation.ray import cluster\n"
    "cluster._PATIENCE_SECONDS = 2.0\n"
    "main()\n"
)
NAMES = {"raylet": "raylet at", "gcs_server": "head (gcs_server) at"}

# The Ray that other tests of this process share has set it otherwise.
WITHOUT_TOKEN = {**os.environ, "RAY_AUTH_MODE": "disabled"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    write_waiting(folder, "nothing waits for this")
    words = [sys.executable, "-m", "fedhh", *SMALL, "--workers", "0", "--out", "mine"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder / "mine"


class Head:
    """A cluster of one node."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        # Short: paths of sockets below it may have some hundred characters.
        self._folder = tempfile.mkdtemp(prefix="ray-")
        self.address = f"127.0.0.1:{port}"
        subprocess.run(
            [shutil.which("ray", path=str(Path(sys.executable).parent)) or "ray", "start", "--head",
             "--port", str(port), "--num-cpus", "1", "--include-dashboard", "false",
             "--temp-dir", self._folder],
            env=WITHOUT_TOKEN, check=True, capture_output=True,
        )  # fmt: skip
        self.processes = [each for each in psutil.process_iter() if self._is_own(each)]

    def close(self) -> None:
        for each in self.processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_own(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return any(self._folder in word for word in process.cmdline())
        return False


@pytest.fixture
def head() -> Iterator[Head]:
    head = Head()
    yield head
    head.close()


@pytest.mark.parametrize("victim", list(NAMES))
@pytest.mark.parametrize("where", ["of its own", "of a cluster"])
def test_a_run_whose_ray_is_killed_ends_in_one_line_and_goes_on(
    victim, where, tmp_path, reference, command, request
):
    write_waiting(tmp_path, "mine/log/0.arrays")
    cluster = request.getfixturevalue("head") if where == "of a cluster" else None
    # On a cluster, one more than there are cores.
    there = ("--workers", "1")
    if cluster is not None:
        there = ("--workers", "2", "--ray-address", cluster.address)
    process = python(
        "-c", IMPATIENT, *SMALL, "--out", "mine", *there,
        cwd=tmp_path, env=None if cluster is None else WITHOUT_TOKEN,
    )  # fmt: skip
    wait_until((tmp_path / "mine/log/0.arrays").exists, process)
    family = psutil.Process(process.pid).children(recursive=True)
    killed = [p for p in (cluster.processes if cluster else family) if p.name() == victim]
    assert len(killed) == 1
    killed[0].kill()
    output, complaint = process.communicate(timeout=100)
    assert process.returncode == 1
    # Of a raylet, Ray itself prints the end of its log, and has no setting for that.
    assert output == "" or (victim == "raylet" and "(raylet)" in output.partition("\n")[0])
    *before, last = complaint.splitlines()
    assert last.startswith(f"Error: Ray's {NAMES[victim]} ")
    assert "--resume" in last
    for line in before:  # what is said of the cores, of the wait; and progress by the minute
        assert line.startswith(("warning: 2 workers were asked", "warning: Ray's head", "LDP "))
    assert ("2 workers were asked for" in complaint) == (cluster is not None)
    (tmp_path / "go").touch()
    resumed = command("run", "--resume", "--trust", "--workers", "0", "--out", "mine", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    for name in FILES:
        assert (tmp_path / "mine" / name).read_bytes() == (reference / name).read_bytes()


@pytest.mark.slow(
    "tests/experiments/run/test_resume.py::test_the_same_run_goes_on_to_the_same_words"
)
def test_a_run_whose_own_process_is_killed_goes_on_elsewhere(tmp_path, reference, command, head):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    write_waiting(here, "mine/log/0.arrays")
    process = start(
        *SMALL, "--workers", "1", "--out", "mine", "--ray-address", head.address,
        cwd=here, env=WITHOUT_TOKEN,
    )  # fmt: skip
    wait_until((here / "mine/log/0.arrays").exists, process)
    process.kill()
    process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    # As on another machine, which has the run's directory alone and no Ray.
    elsewhere.mkdir()
    (here / "mine").rename(elsewhere / "moved")
    shutil.rmtree(here)
    (elsewhere / "go").touch()
    words = ("run", "--resume", "--trust", "--workers", "0", "--out", "moved")
    resumed = command(*words, cwd=elsewhere)
    assert resumed.returncode == 0, resumed.stderr
    for name in FILES:
        assert (elsewhere / "moved" / name).read_bytes() == (reference / name).read_bytes()
