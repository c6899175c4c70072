"""Small repositories and archives, and what of them becomes texts of whom."""

import csv
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import messages
import pytest

from fedhh import load_population
from tests.every import every

SALT = "a salt of the tests"
ANA, BO = ("Ana Ivic", "ana@example.org"), ("Bo Berg", "Bo@Example.org")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def mail(body, *, sender="Ana Ivic <Ana@Example.org>", more=""):
    return f"From - Mon Jan  3 10:15:00 2022\nFrom: {sender}\nSubject: s\n{more}\n{body}\n\n"


def git(directory, *arguments, text="", name="x", address="x@y.z"):
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_NAME": "Carla", "GIT_COMMITTER_EMAIL": "carla@example.org",
        "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": address,
    }  # fmt: skip
    return subprocess.run(
        ["git", *arguments], cwd=directory, input=text, env=environment, capture_output=True,
        encoding="utf-8", check=True,
    ).stdout  # fmt: skip


def commit(clone, text, author):
    options = ("--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-q", "-F", "-")
    git(clone, "commit", *options, text=text, name=author[0], address=author[1])


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "clone").mkdir()
    git(tmp_path / "clone", "init", "-q", "-b", "main")
    return tmp_path / "clone"


def texts(*mails):
    """Each author's texts, by the order of the authors' first ones."""
    rows, counts = messages.rows_of(mails, b"key")
    by_user = {}
    for user, text in rows:
        by_user.setdefault(user, []).append(text)
    return sorted(by_user.values()), counts


@every(
    ("text", "kept"),
    [
        ("Fix the frob\n\n> why?\nSigned-off-by: Ana <a@b.c>", "Fix the frob"),
        ("On 3 Jan Bo wrote:\n> a\nyes", "yes"),
        ("before\n```\nx = 1\n```\nafter", "before\nafter"),
        ("use `frob()` here\n    x = 1\n\ty = 2", "use   here"),
        (
            "see\ndiff --git a/b c/d\nindex 0a1\n--- a/b\n+++ b/b\n@@ -1 +1\n-x\n+y\ndone",
            "see\ndone",
        ),
        ("so long\n-- \nAna\nBigCorp", "so long"),
        ("yes\n-----Original Message-----\nno", "yes"),
        ("as in 0a1b2c3d4e of 1234567", "as in   of 1234567"),
        ("This reverts commit 0a1b2c3.\nbroken", "broken"),
        ("> all quoted", ""),
    ],
)
def test_only_prose_is_kept(text, kept):
    assert messages.prose(text) == kept


def test_authors_are_told_apart_by_address_and_bots_left_out():
    kept, counts = texts(
        (*ANA, "one"),
        ("Ana", "ANA@example.org", "two"),
        (*BO, "three"),
        ("dependabot[bot]", "1+dependabot[bot]@users.noreply.github.com", "bump"),
        ("Jenkins", "jenkins@ci.org", "built"),
        ("nobody", "", "x"),
        ("Ana Abbot", "1+abbot@users.noreply.github.com", "four"),
        (*BO, "> quote"),
        (*BO, "x " * 2**19 + "x"),
    )
    assert kept == [["four"], ["one", "two"], ["three"]]
    assert counts == {"kept": 4, "of bots or without an address": 3, "without prose": 2}


def test_parts_of_authors_names_are_in_nobodys_text():
    kept, _ = texts((*ANA, "thanks Bo, so BERG's fix will do"), ("Will Bo Berg", "b@b.c", "ivic"))
    assert kept == [[""], ["thanks , so 's fix will do"]]


def test_mails_are_decoded_and_what_is_damaged_or_repeated_or_automatic_is_left_out(tmp_path):
    parts = (
        'Content-Type: multipart/mixed; boundary="b"\n\n'
        "--b\nContent-Type: text/plain; charset=utf-8\n"
        "Content-Transfer-Encoding: quoted-printable\n\ncaf=C3=A9\n"
        "--b\nContent-Type: text/x-patch\n\n+patch\n--b--\n"
    )
    path = tmp_path / "list.mbox"
    path.write_text(
        f"From - x\nFrom: a@b.c\n{parts}\n"
        + mail("hi", sender="bo at example.org (Bo Berg)", more="Message-ID: <1>\n")
        + mail("hi", more="Message-ID: <1>\n")
        + mail("away", more="Auto-Submitted: auto-replied\n")
        + mail("x", more="Content-Type: text/plain; charset=no-such\n")
    )
    before = path.read_bytes()
    found = [(name, address, text.strip()) for name, address, text in messages.mails(path)]
    assert found == [
        ("", "a@b.c", "café"),
        ("Bo Berg", "bo@example.org", "hi"),
        ("Ana Ivic", "Ana@Example.org", ""),
    ]
    assert path.read_bytes() == before


