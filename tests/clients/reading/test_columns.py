import gzip
import json
import shlex

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fedhh
from fedhh.clients.reading.columns import Layout, parse_columns
from fedhh.clients.reading.tables import separator_of
from fedhh.experiments.config.load import change_config, load_config, parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.longitudinal.populations.dated import read_over_time
from fedhh.validation import InputError
from tests.clients.reading.refusals import read_population

CHAT = 'Timestamp;Sender;Message\n1;Ann;"lol; brb"\n2;Bob;lol, 1,5\n'
COLUMNS = {"user": "Sender", "text": "Message"}


def words_of(population):
    return dict(zip(population.lexicon.words, population.word_counts().typed.tolist(), strict=True))


@pytest.mark.parametrize(
    ("separator", "sign"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("|", "|")]
)
@pytest.mark.parametrize("name", ["chat.csv", "chat.csv.gz"])
def test_columns_are_separated_by_any_sign_and_other_commas_are_text(
    tmp_path, separator, sign, name
):
    data = CHAT.replace("lol; brb", "*").replace(";", sign).replace("*", f"lol{sign} brb").encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    population = read_population(tmp_path / name, columns=COLUMNS, separator=separator)
    assert population.num_clients == 2
    assert words_of(population) == {"brb": 1, "lol": 2}


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        (
            "Timestamp;Sender;Message",
            "Expected a column 'user' or 'user_id' for the user, got the columns Timestamp, "
            "Sender, Message, separated by ';', in {path}; try --sep ';' --column "
            "user=Sender --column text=Message.",
        ),
        (
            "Sent\tFrom\tBody",
            "separated by 'tab', in {path}; try --sep tab --column user=From --column text=Body.",
        ),
        (
            "client_id,token,n",
            "in {path}; try --column user=client_id --column word=token --column count=n.",
        ),
        ("user;word;count", "separated by ';', in {path}; try --sep ';'."),
        ("user,words", "in {path}; name them, as in --column word=COLUMN."),
        ("a,b", "in {path}; name them, as in --column user=COLUMN --column word=COLUMN."),
        (
            '"name, given";"the text"',
            "the text, separated by ';', in {path}; name them, as in --sep ';' --column "
            "user=COLUMN --column word=COLUMN.",
        ),
        (
            "Nick;words;n",
            "name them, as in --sep ';' --column user=Nick --column word=COLUMN --column count=n.",
        ),
    ],
)
def test_a_missing_column_comes_with_the_options_that_read_the_file(tmp_path, header, hint):
    path = tmp_path / "mine.csv"
    path.write_text(f"{header}\nx;x;x\n")
    with pytest.raises(InputError) as caught:
        read_population(path)
    assert hint.format(path=path) in str(caught.value)


def test_what_a_message_proposes_reads_the_file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text('"Sender, name";"Message"\na;lol\n')
    with pytest.raises(InputError) as caught:
        read_population(path)
    words = shlex.split(str(caught.value).partition("as in ")[2].rstrip("."))
    assert words == ["--sep", ";", "--column", "user=COLUMN", "--column", "text=Message"]
    columns = parse_columns([words[3].replace("COLUMN", "Sender, name"), words[5]])
    population = read_population(path, columns=columns, separator=words[1])
    assert words_of(population) == {"lol": 1}


