"""Odd files and frames: each is refused in one line that names row, value and cure, or is read."""

from __future__ import annotations

import datetime
import gzip
import uuid

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fedhh
from fedhh.validation import InputError
from tests.clients.reading.refusals import read_population, refusal
from tests.every import every

NO_OBJECT = "Expected a readable JSON object on each line, got "
PAIRS, COUNTED, LINE = b"user,word\n", b"user,word,count\n", b'{"user":1,"word":"a"}\n'


@pytest.mark.parametrize(
    ("extension", "data", "message"),
    [
        ("xlsx", b"", "Unknown kind of file 'p.xlsx'; known extensions: .parquet, .csv, .csv.gz,"),
        ("csv", b"", "Expected a header line, got an empty file"),
        ("jsonl", b"\n", NO_OBJECT + "an empty file"),
        ("parquet", b"", "Expected a readable p.parquet, got .*: "),
        ("csv", PAIRS, "Expected at least one row, got only a header in"),
        ("csv", b"user,word,user\n1,a,2\n", "Expected distinct columns in .*, got 'user' twice"),
        (
            "csv",
            b"nick,word\n1,a\n",
            "Expected a column 'user' or 'user_id' for the user, got the columns nick, word in",
        ),
        ("csv", b"user,token\n1,a\n", "got the columns user, token in .*; try --column word=token"),
        ("jsonl", b'{"user": 1}\n', "Expected a column 'word' for the word, got the columns user"),
        ("csv", COUNTED + b"1,a,1\n1,b,-2\n", "from 1 to 2147483647, got count=-2 in row 2"),
        ("csv", COUNTED + b"1,a,0\n", "from 1 to 2147483647, got count=0 in row 1 of"),
        ("csv", COUNTED + b"1,a,2.5\n", "got count=2.5 in row 1 of"),
        ("csv", COUNTED + b"1,a,x\n", "got count='x' in row 1 of"),
        ("csv", COUNTED + b"1,a,nan\n", "got count=nan in row 1 of"),
        ("csv", COUNTED + b"1,a,1\n1,b,\n", "got count='' in row 2 of"),
        ("csv", COUNTED + b"1,a,2147483648\n", "got count=2147483648 in row 1 of"),
        ("csv", PAIRS + b"1,a\n2,\n", "Expected a word, got none in row 2 of"),
        ("csv", PAIRS + b"1,a\n,b\n", "Expected a user, got none in row 2 of"),
        ("csv", COUNTED + b"1,,3\n", "Expected a word, got none in row 1 of"),
        ("csv", PAIRS + b"1,a\n1\n", "Expected 2 fields as in the header, got 1 on line 3 of"),
        ("csv", PAIRS + b"1,a\n1,b,c\n", "Expected 2 fields as in the header, got 3 on line 3"),
        ("csv", PAIRS + b'1,"a\n2,b\n', "got one that opens on line 2 and has no end in"),
        ("csv", PAIRS + b"1,a\n1,\xff\n", "Expected UTF-8 text, got other bytes on line 3 of"),
        ("csv", b"us\xe9r,word\n1,a\n", "Expected UTF-8 text, got other bytes on line 1 of"),
        ("csv.gz", b"user,word\n1,a\n", "Expected a readable p.csv.gz, got .*: Not a gzipped file"),
        (
            "csv.gz",
            gzip.compress(b"user,word\n1,a\n" * 99, mtime=0)[:-9],
            "Expected a readable p.csv.gz",
        ),
        ("jsonl", LINE + b'{"user":1,\n', NO_OBJECT + ".* in row 2 of"),
        ("jsonl", LINE + b"[1]\n", NO_OBJECT + r"\[1\] in row 2"),
        ("jsonl", LINE + b'{"user":1,"word":7}\n', "words as text in 'word', got 7 in row 2"),
        (
            "jsonl",
            b'{"user":1,"word":true}\n',
            "Expected words as text in 'word', got true in row 1 of",
        ),
        (
            "jsonl",
            LINE + b'{"user":[],"word":"a"}\n',
            r"or integers in 'user', got \[\] in row 2",
        ),
        ("csv", PAIRS + b'1,"a\n2"\n', "Expected a word without a line break .*in row 1 of"),
        ("csv", PAIRS + b"1,a\n" * 40_000 + b'2,"b\n', "that opens on line 40002 and has no end"),
        ("csv", b"user;word\n1;a\n", "separated by ';', in .*; try --sep ';'"),
        (
            "csv",
            "user,word\n1,a\n".encode("utf-16"),
            "Expected UTF-8 text, got other bytes on line 1",
        ),
        ("csv", COUNTED + b"1,a,1e3\n", "got count='1e3' in row 1 of"),
        ("csv", COUNTED + b"1,a,1000000000000\n", "got count=1000000000000 in row 1 of"),
        (
            "jsonl",
            b'{"user":1,"word":"a","count":"3"}\n',
            "Expected counts as whole numbers in 'count', got \"3\" in row 1 of",
        ),
        ("jsonl", b'{"user":1,"word":"a","count":1.5}\n', "got count=1.5 in row 1 of"),
        ("jsonl", b'{"user":1,"word":"a","count":-1}\n', "got count=-1 in row 1 of"),
        (
            "jsonl",
            b'{"user":1,"word":"a","count":1}\n{"user":1,"word":"b"}\n',
            "Expected a count, got none in row 2 of",
        ),
        (
            "jsonl",
            LINE + b'{"user":1,"word":"b","count":4}\n',
            "Expected a count in each row or in none, got the first one in row 2 of",
        ),
        ("jsonl", LINE + b'{"user":1}\n', "Expected a word, got none in row 2 of"),
        ("jsonl", LINE + b'{"word":"b"}\n', "Expected a user, got none in row 2 of"),
        ("jsonl", b'{"user":null,"word":"a"}\n', "Expected a user, got none in row 1 of"),
        ("jsonl", b'{"user":1,"word":null}\n', "Expected a word, got none in row 1 of"),
        ("jsonl", b'{"user":1,"word":"\xff"}\n', "Expected UTF-8 text, got other bytes on line 1"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, extension, data, message):
    path = tmp_path / f"p.{extension}"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_population(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": [1, None], "word": ["a", "b"]}, "Expected a user, got none in row 2 of"),
        ({"user": [1, 1], "word": ["a", None]}, "Expected a word, got none in row 2 of"),
        (
            {"user": [1, 1], "word": [5, 6]},
            "Expected words as text in the column 'word', got int64 in",
        ),
        ({"user": [1, 1], "text": ["a", None]}, "Expected a text, got none in row 2 of"),
        ({"user": [1, 1], "word": ["a", "b"], "count": [1, None]}, "a count, got none in row 2"),
        ({"user": [1, 1], "word": ["a", "b"], "count": [1, 0]}, "got count=0 in row 2 of"),
        ({"user": [1, 1], "word": ["a", "b"], "count": [1.0, 0.5]}, "got count=0.5 in row 2 of"),
        ({"user": [1], "word": ["a"], "count": [float("nan")]}, "got count=nan in row 1 of"),
        ({"user": pa.array([], pa.int64()), "word": pa.array([], pa.string())}, "at least one row"),
        (
            {"user": [1, 1], "word": pa.array([b"a", b"\xff"]).view(pa.string())},
            r"value .* is not valid UTF8!",
        ),
    ],
)
def test_a_bad_parquet_file_is_refused_in_one_line(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    with pytest.raises(InputError, match=message):
        read_population(tmp_path / "p.parquet")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"user":1,"word":"a","x":' + "[" * 100_000 + "]" * 100_000 + "}", NO_OBJECT),
        ('{"x":' * 100_000 + "1" + "}" * 100_000, NO_OBJECT),
        ('{"user":' + "9" * 5_000 + ',"word":"a"}', NO_OBJECT),
        (
            '{"user":' + "9" * 30 + ',"word":"a"}',
            "Expected users as text or integers in 'user', got 9",
        ),
        (
            '{"user":-9223372036854775809,"word":"a"}',
            "Expected users as text or integers in 'user', got -9",
        ),
        ('{"user":{"a":[1]},"word":"a"}', "integers in 'user', got {\"a\":[1]} in row 1"),
        ('{"user":[1],"word":"a"}', "integers in 'user', got [1] in row 1"),
        ('{"user":NaN,"word":"a"}', "integers in 'user', got NaN in row 1"),
        ('{"user":1.5,"word":"a"}', "integers in 'user', got 1.5 in row 1"),
        ('{"user":true,"word":"a"}', "integers in 'user', got true in row 1"),
        ('{"user":1,"word":["a"]}', "text in 'word', got [\"a\"] in row 1"),
        ('{"user":1,"word":"a","count":1e999}', "p.jsonl"),
        ('{"user":1,"word":"a","count":' + "9" * 400 + "}", "got count='9999"),
        (
            '{"user":1,"word":"\\ud800"}',
            'on each line, got {"user":1,"word":"\\ud800"} in row 1 of',
        ),
        ('{"' + "x" * 10_000 + '":1}', "xxx... in"),
    ],
)
def test_nested_and_huge_json_is_refused(tmp_path, line: str, message: str):
    (tmp_path / "p.jsonl").write_text(line + "\n")
    refused = refusal(read_population, tmp_path / "p.jsonl")
    assert message in refused
    assert len(refused) < 600


DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("role", "values"),
    [
        (role, values)
        for role, kinds in {
            "user": "list struct timestamp date duration bool binary float null decimal map",
            "word": "list struct timestamp date duration bool binary float null decimal map int",
            "text": "list struct timestamp date duration bool binary float null decimal map int",
            "count": "list struct timestamp date duration bool binary null decimal map",
        }.items()
        for values in kinds.split()
    ],
)
def test_parquet_columns_of_another_type_are_refused(tmp_path, role: str, values: str):
    columns = {
        "list": pa.array([["a"], ["b"]]),
        "struct": pa.array([{"a": 1}, {"a": 2}]),
        "timestamp": pa.array([datetime.datetime(2024, 1, 1)] * 2),
        "date": pa.array([DAY, DAY]),
        "duration": pa.array([datetime.timedelta(seconds=1)] * 2),
        "bool": pa.array([True, False]),
        "binary": pa.array([b"a", b"b"]),
        "float": pa.array([1.0, float("nan")]),
        "null": pa.array([None, None]),
        "decimal": pa.array([1, 2]).cast(pa.decimal128(20)),
        "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "int": pa.array([1, 2]),
    }
    table = {"user": ["u", "v"], "word": ["a", "b"], "count": [1, 2]}
    if role == "text":
        del table["word"], table["count"]
    pq.write_table(pa.table(table | {role: columns[values]}), tmp_path / "p.parquet")
    message = refusal(read_population, tmp_path / "p.parquet")
    accepted = {
        "user": "users as text or integers",
        "word": "words as text",
        "text": "texts as text",
        "count": "counts as whole numbers",
    }[role]
    assert f"Expected {accepted} in the column '{role}', got " in message


