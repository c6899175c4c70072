"""WhatsApp's text exports in their local forms, and messages copied from Telegram."""

import pytest

from fedhh.clients.reading.exports import chats
from fedhh.clients.reading.exports.chats import read_chat
from fedhh.validation import InputError


@pytest.fixture
def read(tmp_path, messages):
    def call(text: str) -> None:
        path = tmp_path / "chat.txt"
        path.write_text(text, encoding="utf-8")
        read_chat(path, messages)

    return call


HEADERS = [
    "12/31/20, 10:15 PM - ", "12/31/20, 10:15\u202fPM - ", "31.12.20, 22:15 - ",
    "31/12/2020 22:15 - ", "2020-12-31, 22:15 - ", "31/12/20, 10:15 p. m. - ",
    "31/12/20 10:15 p.\u00a0m. - ", "2020/12/31 午後10:15 - ", "31-12-20 22:15 - ",
    "31.12.20 klo 22.15 - ", "31. 12. 2020, 22:15 - ", "31.12.2020, 10:15 nachm. \u2013 ",
    "[31.12.20, 22:15:03] ", "[12/31/20, 10:15:03 PM] ", "\u200e[31/12/20, 22:15:03] ~ ",
    "[2020-12-31, 10:15:03 PM] ", "[31.12.20 22.15.03] ~\u202f",
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_a_message_begins_in_any_local_form(header, read, rows, messages):
    read(f"{header}Ana Ivic: so: 10:15 it is\nand more\n\n{header}\u202aBo\u202c: ok\n")
    assert rows("Ana Ivic", "Bo") == [("Ana Ivic", "so: 10:15 it is\nand more"), ("Bo", "ok")]
    assert messages.dropped == {}
    assert messages.name_words() == {"ana", "ivic", "bo"}


def test_what_nobody_typed_is_dropped_by_reason(read, rows, messages):
    android, ios = "12/31/20, 10:15 PM - ", "[12/31/20, 10:15:03 PM] "
    read(
        f"{android}Messages and calls are end-to-end encrypted.\n"
        f"{android}Ana added Bo\n"
        f"{android}Ana changed the subject to \u201cx: y\u201d\n"
        f"{android}Ana: <Media omitted>\n"
        f"{android}Ana: <Medien ausgeschlossen>\n"
        f"{android}Ana: IMG-2020.jpg (file attached)\n"
        f"{ios}Bo: \u200eimage omitted\n"
        f"{ios}Trip: \u200eYou created this group\n"
        f"{android}Bo: This message was deleted\n"
        f"{android}Bo: \n"
        f"{android}Carla: <Media omitted>\n"
        f"{android}Ana created a group\nwith a line: and more\n"
        f"{android}Bo: hm \u200e<This message was edited>\n"
        f"{android}Bo: a <b> c\n"
    )
    assert rows("Ana", "Bo") == [("Bo", "hm"), ("Bo", "a <b> c")]
    assert messages.dropped == {
        "system message": 5, "media": 5, "deleted message": 1, "no text left": 1,
    }  # fmt: skip
    assert messages.seen == 14
    # Whoever sent pictures alone has a name as well; a group has none.
    assert messages.name_words() == {"ana", "bo", "carla"}


def test_what_stands_before_the_first_message_has_no_author(read, rows, messages):
    read("a rest\n31.12.20, 22:15 - Ana: x\n")
    assert rows("Ana") == [("Ana", "x")]
    assert messages.dropped == {"no author": 1}


def test_a_line_with_a_date_in_a_message_is_no_new_one(read, rows):
    read("31.12.20, 22:15 - Ana: x\n31.12.20 is the day\n1. 2. 3\n")
    assert rows("Ana") == [("Ana", "x\n31.12.20 is the day\n1. 2. 3")]


@pytest.mark.parametrize(
    "header",
    [
        "Ana Ivic, [31.12.2020 22:15]",
        "Ana Ivic, [31 Dec 2020 at 22:15:03]:",
        "Ana Ivic, [12/31/20 10:15 PM]",
    ],
)
def test_messages_copied_from_telegram(header, read, rows, messages):
    other = header.replace("Ana Ivic", "Bo")
    read(
        f"{header}\nfirst, [sic]\nmore\n\n{other}\n[In reply to Ana Ivic]\nyes\n\n"
        f"{other}\nForwarded from News\nlong text\n\n{other}\n[ Photo ]\n"
    )
    assert rows("Ana Ivic", "Bo") == [("Ana Ivic", "first, [sic]\nmore"), ("Bo", "yes")]
    assert messages.dropped == {"forwarded": 1, "media": 1}
    assert messages.taken_out == {"quoted text": 1}


def test_a_message_that_is_too_long_is_dropped(read, rows, messages):
    line = "x " * 2**18
    read(f"31.12.20, 22:15 - Ana: {line}\n{line}\n{line}\n31.12.20, 22:15 - Ana: y\n")
    assert rows("Ana") == [("Ana", "y")]
    assert messages.dropped == {"too long": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "in a known form"), (b"hello\nworld\n", "in a known form"), (b"{", "valid JSON"),
        (b"[1, 2]", "in a known form"), (b'{"a": 1}', "in a known form"), (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "few levels"),
        (b'{"messages": [{"author": 1}, ' + b"9" * 5_000 + b"]}", "4,300"),
        (b'{"messages": "x"}', "in a known form"), (b"[" + b"\xff", "UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_chat_is_refused_in_one_line(content, message, tmp_path, messages):
    path = tmp_path / "chat.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as refusal:
        read_chat(path, messages)
    assert "\n" not in str(refusal.value)
    assert "chat.json" in str(refusal.value)


def test_a_missing_file_and_a_large_one_are_refused(tmp_path, messages, monkeypatch):
    with pytest.raises(InputError, match="existing file"):
        read_chat(tmp_path / "missing", messages)
    path = tmp_path / "result.json"
    path.write_text('{"messages": []}')
    monkeypatch.setattr("fedhh.clients.reading.exports.json_files.LARGEST_EXPORT", 4)
    with pytest.raises(InputError, match="at most 4 bytes"):
        read_chat(path, messages)


def test_the_known_forms_are_named():
    assert all(name in chats.KNOWN for name in ("WhatsApp", "Telegram", "Discord", "Slack"))
