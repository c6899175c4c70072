"""A signal ends a command at once, in whatever it is doing, and leaves whole files only."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psutil
import pytest

from tests.processes import python, start, wait_until
from tests.waiting import ORACLE, write_waiting

pytest.importorskip("ray")

SMALL = ("run", "--preset", "small", "--set", "population.clients=8000")
MESSAGE = "Interrupted; what is finished is kept.\n"


@pytest.mark.usefixtures("own_modules")
@pytest.mark.slow("::test_a_signal_leaves_no_half_written_file")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_on_ray_leaves_a_log_and_no_process(tmp_path, command, stop):
    go = write_waiting(tmp_path, "mine/log/0.arrays")
    process = start(
        *SMALL, "--set", f"protocol.oracle={ORACLE}", "--trust", "--workers", "1",
        "--out", "mine", cwd=tmp_path,
    )  # fmt: skip
    logged = tmp_path / "mine" / "log" / "0.arrays"
    wait_until(logged.exists, process)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) > 3
    process.send_signal(stop)
    output, complaint = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert complaint.endswith(MESSAGE)  # after lines of progress, on a slow machine
    assert "SIGTERM received" not in complaint  # which Ray would say, with a page of addresses
    _, alive = psutil.wait_procs(family, timeout=20)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert "0.arrays" in {p.name for p in logged.parent.iterdir()}
    assert not list(logged.parent.rglob(".*"))
    go.touch()
    resumed = command("run", "--resume", "--trust", "--workers", "0", "--out", "mine", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr


def marked(mark: str) -> list[psutil.Process]:
    """All processes with a mark in their environment, which children have from their parents."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.slow("::test_a_signal_leaves_no_half_written_file")
def test_a_run_that_is_stopped_while_ray_starts_leaves_no_process(tmp_path):
    mark = str(tmp_path)
    process = start(
        *SMALL, "--workers", "1", "--out", "mine", cwd=tmp_path,
        env={**os.environ, "MARK": mark},
    )  # fmt: skip
    wait_until(lambda: len(marked(mark)) > 1, process)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint.endswith(MESSAGE)
    psutil.wait_procs(marked(mark), timeout=20)
    assert marked(mark) == []
    assert not (tmp_path / "mine").exists()


@pytest.mark.slow(
    "tests/simulation/test_ray_cluster.py::test_a_ray_that_ends_leaves_no_mode_of_authentication"
)
def test_a_run_that_is_refused_while_ray_starts_leaves_no_process(tmp_path):
    mark = str(tmp_path)
    process = start(
        *SMALL, "--set", "protocol.clients_per_layer=8001", "--workers", "1",
        cwd=tmp_path, env={**os.environ, "MARK": mark},
    )  # fmt: skip
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 2
    assert complaint.startswith("Error: ")
    assert complaint.count("\n") == 1
    psutil.wait_procs(marked(mark), timeout=20)
    assert marked(mark) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow("::test_the_cursor_of_a_terminal_is_shown_again")
def test_a_run_that_a_script_started_in_the_background_stops_while_clients_are_drawn(tmp_path):
    # A shell without job control has its background jobs ignore SIGINT.
    process = python(
        "-c",
        "import signal, os, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "os.execv(sys.executable, [sys.executable, '-m', 'fedhh', *sys.argv[1:]])",
        *SMALL, "--set", "population.source=keyboard60d", "--set", "population.clients=500_000",
        "--set", "population.virtual=false", "--workers", "0", "--out", "mine", cwd=tmp_path,
    )  # fmt: skip
    running = psutil.Process(process.pid)
    wait_until(lambda: running.memory_info().rss > 450e6, process)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint.endswith(MESSAGE)
    assert not (tmp_path / "mine").exists()


def test_a_signal_leaves_no_half_written_file(tmp_path):
    process = python(
        "-c",
        "import time, pathlib\n"
        "from fedhh.system.files import whole_file\n"
        "from fedhh.system.stopping import stop_at_signals\n"
        "stop_at_signals('stopped')\n"
        "with whole_file(pathlib.Path('table.csv')) as path:\n"
        "    path.write_text('half')\n"
        "    print('written', flush=True)\n"
        "    time.sleep(60)\n",
        cwd=tmp_path,
    )
    assert process.stdout.readline() == "written\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (130, "stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_the_cursor_of_a_terminal_is_shown_again(tmp_path):
    ours, theirs = os.openpty()
    process = python(
        "-c",
        "import pathlib, time\n"
        "from fedhh.system.stopping import stop_at_signals\n"
        "stop_at_signals('stopped')\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(60)\n",
        cwd=tmp_path,
        stderr=theirs,
    )
    wait_until((tmp_path / "ready").exists, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    os.close(theirs)
    shown = b""
    # A terminal gives what each write left, one at a time, and at its end an error.
    with suppress(OSError):
        while piece := os.read(ours, 1000):
            shown += piece
    os.close(ours)
    assert shown == b"\x1b[?25hstopped\r\n"
