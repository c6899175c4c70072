"""What `--help` says is whole: an example for each command, and nothing taken for markup."""

from __future__ import annotations

import re

import pytest
import typer

from fedhh.cli.app import app
from fedhh.version import __version__
from tests.thinned import thinned


def all_commands(group, path=()):
    """Yield every command with the words that lead to it, groups too; no name that was."""
    if group.hidden:
        return
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from all_commands(command, (*path, name))


COMMANDS = list(all_commands(typer.main.get_command(app)))
WORDS = [path for path, _ in COMMANDS]


@pytest.fixture
def help_of(command, monkeypatch):
    def call(*words: str) -> str:
        monkeypatch.setenv("COLUMNS", "200")
        done = command(*words, "-h")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return call


def test_every_command_that_the_issue_of_a_user_may_need_is_there():
    names = {" ".join(path) for path in WORDS}
    assert {"run", "sweep", "compare", "plan", "show", "plot", "report"} <= names
    groups = {
        "account": "shuffle user anonymity plan ledger memo",
        "audit": "randomizer device log",
        "oracles": "compare",
        "presets": "list show schema",
        "data": "describe prepare synthesize",
    }
    for group, commands in groups.items():
        assert {each for each in names if each.startswith(f"{group} ")} == {
            f"{group} {each}" for each in commands.split()
        }


@pytest.mark.parametrize(
    ("path", "found"), thinned(COMMANDS, keep=4), ids=[" ".join(path) for path in WORDS]
)
def test_every_help_has_an_example_of_its_own_command_and_its_brackets(help_of, path, found):
    shown = help_of(*path)
    example = re.search(r"Example: fedhh (.*)", shown)
    assert example, shown
    assert example[1].split()[: len(path)] == list(path)
    texts = [found.help or "", *(getattr(each, "help", None) or "" for each in found.params)]
    for bracket in {match for text in texts for match in re.findall(r"\[[a-z.]+\]", text)}:
        assert bracket in shown


def test_run_shows_twelve_options_first_and_others_in_panels_of_their_own(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = command("run", "--help").stdout
    assert max(map(len, shown.splitlines())) <= 80
    _, *panels = re.split(r"^╭─ ([A-Z][a-z]+) ", shown, flags=re.MULTILINE)
    options = {
        title: re.findall(r"^│ (--[a-z-]+)", text, flags=re.MULTILINE)
        for title, text in zip(panels[::2], panels[1::2], strict=True)
    }
    assert options == {
        "Arguments": [],
        "Options": [
            *("--data", "--set", "--seed", "--out", "--resume", "--workers", "--dry-run", "--live"),
            *("--format", "--quiet", "--verbose", "--help"),
        ],
        "Configuration": ["--preset", "--config", "--trust"],
        "Data": ["--sep", "--column", "--fold-case", "--known"],
        "Privacy": ["--delta", "--alpha"],
        "Cluster": ["--ray-address"],
    }


@pytest.mark.parametrize("word", ["run", "sweep", "compare"])
def test_tables_of_files_are_named_in_help(help_of, word):
    assert "sweep.protocols" in help_of(word)


def test_the_version_and_the_completion_are_options_of_the_whole(command, help_of):
    done = command("--version")
    assert (done.returncode, done.stdout) == (0, f"fedhh {__version__}\n")
    assert "--install-completion" in help_of()
    assert "--show-completion" in help_of()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rnu", "small"), "No such command 'rnu'. Did you mean 'run'? See --help."),
        (("account", "oracles"), "No such command 'oracles'. See --help."),
        (("oracles", "compare", "--epsilon", "4"), "No such option: --epsilon (Possible options: "),
        (("account", "plan", "--plot", "a.png"), "No such option: --plot"),
    ],
    ids=" ".join,
)
def test_an_unknown_name_answers_with_one_line_and_what_is_near(command, words, message):
    done = command(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"Error: {message}")
    assert done.stderr.endswith("See --help.\n")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("attack", "of a run."),
        ("sweep", "with a table sweep or sweep.protocols."),
        ("compare", "of a run, or with a table sweep.protocols."),
        ("pipeline run", "with a table pipeline."),
    ],
)
def test_a_source_is_said_to_be_what_the_command_takes(help_of, name: str, taken: str):
    assert f"or a TOML file: {taken}" in " ".join(help_of(*name.split()).split())


def test_no_command_trusts_modules_unless_it_is_told():
    options = [each for _, command in COMMANDS for each in command.params if each.name == "trust"]
    assert len(options) > 5
    assert not any(each.default for each in options)
