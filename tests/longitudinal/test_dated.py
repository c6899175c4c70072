import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.sources import kept_input
from fedhh.longitudinal.populations.dated import read_over_time
from fedhh.validation import InputError
from fedhh.words.known_words import KnownWords
from tests.clients.reading.refusals import read_population


def write(tmp_path, text: str, name: str = "words.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def contents(population, number: int):
    period = population.at(number)
    items, words = period.population.items, period.population.lexicon.words
    owners = np.repeat(period.devices, np.diff(items.offsets)).tolist()
    typed = [words[i] for i in items.word_ids.tolist()]
    return sorted(zip(owners, typed, items.counts.tolist(), strict=True))


ROWS = """user,word,count,day
a,lol,2,10
b,im,1,13
a,lol,1,16
c,brb,1,17
a,im,3,18
b,im,1,30
"""


def test_rows_fall_into_periods(tmp_path):
    population = read_over_time(write(tmp_path, ROWS), every_days=7)
    assert population.num_periods == 3
    assert population.num_devices == 3
    assert population.arrivals.tolist() == [0, 0, 1]
    # b typed nothing in the second period, and is there.
    assert [population.devices(number).tolist() for number in range(3)] == [[0, 1], [0, 1, 2], [1]]
    assert contents(population, 0) == [(0, "lol", 3), (1, "im", 1)]
    assert contents(population, 1) == [(0, "im", 3), (2, "brb", 1)]
    assert contents(population, 2) == [(1, "im", 1)]
    second = population.at(1)
    born = dict(zip(second.population.lexicon.words, second.born_days.tolist(), strict=True))
    assert born["brb"] == 7
    assert np.isnan(born["im"])


def test_days_may_be_dates_in_any_format(tmp_path):
    dates = {10: "2024-02-27", 13: "2024-03-01", 16: "2024-03-04", 17: "2024-03-05"}
    dates |= {18: "2024-03-06", 30: "2024-03-18"}
    rows = [line.split(",") for line in ROWS.splitlines()[1:]]
    text = "\n".join(
        ["user,word,count,day", *(f"{u},{w},{c},{dates[int(d)]}" for u, w, c, d in rows)]
    )
    lines = [{"user": u, "word": w, "count": int(c), "day": int(d)} for u, w, c, d in rows]
    paths = [
        write(tmp_path, text + "\n"),
        write(tmp_path, "\n".join(map(json.dumps, lines)), "words.jsonl"),
        tmp_path / "numbers.parquet",
        tmp_path / "dates.parquet",
    ]
    columns = {key: [line[key] for line in lines] for key in lines[0]}
    pq.write_table(pa.table(columns), paths[2])
    stamps = pa.array(np.array([dates[day] for day in columns["day"]], dtype="datetime64[D]"))
    pq.write_table(pa.table(columns | {"day": stamps}), paths[3])
    first = read_over_time(write(tmp_path, ROWS, "first.csv"), every_days=7)
    for path in paths:
        same = read_over_time(path, every_days=7)
        assert same.num_periods == 3
        for number in range(3):
            assert contents(same, number) == contents(first, number), path


def test_texts_have_days_too_and_known_words_are_dropped(tmp_path):
    text = 'user,text,when\na,"lol im the",0\nb,,3\na,the gonna,8\na,!,14\n'
    known = KnownWords(name="mine", words=frozenset({"the"}))
    population = read_over_time(
        write(tmp_path, text), every_days=7, layout=Layout(columns={"day": "when"}), known=known
    )
    assert population.num_periods == 2
    assert contents(population, 0) == [(0, "im", 1), (0, "lol", 1)]
    assert population.devices(0).tolist() == [0, 1]
    assert contents(population, 1) == [(0, "gonna", 1)]


def test_only_the_first_days_may_be_used(tmp_path):
    path = write(tmp_path, ROWS)
    assert read_over_time(path, every_days=7, num_days=14).num_periods == 2
    with pytest.raises(InputError, match=r"days <= 21.*got days=22"):
        read_over_time(path, every_days=7, num_days=22)
    with pytest.raises(InputError, match=r"at least one whole period"):
        read_over_time(path, every_days=22)


def test_time_may_not_go_backwards(tmp_path):
    text = "user,word,day\nb,lol,9\na,lol,5\na,im,4\nb,im,1\n"
    with pytest.raises(
        InputError, match=r"got day 4 in row 3 after day 5 in row 2.*backwards.*sort"
    ):
        read_over_time(write(tmp_path, text), every_days=7)
    dates = text.replace(",9", ",2024-01-09").replace(",5", ",2024-01-05")
    dates = dates.replace(",4", ",2024-01-04").replace(",1\n", ",2024-01-01\n")
    with pytest.raises(InputError, match=r"got 2024-01-04 in row 3 after 2024-01-05 in row 2"):
        read_over_time(write(tmp_path, dates), every_days=7)
    # Of different users, days may come in any order.
    assert (
        read_over_time(
            write(tmp_path, "user,word,day\nb,lol,9\na,lol,1\na,im,2\n"), every_days=7
        ).num_devices
        == 2
    )


@pytest.mark.parametrize(
    ("day", "message"),
    [
        ("", "Expected a day, got none in row 2"),
        ("soon", "date like 2024-02-29, as in row 1 .*got 'soon' in row 2"),
        ("2024-01-01", "as in row 1 \\('3'\\), got '2024-01-01' in row 2"),
        ("4.5", "got 4.5 in row 2"),
        ("999999999999", "got 999999999999 in row 2"),
        ("900000000", "is a day wrong"),
    ],
)
def test_malformed_days_are_refused(tmp_path, day, message):
    with pytest.raises(InputError, match=message):
        read_over_time(write(tmp_path, f"user,word,day\na,lol,3\nb,im,{day}\n"), every_days=7)


def test_dates_that_are_none_are_refused(tmp_path):
    text = "user,word,day\na,lol,2024-01-01\nb,im,2023-02-29\n"
    with pytest.raises(InputError, match=r"got '2023-02-29' in row 2"):
        read_over_time(write(tmp_path, text), every_days=7)


def test_a_missing_column_is_named(tmp_path):
    path = write(tmp_path, "user,word\na,lol\n")
    with pytest.raises(InputError, match=r"Expected a column 'day' for the day"):
        read_over_time(path, every_days=7)
    with pytest.raises(InputError, match=r"Expected a column 'when'"):
        read_over_time(path, every_days=7, layout=Layout(columns={"day": "when"}))


def test_other_readers_do_not_look_at_days(tmp_path):
    path = write(tmp_path, "user,word,day\na,lol,soon\na,im,\n")
    assert read_population(path).num_clients == 1


def test_a_file_may_be_written_into_the_program(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ROWS.encode())))
    kept_input.cache_clear()
    try:
        population = read_over_time("-", every_days=7)
    finally:
        kept_input.cache_clear()
    assert population.name == "standard input"
    assert contents(population, 2) == [(1, "im", 1)]
