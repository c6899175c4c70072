import gzip
import hashlib
import json
import resource

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fedhh.clients.clients import Clients, Table
from fedhh.clients.reading import rows as rows_module
from fedhh.clients.reading.sources import write_population
from fedhh.clients.synthetic import synthetic_population
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.clients.reading.refusals import read_population

EXTENSIONS = ["parquet", "csv", "csv.gz", "jsonl", "jsonl.gz", "ndjson", "ndjson.gz"]
# Words that readers of tables like to take for something else.
HARD_WORDS = ["nan", "null", "NA", "None", "true", "007", "1e5", "2020-01-01", "inf", "-", "x,y"]
HARD_USERS = ["007", "NA", "nan", "7", "null"]


def save(path, rows, names=("user", "word", "count")):
    """Write rows by hand, without the code under test."""
    name = path.name
    if name.endswith(".parquet"):
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
        return path
    if ".csv" in name:
        quoted = [[f'"{cell}"' if "," in str(cell) else str(cell) for cell in row] for row in rows]
        text = "\n".join(",".join(row) for row in [list(names), *quoted]) + "\n"
    else:
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def held(rows):
    """Return what each user holds, of rows (user, word, count), in no order of users."""
    by_user = {}
    for user, word, count in rows:
        by_user.setdefault(user, []).append((word, count))
    return sorted(map(sorted, by_user.values()))


def content(population):
    items = population.items
    owners = np.repeat(items.clients, np.diff(items.offsets)).tolist()
    words = [population.lexicon.words[i] for i in items.word_ids.tolist()]
    return held(zip(owners, words, items.counts.tolist(), strict=True))


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_words_and_users_that_look_like_values_stay_text(tmp_path, extension):
    rows = [(user, word, 2) for user in HARD_USERS for word in HARD_WORDS]
    population = read_population(save(tmp_path / f"p.{extension}", rows))
    assert population.num_clients == len(HARD_USERS)
    assert sorted(population.lexicon.words) == sorted(HARD_WORDS)
    assert population.word_counts().typed.tolist() == [2 * len(HARD_USERS)] * len(HARD_WORDS)
    assert population.name == f"p.{extension}"


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_rows_of_a_user_are_added_up(tmp_path, extension):
    rows = [(9, "b", 1), (4, "a", 2), (9, "a", 3), (4, "a", 4), (11, "c", 1)]
    population = read_population(save(tmp_path / f"p.{extension}", rows))
    assert content(population) == held([(0, "a", 3), (0, "b", 1), (1, "a", 6), (2, "c", 1)])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_without_counts_every_row_counts_once(tmp_path, extension):
    rows = [("u", "b"), ("u", "b"), ("v", "a")]
    path = save(tmp_path / f"p.{extension}", rows, ("user_id", "word"))
    assert content(read_population(path)) == held([(0, "b", 2), (1, "a", 1)])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_texts_are_tokenized_and_silent_users_stay(tmp_path, extension):
    rows = [("u", "Lol, it's LOL"), ("v", "2024 ..."), ("u", "lol @home"), ("w", "a\tb")]
    path = save(tmp_path / f"p.{extension}", rows, ("user", "text"))
    population = read_population(path)
    assert population.num_clients == 3
    assert content(population) == held([(0, "it's", 1), (0, "lol", 3), (2, "a", 1), (2, "b", 1)])


@pytest.mark.parametrize("extension", ["parquet", "csv", "jsonl"])
def test_columns_may_have_any_names(tmp_path, extension):
    rows = [("u", "lol", 2, "x")]
    names = ("nick", "token", "n", "word")
    path = save(tmp_path / f"p.{extension}", rows, names)
    columns = {"user": "nick", "word": "token", "count": "n"}
    population = read_population(path, columns=columns, unit="nick")
    assert content(population) == held([(0, "lol", 2)])
    assert population.unit == "nick"


def test_a_named_text_column_wins_over_a_word_column(tmp_path):
    path = save(tmp_path / "p.csv", [("u", "w", "x y")], ("user", "word", "text"))
    assert content(read_population(path)) == held([(0, "w", 1)])
    assert content(read_population(path, columns={"text": "text"})) == held(
        [(0, "x", 1), (0, "y", 1)]
    )


