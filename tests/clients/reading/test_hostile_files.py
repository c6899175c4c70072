"""Files that no one would write by hand: each is refused in one line, or read as documented."""

from __future__ import annotations

import gzip
import json
import os
import socket
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.clients.known_words import load_known
from fedhh.clients.reading import tables
from fedhh.experiments.config.toml_file import read_toml
from tests.clients.reading.refusals import read_population, refusal
from tests.thinned import thinned


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_with_carriage_returns_alone_is_refused(tmp_path, mark: str):
    path = tmp_path / "p.csv"
    path.write_bytes(f"{mark}user,word\ru,a\rv,b\r".encode())
    assert "got a carriage return alone on line 1 of" in refusal(read_population, path)


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
def test_a_header_cell_that_is_too_long_is_refused(tmp_path, name: str):
    data = b"user,word," + b"x" * 131_073 + b"\nu,a,1\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    message = refusal(read_population, tmp_path / name)
    assert "field larger than field limit (131072) on line 1 of" in message


def test_long_cells_of_text_are_read(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("user,text\nu," + "lol " * 100_000 + "\n")
    assert read_population(path).word_counts().typed.tolist() == [100_000]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint64(), pa.float32(), pa.string(), pa.large_string()]
)
def test_parquet_counts_may_be_whole_numbers_of_any_kind(tmp_path, kind):
    counts = pa.array([1, 2]).cast(kind)
    pq.write_table(
        pa.table({"user": [1, 2], "word": ["a", "b"], "count": counts}), tmp_path / "p.parquet"
    )
    assert read_population(tmp_path / "p.parquet").word_counts().typed.tolist() == [1, 2]


def test_a_parquet_text_that_is_no_utf8_is_refused(tmp_path):
    text = pa.array([b"a", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"user": [1, 2], "text": text}), tmp_path / "p.parquet")
    assert "is not valid UTF8" in refusal(read_population, tmp_path / "p.parquet")


def test_folders_are_no_columns(tmp_path):
    (tmp_path / "user=7").mkdir()
    path = tmp_path / "user=7" / "p.parquet"
    pq.write_table(pa.table({"user": ["u", "v"], "word": ["a", "b"]}), path)
    assert read_population(path).num_clients == 2


def test_counts_that_add_up_to_more_than_fits_are_refused(tmp_path):
    (tmp_path / "p.csv").write_text("user,word,count\nu,a,2147483647\nu,a,1\n")
    assert "sum to at most 2147483647, got 2147483648" in refusal(
        read_population, tmp_path / "p.csv"
    )


READERS = {
    "p.parquet": read_population,
    "p.csv": read_population,
    "p.csv.gz": read_population,
    "p.jsonl.gz": read_population,
    "p.txt": load_known,
    "p.txt.gz": load_known,
    "p.toml": read_toml,
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_regular_file_is_not_opened(tmp_path, name: str, monkeypatch):
    monkeypatch.chdir(tmp_path)  # A socket's path must be short.
    os.mkfifo(tmp_path / name)
    # Opening it would wait for a writer for ever.
    assert f"got {name}, a pipe or a device" in refusal(READERS[name], tmp_path.__class__(name))
    os.unlink(name)
    os.symlink("/dev/zero", name)
    assert "a pipe or a device" in refusal(READERS[name], tmp_path / name)
    os.unlink(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        assert "a pipe or a device" in refusal(READERS[name], tmp_path / name)
    os.unlink(name)
    os.mkdir(name)
    assert "got the directory" in refusal(READERS[name], tmp_path / name)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("folder", ["x" * 300, "a\0b", "a\nb\x1b[2J", "\ud800", "p.csv/q"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name: str, folder: str):
    (tmp_path / "p.csv").write_text("user,word\nu,a\n")
    refusal(READERS[name], tmp_path / f"{folder}{name}")


@pytest.mark.parametrize("name", thinned(["p.csv.gz", "p.jsonl.gz", "p.txt.gz"]))
@pytest.mark.parametrize("start", thinned([b"user,word\n", b"", b'{"user":1,"word":"a"}\n']))
def test_a_line_without_an_end_is_refused_without_filling_the_memory(tmp_path, name: str, start):
    # Members of one file follow each other.
    (tmp_path / name).write_bytes(gzip.compress(start) + gzip.compress(b"a" * 2**20) * 2**8)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        message = refusal(READERS[name], tmp_path / name)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**28, message
    assert pa.total_allocated_bytes() - before < 2**20


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.jsonl", "p.jsonl.gz"])
def test_a_last_line_longer_than_any_is_refused_and_not_left_out(tmp_path, name: str, monkeypatch):
    monkeypatch.setattr(tables, "LONGEST_LINE", 2**10)
    data = b'{"user":1,"word":"a"}\n' if "json" in name else b"user,word\n1,a\n"
    data += b"1," + b"a" * 2**12
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert "lines of at most 1,024 bytes, got a longer one in" in refusal(
        read_population, tmp_path / name
    )


def test_a_configuration_is_no_larger_than_a_person_writes(tmp_path):
    with (tmp_path / "p.toml").open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    assert "Expected at most 16,777,216 bytes" in refusal(read_toml, tmp_path / "p.toml")


def test_one_user_may_hold_every_hard_word(tmp_path):
    words = ["a\0b", "\u202e", "[/]", "=cmd()", "\x1b[2J", "\ufeff", "a" * 10_000]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"user": 1, "word": w}) + "\n" for w in words))
    population = read_population(path)
    assert sorted(population.lexicon.words) == sorted(words)
    assert np.array_equal(population.word_counts().typed, np.ones(len(words)))
