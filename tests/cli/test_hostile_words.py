"""Words, labels, titles, paths and values of users, in every place that prints them."""

from __future__ import annotations

import json

import pytest

from tests.thinned import thinned

ESC = "\x1b[2J"
FORBIDDEN = ("\x1b", "\u202e", "\x9b", "\x07")
LONG = "y" * 3_000
WORDS = ["[/]", "[red]x", f"c{ESC}", "r\u202eq", LONG]


def printed_safely(done, *shown: str) -> None:
    text = done.stdout + done.stderr
    assert not [mark for mark in FORBIDDEN if mark in text]
    flat = "".join(text.split())
    for each in shown:
        assert "".join(each.split()) in flat, each


SETTINGS = (
    "--set",
    r'population.alphabet="[/]redxc\u001b2J\u202eq"', "--set",
    "protocol.eta_max=40", "--set", "protocol.depth=8", "--set", "protocol.max_items=3", "--set",
    "privacy.local_epsilon=10", "--set", "baseline=none",
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory):
    """Clients who hold what markup and terminals would take for their own."""
    directory = tmp_path_factory.mktemp("hostile")
    path = directory / f"w[red]{ESC}.jsonl"
    rows = [
        json.dumps({"user": str(user), "word": word, "count": 1})
        for user in range(3_000)
        for word in WORDS[:4]
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.slow(
    "tests/cli/test_safe_text.py::test_a_console_shows_words_as_they_are_wherever_it_prints_them"
)
def test_a_run_and_show_print_hostile_words_and_paths(command, tmp_path, hostile_file):
    out = f"out[bold]{ESC}\u202e"
    done = command(
        "run", "--preset", "small", "--data", str(hostile_file), "--known", "none", *SETTINGS,
        "--out", out, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    path = r"out[bold]\x1b[2J\u202e"
    shown = ("[/]", "[red]x", r"c\x1b[2J", r"r\u202eq")
    printed_safely(done, *shown, f"Files: {path}", f"fedhh show '{path}'")
    again = command("show", out, "--all")
    assert again.returncode == 0, again.stderr
    printed_safely(again, *(f"│ {word} │" for word in shown), f"Files: {path}")
    printed_safely(command("report", out), f"Wrote {path}/report.html")
    refused = command("run", "--preset", "small", "--out", out)
    assert refused.returncode == 2
    printed_safely(refused, f"Error: {path} holds another run")


@pytest.mark.slow(
    "tests/cli/test_safe_text.py::test_a_console_shows_words_as_they_are_wherever_it_prints_them"
)
def test_commands_about_files_print_hostile_paths(command, tmp_path):
    rows = [json.dumps({"user": str(u), "word": w, "count": 1}) for u in range(40) for w in WORDS]
    (tmp_path / "words.jsonl").write_text("\n".join(rows) + "\n")
    printed_safely(command("data", "describe", "words.jsonl", cwd=tmp_path), "words.jsonl")
    done = command("data", "synthesize", f"s[red]{ESC}.csv", "--clients", "5")
    printed_safely(done, r"Wrote s[red]\x1b[2J.csv")
    printed_safely(command("data", "describe", f"s[red]{ESC}.csv"), r"s[red]\x1b[2J.csv")


SWEEP = """
[population]
source = "chat"
clients = 2_000

[protocol]
depth = 4
passes = 1
eta_max = 30
clients_per_layer = 300
max_items = 1

[execution]
workers = 0

[sweep]
title = "[/] {escape}[2J \\u202e"

[sweep.protocols."[red]one"]

[sweep.protocols."two{escape}[2J"]
sampler = "greedy"
""".replace("{escape}", "\\u001b")


# What figures make of such labels is tested with the figures.
@pytest.mark.slow(
    "tests/cli/test_safe_text.py::test_a_console_shows_words_as_they_are_wherever_it_prints_them"
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_sweeps_and_comparisons_print_hostile_labels_and_titles(command, tmp_path):
    (tmp_path / "s.toml").write_text(SWEEP)
    labels = ("[red]one", r"two\x1b[2J")
    listed = command("sweep", "s.toml", "--dry-run", cwd=tmp_path)
    printed_safely(listed, *(f"protocol {label}, seed 0" for label in labels))
    for name in ("sweep", "compare"):
        done = command(name, "--config", "s.toml", "--out", name)
        assert done.returncode == 0, done.stderr
        printed_safely(done, *labels, r"[/] \x1b[2J \u202e")
    shown = command("show", "sweep")
    printed_safely(shown, *labels, r"[/] \x1b[2J \u202e")


@pytest.mark.slow(
    "tests/cli/test_safe_text.py::test_a_directory_alone_is_raw_for_programs_and_safe_for_people"
)
def test_tables_are_raw_for_programs_and_safe_for_people(command, tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text(SWEEP)
    assert command("sweep", "s.toml", "--out", "out", "-q", cwd=tmp_path).stdout == "out\n"
    words = ("show", "out", "--table", "comparison")
    assert f"two{ESC}" in command(*words, "--format", "csv").stdout
    for kind in ("markdown", "latex"):
        assert ESC not in command(*words, "--format", kind).stdout
    assert f"two{ESC}" in json.loads(command(*words, "--format", "json").stdout)["columns"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    # Of Markdown, a backslash that is text is one behind another.
    printed_safely(command(*words, "--format", "markdown"), r"two\\x1b[2J")


@pytest.mark.parametrize(
    "words",
    thinned(
        [
            ("run", "--data", f"no{ESC}.csv"),
            ("run", "--config", f"no{ESC}[/].toml"),
            ("run", "--preset", f"no{ESC}[/]"),
            ("run", "--set", f"a.b{ESC}={ESC}"),
            ("run", "--set", f"protocol.name={ESC}[/]"),
            ("run", "--set", f"protocol.depth={LONG}"),
            ("run", "--known", f"no{ESC}\nline"),
            ("sweep", f"no{ESC}\u202e.toml"),
            ("show", f"no{ESC}\nline"),
            ("report", f"no{ESC}[/]"),
            ("show", "no", "--table", f"{ESC}[/]"),
            ("presets", "show", f"{ESC}[/]"),
            ("data", "describe", f"no{ESC}[/]"),
            ("data", "prepare", f"no{ESC}[/]", "out.csv"),
            (f"no{ESC}[/]",),
            ("run", f"--no{ESC}[/]"),
            ("run", "--seed", f"x{ESC}[/]"),
            ("run", f"extra{ESC}[/]"),
            ("account", "shuffle", "--local-epsilon", "1", "--reports", "9", "--oracle", ESC),
        ],
        single=True,
    ),
)
def test_errors_are_one_short_line_of_plain_text(command, tmp_path, words):
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 1_100
    printed_safely(done)
    assert list(tmp_path.iterdir()) == []


def test_what_fails_is_one_line_of_plain_text_and_ends_with_1(command, tmp_path, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError(f"bad\n{ESC}[/]")

    monkeypatch.setattr("fedhh.experiments.config.built_in.preset_names", failing)
    done = command("presets", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0] == r"fedhh failed: RuntimeError: bad\n\x1b[2J[/]"
