"""What tests of several commands share."""

from __future__ import annotations

import pytest


@pytest.fixture
def refused(tmp_path, command):
    """Give words to the command line in this process; return what it complains about.

    That wrong input ends a process of its own with code 2 is seen in other tests.
    """

    def give(*words: str) -> str:
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
        return done.stderr

    return give
