"""Kept text is what was made, and nothing that happens on the disk matters."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fedhh.system.kept import _say_once, kept_text


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch, caplog) -> Path:
    caplog.set_level("INFO", logger="fedhh")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    _say_once.cache_clear()
    return tmp_path / "fedhh"


def never() -> str:
    pytest.fail("made again")


def test_a_text_is_made_once():
    assert kept_text("words", b"a", lambda: "café\nb") == "café\nb"
    assert kept_text("words", b"a", never) == "café\nb"


def test_other_sources_and_other_names_are_other_texts(directory):
    assert kept_text("words", b"a", lambda: "1") == "1"
    assert kept_text("words", b"b", lambda: "2") == "2"
    assert kept_text("names", b"a", lambda: "3") == "3"
    assert len(list(directory.iterdir())) == 3


def test_the_newest_texts_are_kept(directory, monkeypatch):
    monkeypatch.setattr("fedhh.system.kept._MOST_KEPT", 2)
    for number in range(3):
        kept_text("words", bytes([number]), lambda: "text")
        for file in directory.iterdir():
            os.utime(file, (0, file.stat().st_mtime - 60))
    assert len(list(directory.iterdir())) == 2
    kept_text("words", b"\2", never)
    assert kept_text("words", b"\0", lambda: "again") == "again"


def test_a_file_that_is_empty_or_no_text_is_made_again(directory):
    for damage in (b"", b"\xff"):
        kept_text("words", b"a", lambda: "text")
        (file,) = directory.iterdir()
        file.write_bytes(damage)
        assert kept_text("words", b"a", lambda: "text") == "text"
        assert kept_text("words", b"a", never) == "text"


def test_a_directory_that_cannot_be_written_costs_a_line(directory, caplog):
    directory.write_text("a file, where a directory should be")
    assert kept_text("words", b"a", lambda: "text") == "text"
    (line,) = caplog.messages
    assert f"Nothing is kept in {directory}" in line


def test_a_full_disk_leaves_no_part_of_a_file(directory, monkeypatch, caplog):
    def write_half(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_half)
        assert kept_text("words", b"a", lambda: "text") == "text"
    assert not list(directory.iterdir())
    (line,) = caplog.messages
    assert os.strerror(errno.ENOSPC) in line
