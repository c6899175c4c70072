"""A full disk costs the file that did not fit, and nothing that was written before."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from fedhh.cli import app as cli

SMALL = (
    "run", "--preset", "small", "--set", "population.clients=2000", "--set", "protocol.depth=3",
    "--set", "output.keep_checkpoint=true", "--workers", "0",
)  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Give words to the command line in this process; return its status and what it says."""

    def give(*words: str) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["fedhh", *words])
        monkeypatch.setattr(cli, "stop_at_signals", lambda _: None)
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), capfd.readouterr().err

    return give


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The directory of a run that was never cut."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["fedhh", *SMALL, "--out", "whole"])
        patch.setattr(cli, "stop_at_signals", lambda _: None)
        with pytest.raises(SystemExit) as end:
            cli.main()
    assert not end.value.code
    return folder / "whole"


def fill_disk(monkeypatch, module: str, name: str, *, after: int = 0) -> None:
    """Have a function fail for want of room from its call number ``after`` on."""
    imported = __import__(module, fromlist=["x"])
    real = getattr(imported, name)
    calls = 0

    def write(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    monkeypatch.setattr(imported, name, write)


@pytest.mark.parametrize(
    ("module", "name", "after", "file"),
    [
        ("numpy", "savez", 2, "checkpoint/candidates/2.npz"),
        ("numpy", "savez", 3, "checkpoint/state.npz"),
        ("pyarrow.parquet", "write_table", 1, "layers.parquet"),
        ("fedhh.experiments.run.directory", "write_text", 1, None),
    ],
)
def test_a_run_on_a_full_disk_is_one_line_and_goes_on(
    run, tmp_path, monkeypatch, whole: Path, module: str, name: str, after: int, file: str | None
):
    with monkeypatch.context() as full:
        fill_disk(full, module, name, after=after)
        status, complaint = run(*SMALL, "--out", "cut")
    assert status == 1
    assert complaint.startswith("Error: No space left on device: ")
    assert complaint.endswith("; what is finished is kept; make room and go on with --resume.\n")
    assert complaint.count("\n") == 1
    if file is not None:
        assert str(Path("cut") / file) in complaint
    assert (tmp_path / "cut" / "checkpoint" / "state.npz").exists()
    assert not list((tmp_path / "cut").rglob(".*"))
    assert run("run", "--resume", "--out", "cut")[0] == 0
    for name in ("discoveries.csv", "layers.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole / name).read_bytes()


def test_a_new_directory_on_a_full_disk_is_refused_in_one_line(run, monkeypatch):
    fill_disk(monkeypatch, "fedhh.system.files", "_renamed")
    status, complaint = run(*SMALL, "--out", "cut")
    assert (status, complaint.count("\n")) == (2, 1)
    assert "Cannot write to cut: No space left on device." in complaint
