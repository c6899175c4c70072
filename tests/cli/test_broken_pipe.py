"""A reader that has seen enough, as `fedhh ... | head` has, is no failure."""

from __future__ import annotations

import os
import sys

import pytest

from fedhh.cli import app as cli


@pytest.mark.parametrize(
    "words",
    [("--version",), ("presets", "show", "default"), ("oracles", "compare", "--help")],
)
def test_nothing_is_said_where_the_reader_of_what_is_printed_is_gone(monkeypatch, capfd, words):
    monkeypatch.setattr(cli, "stop_at_signals", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["fedhh", *words])
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit) as end:
            cli.main()
        monkeypatch.undo()
    assert end.value.code == 0
    assert capfd.readouterr().err == ""