def test_parquet_kinds_of_columns_make_no_difference(tmp_path):
    users, words, counts = ["7", "8", "7"], ["x", "y", "y"], [1, 2, 3]
    kinds = [
        (pa.array([7, 8, 7], pa.int32()), pa.array(words), pa.array(counts, pa.int8())),
        (pa.array([7, 8, 7], pa.uint64()), pa.array(words, pa.large_string()), pa.array(counts)),
        (pa.array(users, pa.large_string()), pa.array(words), pa.array(counts, pa.float64())),
        (pa.array(users), pa.array(words).dictionary_encode(), pa.array(counts, pa.uint32())),
        (pa.array(users).dictionary_encode(), pa.array(words), pa.array(counts, pa.int64())),
    ]
    for columns in kinds:
        names = ["user", "word", "count"]
        # Several row groups, so that columns arrive in pieces.
        pq.write_table(
            pa.table(list(columns), names=names), tmp_path / "p.parquet", row_group_size=1
        )
        population = read_population(tmp_path / "p.parquet")
        assert content(population) == held([(0, "x", 1), (0, "y", 3), (1, "y", 2)])


def test_words_of_a_parquet_dictionary_that_no_row_has_are_no_words(tmp_path):
    words = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["c", "unused", "a"]))
    pq.write_table(pa.table({"user": [1, 2], "word": words}), tmp_path / "p.parquet")
    assert read_population(tmp_path / "p.parquet").lexicon.words == ["a", "c"]


def test_csv_may_have_quotes_windows_line_ends_blank_lines_and_a_mark(tmp_path):
    data = '\ufeff"user",word,count\r\n\r\nu,"a,b",1\r\n"v","say ""x""",2\r\n'
    (tmp_path / "p.csv").write_bytes(data.encode())
    population = read_population(tmp_path / "p.csv")
    assert content(population) == held([(0, "a,b", 1), (1, 'say "x"', 2)])


def test_csv_texts_may_span_lines(tmp_path):
    (tmp_path / "p.csv").write_text('user,text\nu,"one\ntwo"\nv,three\n')
    assert content(read_population(tmp_path / "p.csv")) == held(
        [(0, "one", 1), (0, "two", 1), (1, "three", 1)]
    )


def test_whole_counts_may_be_written_with_a_point(tmp_path):
    (tmp_path / "p.csv").write_text("user,word,count\nu,a,3.0\nu,b, 2\n")
    assert content(read_population(tmp_path / "p.csv")) == held([(0, "a", 3), (0, "b", 2)])


def test_a_row_without_a_word_and_with_count_zero_is_a_user_that_holds_nothing(tmp_path):
    (tmp_path / "p.csv").write_text("user,word,count\nu,,0\nv,a,1\n")
    population = read_population(tmp_path / "p.csv")
    assert population.num_clients == 2
    assert content(population) == held([(1, "a", 1)])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_what_is_written_is_read_back_with_silent_clients(tmp_path, extension):
    population = synthetic_population("chat", 300, seed=1)
    assert (np.diff(population.items.offsets) == 0).any()
    path = tmp_path / f"p.{extension}"
    write_population(population, path)
    again = read_population(path)
    assert again.num_clients == 300
    assert content(again) == content(population)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("rows_at_once", [1, 2, 3, 100])
def test_users_stand_in_the_order_of_their_hash_however_rows_are_ordered(
    tmp_path, monkeypatch, rows_at_once
):
    monkeypatch.setattr(rows_module, "_ROWS_AT_ONCE", rows_at_once)

    def hash_of(user):
        digest = hashlib.md5(str(user).encode()).digest()
        return [int.from_bytes(half, "little") for half in (digest[:8], digest[8:])]

    rows = [(3, "a", 1), (3, "c", 2), (5, "b", 3), (8, "", 0), (9, "a", 4), (9, "b", 5)]
    by_hash = sorted({user for user, _, _ in rows}, key=hash_of)
    rank = {user: place for place, user in enumerate(by_hash)}
    for order in (rows, rows[::-1], rows[2:] + rows[:2]):
        items = read_population(save(tmp_path / "p.parquet", order)).items
        found = np.repeat(np.arange(4), np.diff(items.offsets)).tolist()
        found = list(zip(found, items.word_ids.tolist(), items.counts.tolist(), strict=True))
        assert found == sorted((rank[u], "abc".index(w), n) for u, w, n in rows if w)
    again = read_population(save(tmp_path / "p.parquet", [*rows, *rows]))
    assert content(again) == held([(u, w, 2 * n) for u, w, n in rows if w])


