"""Cases of all kinds: how many of each, what one may take, and what came out.

`TOTAL` cases in all, of which each kind has its share; the environment's FEDHH_FUZZ_CASES sets
another number. Cases of a kind are numbered from 0, and each is the same in every run.
"""

from __future__ import annotations

import os
import random
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fedhh.validation import InputError
from tests.fuzz.mutation import rng_of

TOTAL = int(os.environ.get("FEDHH_FUZZ_CASES", "500"))

SHARES = {
    # Files of clients and of known words.
    "csv": 1_500, "csv.gz": 500, "json": 1_500, "json.gz": 500, "parquet": 1_500, "words": 400,
    "words.gz": 300,
    # Configurations as files, and --set.
    "config": 2_500, "sweep": 1_500, "months": 800, "pipeline": 800, "settings": 2_500,
    # Options of all commands.
    "options": 1_600,
    # Logs of runs and sums of pipelines: read, and gone on from with --resume.
    "log": 1_300, "resume": 2_000,
    # Directories of finished work.
    "directory of run": 200, "directory of sweep": 200, "directory of months": 200,
    "directory of pipeline": 200,
}  # fmt: skip
"""Of every 20,000 cases."""

SECONDS = 300
"""After which a case counts as one that hangs."""

MOST_MEMORY = 2**30
"""Bytes by which a case may raise the most that this process has had."""

_LIMIT = 2**32
"""Bytes of addresses that cases get beyond those that are there: the machine has to live on."""

_MOST_LISTED, _FEW = 10, 50

Record = Callable[[str, object], None]
"""pytest's ``record_property``."""


class CaseHangsError(BaseException):
    """A case takes too long."""


def number_of(kind: str) -> int:
    """Return how many cases of a kind there are to run."""
    return max(2, round(TOTAL * SHARES[kind] / sum(SHARES.values())))


def survives(run: Callable[[], object], case: object) -> bool:
    """Return whether what ran was accepted; only InputError may refuse it, in one line.

    Args:
        run: Takes the case.
        case: What a message quotes.
    """
    refused = ""
    try:
        run()
    except InputError as error:
        refused = str(error) or "\n"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__}: {error} for {repr(case)[:2000]}") from error
    assert refused.isprintable()
    return not refused


def feed(kind: str, run: Callable[[random.Random], bool], record: Record) -> None:
    """Run a kind's cases; unless some are accepted and some refused, nothing has been tried.

    Args:
        kind: A key of `SHARES`.
        run: Makes a case and returns what `survives` does.
        record: Hears how many were accepted, refused, and neither.
    """
    number, accepted, failures = number_of(kind), 0, []
    with _bounded_memory():
        for case in range(number):
            before = peak()
            try:
                with limited():
                    accepted += run(rng_of(kind, case))
                if (taken := peak() - before) > MOST_MEMORY:
                    raise AssertionError(f"took {taken:,} bytes")
            except AssertionError as error:
                failures.append(f"{kind} {case}: {error}")
    record("fuzz", [kind, accepted, number - accepted - len(failures), len(failures)])
    assert not failures, "\n".join(failures[:_MOST_LISTED])
    # Of few, chance may damage each, or none.
    assert 0 < accepted < number or number < _FEW


@contextmanager
def limited() -> Iterator[None]:
    """End what takes too long, such as to read a FIFO."""

    def stop(*_: object) -> None:
        raise CaseHangsError(f"after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    with open("/proc/self/statm", encoding="ascii") as file:
        there = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (there + _LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def peak() -> int:
    """Return the most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
