"""What tests of several commands share."""

from __future__ import annotations

import sys

import pytest

from fedhh import cli


@pytest.fixture
def refused(tmp_path, monkeypatch, capfd):
    """Give words to the command line in this process; return what it complains about.

    That wrong input ends a process of its own with code 2 is seen in other tests.
    """

    def give(*words: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["fedhh", *words])
        # main() installs handlers of signals, which are the test runner's to keep.
        monkeypatch.setattr(cli, "stop_at_signals", lambda _: None)
        with pytest.raises(SystemExit) as end:
            cli.main()
        output, complaint = capfd.readouterr()
        assert end.value.code == 2, complaint
        assert output == ""
        assert complaint.startswith("Error: ")
        assert complaint.count("\n") == 1
        return complaint

    return give