@every(
    ("columns", "message"),
    [
        (
            {"user": ["a"], "word": ["x"], "count": [2**70]},
            "in dataframe, got one beyond them",
        ),
        ({"user": ["a"], "word": ["x"], "count": [1j]}, "one type each in dataframe"),
        ({"a": [1], "b": ["x"]}, "'user' or 'user_id' for the user, got the columns a, b"),
        ({"user": [1, "x"], "word": ["x", "y"]}, "one type each in dataframe"),
        ({"user": [1, 2], "word": ["x", None]}, "Expected a word, got none in row 2"),
        ({"user": [1], "word": ["x"], "count": [1.5]}, "got count=1.5 in row 1"),
        ({"user": [1.5], "word": ["x"]}, "users as text or integers"),
        ({"user": pd.Series([], dtype=int), "word": pd.Series([], dtype=str)}, "at least one row"),
        ({"user": [uuid.UUID(int=1)], "word": ["x"]}, r"text or integers|one type each"),
        (
            pa.table({"user": pa.array([b"x" * 16], pa.binary(16)), "word": ["x"]}),
            r"integers in the column 'user', got fixed_size_binary\[16\] in dataframe; convert",
        ),
        ({"user": ["a", None], "word": ["x", "y"]}, "Expected a user, got none in row 2 of"),
        (
            {"user": pd.array([1, None], dtype="Int64"), "word": ["x", "y"]},
            "Expected a user, got none in row 2 of dataframe",
        ),
        ({"user": [1], "word": ["x"], "count": [True]}, "counts as whole numbers in .* got bool"),
        ({"user": [1], "word": ["x"], "count": [0]}, "got count=0 in row 1 of dataframe"),
        ({"user": [1], "word": ["x"], "count": [-1]}, "got count=-1 in row 1 of dataframe"),
        ({"user": [1], "word": ["x"], "count": ["1e3"]}, "got count='1e3' in row 1 of dataframe"),
        ({"user": [1], "word": ["x"], "count": [10**12]}, "got count=1000000000000 in row 1"),
        (
            {"user": [1, 1], "word": ["x", "x"], "count": [2**31 - 1, 1]},
            "sum to at most 2147483647, got 2147483648 in dataframe",
        ),
        (
            {"user": pd.to_datetime(["2024-01-01"]), "word": ["x"]},
            "users as text or integers in the column 'user', got timestamp",
        ),
        ({"user": [1], "word": [b"x"]}, "words as text in the column 'word', got binary"),
        ({("user", 1): [1], ("word", 1): ["x"]}, "for the user, got the columns .*; name them"),
        ({"user": [1, 2], "word": ["x", ""]}, "Expected a word, got none in row 2 of dataframe"),
        (
            {"user": [1], "word": pd.Series(["\ud800"], dtype=object)},
            "Expected text that UTF-8 can hold in dataframe, got 'utf-8' codec can't encode",
        ),
        ({"user": [1], "word": ["a\nb"]}, "Expected a word without a line break .* in row 1 of"),
        (None, "or a table of Arrow, got a NoneType"),
        ("user,word", "or a table of Arrow, got a str"),
        (pd.Series(["x"]), "or a table of Arrow, got a Series"),
        (pa.chunked_array([["x"]]), "or a table of Arrow, got a ChunkedArray"),
        (
            pa.table({"user": pa.array([], pa.int64()), "word": pa.array([], pa.string())}),
            "at least one row",
        ),
        ([1, 2], "Expected a DataFrame of pandas or polars, or a table of Arrow, got a list"),
        (pd.DataFrame, "or a table of Arrow, got a type"),
        (duckdb.sql("SELECT 'a' AS user, 'b' AS word"), r"Relation; use its to_arrow_table\(\)"),
    ],
)
def test_what_is_no_dataframe_of_clients_is_refused(columns, message):
    with pytest.raises(InputError, match=message) as caught:
        fedhh.population_from(pd.DataFrame(columns) if isinstance(columns, dict) else columns)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"user": ["a"], "word": ["x"]}),
        pd.DataFrame({"user": pd.Categorical([7]), "word": pd.Categorical(["x"])}),
        pd.DataFrame({"user": [1], "word": ["x"], "count": ["1"]}),
        pd.DataFrame({"user": [1], "word": ["x"], "count": [1.0]}),
        pa.table({"user": pa.array([1]), "word": pa.array(["x"])}),
    ],
)
def test_one_user_and_one_word_of_any_kind_are_a_population(frame):
    made = fedhh.population_from(frame, known="none")
    assert made.num_clients == 1
    assert list(made.lexicon.words) == ["x"]
    assert made.word_counts().typed.tolist() == [1]


