"""Commit messages of small repositories that are made here."""

from __future__ import annotations

import os
import shutil

import pytest

from fedhh.clients.reading.exports import git_log
from fedhh.clients.reading.exports.git_log import read_git
from fedhh.validation import InputError
from tests.clients.reading.exports.repositories import commit, git, new_repository

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
ANA, BO = ("Ana Ivic", "ana@example.org"), ("Bo Berg", "Bo@Example.org")


@pytest.fixture
def clone(tmp_path):
    return new_repository(tmp_path / "clone")


@needs_git
def test_messages_become_texts_by_address(clone, rows, messages):
    commit(
        clone, "Frob the knob\n\nIt was café.\n\nSigned-off-by: Ana Ivic <ana@example.org>\n", *ANA
    )
    commit(clone, "Fix frob\n\n    x = 1\n", *BO)
    commit(clone, "Bump lodash", "dependabot[bot]", "1+dependabot[bot]@users.noreply.github.com")
    commit(clone, "Again\n", "Ana", "ANA@example.org")
    read_git(clone, messages)
    assert rows("ana@example.org", "bo@example.org") == [
        ("ana@example.org", "Again"),
        ("bo@example.org", "Fix frob"),
        ("ana@example.org", "Frob the knob\n\nIt was café."),
    ]
    assert messages.dropped == {"bot": 1}
    assert messages.taken_out == {"trailer": 1, "code": 1}
    # The committer's, too.
    assert messages.name_words() == {"ana", "ivic", "bo", "berg", "carla", "keeper"}


@needs_git
def test_merges_and_empty_messages_are_dropped(clone, rows, messages):
    commit(clone, "One", *ANA)
    git(clone, "checkout", "-q", "-b", "side")
    commit(clone, "Two", *ANA)
    git(clone, "checkout", "-q", "main")
    commit(clone, "", *BO, "--allow-empty-message")
    git(clone, "merge", "-q", "--no-ff", "side", GIT_AUTHOR_NAME="x", GIT_AUTHOR_EMAIL="x@y.z")
    read_git(clone, messages)
    assert sorted(rows("ana@example.org")) == [
        ("ana@example.org", "One"),
        ("ana@example.org", "Two"),
    ]
    assert messages.dropped == {"merge": 1, "no text left": 1}
    assert messages.seen == 4


@needs_git
def test_a_mailmap_joins_the_addresses_of_a_person(clone, rows, messages):
    (clone / ".mailmap").write_text("Ana Ivic <ana@example.org> <old@example.com>\n")
    commit(clone, "One", "ana", "old@example.com")
    read_git(clone, messages)
    assert rows("ana@example.org") == [("ana@example.org", "One")]


@needs_git
def test_a_bare_clone_will_do_and_so_will_another_encoding(clone, rows, messages, tmp_path):
    git(clone, "config", "i18n.commitEncoding", "ISO-8859-1")
    commit(clone, "plain", *ANA)
    raw = git(clone, "cat-file", "commit", "HEAD").replace("plain", "caf\udce9")
    (tmp_path / "object").write_bytes(raw.encode("utf-8", "surrogateescape"))
    name = git(clone, "hash-object", "-t", "commit", "-w", str(tmp_path / "object")).strip()
    git(clone, "update-ref", "HEAD", name)
    git(tmp_path, "clone", "-q", "--bare", "clone", "bare")
    read_git(tmp_path / "bare", messages)
    assert rows("ana@example.org") == [("ana@example.org", "café")]


@needs_git
def test_no_program_that_the_clone_names_is_started(clone, rows, messages, tmp_path):
    commit(clone, "One", *ANA)
    header, _, text = git(clone, "cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n eA==\n -----END PGP SIGNATURE-----"
    name = git(
        clone,
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        text=f"{header}\n{signature}\n\n{text}",
    ).strip()
    git(clone, "update-ref", "HEAD", name)
    marker, program = tmp_path / "started", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    program.chmod(0o755)
    for key in (
        "gpg.program", "core.pager", "core.fsmonitor", "diff.external", "core.sshCommand",
        "core.editor", "pager.log",
    ):  # fmt: skip
        git(clone, "config", key, str(program))
    git(clone, "config", "log.showSignature", "true")
    # The clone would start it: else this test would show nothing.
    git(clone, "log", "-1")
    assert marker.exists()
    marker.unlink()
    read_git(clone, messages)
    assert not marker.exists()
    assert rows("ana@example.org") == [("ana@example.org", "One")]


@needs_git
def test_variables_of_git_do_not_lead_elsewhere(clone, rows, messages, tmp_path, monkeypatch):
    other = new_repository(tmp_path / "other")
    commit(other, "Other", *BO)
    commit(clone, "One", *ANA)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    read_git(clone, messages)
    assert rows("ana@example.org") == [("ana@example.org", "One")]


@needs_git
def test_what_is_no_repository_is_refused_in_one_line(clone, tmp_path, messages):
    inside = clone / "inside"
    inside.mkdir()
    commit(clone, "One", *ANA)
    for directory, said in (
        (inside, "not a git repository"),
        (tmp_path / "missing", "the directory of a git clone"),
        (new_repository(tmp_path / "empty"), "at least one commit"),
    ):
        with pytest.raises(InputError, match=said) as refusal:
            read_git(directory, messages)
        assert "\n" not in str(refusal.value)
        assert str(directory) in str(refusal.value)
    assert messages.seen == 0


@needs_git
def test_a_damaged_repository_is_refused(clone, messages):
    commit(clone, "One", *ANA)
    name = git(clone, "rev-parse", "HEAD").strip()
    damaged = clone / ".git" / "objects" / name[:2] / name[2:]
    damaged.chmod(0o644)
    damaged.write_bytes(b"x" * 100)
    with pytest.raises(InputError, match="git says"):
        read_git(clone, messages)


@needs_git
def test_a_message_that_is_too_long_is_dropped_and_an_endless_one_refused(
    clone, rows, messages, monkeypatch
):
    commit(clone, "x " * 2**19 + "x", *ANA)
    commit(clone, "short", *ANA)
    read_git(clone, messages)
    assert rows("ana@example.org") == [("ana@example.org", "short")]
    assert messages.dropped == {"too long": 1}
    monkeypatch.setattr(git_log, "_LONGEST_FIELD", 2**19)
    with pytest.raises(InputError, match="at most 524,288 bytes"):
        read_git(clone, messages)


def test_without_git_the_message_says_so(tmp_path, messages, monkeypatch):
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(InputError, match="git on the PATH"):
        read_git(tmp_path, messages)
