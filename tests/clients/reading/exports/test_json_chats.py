"""Telegram's, Discord's and Slack's JSON: rows, and what is dropped by reason."""

import json
from typing import Any

import pytest

from fedhh.clients.reading.exports.chats import read_chat
from fedhh.validation import InputError


@pytest.fixture
def read(tmp_path, messages):
    def call(content: Any) -> None:
        path = tmp_path / "chat.json"
        path.write_text(json.dumps(content))
        read_chat(path, messages)

    return call


def telegram(text: Any, **more: Any) -> dict[str, Any]:
    message = {"id": 1, "type": "message", "from": "Ana Ivic", "from_id": "user1", "text": text}
    return {**message, **more}


TELEGRAM = [
    telegram("plain"),
    telegram(["see ", {"type": "bold", "text": "this"}, {"type": "link", "text": "https://a.b"},
              {"type": "pre", "text": "int x"}, {"type": "mention", "text": "@bo"}]),
    telegram("x", type="service", actor="Ana Ivic"), telegram("x", from_id="channel7"),
    telegram("x", via_bot="@gif",
             **{"from": "Carla", "from_id": "user3"}), telegram("x", forwarded_from="News"),
    telegram("", photo="p.jpg"), telegram("x", **{"from": "Quiz Bot", "from_id": "user9"}),
    telegram("gone", **{"from": None, "from_id": "user2"}),
    telegram("x", **{"from": None, "from_id": None}), telegram({"not": "text"}), telegram(7),
]  # fmt: skip


@pytest.mark.parametrize("account", [False, True])
def test_telegrams_export(account, read, rows, messages):
    chat = {"name": "c", "type": "personal_chat", "id": 1, "messages": TELEGRAM}
    read({"chats": {"list": [chat]}} if account else chat)
    assert rows("user1", "user2") == [
        ("user1", "plain"), ("user1", "see this"), ("user2", "gone"),
    ]  # fmt: skip
    assert messages.dropped == {
        "system message": 1, "post of a channel": 1, "bot": 2, "forwarded": 1, "media": 1,
        "no author": 1, "no text left": 2,
    }  # fmt: skip
    assert messages.taken_out == {"mention, link or other markup": 2, "code": 1}
    assert messages.name_words() == {"ana", "ivic", "carla"}


def discord(content: Any, *, number: str = "1", **more: Any) -> dict[str, Any]:
    author = {"id": number, "name": "ana", "nickname": "Ana I.", "isBot": False}
    return {"id": "5", "type": "Default", "content": content, "author": author, **more}


def test_discords_export(read, rows, messages):
    read(
        {
            "guild": {"id": "1", "name": "g"},
            "messages": [
                discord(
                    "hi <@77> <:kek:12> @Bo Berg", mentions=[{"name": "bo", "nickname": "Bo Berg"}]
                ),
                discord("> hi\nyes", number="2", type="Reply"),
                discord("joined", type="GuildMemberJoin"),
                discord("beep", author={"id": "3", "name": "helper", "isBot": True}),
                discord(""), discord(None), discord("x", author=None), {"type": "Default"}, 7,
            ],
        }
    )  # fmt: skip
    assert rows("1", "2") == [("1", "hi     @Bo Berg"), ("2", "yes")]
    assert messages.dropped == {"system message": 1, "bot": 1, "media": 3, "no author": 1}
    assert messages.taken_out == {"mention, link or other markup": 2, "quoted text": 1}
    assert messages.name_words() == {"ana", "bo", "berg"}


SLACK = [
    {"type": "message", "user": "U1", "ts": "1",
     "text": "hi <@U2> :wave: <https://a.b|there> &amp; you",
     "user_profile": {"real_name": "Ana Ivic", "display_name": "ai"}},
    {"type": "message", "subtype": "channel_join", "user": "U1", "text": "<@U1> joined", "ts": "2"},
    {"type": "message", "subtype": "bot_message", "bot_id": "B1", "text": "built", "ts": "3"},
    {"type": "message", "subtype": "thread_broadcast", "user": "U2", "text": "ok", "ts": "4"},
    {"type": "message", "user": "U3", "text": "beep", "ts": "5"},
    {"type": "message", "user": "U1", "text": "", "files": [], "ts": "6"},
    {"type": "message", "text": "x", "ts": "7"}, "no object",
    {"type": "message", "subtype": ["x"], "user": ["U1"], "text": {}, "ts": "8"},
]  # fmt: skip


def test_slacks_file_of_a_channel(read, rows, messages):
    read(SLACK)
    assert rows("U1", "U2", "U3") == [("U1", "hi       &amp; you"), ("U2", "ok"), ("U3", "beep")]
    assert messages.dropped == {"system message": 2, "bot": 1, "media": 1, "no author": 1}
    assert messages.taken_out == {"mention, link or other markup": 3}
    assert messages.name_words() == {"ana", "ivic", "ai"}


def test_slacks_folder_tells_bots_and_names(tmp_path, rows, messages):
    users = [
        {"id": "U1", "name": "ana", "profile": {"real_name": "Ana Ivic"}},
        {"id": "U3", "name": "builder", "is_bot": True}, 7,
    ]  # fmt: skip
    (tmp_path / "users.json").write_text(json.dumps(users))
    for day, channel in enumerate(("general", "random")):
        (tmp_path / channel).mkdir()
        (tmp_path / channel / "2020-12-31.json").write_text(
            json.dumps(SLACK[3 * day : 3 * day + 5])
        )
    read_chat(tmp_path, messages)
    assert rows("U1", "U2") == [("U1", "hi       &amp; you"), ("U2", "ok"), ("U2", "ok")]
    assert messages.dropped["bot"] == 3
    assert messages.name_words() == {"ana", "ivic", "ai"}


def test_a_folder_of_something_else_is_refused(tmp_path, messages):
    with pytest.raises(InputError, match="unpacked folder of a Slack export"):
        read_chat(tmp_path, messages)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d.json").write_text("{")
    with pytest.raises(InputError, match=r"valid JSON, got .* of .*d\.json"):
        read_chat(tmp_path, messages)
