"""Commands in processes of their own, which signals may end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def python(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Start Python, whose output can be read."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *words], **{"stdout": pipe, "stderr": pipe, "text": True, **options}
    )


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return python("-m", "fedhh", *words, **options)


def wait_until(done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait two minutes at most, while the process lives, for something that it does."""
    for _ in range(2400):
        if done():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("waited two minutes")
