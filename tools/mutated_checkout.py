"""A copy of a checkout in which a mutant's tests run.

`tools/mutants.py` says what mutants are judged by.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tools.drawn_mutants import Mutant

_TOOLS = Path(__file__).resolve().parent.parent


class StoppedError(Exception):
    """The run ends before its mutants are judged."""


class Checkout:
    """A copy of the tracked files, with a cache of compiled code of its own."""

    def __init__(self, source: Path, place: Path, cache: Path) -> None:
        self.root = place / "checkout"
        self._cache, self._output, self._first_cache = place / "cache", place / "output.txt", cache
        for name in tracked(source):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, self.root / name, follow_symlinks=False)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Change the file, and change it back; no compiled code of the one serves the other."""
        file = self.root / mutant.file
        source = file.read_text(encoding="utf-8")
        shutil.rmtree(self._cache, ignore_errors=True)
        self._write(file, mutant.applied(source))
        try:
            yield
        finally:
            self._write(file, source)

    @staticmethod
    def _write(file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()

    def keep_cache(self) -> None:
        """Give the compiled code of a run without a mutant to those that come."""
        shutil.copytree(self._cache, self._first_cache, dirs_exist_ok=True)

    def pytest(self, words: Sequence[str], limit: float, alive: Callable[[], None]) -> Run:
        """Run tests until one fails.

        Args:
            words: Arguments of pytest.
            limit: Seconds after which they are stopped.
            alive: Raises `StoppedError` once nothing more is to start.
        """
        if not self._cache.exists():
            shutil.copytree(self._first_cache, self._cache)
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no"]
        path = os.pathsep.join([str(self.root), os.environ.get("PYTHONPATH", "."), str(_TOOLS)])
        changes = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(self._cache)}
        begin = time.monotonic()
        # A file, not a pipe: what a test leaves running would hold that open.
        with self._output.open("w") as output, starting:
            alive()
            process = subprocess.Popen(
                [*command, "-rfE", *words],
                cwd=self.root,
                env={**os.environ, **changes},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            kill(psutil.Process(process.pid))
            process.wait()
        with starting:
            alive()
        seconds, text = time.monotonic() - begin, self._output.read_text(errors="replace")
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
        return Run(code, failed[1] if failed else text[-200:].strip(), seconds)


@dataclass(frozen=True)
class Run:
    """What a run of pytest gave: its exit code (None: the time was over) and who failed first."""

    code: int | None
    failed: str
    seconds: float


starting = threading.Lock()
"""Held where a process starts, so that nothing starts once all are to end."""


def kill(process: psutil.Process, *, itself: bool = True) -> None:
    """Kill the processes below one, and itself."""
    for other in [*process.children(recursive=True), *([process] if itself else [])]:
        with suppress(psutil.NoSuchProcess):
            other.kill()


def tracked(root: Path, *patterns: str) -> list[str]:
    """Return the tracked files below a checkout that are there."""
    command = ["git", "ls-files", "-z", *patterns]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [name for name in names.split("\0") if name and os.path.lexists(root / name)]
