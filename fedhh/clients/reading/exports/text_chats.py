"""Chats as text: WhatsApp's exports in its many local forms, and messages copied from Telegram.

A message begins with a line that has a date and a time where the program puts them; lines without
go on with the message before. What stands there is written in the phone's language, so that a
rule looks at the form of a line, and only as a last resort at words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from fedhh.clients.reading.exports.cleaning import QUOTED
from fedhh.clients.reading.exports.messages import (
    DELETED,
    FORWARDED,
    LONGEST_MESSAGE,
    MEDIA,
    NO_AUTHOR,
    SYSTEM,
    TOO_LONG,
    Messages,
)

_UNSEEN = "\u200e\u200f\u202a\u202b\u202c\ufeff"
_DATE = r"[0-9]{1,4}[./-] ?[0-9]{1,2}[./-] ?[0-9]{1,4}\.?"
_HALF_OF_DAY = r"[ap]\.?\s?m\.?|[^\W\d_]{1,12}\.?"
_TIME = (
    r"(?:[^\W\d_]{1,4}\s?)?[0-9]{1,2}[:.][0-9]{2}(?:[:.][0-9]{2})?"
    rf"(?:\s?(?:{_HALF_OF_DAY}))?"
)
# "12/31/20, 10:15 PM - " of Android, "[31.12.20, 22:15:03] " of iOS; a blank may be a narrow one.
_WHATSAPP = re.compile(
    rf"[{_UNSEEN}]*(?:{_DATE},?\s{{1,2}}{_TIME}\s[-\u2013]\s|\[{_DATE},?\s{{1,2}}{_TIME}\]\s)",
    re.IGNORECASE,
)
_SENDER = re.compile(rf"[{_UNSEEN}]*(?:~\s?)?([^:\n]{{1,100}}):(?:\s|$)")
_QUOTES = re.compile('[\u201c\u201d\u201e\u00ab\u00bb"]')
_OMITTED = re.compile(
    r"<[^<>]{3,60}>$|.{1,200}\.[a-z0-9]{2,4} \([^()]{3,40}\)$|null$"
    r"|(?:image|video|audio|sticker|gif|document|contact card) omitted$",
    re.IGNORECASE,
)
_DELETED = re.compile(
    r"(?:this message was deleted|you deleted this message|diese nachricht wurde gelöscht|"
    r"du hast diese nachricht gelöscht|se eliminó este mensaje|eliminaste este mensaje|"
    r"ce message a été supprimé|vous avez supprimé ce message|questo messaggio è stato eliminato|"
    r"esta mensagem foi apagada|mensagem apagada)",
    re.IGNORECASE,
)
_EDITED = re.compile(rf"\s*[{_UNSEEN}]*<[^<>]{{3,60}}>\s*$")

# "Ana, [31.12.2020 22:15]" of the desktop, "Ana, [31 Dec 2020 at 22:15:03]:" of macOS.
_TELEGRAM = re.compile(
    r"(.{1,100}), \[(?=[^\[\]]*[0-9])[^\[\]]{0,30}?\b[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
    r"[^\[\]]{0,10}\]:?\s*$"
)
_IN_REPLY = re.compile(r"\[In reply to [^\]]{0,200}\]\s*$")
_FORWARDED = re.compile(r"\[?Forwarded from [^\]]{0,200}\]?\s*$")
_PICTURE = re.compile(
    r"\[\s*(?:Photo|Video|Sticker|Voice message|File|Audio|GIF|Album|Poll)\b.{0,80}\]"
)


def reader_of(head: Sequence[str]) -> Callable[[Iterable[str], Messages], None] | None:
    """Return what reads a text with these first lines; None if no message begins in them."""
    for line in head:
        if _WHATSAPP.match(line):
            return read_whatsapp
        if _TELEGRAM.match(line):
            return read_telegram_copy
    return None


def read_whatsapp(lines: Iterable[str], messages: Messages) -> None:
    """Add the messages of an export of WhatsApp's.

    A line with a date and without a sender is the program's own, and so is what a mark of writing
    direction begins, which the program sets before its words.
    """
    for begin, text, is_too_long in _whole_messages(lines, _WHATSAPP):
        sender = _SENDER.match(text)
        if begin is None:
            messages.drop(NO_AUTHOR)
            continue
        if sender is None or _QUOTES.search(sender.group(1)):
            messages.drop(SYSTEM)
            continue
        name = sender.group(1).strip(_UNSEEN + " \u00a0\u202f")
        after = text[sender.end() :]
        typed = after.strip().strip(_UNSEEN)
        reason = _reason(after, typed) if not is_too_long else TOO_LONG
        if reason != SYSTEM:
            messages.meet(name)
        if reason:
            messages.drop(reason)
        else:
            messages.add(name, _EDITED.sub("", typed), name=name)


def _reason(after: str, typed: str) -> str:
    """Return why what follows a sender was typed by nobody; nothing if somebody did."""
    if _DELETED.match(typed):
        return DELETED
    if _OMITTED.match(typed):
        return MEDIA
    return SYSTEM if after.startswith(tuple(_UNSEEN)) else ""


def read_telegram_copy(lines: Iterable[str], messages: Messages) -> None:
    """Add messages that were copied from Telegram's window, as text."""
    for begin, whole, is_too_long in _whole_messages(lines, _TELEGRAM):
        # Nothing stands behind a header.
        text = whole.removeprefix("\n")
        first, _, rest = text.partition("\n")
        if begin is None:
            messages.drop(NO_AUTHOR)
        elif is_too_long:
            messages.drop(TOO_LONG)
        elif _FORWARDED.match(first):
            messages.drop(FORWARDED)
        elif _PICTURE.match(first) and not rest.strip():
            messages.drop(MEDIA)
        else:
            is_reply = _IN_REPLY.match(first) is not None
            messages.taken_out.update([QUOTED] if is_reply else [])
            messages.add(begin.group(1), rest if is_reply else text, name=begin.group(1))


def _whole_messages(
    lines: Iterable[str], header: re.Pattern[str]
) -> Iterator[tuple[re.Match[str] | None, str, bool]]:
    """Yield each message's header, its text, and whether that is too long and not whole.

    There is no header for what stands before the first one.
    """
    begin: re.Match[str] | None = None
    held: list[str] = []
    size = 0
    for line in lines:
        found = header.match(line)
        if found is None:
            if size <= LONGEST_MESSAGE:
                held.append(line)
                size += len(line) + 1
            continue
        if begin is not None or any(each.strip() for each in held):
            yield begin, "\n".join(held), size > LONGEST_MESSAGE
        begin, held = found, [line[found.end() :]]
        size = len(held[0])
    if begin is not None or any(each.strip() for each in held):
        yield begin, "\n".join(held), size > LONGEST_MESSAGE
