"""Preparing: what reading the same rows gives, whatever file they are in."""

import gzip
import io
import json
import os
import signal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.clients.prepared import MANIFEST, open_prepared
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.preparing import prepare_files, prepare_rows
from fedhh.clients.reading.rows import Rows
from fedhh.clients.reading.sources import kept_input, read_file
from fedhh.experiments.config.client_file import load_file
from fedhh.experiments.config.schema import PopulationConfig
from fedhh.validation import InputError
from tests.clients.reading.refusals import read_population
from tests.processes import start, wait_until

WORDS = ["lol", "café", "café", "LOL", "ßt", "x\u0301", "naïve", "don't"]


def clients(population):
    """Return what each client holds, in no order."""
    items, words = population.items, list(population.lexicon.words)
    held = [
        tuple(sorted(zip([words[i] for i in items.word_ids[a:b]], items.counts[a:b], strict=True)))
        for a, b in zip(items.offsets[:-1], items.offsets[1:], strict=True)
    ]
    return sorted((str(word), int(n)) for each in held for word, n in each), sorted(map(str, held))


def same(prepared, read):
    assert list(prepared.lexicon.words) == read.lexicon.words
    assert np.array_equal(prepared.word_counts().typed, read.word_counts().typed)
    assert np.array_equal(prepared.word_counts().holders, read.word_counts().holders)
    assert prepared.num_clients == read.num_clients
    assert clients(prepared) == clients(read)


