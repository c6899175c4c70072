"""Directories of finished work, a file of each damaged: read or resumed, or refused in one line.

The long run, of any length; the report counts what came out:
``FEDHH_FUZZ_CASES=5000 pytest tests/fuzz/test_directories.py -m slow -n 0 --junitxml fuzz.xml``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.cli.app import app, is_no_place
from fedhh.validation import InputError
from tests.fuzz.mutation import any_value, mutate_bytes, rng_of, survives

SECONDS = 60
"""After which a case counts as one that hangs."""

SHORT = 8
RUN = """
[population]
source = "zipf"
clients = 300
known = "none"
alphabet = "lower"
model = { vocabulary = 100, word_length = 3 }
[protocol]
name = "ldp-triehh"
depth = 3
passes = 1
eta_max = 20
max_items = 2
[execution]
workers = 0
[output]
keep_checkpoint = true
"""
SWEEP = '[sweep.axes]\n"privacy.local_epsilon" = [4.0, 8.0]\n'
MONTHS = "[longitudinal]\ndays = 14\nevery_days = 7\nmin_devices = 10\n"
TEXTS = {"run": RUN, "sweep": RUN + SWEEP, "months": RUN + MONTHS}
RESUME = {
    "run": ("run", "--resume", "--out"),
    "sweep": ("sweep", "--resume", "--out"),
    "months": ("longitudinal", "run", "--resume", "--out"),
    "pipeline": ("pipeline", "run", "--resume", "--out"),
}
COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "run": [("show",), ("show", "--format", "json"), ("report",), ("plot",)],
    "sweep": [("show",), ("report",), ("plot",), ("table", "summary", "--results")],
    "months": [("show",), ("show", "--format", "json")],
    "pipeline": [("show",), ("show", "--format", "json"), ("plot",)],
}
READ = {".json", ".parquet", ".toml", ".npz"}
NUMBERS = (0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 1e300, 5e-324, float("nan"), float("inf"), float("-inf"))


def call(*arguments: object) -> None:
    try:
        app([str(each) for each in arguments], standalone_mode=False)
    except OSError as error:
        # As `main` does, with exit code 2: another file stands where a result should go.
        if not is_no_place(error):
            raise
        raise InputError(f"{error.strerror}: {error.filename}") from error


def make(home: Path, kind: str) -> None:
    """Make the finished directory of a kind below a folder, without its figures."""
    file, out = home / f"{kind}.toml", ("--out", home / kind, "-q")
    file.write_text(TEXTS.get(kind, ""))
    with contextlib.redirect_stdout(io.StringIO()):
        match kind:
            case "run":
                call("run", "--config", file, *out)
            case "sweep":
                call("sweep", file, *out)
            case "months":
                call("longitudinal", "run", "--config", file, *out)
            case _:
                small = ("--days", "2", "--devices", "200", "--workers", "0")
                keep = ("--set", "output.keep_checkpoint=true")
                call("pipeline", "run", "--preset", "apple", *small, *keep, *out)
    for drawn in (path for path in home.rglob("*") if path.suffix in {".png", ".pdf", ".svg"}):
        drawn.unlink()


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """End with an AssertionError what takes too long, such as to read a FIFO."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt("the case hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damaged_value(value: Any, rng: random.Random) -> Any:
    """Return a JSON value after one change somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {name: part for name, part in value.items() if name != key}
        return {**value, key: damaged_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], damaged_value(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int | float) and rng.random() < 0.5:
        return rng.choice((*NUMBERS, *FLOATS))
    return any_value(rng)


def damaged_table(table: pa.Table, rng: random.Random) -> pa.Table:
    """Return a table without a column, or with one of another type, or with other values."""
    place = rng.randrange(table.num_columns)
    name, column = table.column_names[place], table.column(place)
    rows = table.num_rows
    match rng.randrange(6):
        case 0:
            return table.drop_columns([name])
        case 1:
            return table.slice(0, 0)
        case 2:
            others = (
                np.zeros(rows), np.zeros(rows, np.int8), np.zeros(rows, bool), ["x"] * rows,
                [None] * rows, [[1]] * rows, [b"\xff"] * rows,
            )  # fmt: skip
            return table.set_column(place, name, pa.array(rng.choice(others)))
        case 3:
            return table.append_column(name, column)
        case 4:
            metadata = dict(table.schema.metadata or {})
            key = rng.choice(list(metadata))
            return table.replace_schema_metadata(
                {**metadata, key: mutate_bytes(metadata[key], rng)}
            )
        case _:
            values = column.to_pylist()
            if not values:
                return table.slice(0, 0)
            choices: tuple[Any, ...] = ("", "x" * 300, "\x1b[2J", "\0", "a,b", "=cmd()")
            if pa.types.is_integer(column.type):
                choices = NUMBERS
            elif pa.types.is_floating(column.type):
                choices = FLOATS
            elif pa.types.is_boolean(column.type):
                choices = (True, False)
            for _ in range(rng.choice((1, 3, len(values)))):
                values[rng.randrange(len(values))] = rng.choice((*choices, None))
            try:
                made = pa.array(values, column.type)
            except (pa.ArrowException, OverflowError):
                return table
            return table.set_column(place, name, made)


def damage(path: Path, rng: random.Random) -> str:
    """Damage a file in one way, and return which."""
    way = rng.choice(("bytes", "bytes", "inside", "inside", "inside", "inside", "special"))
    if way == "inside" and path.suffix == ".json":
        content = damaged_value(json.loads(path.read_bytes()), rng)
        try:
            path.write_text(json.dumps(content, default=str))
        except ValueError:  # An integer that Python does not write.
            path.write_text('{"x": ' + "9" * 5_000 + "}")
        return "json"
    if way == "inside" and path.suffix == ".parquet":
        pq.write_table(damaged_table(pq.read_table(path), rng), path)
        return "parquet"
    if way != "special":
        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
        return "bytes"
    path.unlink()
    special = rng.choice(("missing", "empty", "folder", "fifo", "zero", "null", "loop"))
    match special:
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "zero" | "null":
            path.symlink_to(f"/dev/{special}")
        case "loop":
            path.symlink_to(path)
    return special


def run_case(made: Path, where: Path, rng: random.Random, kinds: Sequence[str]) -> str:
    """Damage a file of a copy, and run a command on it; return what came out."""
    kind = rng.choice(kinds)
    copy = where / kind
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(made / kind, copy)
    resumes = rng.random() < 0.4
    if resumes and kind in {"run", "pipeline"}:
        # As after a stop: the last checkpoint is there, the result is not.
        (copy / "result.json").unlink()
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    read = [path for path in files if path.suffix in READ or path.name == "timings.csv"]
    way = damage(rng.choice(read if rng.random() < 0.9 else files), rng)
    command = (*RESUME[kind], copy, "-q") if resumes else (*rng.choice(COMMANDS[kind]), copy)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        limited(),
    ):
        accepted = survives(lambda: call(*command), (way, files, command))
    return "accepted" if accepted else "refused"


def run_cases(made: Path, where: Path, cases: range, kinds: Sequence[str]) -> Counter[str]:
    return Counter(run_case(made, where, rng_of("directory", case), kinds) for case in cases)


def test_a_damaged_run_is_read_or_refused_in_one_line(tmp_path: Path):
    (tmp_path / "made").mkdir()
    make(tmp_path / "made", "run")
    out = run_cases(tmp_path / "made", tmp_path / "copy", range(SHORT), ["run"])
    assert min(out["accepted"], out["refused"]) > 0


@pytest.mark.slow
def test_damaged_directories_are_read_or_refused_in_one_line(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    (tmp_path / "made").mkdir()
    for kind in COMMANDS:
        make(tmp_path / "made", kind)
    cases = int(os.environ.get("FEDHH_FUZZ_CASES", "60"))
    out = run_cases(tmp_path / "made", tmp_path / "copy", range(cases), list(COMMANDS))
    record_property("outcomes", dict(out))
    assert min(out["accepted"], out["refused"]) > 0
