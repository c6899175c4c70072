"""The commands of docs/scaling.md: a cluster that they start does what one process does."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import fedhh

pytest.importorskip("ray")

import psutil
from ray._private import ray_constants

from fedhh.cli.app import app
from fedhh.simulation.ray import cluster
from fedhh.simulation.ray.cluster import check_cluster

pytestmark = pytest.mark.slow(
    "tests/simulation/test_ray_cluster.py::test_what_ray_says_of_a_cluster_is_one_line",
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference",
)

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
START_HEAD, START_NODE, RUN = re.findall(r"^```sh\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)

# What two nodes on one machine must not share with each other, or with other tests.
APART = "--num-cpus 1 --min-worker-port 0 --max-worker-port 0"

SMALLER = "--set population.clients=20_000 --set protocol.depth=4 --set protocol.eta_max=50"

SWEEP = """
seed = 3

[population]
source = "chat"
clients = 2_000
virtual = false

[protocol]
depth = 3
passes = 1
eta_max = 50
clients_per_layer = 400
max_items = 1

[metrics]
top_k = [10]

[sweep]
title = "On a cluster"
seeds = 1

[sweep.axes]
"protocol.sampler" = ["greedy", "random"]
"""


class Machines:
    """Runs commands as a user with a home of their own; ends every process they have started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        # The commands `ray` and `fedhh` are those of this Python and this checkout.
        for name, module in (("ray", "ray.scripts.scripts"), ("fedhh", "fedhh.cli.app")):
            script = folder / name
            script.write_text(
                f"#!{sys.executable}\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
            )
            script.chmod(0o755)
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        self.environment = {
            **{name: v for name, v in os.environ.items() if not name.startswith("RAY_")},
            "HOME": str(folder),
            "XDG_CACHE_HOME": cache,
            "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "FEDHH_TEST_MACHINES": self.mark,
        }

    def shell(self, block: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a block of the docs, with this cluster's address in place of the docs' own."""
        block = block.replace("HEAD:6379", self.address).replace("6379", str(self.port))
        block = block.replace(
            "--head", f"--head --temp-dir {self.folder} --include-dashboard false"
        )
        block = re.sub(r"^ray start", f"ray start {APART}", block, flags=re.MULTILINE)
        # Through files: what a command leaves running would keep a pipe open.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block],
                env={**self.environment, **environment},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                timeout=600,
                check=False,
            )
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(block, done.returncode, out.read(), err.read())

    def start(self, block: str, **environment: str) -> None:
        done = self.shell(block, **environment)
        assert done.returncode == 0, done.stdout + done.stderr

    def end(self) -> None:
        started = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("FEDHH_TEST_MACHINES") == self.mark:
                    process.kill()
                    started.append(process)
        _, left = psutil.wait_procs(started, timeout=10)
        assert not left


@pytest.fixture
def machines(monkeypatch) -> Iterator[Machines]:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # Not tmp_path: Ray's sockets have names of 107 bytes at most.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machines = Machines(Path(folder))
        try:
            yield machines
        finally:
            machines.end()


def test_the_documented_commands_give_the_bits_of_one_process(machines, tmp_path):
    machines.start(START_HEAD)
    machines.start(START_NODE)
    (machines.folder / "sweep.toml").write_text(SWEEP)
    run = re.sub(r"^fedhh run .*", rf"\g<0> {SMALLER} --out run", RUN, flags=re.MULTILINE)
    run = re.sub(r"^fedhh sweep .*", r"\g<0> --out sweep", run, flags=re.MULTILINE)
    done = machines.shell(run)
    assert done.returncode == 0, done.stderr
    # The sweep's plan, where a machine is slow a line a minute, and nothing of Ray's own.
    said = [line.split()[0] for line in done.stderr.splitlines()]
    assert [word for word in said if word != "drawing"] == ["2", "Clients", "cells"]

    line = next(line for line in RUN.splitlines() if line.startswith("fedhh run"))
    preset = shlex.split(line)[shlex.split(line).index("--preset") + 1]
    here = ["run", "--preset", preset, *shlex.split(SMALLER), "--workers", "0"]
    app([*here, "--out", str(tmp_path / "run")], standalone_mode=False)
    found = (machines.folder / "run" / "discoveries.csv").read_bytes()
    assert found.count(b"\n") > 10
    assert found == (tmp_path / "run" / "discoveries.csv").read_bytes()
    config = tomllib.loads((machines.folder / "run" / "config.toml").read_text())
    assert config["execution"] == {"workers": 2, "ray_address": machines.address}
    fedhh.sweep(machines.folder / "sweep.toml", out=tmp_path / "sweep")
    found = (machines.folder / "sweep" / "results.csv").read_bytes()
    assert found.count(b"done") == 2
    assert found == (tmp_path / "sweep" / "results.csv").read_bytes()
    assert len(list((machines.folder / "sweep" / "cells").iterdir())) == 2


def test_what_a_cluster_refuses_is_said_in_one_line(machines, tmp_path, monkeypatch):
    machines.start(START_HEAD)
    token = (machines.folder / ".ray" / "auth_token").read_text()
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)

    def refusal() -> str:
        with pytest.raises(fedhh.InputError) as error:
            check_cluster(machines.address)
        assert "\n" not in str(error.value)
        return str(error.value)

    cure = "wants its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN, or copy ~/.ray/auth_token"
    # Ray tries again for two seconds, not for twenty, which are less than a probe has.
    assert ray_constants.NUM_REDIS_GET_RETRIES == 20 < cluster._PROBE_SECONDS
    monkeypatch.setenv("RAY_NUM_REDIS_GET_RETRIES", "2")
    monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    assert cure in refusal()
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    check_cluster(machines.address)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    assert cure in refusal()
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "absent"))
    assert cure in refusal()

    # The nodes' Python finds another fedhh, or an import that fails as that of no fedhh does.
    for name, code in (
        ("older", "__version__ = '0.0.9'"),
        ("none", "raise ModuleNotFoundError('No module named \"fedhh\"', name='fedhh')"),
    ):
        (tmp_path / name / "fedhh").mkdir(parents=True)
        (tmp_path / name / "fedhh" / "__init__.py").write_text(code)
        machines.start(START_NODE, PYTHONPATH=str(tmp_path / name))
    run = next(line for line in RUN.splitlines() if line.startswith("fedhh run"))
    done = machines.shell(f"{run} {SMALLER} --out refused", RAY_AUTH_MODE="token")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: Every node of the Ray cluster needs fedhh {fedhh.__version__};")
    assert "has fedhh 0.0.9," in line
    assert 'has no fedhh (No module named "fedhh"): install it there' in line
    assert not (machines.folder / "refused").exists()


def test_a_cluster_without_tokens_is_joined_with_and_without_one(machines, monkeypatch):
    plain = "\n".join(line for line in START_HEAD.splitlines() if line.startswith("ray start"))
    machines.start(plain)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    for mode in ("disabled", "token"):
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
        check_cluster(machines.address)
