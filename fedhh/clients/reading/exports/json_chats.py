"""Chats as JSON: Telegram's export, DiscordChatExporter's, and Slack's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedhh.clients.reading.exports.cleaning import CODE, QUOTED
from fedhh.clients.reading.exports.json_files import parse_json, read_export, records, text_of
from fedhh.clients.reading.exports.messages import BOT, FORWARDED, MEDIA, SYSTEM, Messages
from fedhh.clients.reading.tables import readable
from fedhh.validation import InputError

MARKUP = "mention, link or other markup"
CHANNEL = "post of a channel"

_TELEGRAM_TAKEN_OUT = {
    "code": CODE, "pre": CODE, "blockquote": QUOTED,
    **dict.fromkeys(
        ("bank_card", "bot_command", "custom_emoji", "email", "link", "mention", "mention_name",
         "phone"), MARKUP,
    ),
}  # fmt: skip
_DISCORD_TYPED = ("Default", "Reply")
_DISCORD_MARKUP = re.compile(r"<(?:@[!&]?|#|a?:\w{1,64}:|t:)[^<>\s]{0,64}>")
_SLACK_TYPED = ("", "file_share", "me_message", "reply_broadcast", "thread_broadcast")
# Users, channels, commands and links stand in angle brackets, emoji between colons.
_SLACK_MARKUP = re.compile(
    r"<[@#!][^<>]{0,200}>|<(?:https?|mailto|tel):[^<>]{0,4000}>|:[a-z0-9_+'-]{2,64}:"
)


def reader_of(content: Any) -> Callable[[Any, Messages], None] | None:
    """Return what reads a value of JSON; None if no known program writes such a one."""
    if isinstance(content, dict):
        listed = records(content.get("messages"))
        if isinstance(content.get("chats"), dict):
            return read_telegram
        if "guild" in content or any("author" in each for each in listed):
            return read_discord
        if any("from_id" in each or "from" in each or "actor" in each for each in listed):
            return read_telegram
        if any("ts" in each for each in listed):
            return lambda value, messages: read_slack(value["messages"], messages)
        return None
    return read_slack if any("ts" in each for each in records(content)) else None


def read_telegram(content: dict[str, Any], messages: Messages) -> None:
    """Add the messages of one chat, or of all chats of an account."""
    chats = content.get("chats")
    for chat in records(chats.get("list")) if isinstance(chats, dict) else [content]:
        for each in records(chat.get("messages")):
            _add_of_telegram(each, messages)


def _add_of_telegram(record: dict[str, Any], messages: Messages) -> None:
    name = text_of(record, "from")
    author = text_of(record, "from_id") or name
    if author.startswith("user"):
        messages.meet(name)
    if record.get("type") != "message":
        messages.drop(SYSTEM)
    elif author.startswith("channel"):
        messages.drop(CHANNEL)
    elif record.get("via_bot"):
        messages.drop(BOT)
    elif record.get("forwarded_from"):
        messages.drop(FORWARDED)
    elif not record.get("text"):
        messages.drop(MEDIA)
    else:
        messages.add(author, _typed_in_telegram(record["text"], messages), name=name)


def _typed_in_telegram(text: Any, messages: Messages) -> str:
    """Return a text whose marked-up parts, if it has any, are objects with a type."""
    if not isinstance(text, list):
        return text if isinstance(text, str) else ""
    typed = []
    for part in text:
        reason = _TELEGRAM_TAKEN_OUT.get(text_of(part, "type"))
        if reason is None:
            typed.append(part if isinstance(part, str) else text_of(part, "text"))
        else:
            messages.taken_out[reason] += 1
            typed.append(" ")
    return "".join(typed)


def read_discord(content: dict[str, Any], messages: Messages) -> None:
    """Add the messages of a channel, as DiscordChatExporter writes them."""
    for record in records(content.get("messages")):
        author = record.get("author")
        name = text_of(author, "name")
        messages.names.update(
            text_of(each, key)
            for each in [author, *records(record.get("mentions"))]
            for key in ("name", "nickname")
            if isinstance(each, dict) and not each.get("isBot")
        )
        text = text_of(record, "content")
        if text_of(record, "type") not in _DISCORD_TYPED:
            messages.drop(SYSTEM)
        elif isinstance(author, dict) and author.get("isBot"):
            messages.drop(BOT)
        elif not text:
            messages.drop(MEDIA)
        else:
            typed = _without_markup(text, _DISCORD_MARKUP, messages)
            messages.add(text_of(author, "id") or name, typed, name=name)


def read_slack(
    content: Any, messages: Messages, users: dict[str, dict[str, Any]] | None = None
) -> None:
    """Add the messages of a file of a channel.

    Args:
        content: A list of messages.
        messages: Where they go.
        users: Slack's own records of users, by their ids, if there are any.
    """
    for record in records(content):
        author = text_of(record, "user")
        user = (users or {}).get(author, {})
        text = text_of(record, "text")
        if record.get("bot_id") or record.get("subtype") == "bot_message" or user.get("is_bot"):
            messages.drop(BOT)
        elif record.get("type") != "message" or (record.get("subtype") or "") not in _SLACK_TYPED:
            messages.drop(SYSTEM)
        elif not text:
            messages.drop(MEDIA)
        else:
            names = _slack_names(user) | _slack_names({"profile": record.get("user_profile")})
            messages.names.update(names)
            typed = _without_markup(text, _SLACK_MARKUP, messages)
            messages.add(author, typed, name=text_of(user, "name"))


def _slack_names(user: dict[str, Any]) -> set[str]:
    keys = ("name", "real_name", "display_name", "first_name", "last_name")
    return {text_of(each, key) for each in (user, user.get("profile")) for key in keys}


def read_slack_folder(folder: Path, messages: Messages) -> None:
    """Add the messages of an unpacked export: a folder of files for each channel, and users.json.

    Raises:
        InputError: There is no such export, or a file of it is damaged or too large.
    """
    files = sorted(folder.glob("*/*.json"))
    if not files:
        raise InputError(
            f"Expected the unpacked folder of a Slack export, with a folder of JSON files for each "
            f"channel, got {folder}; name a file for any other chat."
        )
    listed = folder / "users.json"
    with readable(folder):
        users = records(parse_json(read_export(listed), listed)) if listed.exists() else []
        by_id = {text_of(each, "id"): each for each in users}
        for user in users:
            if not user.get("is_bot"):
                messages.names.update(_slack_names(user))
        for file in files:
            read_slack(parse_json(read_export(file), file), messages, by_id)


def _without_markup(text: str, markup: re.Pattern[str], messages: Messages) -> str:
    plain, times = markup.subn(" ", text)
    if times:
        messages.taken_out[MARKUP] += times
    return plain
