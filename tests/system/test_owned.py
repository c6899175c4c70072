"""Who makes results in a directory is alone, until the process ends in whatever way."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys

import pytest

from fedhh.system.files import owned, write_text
from fedhh.validation import InputError


def test_a_second_owner_is_refused_until_the_first_is_done(tmp_path):
    with owned(tmp_path):
        said = "belongs to a command that is still running; wait"
        with pytest.raises(InputError, match=said), owned(tmp_path):
            pass
        with owned(tmp_path.parent):
            pass
    with owned(tmp_path):
        assert not list(tmp_path.iterdir())


def test_the_system_takes_the_lock_of_a_killed_process_back(tmp_path):
    program = (
        "import sys, pathlib; from fedhh.system.files import owned\n"
        "with owned(pathlib.Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    )
    held = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert held.stdout is not None
        held.stdout.readline()
        with pytest.raises(InputError, match="still running"), owned(tmp_path):
            pass
    finally:
        held.kill()
        held.communicate()
    with owned(tmp_path):
        pass


def test_where_no_locks_are_it_goes_on(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    write_text(tmp_path / "deep" / "a.txt", "text")
    with owned(tmp_path), owned(tmp_path):
        pass
    with owned(tmp_path / "absent"):
        pass
