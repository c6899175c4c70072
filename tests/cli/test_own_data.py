"""Files of other programs on the command line: options, what is said before a run, verdicts."""

import json
import re

import pytest

from fedhh.cli.console import SafeConsole, print_wrapped
from fedhh.experiments.config.labels import round_up
from tests.thinned import thinned

CHAT = "Timestamp;Sender;Message\n" + "".join(
    f'12.03.24, 18:02;User {i % 400};"lol; привет \U0001f602"\n' for i in range(1_200)
)
LAYOUT = ("--sep", ";", "--column", "user=Sender", "--column", "text=Message")
QUICK = (
    "--workers", "0", "--set", "baseline=none", "--set", "protocol.passes=1", "--set",
    "protocol.name=ldp-triehh", "--set", "protocol.depth=4", "--set", "protocol.eta_max=20",
    "--set", "protocol.participation=one-round", "--set", "protocol.false_discovery_rate=0",
    "--set", "protocol.max_items=10", "--set", "privacy.local_epsilon=8",
)  # fmt: skip
LOCAL = "amplifies nothing: the central epsilon is the local one."


def whole(text: str) -> str:
    """Return what was printed as one line, so that its width is of no matter."""
    return re.sub(r"[\s│]+", " ", text)


@pytest.fixture
def chat(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.csv").write_text(CHAT)
    return "chat.csv"


@pytest.mark.slow(
    "tests/experiments/run/test_preflight.py::test_the_share_that_can_be_spelled_is_that_of_the_run"
)
def test_a_run_says_on_standard_error_what_is_known_before_it(chat, command):
    done = command("run", "--data", chat, *LAYOUT, *QUICK, "--out", "mine", "--format", "json")
    assert done.returncode == 0, done.stderr
    said = whole(done.stderr)
    assert "chat.csv: 400 users, 2 distinct new words, typed 2,400 times." in said
    assert "50.0% of these contributions can be spelled with the alphabet 'lower'" in said
    assert "33.3% of the tokens of 1,200 texts are no words (emoji or symbol 33.3%)" in said
    head = "Epsilon before the run of an item and of a user (delta 1e-10), and users of the"
    assert f"{head} smallest cohort:" in said
    assert "cannot be found, such as 'привет'" in said
    result = json.loads(done.stdout)
    (row,) = re.findall(r"LDP TrieHH +(.*)", done.stderr)
    central = result["privacy"]["central_epsilon"]
    item, user = (round_up(central[unit]["before_run"]) for unit in ("item", "user"))
    local = 8 * result["protocol"]["max_items"]
    assert row.split() == [item, "8", user, f"{local}", "100"]
    assert "amplifies" not in done.stdout


@pytest.mark.slow(
    "tests/clients/reading/test_columns.py::test_a_configuration_says_how_its_file_is_laid_out"
)
def test_the_files_layout_is_in_the_runs_directory_and_runs_again(chat, command, tmp_path):
    first = command("run", "--data", chat, *LAYOUT, *QUICK, "--out", "one", "--quiet")
    assert (first.returncode, first.stderr) == (0, "")
    text = (tmp_path / "one" / "config.toml").read_text()
    assert 'separator = ";"' in text
    assert '[population.columns]\nuser = "Sender"\ntext = "Message"\n' in text
    again = command("run", "--config", "one/config.toml", "--out", "two", "--quiet")
    assert again.returncode == 0, again.stderr
    one, two = ((tmp_path / name / "discoveries.csv").read_bytes() for name in ("one", "two"))
    assert one == two


@pytest.mark.slow(
    "tests/experiments/run/test_preflight.py::test_the_share_that_can_be_spelled_is_that_of_the_run"
)
def test_a_comparison_says_it_once_for_each_protocol(chat, command):
    done = command(
        "compare", "--data", chat, *LAYOUT, "--workers", "0", "--seeds", "1", "--out", "mine",
        "--set", "privacy.local_epsilon=[8.0]", "--set", "protocol.depth=4",
        "--protocol", "sfp", "--protocol", "pem",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = whole(done.stderr)
    assert "chat.csv: 400 users" in said
    assert said.count("SFP, Apple's (epsilon 8)") <= 2
    assert LOCAL in said or "next to nothing" in said
    assert "amplifies" not in command("compare", "--resume", "--out", "mine").stderr


@pytest.mark.slow(
    "tests/experiments/run/test_preflight.py::test_the_share_that_can_be_spelled_is_that_of_the_run"
)
def test_a_sweep_over_a_file_says_it_too(chat, command, tmp_path):
    (tmp_path / "s.toml").write_text(
        """
[population]
source = "chat.csv"
separator = ";"
columns = { user = "Sender", text = "Message" }

[protocol]
name = "ldp-triehh"
passes = 1
depth = 4

[execution]
workers = 0

[sweep.axes]
"privacy.local_epsilon" = [2.0, 6.0]
"""
    )
    done = command("sweep", "s.toml", "--out", "mine")
    assert done.returncode == 0, done.stderr
    # The larger epsilon stands for both, whose cohorts are the same.
    assert "LDP TrieHH (epsilon 6)" in whole(done.stderr)
    assert "(epsilon 2)" not in whole(done.stderr)


@pytest.mark.slow(
    "tests/experiments/run/test_preflight.py::test_of_every_kind_of_plan_the_numbers_are_found"
)
def test_few_users_and_what_would_amplify_are_the_verdict(command, tmp_path):
    (tmp_path / "few.csv").write_text(
        "user,word\n" + "".join(f"{user},lol\n" for user in range(499))
    )
    done = command("data", "describe", "few.csv", cwd=tmp_path)
    said = whole(done.stdout)
    assert " users 499 " in said
    assert "Nothing stands in the way of a run" in said
    as_json = command("data", "describe", "few.csv", "--format", "json")
    facts = json.loads(as_json.stdout)
    (plan,) = facts["verdict"]["protocols"]
    # One report in each round, with the epsilons that a user's central one leaves.
    assert plan["central_epsilon_user_before_run"] == pytest.approx(1.0, rel=2e-3)
    assert plan["local_epsilon_user"] == plan["local_epsilon"] > 8
    assert facts["clients"] == facts["unknown_tokens"] == 499
    alone = ("--set", "baseline=none", "--workers", "0", "--set", "protocol.name=adaptive-triehh")
    local = ("--set", "protocol.max_items=10", "--set", "privacy.local_epsilon=8")
    run = command("run", "--data", "few.csv", *alone, *local, "--out", "mine")
    said = whole(run.stderr)
    assert f"Shuffling the reports of 499 users {LOCAL}" in said
    assert re.search(r"Adaptive TrieHH: 4,[0-9]00 users would have 7\.9", said)


@pytest.mark.slow(
    "tests/clients/test_describe.py::test_figures_are_those_of_a_small_population_counted_by_hand"
)
def test_a_description_speaks_of_labels_and_percents(chat, command):
    done = command("data", "describe", chat, *LAYOUT)
    assert done.returncode == 0, done.stderr
    said = whole(done.stdout)
    assert " new words typed that can be spelled 1,200 (50.0%) " in said
    assert " distinct words of a user 2 in the median, 2 at 95%, 2 at most " in said
    assert " tokens that are no words 1,200 (33.3%) " in said
    assert "such as '\U0001f602')" in said
    assert "_" not in said.partition("Verdict")[0]
    facts = json.loads(command("data", "describe", chat, *LAYOUT, "--format", "json").stdout)
    assert facts["dropped"] == {"emoji or symbol": 1_200}
    assert (facts["texts"], facts["empty_texts"]) == (1_200, 0)
    assert facts["spelling"]["lost_token_share"] == 0.5
    better = command("data", "describe", chat, *LAYOUT, "--alphabet", "loпривет")
    assert "cannot be found" not in better.stdout


def test_a_file_of_one_user_has_for_a_verdict_that_nothing_amplifies(command, tmp_path):
    (tmp_path / "p.csv").write_text("user,word\na,lol\n")
    done = command("data", "describe", "p.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "amplifies nothing: the central epsilon is the local one" in whole(done.stdout)


@pytest.mark.slow(
    "tests/clients/reading/test_columns.py::test_what_a_message_proposes_reads_the_file"
)
def test_other_names_and_upper_case_are_read_by_options(command, tmp_path):
    rows = [f"{user},{'LOL' if user % 2 else 'lol'},2\n" for user in range(5_000)]
    (tmp_path / "p.csv").write_text("client_id,token,n\n" + "".join(rows))
    refused = command("data", "describe", "p.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "try --column user=client_id --column word=token --column count=n." in refused.stderr
    options = ("--column", "user=client_id", "--column", "word=token", "--column", "count=n")
    said = whole(command("data", "describe", "p.csv", *options).stdout)
    assert "What helps: lower case (--fold-case, population.fold_case) for 50.0%." in said
    said = whole(command("data", "describe", "p.csv", *options, "--fold-case").stdout)
    assert " distinct words 1 " in said
    assert "Nothing stands in the way of a run" in said


@pytest.mark.parametrize(
    "words", thinned([("run", "--data"), ("compare", "--data"), ("data", "describe")], single=True)
)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "usr=A"), "the roles user, word, count, text, day, got 'usr=A'"),
        (("--column", "user=A", "--column", "user=B"), "remove one"),
        (
            ("--column", "user=Sender", "--column", "text=Sender"),
            "a column of its own for each role",
        ),
        (("--column", "user=Nobody", "--sep", ";"), "Expected a column 'Nobody' for the user"),
        (("--sep", "ab"), "Expected one sign as separator"),
        ((), "try --sep ';' --column user=Sender --column text=Message"),
    ],
)
def test_a_wrong_layout_is_one_line(chat, command, words, options, message):
    done = command(*words, chat, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_columns_of_any_name_reach_the_file(command, tmp_path):
    name = '\U0001f464 "who", \\'
    quoted = name.replace('"', '""')
    (tmp_path / "p.csv").write_text(f'"{quoted}",word\na,lol\n')
    done = command(
        "data", "describe", "p.csv", "--column", f"user={name}", "--format", "json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["clients"] == 1


@pytest.mark.parametrize("width", [20, 80, 200])
def test_a_long_line_is_wrapped_and_never_cut(width, capsys):
    line = " ".join(f"word{i}" for i in range(400))
    print_wrapped(SafeConsole(width=width), line)
    printed = capsys.readouterr().out
    assert whole(printed).strip() == line
    assert all(len(row) <= width for row in printed.splitlines())


def test_preparation_prints_its_whole_warning(command, tmp_path):
    words = " ".join(f"привет{'а' * i}" for i in range(12))
    (tmp_path / "p.csv").write_text(f"Sender;Message\na;{words} \U0001f602\nb;\U0001f602\n")
    done = command("data", "prepare", "p.csv", "out.csv", *LAYOUT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = whole(done.stdout)
    assert "characters]" not in said
    assert "12 of 12 tokens (100.0%), such as 'привет', 'привета'," in said
    assert "set population.alphabet (docs/populations.md) and protocol.depth." in said
    assert "1 of 2 texts hold no word" in said
    assert "dropped 2 (14.3%, emoji or symbol, such as '\U0001f602')" in said


def test_preparation_writes_counted_words_into_a_file_and_over_none(command, tmp_path):
    (tmp_path / "p.csv").write_text("user,word,count\na,LOL,2\na,lol,1\n")
    prepare = ("data", "prepare", "p.csv", "out.csv", "--fold-case")
    assert command(*prepare, cwd=tmp_path).returncode == 0
    written = (tmp_path / "out.csv").read_text()
    assert written == "user,word,count\n0,lol,3\n"
    # Nothing is read before: what is no file is not looked for.
    (tmp_path / "p.csv").unlink()
    refused = whole(command(*prepare, cwd=tmp_path).stderr)
    assert "Expected a path where nothing stands, got out.csv; name another one." in refused
    assert (tmp_path / "out.csv").read_text() == written
    missing = command("data", "prepare", "p.csv", "no/out.csv", cwd=tmp_path)
    assert "a file that can be written, got no/out.csv: No such file" in whole(missing.stderr)
    assert "Expected a path as OUT, got '-'" in command("data", "prepare", "-", "-").stderr


def test_an_option_of_the_other_kind_of_out_is_refused(command, tmp_path):
    (tmp_path / "p.csv").write_text("user,word,count\na,lol,2\n")
    for out, kind, option in (
        ("out", "file", ("--alphabet", "lower")),
        ("out", "file", ("--depth", "3")),
        ("out.csv", "directory", ("--salt", "s")),
        ("out.csv", "directory", ("--memory", "1")),
    ):
        done = command("data", "prepare", "p.csv", out, *option, cwd=tmp_path)
        assert done.returncode == 2
        assert f"Expected {option[0]} with a {kind} as OUT, got {out};" in whole(done.stderr)
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]


def test_synthetic_clients_are_written_over_no_file(command, tmp_path):
    (tmp_path / "mine.csv").write_text("mine")
    done = command("data", "synthesize", "--clients", "5", "mine.csv", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "mine.csv").read_text()) == (2, "mine")
    assert "Expected a path where nothing stands, got mine.csv;" in whole(done.stderr)
