"""A full disk costs the file that did not fit, and nothing that was written before."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fedhh.clients.clients import Clients
from fedhh.clients.drawn import DrawnClients
from tests.thinned import thinned

SMALL = (
    "run", "--preset", "small", "--set", "population.clients=2000", "--set", "protocol.depth=3",
    "--set", "output.keep_log=true", "--workers", "0",
)  # fmt: skip


@pytest.fixture
def run(tmp_path, command):
    """Give words to the command line in this process; return its status and what it says."""

    def give(*words: str) -> tuple[int, str]:
        done = command(*words, cwd=tmp_path)
        return done.returncode, done.stderr

    return give


@pytest.fixture
def whole(once) -> Path:
    """The directory of a run that was never cut."""
    return once(*SMALL)[0]


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
    thinned(
        [
            ("os", "fsync", 1, "log/1.arrays"),
            ("pyarrow.parquet", "write_table", 1, "layers.parquet"),
            ("fedhh.experiments.run.directory", "write_text", 0, None),
        ]
    ),
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
    assert (tmp_path / "cut" / "log" / "0.arrays").exists()
    assert not list((tmp_path / "cut").rglob(".*"))
    assert run("run", "--resume", "--out", "cut")[0] == 0
    for name in ("discoveries.csv", "layers.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole / name).read_bytes()


FIGURES = "fedhh.experiments.report.style"


@pytest.mark.slow("::test_a_run_on_a_full_disk_is_one_line_and_goes_on")
def test_where_figures_of_a_run_do_not_fit_a_resume_asks_nobody_again(run, tmp_path, monkeypatch):
    # One for each run is enough.
    monkeypatch.setattr(
        "fedhh.experiments.report.run_figures.figures", lambda _: {"blank": Figure()}
    )
    both = list(SMALL)
    for setting in ("output.keep_log=false", "baseline.name=ldp-triehh", "baseline.depth=3"):
        both += ["--set", setting]
    assert run(*both, "--out", "whole")[0] == 0
    with monkeypatch.context() as full:
        # The baseline's is there, and its result; the run's own is not.
        fill_disk(full, FIGURES, "save", after=1)
        status, complaint = run(*both, "--out", "cut")
    assert status == 1
    assert complaint.endswith("; what is finished is kept; make room and go on with --resume.\n")
    assert (tmp_path / "cut" / "baseline" / "result.json").exists()
    assert not (tmp_path / "cut" / "result.json").exists()
    with monkeypatch.context() as asked:
        asked.setattr(
            "fedhh.clients.worker.ClientWorker.answer", lambda *_, **__: pytest.fail("asked again")
        )
        code, said = run("run", "--resume", "--out", "cut")
        assert (code, "0 left" in said) == (0, True)
    for name in ("discoveries.csv", "baseline/discoveries.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not list((tmp_path / "cut").rglob("state.arrays"))


@pytest.mark.slow("::test_a_run_on_a_full_disk_is_one_line_and_goes_on")
def test_where_figures_of_a_pipeline_do_not_fit_it_is_resumed(run, tmp_path, monkeypatch):
    days = ("--preset", "pipeline-small", "--days", "1", "--devices", "200", "--use-case", "emoji")
    with monkeypatch.context() as full:
        fill_disk(full, FIGURES, "save", after=1)
        status, complaint = run("pipeline", "run", *days, "--workers", "0", "--out", "cut")
    assert status == 1
    assert complaint.endswith("; what is finished is kept; make room and go on with --resume.\n")
    assert run("pipeline", "run", "--resume", "--out", "cut")[0] == 0
    assert len(list((tmp_path / "cut" / "figures").glob("*.png"))) == 3
    assert (tmp_path / "cut" / "result.json").exists()


@pytest.mark.slow("::test_a_run_on_a_full_disk_is_one_line_and_goes_on")
@pytest.mark.parametrize(
    "words", thinned([("report", "whole"), ("-q", "plot", "whole")], single=True), ids=" ".join
)
def test_what_cannot_be_resumed_is_to_be_given_again(run, tmp_path, monkeypatch, whole, words):
    shutil.copytree(whole, tmp_path / "whole")
    fill_disk(monkeypatch, "fedhh.system.files", "_unfinished_next_to")
    status, complaint = run(*words)
    assert (status, complaint.count("\n")) == (1, 1)
    assert complaint.endswith("; make room and give the command again.\n")


WRITERS = {
    "run": SMALL,
    "sweep": ("sweep", "--preset", "gboard-table1-quick"),
    "compare": ("compare", "--seeds", "1", "--protocol", "pem"),
    "pipeline": ("pipeline", "run", "--preset", "pipeline-small"),
    "longitudinal": ("longitudinal", "run", "--preset", "weekly-small"),
}


@pytest.mark.parametrize("words", thinned(WRITERS.values(), single=True), ids=list(WRITERS))
@pytest.mark.parametrize("place", ["/proc/out", "file/out"])
def test_where_nothing_can_be_written_nothing_runs(run, tmp_path, monkeypatch, words, place):
    (tmp_path / "file").touch()
    for kind in (Clients, DrawnClients):
        monkeypatch.setattr(kind, "__init__", lambda *_, **__: pytest.fail("drawn"))
    for option in (("--out", place), ("--set", f'output.directory="{place}"')):
        if option[0] == "--out" or words[0] in {"run", "pipeline", "longitudinal"}:
            status, complaint = run(*words, *option)
            assert (status, complaint.count("\n")) == (2, 1)
            assert complaint.startswith(f"Error: Cannot write to {place}")
    assert not Path("/proc/out").exists()


def test_a_name_that_is_too_long_is_refused(run, tmp_path, whole):
    status, complaint = run("report", str(whole), "--out", "x" * 300)
    assert (status, complaint.count("\n")) == (2, 1)
    assert complaint.startswith("Error: File name too long: xxx")


def test_a_read_only_directory_is_not_resumed(run, tmp_path, monkeypatch, whole):
    shutil.copytree(whole, tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    status, complaint = run("run", "--resume", "--out", "cut")
    assert (status, complaint) == (
        2,
        "Error: Cannot write to cut: Read-only file system; give another --out.\n",
    )


def test_a_new_directory_on_a_full_disk_is_refused_in_one_line(run, monkeypatch):
    fill_disk(monkeypatch, "fedhh.system.files", "_unfinished_next_to")
    status, complaint = run(*SMALL, "--out", "cut")
    assert (status, complaint.count("\n")) == (2, 1)
    assert "Cannot write to cut: No space left on device." in complaint