def test_names_that_were_given_and_fit_stay_in_the_proposal(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("who,author,term\na,b,c\n")
    with pytest.raises(
        InputError, match=r"'terms' for the word.*--column user=who --column word=term"
    ):
        read_population(path, columns={"user": "who", "word": "terms"})


def test_a_dated_file_is_asked_for_its_days(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("Date;Sender;Message\n2024-01-01;a;lol brb\n2024-01-08;a;lol\n")
    with pytest.raises(
        InputError, match="--sep ';' --column user=Sender --column text=Message --column day=Date"
    ):
        read_over_time(path, every_days=7)
    layout = Layout(columns={**COLUMNS, "day": "Date"}, separator=";")
    assert read_over_time(path, every_days=7, layout=layout).num_periods == 1


def test_a_table_in_memory_proposes_no_options():
    frame = pd.DataFrame({"Sender": ["a"], "Message": ["lol"]})
    with pytest.raises(InputError, match=r"try columns=\{'user': 'Sender', 'text': 'Message'\}"):
        fedhh.population_from(frame)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"who": "a"}, "Unknown column 'who'"),
        ({"user": "a", "word": "a"}, "got 'a' for the user and the word"),
        ({"text": "a", "word": "b"}, "Expected a column of texts, or columns of words and counts"),
        ({"text": "a", "count": "b"}, "got text='a' and count='b'; remove one"),
        ({"user": "c"}, "Expected a column 'c' for the user"),
    ],
)
def test_columns_that_contradict_each_other_are_one_line(tmp_path, columns, message):
    (tmp_path / "p.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=message) as caught:
        read_population(tmp_path / "p.csv", columns=columns)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("separator", ["", ";;", "a", "1", '"', "\n", "é", "\0"])
def test_a_separator_is_one_sign(tmp_path, separator):
    (tmp_path / "p.csv").write_text("user,word\n1,2\n")
    with pytest.raises(InputError, match="Expected one sign as separator, such as"):
        read_population(tmp_path / "p.csv", separator=separator)
    with pytest.raises(InputError):
        separator_of(separator)


def test_only_csv_has_a_separator(tmp_path):
    pq.write_table(pa.table({"user": [1], "word": ["a"]}), tmp_path / "p.parquet")
    (tmp_path / "p.jsonl").write_text('{"user": 1, "word": "a"}\n')
    for name in ("p.parquet", "p.jsonl"):
        with pytest.raises(InputError, match=r"Expected a CSV file for the separator ';', got"):
            read_population(tmp_path / name, separator=";")


def test_a_row_with_another_number_of_columns_is_named_for_any_separator(tmp_path):
    (tmp_path / "p.csv").write_text("user;text\na;b\nc;d;e\n")
    with pytest.raises(InputError, match="Expected 2 fields as in the header, got 3 on line 3"):
        read_population(tmp_path / "p.csv", separator=";")


@pytest.mark.parametrize(
    ("texts", "columns"),
    [
        (["user=A", "text=B"], {"user": "A", "text": "B"}),
        (["word=b, c", "count= n"], {"word": "b, c", "count": " n"}),
        (["user=a=b"], {"user": "a=b"}),
    ],
)
def test_columns_are_written_as_roles_and_names(texts, columns):
    assert parse_columns(texts) == columns


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["usr=A"], "the roles user, word, count, text, day, got 'usr=A'"),
        (["user"], "got 'user'"),
        (["user="], "got 'user='"),
        (["user=A", "user=B"], "got user='A' and user='B'; remove one"),
        (["user=A", "user=A"], "one column for each role"),
    ],
)
def test_columns_that_are_none_are_one_line(texts, message):
    with pytest.raises(InputError, match=message):
        parse_columns(texts)


def test_a_configuration_says_how_its_file_is_laid_out(tmp_path):
    path = tmp_path / "chat.csv"
    path.write_text(CHAT.replace(";", "\t").replace("lol\t", "lol;"))
    settings = [
        "population.columns.user=Sender", "population.columns.text=Message",
        "population.separator=tab", "population.known=none",
    ]  # fmt: skip
    config = load_config(data=path, settings=settings)
    again = parse_config(parse_toml(config.to_toml(), "again"), "again")
    assert again == config
    population = build_population(again.population, seed=0)
    assert words_of(population) == {"brb": 1, "lol": 2}
    other = change_config(config, ["population.separator=;"], "test")
    assert other.result_key != config.result_key


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["population.columns.user=A"], "population.columns.user = 'A': expected a file"),
        (["population.separator=;"], "population.separator = ';': expected a file"),
        (["population.fold_case=true"], "population.fold_case = True: expected a file"),
    ],
)
def test_a_synthetic_population_has_no_layout(settings, message):
    with pytest.raises(InputError, match=message):
        build_population(load_config(settings=settings).population, seed=0)


def test_an_unknown_role_in_a_configuration_is_named():
    with pytest.raises(InputError, match=r"unknown key population\.columns\.usr; did you mean"):
        load_config(settings=["population.columns.usr=A"])


def test_a_run_takes_no_column_of_days(tmp_path):
    (tmp_path / "p.csv").write_text("user,word,day\na,b,1\n")
    config = load_config(data=tmp_path / "p.csv", settings=["population.columns.day=day"])
    with pytest.raises(InputError, match=r"population\.columns\.day = 'day': expected no column"):
        build_population(config.population, seed=0)


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet"])
def test_counted_words_are_folded_as_texts_are_and_their_counts_added_up(tmp_path, extension):
    rows = [("a", "LOL", 2), ("a", "lol", 3), ("b", "Lol", 1), ("b", "I’M", 1), ("c", "\u200d", 4)]
    path = tmp_path / f"p.{extension}"
    frame = pd.DataFrame(rows, columns=["user", "word", "count"])
    if extension == "csv":
        frame.to_csv(path, index=False)
    elif extension == "parquet":
        frame.to_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records")))
    assert len(read_population(path).lexicon) == 5
    population = read_population(path, fold_case=True)
    assert words_of(population) == {"lol": 6, "i'm": 1, "\u200d": 4}
    assert population.word_counts().holders.tolist() == [1, 2, 1]
    assert words_of(fedhh.population_from(frame, fold_case=True, known="none")) == words_of(
        population
    )


def test_folding_leaves_rows_without_a_word_and_keeps_days(tmp_path):
    (tmp_path / "p.csv").write_text("user,word,count,day\na,B,1,0\nb,,0,0\na,b,2,1\n")
    population = read_population(tmp_path / "p.csv", fold_case=True)
    assert (population.num_clients, words_of(population)) == (2, {"b": 3})
    dated = read_over_time(tmp_path / "p.csv", every_days=2, layout=Layout(fold_case=True))
    assert words_of(dated.at(0).population) == {"b": 3}
