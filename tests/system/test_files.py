"""A file is written whole, and only where nothing or a regular file stands."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fedhh.cli.app import is_no_place
from fedhh.experiments.study.directory import check_directory
from fedhh.system.files import _PREFIX, is_unfinished, whole_directory, whole_file, write_text
from fedhh.validation import InputError


def test_a_regular_file_is_replaced_and_a_missing_one_made(tmp_path):
    file = tmp_path / "deep" / "a.txt"
    for text in ("one", "two"):
        write_text(file, text)
        assert file.read_text() == text
    assert os.listdir(file.parent) == ["a.txt"]


@pytest.mark.parametrize("kind", ["FIFO", "socket", "link to a device", "directory"])
def test_what_is_no_regular_file_stays(tmp_path, monkeypatch, kind: str):
    monkeypatch.chdir(tmp_path)
    if kind == "FIFO":
        os.mkfifo("there")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("there")
    elif kind == "directory":
        Path("there").mkdir()
    else:
        Path("there").symlink_to(os.devnull)
    before = os.lstat("there")
    with pytest.raises(OSError, match=r"there"):
        write_text(Path("there"), "text")
    assert os.lstat("there") == before
    assert os.listdir() == ["there"]


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "b.txt", tmp_path / "file" / "a" / "b.txt"):
        with pytest.raises(OSError, match=r"b\.txt'$") as refused:
            write_text(path, "text")
        assert is_no_place(refused.value)


KILLED = """
import os, signal, sys
from pathlib import Path
from fedhh.system.files import whole_directory, whole_file

folder = Path(sys.argv[1])
with whole_file(folder / "a.tar.gz"), whole_directory(folder / "clients") as place:
    (place / "part").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_goes_with_the_next_file_and_nothing_else(tmp_path):
    others = [".hidden", ".0123456789abcdef.gz", ".fedhh-notes", "b.txt"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / f"{_PREFIX}{'0' * 16}").symlink_to("b.txt")
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    left = {*os.listdir(tmp_path)} - {*others}
    assert sum(map(is_unfinished, map(Path, left))) == len(left) == 3
    write_text(tmp_path / "b.txt", "text")
    assert {*os.listdir(tmp_path)} == {*others, f"{_PREFIX}{'0' * 16}"}


def test_what_is_being_written_stays(tmp_path):
    program = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "print(flush=True); input()")
    writing = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert writing.stdout is not None
    writing.stdout.readline()
    write_text(tmp_path / "b.txt", "text")
    with whole_directory(tmp_path / "deep" / "other"):
        pass
    writing.communicate(b"\n", timeout=30)
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "b.txt", "clients", "deep"]
    assert (tmp_path / "clients" / "part").read_text() == "half"


def test_a_directory_of_a_run_that_was_killed_in_its_beginning_is_empty(tmp_path):
    (tmp_path / f"{_PREFIX}{'0' * 16}.toml").touch()
    check_directory(tmp_path)
    (tmp_path / "config.toml").touch()
    with pytest.raises(InputError, match="holds another run"):
        check_directory(tmp_path)


def test_a_failing_writer_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