def write_rows(path, *, size, users):
    """Write so many rows of random users and words."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "user": rng.integers(users, size=size),
            "word": pa.array([f"w{i}" for i in range(5_000)]).take(rng.integers(5_000, size=size)),
        }
    )
    pq.write_table(table, path)


@pytest.fixture
def parts(tmp_path):
    """Files of three formats, each with rows of any user, pairs repeated and users without a word.

    Next to them one file with all the rows.
    """
    rng = np.random.default_rng(0)
    rows = [
        (f"u{rng.integers(40)}", WORDS[rng.integers(len(WORDS))], int(rng.integers(1, 5)))
        for _ in range(600)
    ]
    rows += [("quiet", None, 0), ("u3", None, 0), ("7", "lol", 2)]
    rng.shuffle(rows)
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    names = ("user", "word", "count")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(table.slice(0, 250), folder / "a.parquet", row_group_size=60)
    lines = [f"{u},{w or ''},{n}" for u, w, n in rows[250:400]]
    (folder / "deep" / "b.csv").write_text("\n".join(["user,word,count", *lines]) + "\n")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows[400:]]
    (folder / "c.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "_SUCCESS").write_text("")
    (folder / "_skipped.csv").write_text("no,columns\n")
    (folder / "notes.txt").write_text("no rows")
    pq.write_table(table, tmp_path / "all.parquet")
    return folder


@pytest.mark.parametrize("fold_case", [False, True])
def test_many_files_are_one_population(parts, tmp_path, fold_case):
    layout = Layout(fold_case=fold_case)
    manifest, _ = prepare_files([parts], tmp_path / "out", layout, salt="s", memory=None)
    read = read_population(tmp_path / "all.parquet", fold_case=fold_case)
    same(open_prepared(tmp_path / "out"), read)
    assert manifest.clients == 42
    assert manifest.made["files"] == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "clients.arrow", MANIFEST, "rows.arrow", "words.arrow",
    ]  # fmt: skip


def test_the_salt_decides_the_order(parts, tmp_path):
    held = []
    for name, salt in (("a", "one"), ("b", "one"), ("c", "two"), ("d", None), ("e", None)):
        prepare_files([parts], tmp_path / name, Layout(), salt=salt, memory=None)
        population = open_prepared(tmp_path / name)
        held.append((population.items.word_ids.tolist(), population.items.counts.tolist()))
    assert held[0] == held[1]
    assert len({str(each) for each in held}) == 4


def test_texts_are_tokenized_as_they_are_read(tmp_path):
    rows = [("a", "Hello lol http://x.y"), ("b", "!!"), ("a", "lol don’t"), ("c", "lol\nlol @you")]
    lines = [json.dumps({"user": user, "text": text}) for user, text in rows]
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "1.jsonl").write_text("\n".join(lines[:2]))
    (folder / "2.jsonl").write_text("\n".join(lines[2:]))
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    _, texts = prepare_files([folder], tmp_path / "out", Layout(), salt=None, memory=None)
    read = read_file(tmp_path / "all.jsonl")
    same(open_prepared(tmp_path / "out"), read)
    assert texts.dropped == read.texts.dropped
    assert (texts.number, texts.empty) == (4, read.texts.empty)


def test_words_of_another_language_have_its_form(tmp_path):
    (tmp_path / "tr.csv").write_text("user,word\n1,ILIK\n2,ılık\n")
    layout = Layout(fold_case=True, language="tr")
    prepare_files([tmp_path / "tr.csv"], tmp_path / "out", layout, salt=None, memory=None)
    population = open_prepared(tmp_path / "out", "tr")
    assert list(population.lexicon.words) == ["ılık"]
    same(population, read_file(tmp_path / "tr.csv", layout))


@pytest.mark.slow("::test_many_files_are_one_population")
def test_what_does_not_fit_in_memory_is_sorted_on_disk(tmp_path):
    write_rows(tmp_path / "rows.parquet", size=300_000, users=40_000)
    out = tmp_path / "out"
    prepare_files([tmp_path / "rows.parquet"], out, Layout(), salt="s", memory=64 * 2**20)
    same(open_prepared(out), read_population(tmp_path / "rows.parquet"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user,word,count\n1,lol,0\n", "Expected a whole count from 1 to 2147483647, got count=0"),
        ("user,word,count\n1,,2\n", "Expected a word, got none in row 1 of"),
        ("user,word,count\n,lol,2\n", "Expected a user, got none in row 1 of"),
        ("user,word\n", "Expected at least one row, got only a header in"),
        ("name,thing\n1,2\n", "column"),
        ("user,word,count\n1,lol,2000000000\n1,lol,2000000000\n", "sum to at most 2147483647, got"),
    ],
)
def test_wrong_rows_are_refused_and_nothing_is_left(tmp_path, content, message):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.csv").write_text("user,word,count\n1,lol,2\n")
    (folder / "b.csv").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        prepare_files([folder], tmp_path / "out", Layout(), salt=None, memory=None)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_places_that_cannot_be_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("user,word,count\n1,lol,2\n")
    (tmp_path / "empty").mkdir()

    def prepare(source, out):
        prepare_files([tmp_path / source], tmp_path / out, Layout(), salt=None, memory=None)

    with pytest.raises(InputError, match="Expected a path where nothing stands, got"):
        prepare("a.csv", "empty")
    with pytest.raises(InputError, match="File name too long"):
        prepare("a.csv", "x" * 300)
    with pytest.raises(InputError, match=r"an existing file, got .*xxx\.csv; check the path"):
        prepare(f"{'x' * 300}.csv", "out")
    with pytest.raises(InputError, match="Expected Parquet, CSV or JSON Lines files in"):
        prepare("empty", "out")
    with pytest.raises(InputError, match=r"can be written, got .*: No such file or directory"):
        prepare("a.csv", "nowhere/out")
    with pytest.raises(InputError, match=r"Unknown kind of file 'a\.txt'"):
        prepare("a.txt", "out")
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "empty"}


@pytest.mark.slow("tests/e2e/test_stopping.py::test_a_signal_leaves_no_half_written_file")
def test_a_signal_leaves_nothing(tmp_path):
    write_rows(tmp_path / "rows.parquet", size=3_000_000, users=500_000)
    process = start("data", "prepare", "rows.parquet", "out", cwd=tmp_path)
    wait_until(lambda: any(path.suffix == "" for path in tmp_path.iterdir()), process)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.slow("::test_a_manifest_that_could_not_be_read_is_not_written")
def test_however_many_sources_there_are_the_manifest_can_be_read(tmp_path):
    folder = tmp_path.joinpath(*["d" * 200] * 15)
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("user,word\nann,lol\n")
    prepare_files([folder / "a.csv"] * 400, tmp_path / "out", Layout(), salt="s", memory=None)
    opened = open_prepared(tmp_path / "out")
    assert opened.name.endswith("a.csv, a.csv and 380 more")
    assert opened.word_counts().typed.tolist() == [400]


def test_a_manifest_that_could_not_be_read_is_not_written(tmp_path):
    def add(rows):
        rows.add_piece(pa.array(["a"]), pa.array(["x"]), pa.array([1]))

    with pytest.raises(InputError, match="at most 1,048,576 bytes, got 1,04"):
        prepare_rows(add, tmp_path / "out", name="n" * 2**20, layout=Layout(), made={})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("step", ["__init__", "pieces"])
def test_what_the_database_cannot_write_is_one_line(tmp_path, monkeypatch, step):
    def fails(*_, **__):
        raise duckdb.IOException("IO Error: No space left on device\nmore")

    monkeypatch.setattr(Rows, step, fails)
    with pytest.raises(
        InputError, match=r"can be written, got .*out: IO Error: No space left on"
    ) as said:
        prepare_rows(lambda _: None, tmp_path / "out", name="n", layout=Layout(), made={})
    assert "\n" not in str(said.value)
    assert not list(tmp_path.iterdir())


@pytest.fixture(autouse=True)
def nothing_kept():
    yield
    kept_input.cache_clear()


def write_into_the_program(monkeypatch, data):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    kept_input.cache_clear()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "marked jsonl", "parquet"])
def test_what_is_written_into_the_program_is_a_table_of_its_kind(tmp_path, monkeypatch, kind):
    rows = [{"user": "a", "word": "lol"}, {"user": "b", "word": "brb"}]
    if kind == "parquet":
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), file)
        data = file.getvalue()
    elif kind.endswith("jsonl"):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        data = lines.encode("utf-8-sig" if kind == "marked jsonl" else "utf-8")
    else:
        data = b"user,word\na,lol\nb,brb\n"
    data = gzip.compress(data) if kind.endswith("gz") else data
    write_into_the_program(monkeypatch, data)
    prepare_files(["-"], tmp_path / "out", Layout(), salt="s", memory=None)
    assert list(open_prepared(tmp_path / "out").lexicon.words) == ["brb", "lol"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"user,word\n,lol\n", r"Expected a user, got none in row 1 of standard input\."),
        (b"", "an empty file standard input"),
        (b"\x1f\x8bgarbage", r"a readable standard input\.csv\.gz, got standard input: "),
        (
            gzip.compress(b"user,word\na,lol\n", mtime=0)[:-9],
            "got standard input: Compressed file ended",
        ),
        (b"PAR1", r"a readable standard input\.parquet, got standard input: "),
    ],
)
def test_what_is_wrong_with_what_is_written_into_the_program_is_one_line(
    tmp_path, monkeypatch, data, message
):
    write_into_the_program(monkeypatch, data)
    with pytest.raises(InputError, match=message):
        prepare_files(["-"], tmp_path / "out", Layout(), salt="s", memory=None)
    assert not list(tmp_path.iterdir())


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="Expected rows on standard input, got a closed one"):
        read_file("-")


def test_a_configuration_reads_standard_input_once(monkeypatch):
    write_into_the_program(monkeypatch, b"user,word\na,lol\nb,brb\n")
    config = PopulationConfig(source="-", known="none")
    first, again = (load_file(config) for _ in range(2))
    assert first.lexicon.words == again.lexicon.words == ["brb", "lol"]
    assert first.name == "standard input"
    write_into_the_program(monkeypatch, b"user,word\n,lol\n")
    with pytest.raises(InputError, match=r"Expected a user, got none in row 1 of standard input\."):
        load_file(config)
