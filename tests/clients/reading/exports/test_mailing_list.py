"""Mails of an archive: whose they are, what is kept, and what is dropped by reason."""

import pytest

from fedhh.clients.reading.exports import mailing_list
from fedhh.clients.reading.exports.mailing_list import read_mbox
from fedhh.validation import InputError


def mail(body: str, *, sender: str = "Ana Ivic <Ana@Example.org>", more: str = "") -> str:
    return f"From - Mon Jan  3 10:15:00 2022\nFrom: {sender}\nSubject: s\n{more}\n{body}\n\n"


@pytest.fixture
def read(tmp_path, messages):
    def call(*mails: str | bytes) -> None:
        path = tmp_path / "list.mbox"
        path.write_bytes(b"".join(m if isinstance(m, bytes) else m.encode() for m in mails))
        read_mbox(path, messages)

    return call


def test_mails_become_texts_by_address(read, rows, messages):
    read(
        mail("hello list"),
        mail("hi\n> hello list\n-- \nBo", sender="bo at example.org (Bo Berg)"),
        mail("again", sender="ANA@example.org"),
    )
    assert rows("ana@example.org", "bo@example.org") == [
        ("ana@example.org", "hello list"),
        ("bo@example.org", "hi"),
        ("ana@example.org", "again"),
    ]
    assert messages.taken_out == {"quoted text": 1, "signature": 2}
    assert {"ivic", "berg"} <= messages.name_words()


def test_encodings_and_parts_are_resolved(read, rows):
    parts = (
        'Content-Type: multipart/mixed; boundary="b"\n\n'
        "--b\nContent-Type: text/plain; charset=utf-8\n"
        "Content-Transfer-Encoding: quoted-printable\n\ncaf=C3=A9\n"
        "--b\nContent-Type: text/x-patch\n\n+patch\n--b--\n"
    )
    read(f"From - x\nFrom: a@b.c\n{parts}\n")
    assert rows("a@b.c") == [("a@b.c", "café")]


def test_what_is_dropped_is_counted_by_reason(read, rows, messages):
    read(
        mail("kept", more="Message-ID: <1>\n"),
        mail("kept", more="Message-ID: <1>\n"),
        mail("built", sender="Jenkins <jenkins@ci.org>"),
        mail("away", more="Auto-Submitted: auto-replied\n"),
        mail("<b>x</b>", sender="Carla <carla@b.c>", more="Content-Type: text/html\n"),
        mail("x", more="Content-Type: text/plain; charset=no-such\n"),
        mail("x", sender="nobody"),
        mail("> quote"),
    )
    assert rows("ana@example.org") == [("ana@example.org", "kept")]
    assert messages.dropped == {
        "repeated message": 1, "bot": 2, "no plain text": 1, "unreadable": 1, "no author": 1,
        "no text left": 1,
    }  # fmt: skip
    assert messages.seen == 8
    assert messages.name_words() == {"ana", "ivic", "carla"}


def test_damaged_mails_are_dropped_and_the_others_stay(read, rows, messages):
    deep = "".join(
        f'Content-Type: multipart/mixed; boundary="{i}"\n\n--{i}\n' for i in range(3_000)
    )
    read(
        f"From - x\nFrom: a@b.c\n{deep}\n",
        b"From - x\nFrom: \xff\xfe <\x00\n\n\xff\n\n",
        mail("ok"),
    )
    assert ("ana@example.org", "ok") in rows("ana@example.org", "a@b.c")
    assert messages.seen == 3


def test_a_mail_that_is_too_large_is_dropped(read, rows, messages, monkeypatch):
    monkeypatch.setattr(mailing_list, "_LARGEST_MAIL", 200)
    read(mail("x " * 200), mail("ok"))
    assert rows("ana@example.org") == [("ana@example.org", "ok")]
    assert messages.dropped == {"too long": 1}


def test_what_is_no_archive_is_refused_in_one_line(tmp_path, messages, monkeypatch):
    path = tmp_path / "list.mbox"
    path.write_text("Hello")
    with pytest.raises(InputError, match=r"mbox form, which begins with 'From ', got .*; unpack"):
        read_mbox(path, messages)
    with pytest.raises(InputError, match="existing file"):
        read_mbox(tmp_path / "missing", messages)
    with pytest.raises(InputError, match="directory"):
        read_mbox(tmp_path, messages)
    monkeypatch.setattr(mailing_list, "LARGEST_ARCHIVE", 4)
    with pytest.raises(InputError, match="at most 4 bytes, got 5 in"):
        read_mbox(path, messages)


def test_the_archive_stays_as_it_is(tmp_path, messages):
    path = tmp_path / "list.mbox"
    path.write_text(mail("a") + mail("b"))
    before = path.read_bytes()
    read_mbox(path, messages)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["list.mbox"]
