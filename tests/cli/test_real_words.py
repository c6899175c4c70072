"""`fedhh data prepare` from clones, archives and chats: what it says, and what it refuses."""

import re

import pytest

CHAT = "".join(f"31.12.20, 22:15 - Ana Ivic {i}: zonk Ivic \x1b[2J\n" for i in range(40))
MAIL = "From - x\nFrom: Bo Berg <bo@example.org>\n\nfrob\n> zonk\n\n"


def whole(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.txt").write_text(f"{CHAT}31.12.20, 22:15 - Ana Ivic joined\n")
    (tmp_path / "list.mbox").write_text(MAIL)
    return tmp_path


def test_it_says_what_it_kept_and_dropped_and_names_nobody(files, command):
    done = command(
        "data", "prepare", "--chat", "chat.txt", "--mbox", "list.mbox", "out.csv", "--samples", "2"
    )
    assert done.returncode == 0, done.stderr
    said = whole(done.stdout)
    assert "kept 41 of 42 messages; dropped: system message 1" in said
    assert "1 lines and pieces of them; dropped: quoted text 1" in said
    assert "dropped 40 words (part of a name)" in said
    assert "41 users, 3 words typed 81 times" in said
    assert said.count("kept, for example: ") == 2
    assert "random salt that is not kept" in said
    assert not re.search("ivic|berg|example.org", said, re.IGNORECASE)
    assert "\x1b" not in done.stdout
    run = command(
        "run", "--data", "out.csv", "--workers", "0", "--set", "baseline=none", "--dry-run",
        "--known", "none", "--set", "protocol.depth=3",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def test_a_given_salt_joins_files_and_is_not_printed(files, command):
    salt = ("--salt", "sixteen symbols!")
    first = command("data", "prepare", "--mbox", "list.mbox", "a.csv", *salt, "--samples", "0")
    second = command("data", "prepare", "--mbox", "list.mbox", "b.csv", *salt)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "kept, for example" not in first.stdout
    assert "with the given salt: who knows it can check" in whole(first.stdout)
    assert "sixteen" not in first.stdout
    assert (files / "a.csv").read_bytes() == (files / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("out.csv",), "Expected IN and OUT, got 1 files"),
        (("a.csv", "out.csv", "--mbox", "list.mbox"), "OUT alone with --git, --mbox or --chat"),
        (("out.csv", "--mbox", "list.mbox", "--sep", ";"), "--sep and --column with IN alone"),
        (("a.csv", "out.csv", "--salt", "x"), "Expected --salt with --git"),
        (("out.csv", "--mbox", "list.mbox", "--salt", "x"), "at least 16 symbols, got 1"),
        (("out.csv", "--mbox", "list.mbox", "--samples", "101"), "samples"),
        (("out.csv", "--git", "."), "Expected a git clone"),
        (("out.csv", "--chat", "list.mbox"), "in a known form"),
        (("out.csv", "--mbox", "no\x1b[/]\nline"), "existing file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(files, command, arguments, message):
    done = command("data", "prepare", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in whole(done.stderr)
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr
    assert not (files / "out.csv").exists()
