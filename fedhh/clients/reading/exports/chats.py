"""Chat exports: which program wrote one is told by its form, then its own module reads it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from fedhh.clients.reading.exports import json_chats, text_chats
from fedhh.clients.reading.exports.json_files import parse_json, read_export
from fedhh.clients.reading.exports.messages import Messages
from fedhh.clients.reading.tables import readable
from fedhh.system.reading import text_lines
from fedhh.validation import InputError

KNOWN = (
    "WhatsApp's text, Telegram's result.json or copied messages, JSON of DiscordChatExporter, and "
    "Slack's JSON or its unpacked folder"
)
_HEAD = 200
"""Lines of a text in which a message must begin."""


def read_chat(path: Path, messages: Messages) -> None:
    """Add the messages of a chat export.

    Raises:
        InputError: It is missing, unreadable, damaged, too large, or in no form that is known.
    """
    if path.is_dir():
        json_chats.read_slack_folder(path, messages)
        return
    with readable(path):
        lines = text_lines(path)
        try:
            head = [line.rstrip("\r\n") for line in islice(lines, _HEAD)]
        finally:
            lines.close()
        read_text = text_chats.reader_of(head)
        if read_text is not None:
            text_lines_of(path, read_text, messages)
            return
        first = next((line.lstrip()[0] for line in head if line.strip()), "")
        if first not in ("{", "["):
            raise _unknown(path)
        content: Any = parse_json(read_export(path), path)
        read_json = json_chats.reader_of(content)
        if read_json is None:
            raise _unknown(path)
        read_json(content, messages)


def text_lines_of(path: Path, read: Callable[[Any, Messages], None], messages: Messages) -> None:
    """Let a reader of lines have those of a file, which is closed whatever happens."""
    lines = text_lines(path)
    try:
        read((line.rstrip("\r\n") for line in lines), messages)
    finally:
        lines.close()


def _unknown(path: Path) -> InputError:
    return InputError(f"Expected a chat export in a known form, got {path}; known: {KNOWN}.")
