"""Populations, and the command line, that several tests share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fedhh.cli import app as cli
from fedhh.cli import minute_lines
from fedhh.clients.populations.population import StoredPopulation
from fedhh.testing.populations import LETTERS
from fedhh.testing.populations import small_population as zipf_population

__all__ = ["LETTERS", "zipf_population"]


@pytest.fixture(scope="session")
def population() -> StoredPopulation:
    return zipf_population(6_000)


@pytest.fixture
def command(monkeypatch, capfd):
    """The command line in this process: words to its exit code and what it printed."""

    def call(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["fedhh", *words])
        # main() installs handlers of signals, which are the test runner's to keep.
        monkeypatch.setattr(cli, "stop_at_signals", lambda _: None)
        # Nor does it depend on how fast this machine is what is printed.
        monkeypatch.setattr(minute_lines, "SECONDS", 1e6)
        with pytest.raises(SystemExit) as end:
            cli.main()
        output, complaint = capfd.readouterr()
        return subprocess.CompletedProcess(words, int(end.value.code or 0), output, complaint)

    return call
