"""Directories of finished work, a file of each damaged: read or resumed, or refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.experiments.report import style
from tests.fuzz.cases import Record, feed, survives
from tests.fuzz.mutation import any_value, mutate_bytes
from tests.fuzz.work import RESUME, call, make

_ALL: list[tuple[str, ...]] = [
    ("show", "--all"),
    ("show", "--format", "json"),
    ("show", "--table", "main"),
    ("report",),
    ("plot",),
]
COMMANDS = dict.fromkeys(("run", "sweep", "months", "pipeline"), _ALL)
READ = {".json", ".parquet", ".toml", ".arrays"}
NUMBERS = (0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 1e300, 5e-324, float("nan"), float("inf"), float("-inf"))


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


def damage_a_file(directory: Path, rng: random.Random) -> tuple[Path, str]:
    """Damage a file of a directory, most often one that is read back; return it and the way."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    read = [path for path in files if path.suffix in READ or path.name == "timings.csv"]
    chosen = rng.choice(read if rng.random() < 0.9 else files)
    return chosen, damage(chosen, rng)


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in COMMANDS if kind != "run"]


@pytest.mark.parametrize("kind", ["run", *SLOW])
def test_a_damaged_directory_is_read_or_refused_in_one_line(
    tmp_path: Path, record_property: Record, monkeypatch: pytest.MonkeyPatch, kind: str
):
    made, copy = tmp_path / "made", tmp_path / "copy" / kind
    made.mkdir()
    make(made, kind)

    def run(rng: random.Random) -> bool:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made / kind, copy)
        resumes = rng.random() < 0.4
        if resumes and kind in {"run", "pipeline"}:
            # As after a stop: the log is there, the result is not.
            (copy / "result.json").unlink()
        what = damage_a_file(copy, rng)
        command = (*RESUME[kind], copy, "-q") if resumes else (*rng.choice(COMMANDS[kind]), copy)
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            monkeypatch.context() as patch,
        ):
            if rng.random() < 0.8:
                # To draw takes a second; what figures show is computed all the same.
                patch.setattr(style, "save", lambda figure, target, kind: Path(target).touch())
            return survives(lambda: call(*command), (what, command))

    feed(f"directory of {kind}", run, record_property)
