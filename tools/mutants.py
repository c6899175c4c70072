"""Which tests notice a small mistake: mutants of fedhh against its own suites.

`tools/drawn_mutants.py` says what the mutants are. Each runs in a copy of the checkout's tracked
files, with a copy of the cache of compiled code: its package's own tests, then the default suite,
then, with --slow, the slow tests, until one fails. That test runs again alone, and is left out if
it then passes: it failed by load. A run that takes much longer than without a mutant kills it
("time limit"). First, each of these suites must pass without a mutant.

Verdicts go to --results one by one, and what stands there does not run again: a run that was
stopped goes on, and one with more stages asks the survivors only. After a change of the tests, take
another file.

Run: python -m tools.mutants [--list] [--only own] [--slow] [--workers K] [-n N] [--shard I/N]
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from fedhh.system.kept import cache_directory
from tools.drawn_mutants import Mutant, draw

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
STAGES = ("own", "default", "slow")

_MEMORY = 8 << 30
"""Bytes of a process of tests: a mutant that asks for ever more does not take the machine."""

# The tests of a package stand in the folder of its name, and where this table says.
_OWN = {
    "fedhh": (
        "tests/test_adversary.py",
        "tests/test_devices.py",
        "tests/test_hashing.py",
        "tests/test_plugin_errors.py",
        "tests/test_plugins.py",
        "tests/test_random.py",
        "tests/test_settings.py",
    ),
    "fedhh/cli": ("tests/cli", "tests/e2e"),
    "fedhh/experiments": ("tests/experiments", "tests/explorer"),
    "fedhh/oracles": ("tests/oracles", "tests/conformance/test_oracles.py"),
    "fedhh/server": ("tests/server", "tests/golden", "tests/conformance/test_protocols.py"),
}


class StoppedError(Exception):
    """The run ends before its mutants are judged."""


class Checkout:
    """A copy of the tracked files, with a cache of compiled code of its own."""

    def __init__(self, place: Path, cache: Path) -> None:
        self.root = place / "checkout"
        self._cache, self._output, self._first_cache = place / "cache", place / "output.txt", cache
        for name in _tracked():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name, follow_symlinks=False)

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

    def pytest(self, words: Sequence[str], limit: float, alive: Callable[[], None]) -> _Run:
        """Run tests until one fails.

        Args:
            words: Arguments of pytest.
            limit: Seconds after which they are stopped.
            alive: Raises `StoppedError` once nothing more is to start.
        """
        if not self._cache.exists():
            shutil.copytree(self._first_cache, self._cache)
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no"]
        changes = {"PYTHONPATH": str(self.root), "NUMBA_CACHE_DIR": str(self._cache)}
        begin = time.monotonic()
        # A file, not a pipe: what a test leaves running would hold that open.
        with self._output.open("w") as output, _starting:
            alive()
            process = subprocess.Popen(
                [*command, *words],
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
            _kill(psutil.Process(process.pid))
            process.wait()
        with _starting:
            alive()
        seconds, text = time.monotonic() - begin, self._output.read_text(errors="replace")
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
        return _Run(code, failed[1] if failed else text[-200:].strip(), seconds)


@dataclass(frozen=True)
class _Run:
    """What a run of pytest gave: its exit code (None: the time was over) and who failed first."""

    code: int | None
    failed: str
    seconds: float


_starting = threading.Lock()


def _kill(process: psutil.Process, *, itself: bool = True) -> None:
    for other in [*process.children(recursive=True), *([process] if itself else [])]:
        with suppress(psutil.NoSuchProcess):
            other.kill()


def _tracked(*patterns: str) -> list[str]:
    command = ["git", "ls-files", "-z", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in names.split("\0") if name and os.path.lexists(ROOT / name)]


class Judge:
    """Runs the suites on mutants, side by side, and keeps the verdicts in a file."""

    def __init__(self, results: Path, *, processes: str, limit: float | None, workers: int) -> None:
        self._results, self._limit, self._workers = results, limit, workers
        self._parallel = ["-n", processes] if processes != "0" else []
        self.verdicts: dict[tuple[str, str], dict[str, Any]] = {}
        if results.exists():
            for line in results.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.verdicts[row["id"], row["stage"]] = row
        self._stopped = False

    def _alive(self) -> None:
        if self._stopped:
            raise StoppedError

    def _words(self, stage: str, mutant: Mutant) -> list[str]:
        if stage != "own":
            return ["-m", "slow" if stage == "slow" else "not slow", *self._parallel]
        name = mutant.package.partition("/")[2]
        own = _OWN.get(mutant.package, (f"tests/{name}",))
        return ["-m", "not slow", mutant.file, *own]

    def _keep(self, row: dict[str, Any]) -> None:
        with _starting:
            self.verdicts[row["id"], row["stage"]] = row
            self._results.parent.mkdir(parents=True, exist_ok=True)
            with self._results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        where = f"{row['file']}:{row['number']}" if "file" in row else row["id"]
        end = f" {row['failed']}" if row["failed"] else ""
        _say(f"{where} {row['outcome']} by {row['stage']} in {row['seconds']} s{end}")

    def todo(self, mutant: Mutant, stages: Sequence[str]) -> list[str]:
        """Return the stages that a mutant has before it; none once it is killed."""
        known = [self.verdicts.get((mutant.id, stage)) for stage in STAGES]
        if any(row is not None and row["outcome"] != "survived" for row in known):
            return []
        return [stage for stage in stages if (mutant.id, stage) not in self.verdicts]

    def run(self, mutants: Sequence[Mutant], stages: Sequence[str], *, check: bool) -> None:
        """Judge those that are not yet, after a run of the suites they need without a mutant."""
        waiting = [mutant for mutant in mutants if self.todo(mutant, stages)]
        if not waiting:
            return
        with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
            cache = Path(folder) / "cache"
            (cache / "fedhh").mkdir(parents=True)
            if cache_directory().exists():
                shutil.copytree(cache_directory(), cache / "fedhh", dirs_exist_ok=True)
            free: queue.Queue[Checkout] = queue.Queue()
            for number in range(self._workers):
                free.put(Checkout(Path(folder) / str(number), cache))
            with ThreadPoolExecutor(self._workers) as pool:
                try:
                    if check:
                        self._check(free, self._suites(waiting, stages))
                    for _ in pool.map(lambda mutant: self._judge(free, mutant, stages), waiting):
                        pass
                except BaseException:
                    with _starting:
                        self._stopped = True
                    _kill(psutil.Process(), itself=False)
                    raise

    def _suites(
        self, mutants: Sequence[Mutant], stages: Sequence[str]
    ) -> Iterator[tuple[Mutant, str]]:
        """Yield each suite that is needed and has not been seen to pass, with a mutant of it."""
        for stage in stages:
            for mutant in mutants:
                if stage in self.todo(mutant, stages) and not self._seconds(stage, mutant):
                    yield mutant, stage

    @staticmethod
    def _suite(stage: str, mutant: Mutant) -> str:
        return f"unmutated {mutant.package}" if stage == "own" else "unmutated"

    def _seconds(self, stage: str, mutant: Mutant) -> float:
        row = self.verdicts.get((self._suite(stage, mutant), stage))
        return float(row["seconds"]) if row else 0.0

    def _check(self, free: queue.Queue[Checkout], suites: Iterator[tuple[Mutant, str]]) -> None:
        """Run suites without a mutant; their compiled code is there for those with one."""
        checkout = free.get()
        for mutant, stage in suites:
            run = checkout.pytest(self._words(stage, mutant), 7200, self._alive)
            suite = self._suite(stage, mutant)
            if run.code != 0:
                raise RuntimeError(f"Without a mutant, {suite} {stage} fails: {run.failed}")
            self._keep(_row(suite, stage, "survived", run))
            checkout.keep_cache()
        free.put(checkout)

    def _judge(self, free: queue.Queue[Checkout], mutant: Mutant, stages: Sequence[str]) -> None:
        checkout = free.get()
        with checkout.mutated(mutant):
            for stage in self.todo(mutant, stages):
                known = self._seconds(stage, mutant)
                # A kernel's mutant compiles all kernels again.
                limit = self._limit or (300 + 5 * known if known else 3600)
                outcome, run = self._outcome(checkout, self._words(stage, mutant), limit)
                about = {"file": mutant.file, "number": mutant.number, "line": mutant.line}
                about |= {"operator": mutant.operator, "nth": mutant.nth}
                self._keep(_row(mutant.id, stage, outcome, run) | about)
                if outcome != "survived":
                    break
        free.put(checkout)

    def _outcome(self, checkout: Checkout, words: list[str], limit: float) -> tuple[str, _Run]:
        """Return what a suite says of a mutant, without tests that fail once but not alone."""
        while True:
            run = checkout.pytest(words, limit, self._alive)
            if run.code in (0, None):
                return "time limit" if run.code is None else "survived", run
            if "::" not in run.failed or run.failed in words:
                return "killed", run
            alone = checkout.pytest([run.failed], limit, self._alive)
            if alone.code != 0:
                return "killed", run
            _say(f"{run.failed} failed once, but holds alone: left out")
            words = [*words, "--deselect", run.failed]


def _row(id_: str, stage: str, outcome: str, run: _Run) -> dict[str, Any]:
    seconds = round(run.seconds, 1)
    failed = "" if run.code == 0 else run.failed
    return {"id": id_, "stage": stage, "outcome": outcome, "seconds": seconds, "failed": failed}


def summary(judge: Judge, mutants: Sequence[Mutant], sources: dict[str, str]) -> str:
    """Return who killed how many, and the mutants that no suite noticed, with their changes."""
    killed: Counter[str] = Counter()
    slowly, open_, alive = 0, 0, []
    for mutant in mutants:
        rows = [judge.verdicts[mutant.id, x] for x in STAGES if (mutant.id, x) in judge.verdicts]
        if not rows:
            open_ += 1
        elif rows[-1]["outcome"] == "survived":
            alive.append(f"survived {rows[-1]['stage']}: {_shown(mutant, sources)}")
        else:
            killed[rows[-1]["stage"]] += 1
            slowly += rows[-1]["outcome"] == "time limit"
    by_stage = ", ".join(f"{killed[stage]} by {stage}" for stage in STAGES)
    counts = f"{len(mutants)} mutants: killed {by_stage} ({slowly} of them by the time limit); "
    return "\n".join([counts + f"{len(alive)} survived; {open_} not judged.", *alive])


def _shown(mutant: Mutant, sources: dict[str, str]) -> str:
    nth = f" #{mutant.nth}" if mutant.nth > 1 else ""
    return f"{mutant.id} {mutant.operator}{nth}\n{mutant.diff(sources[mutant.file])}\n"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, most))


def main(words: Sequence[str] | None = None) -> int:
    """Draw, judge and report; return 0 unless a suite fails without a mutant or it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=100, help="mutants drawn (100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", default="1/1", help="I/N: every N-th of them from the I-th on")
    parser.add_argument("--package", action="append", help="only those of fedhh/NAME, or of fedhh")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--only", choices=["own"], help="only the tests of a mutant's package")
    parser.add_argument("--slow", action="store_true", help="survivors meet the slow tests too")
    parser.add_argument("--workers", type=int, default=1, help="mutants side by side (1)")
    parser.add_argument("--processes", "-n", default="0", help="pytest -n of the whole suites")
    parser.add_argument("--limit", type=float, help="seconds of a run (300 + 5 times the usual)")
    parser.add_argument("--unchecked", action="store_true", help="do not run unmutated suites")
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "mutants.jsonl")
    options = parser.parse_args(words)
    part, parts = (int(number) for number in options.shard.split("/"))
    sources = {name: (ROOT / name).read_text(encoding="utf-8") for name in _tracked("fedhh/*.py")}
    equivalent = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    drawn = draw(sources, count=options.count, seed=options.seed, equivalent=equivalent)
    mutants = [
        mutant
        for mutant in drawn[part - 1 :: parts]
        if not options.package or mutant.package in options.package
    ]
    if options.list:
        _say("\n".join(_shown(mutant, sources) for mutant in mutants))
        return 0
    judge = Judge(
        options.results,
        processes=options.processes,
        limit=options.limit,
        workers=options.workers,
    )
    stages = STAGES[:1] if options.only else STAGES if options.slow else STAGES[:2]
    _limit_memory()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        judge.run(mutants, stages, check=not options.unchecked)
    except KeyboardInterrupt:
        return 130
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        _say(summary(judge, mutants, sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