def test_damaged_archives_are_read_or_refused(tmp_path):
    whole = (mail("so") + mail("hi\n> so", sender="=?utf-8?q?B=C3=B6?= <a@b.c>")).encode()
    rng, path = random.Random(1), tmp_path / "list.mbox"
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 9)):
            damaged[rng.randrange(5, len(damaged))] = rng.randrange(256)
        path.write_bytes(bytes(damaged))
        messages.rows_of(messages.mails(path), b"key")


@needs_git
def test_commits_become_rows_by_the_addresses_of_the_mailmap_without_merges(clone):
    (clone / ".mailmap").write_text("Ana Ivic <ana@example.org> <old@example.com>\n")
    commit(clone, "One\n\nSigned-off-by: Ana\n", ("ana", "old@example.com"))
    git(clone, "checkout", "-q", "-b", "side")
    commit(clone, "Two", ANA)
    git(clone, "checkout", "-q", "main")
    commit(clone, "", BO)
    git(clone, "merge", "-q", "--no-ff", "side")
    assert sorted(messages.git_messages(clone)) == [
        ("Ana Ivic", "ana@example.org", "One\n\nSigned-off-by: Ana\n"),
        ("Ana Ivic", "ana@example.org", "Two"),
        ("Bo Berg", "Bo@Example.org", ""),
    ]


@needs_git
def test_no_program_that_the_clone_names_is_started_and_no_variable_leads_elsewhere(
    clone, tmp_path, monkeypatch
):
    commit(clone, "One", ANA)
    header, _, text = git(clone, "cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n eA==\n -----END PGP SIGNATURE-----"
    whole = f"{header}\n{signature}\n\n{text}"
    name = git(clone, "hash-object", "-t", "commit", "-w", "--stdin", text=whole).strip()
    git(clone, "update-ref", "HEAD", name)
    marker, program = tmp_path / "started", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    program.chmod(0o755)
    for key in ("gpg.program", "core.pager", "core.fsmonitor", "diff.external", "pager.log"):
        git(clone, "config", key, str(program))
    git(clone, "config", "log.showSignature", "true")
    # The clone would start it: else this test would show nothing.
    git(clone, "log", "-1")
    assert marker.exists()
    marker.unlink()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert list(messages.git_messages(clone)) == [("Ana Ivic", "ana@example.org", "One")]
    assert not marker.exists()


def run(*arguments, cwd):
    script = Path(messages.__file__)
    return subprocess.run(
        [sys.executable, script, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def read(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_command_writes_hashed_users_that_a_salt_repeats_and_fedhh_reads_them(tmp_path):
    (tmp_path / "list.mbox").write_text(
        mail("zonk frob") + mail("frob", sender="bo at example.org (Bo)") + mail("frob again")
    )
    made = [
        run("--mbox", "list.mbox", *salt, name, cwd=tmp_path)
        for name, salt in [("a.csv", ("--salt", SALT)), ("b.csv", ("--salt", SALT)), ("c.csv", ())]
    ]
    assert [each.returncode for each in made] == [0, 0, 0], made
    assert made[0].stdout == "2 authors; 3 messages kept\n"
    first, second, third = (read(tmp_path / f"{x}.csv") for x in "abc")
    assert first == second
    assert {user for user, _ in first[1:]}.isdisjoint(user for user, _ in third[1:])
    assert [int(user) for user, _ in first[1:]] == sorted(int(user) for user, _ in first[1:])
    population = load_population(tmp_path / "a.csv", known="none")
    assert population.num_clients == 2
    typed = population.word_counts().typed.tolist()
    assert dict(zip(population.lexicon.words, typed, strict=True)) == {
        "again": 1, "frob": 3, "zonk": 1,
    }  # fmt: skip


@pytest.mark.slow("::test_parts_of_authors_names_are_in_nobodys_text")
@needs_git
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(tmp_path, clone):
    (tmp_path / "list.mbox").write_text("Hello")
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "good.mbox").write_text(mail("so"))
    for arguments, said in (
        (("--mbox", "list.mbox", "out.csv"), "in mbox form, got list.mbox"),
        (("--mbox", "missing", "out.csv"), "missing"),
        (("--git", "clone", "out.csv"), "a git clone with commits, got clone"),
        (("--git", ".", "out.csv"), "not a git repository"),
        (("out.csv",), "name --git or --mbox"),
        (("--mbox", "good.mbox", "--salt", "short", "out.csv"), "at least 16 symbols"),
        (("--mbox", "good.mbox", "there.csv"), "exists"),
    ):
        done = run(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()
    assert (tmp_path / "there.csv").read_text() == "mine"
