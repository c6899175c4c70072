"""Files of a directory: bounded regular ones, each table with the columns that it must have."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from fedhh.experiments.study import stored_files
from fedhh.experiments.study.stored_files import read_csv, read_json, read_table, read_text, reading
from fedhh.system.reading import LARGEST_TEXT
from fedhh.validation import InputError

SCHEMA = {"cell": "text", "seed": "int", "server": "float", "done": "bool"}
READERS = {
    "json": read_json,
    "text": read_text,
    "csv": lambda path: read_csv(path, SCHEMA),
    "parquet": lambda path: read_table(path, SCHEMA),
}


@pytest.mark.parametrize("read", READERS.values(), ids=list(READERS))
def test_only_regular_files_are_read(tmp_path, read):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("fifo", "zero", "loop", ".", "absent"):
        with pytest.raises(InputError):
            read(tmp_path / name)


@pytest.mark.parametrize("kind", ["json", "text", "csv"])
def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path, kind):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST_TEXT + 1)
    with pytest.raises(InputError, match=f"at most {LARGEST_TEXT:,} bytes"):
        READERS[kind](tmp_path / "large")


@pytest.mark.parametrize(
    "text", ["[1]", "{", '{"a": ' + "9" * 5_000 + "}", "[" * 100_000, "\xff", "null"]
)
def test_json_that_is_no_table_is_damaged(tmp_path, text):
    (tmp_path / "a.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"a\.json is damaged"):
        read_json(tmp_path / "a.json")


def written(folder: Path, kind: str, frame: pd.DataFrame) -> Path:
    path = folder / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


GOOD = {"cell": ["1", "x"], "seed": [1, 2], "server": [0.5, None], "done": [True, False]}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_table_that_fits_its_schema_is_read(tmp_path, kind):
    found = READERS[kind](written(tmp_path, kind, pd.DataFrame(GOOD).assign(more="y")))
    assert found["cell"].tolist() == ["1", "x"]
    assert found["seed"].tolist() == [1, 2]
    assert found["server"].isna().tolist() == [False, True]


def test_a_table_at_the_bounds_is_read_and_one_beyond_is_not(tmp_path, monkeypatch):
    path = tmp_path / "t"
    pd.DataFrame(GOOD).to_parquet(path)
    size = path.stat().st_size
    monkeypatch.setattr(stored_files, "LARGEST_TABLE", size)
    monkeypatch.setattr(stored_files, "MOST_CELLS", 8)
    assert read_table(path, SCHEMA).shape == (2, 4)
    monkeypatch.setattr(stored_files, "MOST_CELLS", 7)
    with pytest.raises(InputError, match="at most 7 cells"):
        read_table(path, SCHEMA)
    monkeypatch.setattr(stored_files, "LARGEST_TABLE", size - 1)
    with pytest.raises(InputError, match=f"at most {size - 1:,} bytes"):
        read_table(path, SCHEMA)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "changed",
    [{"seed": ["a", "b"]}, {"seed": [1.5, 2.5]}, {"seed": [1, None]}, {"server": ["a", "b"]}],
    ids=str,
)
def test_a_column_of_another_kind_or_without_a_value_is_damaged(tmp_path, kind, changed):
    path = written(tmp_path, kind, pd.DataFrame({**GOOD, **changed}))
    with pytest.raises(InputError, match=rf"/t\.{kind} is damaged"):
        READERS[kind](path)


@pytest.mark.parametrize("missing", SCHEMA)
def test_a_missing_column_is_damaged(tmp_path, missing):
    frame = pd.DataFrame(GOOD).drop(columns=missing)
    for kind in ("parquet", "csv"):
        with pytest.raises(InputError, match=rf"t\.{kind} is damaged.*{missing}"):
            READERS[kind](written(tmp_path, kind, frame))


def test_what_breaks_is_one_line_that_blames_no_file_and_a_full_disk_is_not(tmp_path):
    failed = r"^fedhh failed on .*KeyError.*: an error of its own, or files that were changed"
    with pytest.raises(InputError, match=failed), reading(tmp_path):
        {}["gone"]
    with pytest.raises(InputError, match=r"^as it is$"), reading(tmp_path):
        raise InputError("as it is")
    with pytest.raises(OSError, match="disk"), reading(tmp_path):
        raise OSError(28, "disk full")
