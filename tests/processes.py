"""Commands in processes of their own, which signals may end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "fedhh", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait two minutes at most, while the process lives, for something that it does."""
    for _ in range(2400):
        if done():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("waited two minutes")
