"""Which tests notice a small mistake: mutants of fedhh against its own suites.

`tools/drawn_mutants.py` says what the mutants are. Each runs in a copy of the checkout's tracked
files, with a copy of the cache of compiled code, until a test fails: the tests of the default suite
that execute its line, those of its own package first; its package's own tests; the default suite;
with --slow, the slow tests. The test that failed runs again alone, and is left out if it then
passes: it failed by load. A run that takes much longer than without a mutant kills it ("time
limit"). First, each of these suites must pass without a mutant.

Who executes a line is seen in the default suite's run without a mutant, where `coverage` is
installed (``pip install coverage``). Lines that run at import, in compiled kernels or in other
processes only are nobody's, and what several tests share is the first one's
(`tools/lines_of_tests.py`): that is why whole suites follow, so that only they say that a mutant
survives.

Verdicts go to --results one by one, and what stands there does not run again: a run that was
stopped goes on, and one with more stages asks the survivors only. After a change of the tests, take
another file.

Run: python -m tools.mutants [--list] [--only STAGE] [--slow] [--workers K] [-n N] [--shard I/N]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import queue
import resource
import shutil
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from fedhh.system.kept import cache_directory
from tools.drawn_mutants import Mutant, draw
from tools.lines_of_tests import tests_of
from tools.mutated_checkout import Checkout, Run, StoppedError, kill, starting, tracked

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
STAGES = ("lines", "own", "default", "slow")

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
        "tests/server/test_found.py",
    ),
    "fedhh/cli": ("tests/cli", "tests/e2e"),
    "fedhh/experiments": ("tests/experiments", "tests/explorer"),
    "fedhh/oracles": ("tests/oracles", "tests/conformance/test_oracles.py"),
    "fedhh/server": ("tests/server", "tests/golden", "tests/conformance/test_protocols.py"),
}


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
        if stage in ("default", "slow"):
            return ["-m", "slow" if stage == "slow" else "not slow", *self._parallel]
        name = mutant.package.partition("/")[2]
        own = (mutant.file, *_OWN.get(mutant.package, (f"tests/{name}",)))
        if stage == "lines":
            own = tuple(sorted(self._tests(mutant), key=lambda test: not test.startswith(own)))
        return ["-m", "not slow", *own]

    def _tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant's line, as far as that is known."""
        return self.verdicts.get((mutant.id, "tests"), {}).get("tests", [])

    def _note(self, row: dict[str, Any]) -> None:
        with starting:
            self.verdicts[row["id"], row["stage"]] = row
            self._results.parent.mkdir(parents=True, exist_ok=True)
            with self._results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _keep(self, row: dict[str, Any]) -> None:
        self._note(row)
        where = f"{row['file']}:{row['number']}" if "file" in row else row["id"]
        end = f" {row['failed']}" if row["failed"] else ""
        _say(f"{where} {row['outcome']} by {row['stage']} in {row['seconds']} s{end}")

    def todo(self, mutant: Mutant, stages: Sequence[str]) -> list[str]:
        """Return the stages that a mutant has before it; none once it is killed."""
        known = [self.verdicts.get((mutant.id, stage)) for stage in STAGES]
        if any(row is not None and row["outcome"] != "survived" for row in known):
            return []
        left = [stage for stage in stages if (mutant.id, stage) not in self.verdicts]
        return [stage for stage in left if stage != "lines" or self._tests(mutant)]

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
                free.put(Checkout(ROOT, Path(folder) / str(number), cache))
            with ThreadPoolExecutor(self._workers) as pool:
                try:
                    if "lines" in stages:
                        self._find_tests(free, waiting)
                    if check:
                        self._check(free, self._suites(waiting, stages))
                    for _ in pool.map(lambda mutant: self._judge(free, mutant, stages), waiting):
                        pass
                except BaseException:
                    with starting:
                        self._stopped = True
                    kill(psutil.Process(), itself=False)
                    raise

    def _suites(
        self, mutants: Sequence[Mutant], stages: Sequence[str]
    ) -> Iterator[tuple[Mutant, str]]:
        """Yield each suite that is needed and has not been seen to pass, with a mutant of it."""
        for stage in (stage for stage in stages if stage != "lines"):
            for mutant in mutants:
                if stage in self.todo(mutant, stages) and not self._seconds(stage, mutant):
                    yield mutant, stage

    @staticmethod
    def _suite(stage: str, mutant: Mutant) -> str:
        return f"unmutated {mutant.package}" if stage == "own" else "unmutated"

    def _seconds(self, stage: str, mutant: Mutant) -> float:
        stage = "default" if stage == "lines" else stage
        row = self.verdicts.get((self._suite(stage, mutant), stage))
        return float(row["seconds"]) if row else 0.0

    def _find_tests(self, free: queue.Queue[Checkout], mutants: Sequence[Mutant]) -> None:
        """Keep which tests execute each mutant's line, by one run of the default suite."""
        unknown = [each for each in mutants if (each.id, "tests") not in self.verdicts]
        if not unknown or importlib.util.find_spec("coverage") is None:
            return
        checkout = free.get()
        words = ["-m", "not slow", "-p", tests_of.__module__]
        run = checkout.pytest(words, 7200, self._alive)
        if run.code != 0:
            raise RuntimeError(f"Without a mutant, the default suite fails: {run.failed}")
        self._keep(_row("unmutated", "default", "survived", run))
        checkout.keep_cache()
        for mutant in unknown:
            found = tests_of(checkout.root, mutant.file, mutant.number)
            self._note({"id": mutant.id, "stage": "tests", "tests": found})
        free.put(checkout)

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
                if stage == "lines" and run.code == pytest.ExitCode.USAGE_ERROR:
                    continue  # The change has no test of such a name: whole suites say which fail.
                about = {"file": mutant.file, "number": mutant.number, "line": mutant.line}
                about |= {"operator": mutant.operator, "nth": mutant.nth}
                self._keep(_row(mutant.id, stage, outcome, run) | about)
                if outcome != "survived":
                    break
        free.put(checkout)

    def _outcome(self, checkout: Checkout, words: list[str], limit: float) -> tuple[str, Run]:
        """Return what a suite says of a mutant, without tests that fail once but not alone."""
        while True:
            run = checkout.pytest(words, limit, self._alive)
            if run.code in (0, None):
                return "time limit" if run.code is None else "survived", run
            left_out = f"--deselect={run.failed}"
            if "::" not in run.failed or left_out in words:
                return "killed", run
            alone = checkout.pytest([run.failed], limit, self._alive)
            if alone.code != 0:
                return "killed", run
            _say(f"{run.failed} failed once, but holds alone: left out")
            words = [*words, left_out]


def _row(id_: str, stage: str, outcome: str, run: Run) -> dict[str, Any]:
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
    parser.add_argument("--only", choices=STAGES, action="append", help="only this stage, or these")
    parser.add_argument("--slow", action="store_true", help="survivors meet the slow tests too")
    parser.add_argument("--workers", type=int, default=1, help="mutants side by side (1)")
    parser.add_argument("--processes", "-n", default="0", help="pytest -n of the whole suites")
    parser.add_argument("--limit", type=float, help="seconds of a run (300 + 5 times the usual)")
    parser.add_argument("--unchecked", action="store_true", help="do not run unmutated suites")
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "mutants.jsonl")
    options = parser.parse_args(words)
    part, parts = (int(number) for number in options.shard.split("/"))
    sources = {
        name: (ROOT / name).read_text(encoding="utf-8") for name in tracked(ROOT, "fedhh/*.py")
    }
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
    stages = options.only or (STAGES if options.slow else STAGES[:-1])
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
