"""A file is written whole, and only where nothing or a regular file stands."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fedhh.system.files import write_text


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
    with pytest.raises(NotADirectoryError, match=r"/file'$"):
        write_text(tmp_path / "file" / "a" / "b.txt", "text")