def test_hard_words_survive_writing_in_every_format(tmp_path):
    words = [*HARD_WORDS, 'quo"te', "naïve", "😀"]
    size = len(words)
    population = Clients(
        Table(Lexicon(words=words), np.array([0, size]), np.arange(size), np.arange(1, size + 1)),
        name="hard",
    )
    for extension in EXTENSIONS:
        write_population(population, tmp_path / f"p.{extension}")
        assert content(read_population(tmp_path / f"p.{extension}")) == content(population)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_population_that_holds_nothing_is_written_and_read(tmp_path, extension):
    population = Clients(
        Table(
            Lexicon(words=[]),
            np.zeros(4, dtype=np.int64),
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
        ),
        name="silent",
    )
    write_population(population, tmp_path / f"p.{extension}")
    again = read_population(tmp_path / f"p.{extension}")
    assert again.num_clients == 3
    assert content(again) == []


@pytest.mark.parametrize("extension", ["csv.gz", "jsonl.gz", "parquet"])
def test_the_same_population_gives_the_same_bytes(tmp_path, extension):
    population = synthetic_population("chat", 50, seed=1)
    for name in ("one", "two"):
        write_population(population, tmp_path / f"{name}.{extension}")
    one, two = ((tmp_path / f"{name}.{extension}").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_failed_writing_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("old")
    population = synthetic_population("chat", 50, seed=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(InputError, match=r"can be written, got .*p.csv: File too large\."):
            write_population(population, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_into_a_missing_folder_or_an_unknown_format_is_refused(tmp_path):
    population = synthetic_population("chat", 5, seed=1)
    with pytest.raises(InputError, match=r"can be written, got .*: No such file or directory\."):
        write_population(population, tmp_path / "none" / "p.csv")
    with pytest.raises(InputError, match=r"Unknown kind of file 'p\.tsv'; known extensions: "):
        write_population(population, tmp_path / "p.tsv")


# Bad files: each has one line that says what is wrong and where.


PAIRS, COUNTED, LINE = b"user,word\n", b"user,word,count\n", b'{"user":1,"word":"a"}\n'


def test_a_missing_file_a_directory_and_a_wrong_name_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"Expected an existing file, got .*none\.csv; check"):
        read_population(tmp_path / "none.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match=r"Expected a file, got the directory .*d\.csv; name a"):
        read_population(tmp_path / "d.csv")
    path = save(tmp_path / "p.csv", [(1, "a", 1)])
    with pytest.raises(InputError, match="Unknown column 'usr'; did you mean 'user'"):
        read_population(path, columns={"usr": "user"})
    with pytest.raises(InputError, match="Expected a column 'n' for the count, got the columns"):
        read_population(path, columns={"count": "n"})


def test_odd_files_that_can_be_read_are_read(tmp_path):
    users = ["2d9e5b0a-0b1e-4d5c-9d2e-0e5b8f7c6a01", "7"]
    counted = held([(0, "a\tb", 1), (1, "x", 1000)])
    lines = [f"{users[0]},a\tb,1\r\n", f"{users[1]},x,1000\n"]
    path = tmp_path / "p.csv"
    path.write_bytes("".join(["user,word,count\n", *lines]).encode())  # line ends of two kinds
    assert content(read_population(path)) == counted
    records = [{"user": users[0], "word": "a\tb"}, {"user": 7, "word": "x", "count": 1e3}]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"count": 1, **each}) + "\n\n" for each in records))
    assert content(read_population(path)) == counted
    one = read_population(save(tmp_path / "one.csv", [("u", "w", 1)]))
    assert (one.num_clients, content(one)) == (1, [[("w", 1)]])
