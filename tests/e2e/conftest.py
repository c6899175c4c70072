"""What tests of several commands share."""

from __future__ import annotations

import json
from typing import Any

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


@pytest.fixture
def fedhh(command):
    """Exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        done = command(*words)
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture
def answer(fedhh):
    """The JSON that a command prints."""

    def call(*words: str) -> Any:
        code, out, err = fedhh(*words, "--format", "json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call