def test_frames_of_polars_are_read_by_the_columns_that_are_needed():
    frame = polars.DataFrame(
        {
            "user": polars.Series(["ann", "bob", "ann"], dtype=polars.Categorical),
            "word": polars.Series(["brb", "lol", "lol"], dtype=polars.Enum(["lol", "brb", "omw"])),
            "list": [[1], [2], []],
            "struct": [{"a": 1}] * 3,
            "object": polars.Series([object()] * 3, dtype=polars.Object),
        }
    )
    made = fedhh.population_from(frame, known="none")
    assert list(made.lexicon.words) == ["brb", "lol"]
    assert made.word_counts().typed.tolist() == [1, 2]
    for column, kind in [("list", "large_list"), ("struct", "struct"), ("object", "binary")]:
        with pytest.raises(InputError, match=f"users as text or integers in .*, got .*{kind}"):
            fedhh.population_from(frame, columns={"user": column})
    with pytest.raises(InputError, match=r"got a LazyFrame; use its collect\(\)\."):
        fedhh.population_from(frame.lazy())


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_a_column_that_is_not_needed_may_stand_twice(tmp_path, extension):
    path = tmp_path / f"p.{extension}"
    path.write_bytes(b"user,,word,\na,1,x,2\n")
    if extension == "parquet":
        columns = [pa.array(["a"]), pa.array([1]), pa.array(["x"]), pa.array([2])]
        pq.write_table(pa.Table.from_arrays(columns, ["user", "", "word", ""]), path)
    assert list(read_population(path).lexicon.words) == ["x"]
