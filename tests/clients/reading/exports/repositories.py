"""Small git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(directory: Path, *arguments: str, text: str = "", **variables: str) -> str:
    """Return what git prints, without the settings of this machine."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_NAME": "Carla Keeper", "GIT_COMMITTER_EMAIL": "carla@example.org",
        **variables,
    }  # fmt: skip
    done = subprocess.run(
        ["git", *arguments], cwd=directory, input=text, env=environment, capture_output=True,
        encoding="utf-8", check=True,
    )  # fmt: skip
    return done.stdout


def commit(directory: Path, text: str, name: str, address: str, *arguments: str) -> None:
    git(
        directory, "commit", "--allow-empty", "--cleanup=verbatim", "-q", "-F", "-", *arguments,
        text=text, GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=address,
    )  # fmt: skip


def new_repository(directory: Path) -> Path:
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    return directory
