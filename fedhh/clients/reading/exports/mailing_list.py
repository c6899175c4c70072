"""Mails of an archive in mbox form, as mailing lists offer it, by their senders' addresses."""

from __future__ import annotations

import mailbox
import re
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.parser import BytesHeaderParser
from email.policy import default
from email.utils import parseaddr
from pathlib import Path

from fedhh.clients.reading.exports.bots import is_bot
from fedhh.clients.reading.exports.messages import (
    BOT,
    LONGEST_MESSAGE,
    NO_AUTHOR,
    TOO_LONG,
    Messages,
)
from fedhh.clients.reading.tables import readable
from fedhh.system.reading import require_regular
from fedhh.validation import InputError

LARGEST_ARCHIVE = 2**31
"""Of bytes."""

NO_PLAIN_TEXT = "no plain text"
UNREADABLE = "unreadable"
REPEATED = "repeated message"

_LARGEST_MAIL = 8 * LONGEST_MESSAGE
# How archives hide addresses: "ana at example.org (Ana)".
_HIDDEN = re.compile(r"\s*([^\s()<>@]{1,64}) (?:at|AT) ([^\s()<>@]{1,255})\s*(?:\((.*)\))?\s*$")
# What the package raises for damaged headers, encodings and parts; LookupError: a character set
# that nobody knows.
_DAMAGED = (AttributeError, LookupError, MessageError, RecursionError, TypeError, ValueError)


def read_mbox(path: Path, messages: Messages) -> None:
    """Add the plain text of an archive's mails; of mails with the same Message-ID, the first.

    Raises:
        InputError: The file is missing, no regular one, too large, unreadable or no mbox.
    """
    require_regular(path)
    size = path.stat().st_size
    if size > LARGEST_ARCHIVE:
        raise InputError(
            f"Expected an archive of at most {LARGEST_ARCHIVE:,} bytes, got {size:,} in {path}; "
            "split it between two mails."
        )
    with readable(path):
        with path.open("rb") as file:
            begins = file.read(5)
        if begins != b"From ":
            raise InputError(
                f"Expected an archive in mbox form, which begins with 'From ', got {path}; unpack "
                "it if it is packed."
            )
        known: set[str] = set()
        archive = mailbox.mbox(path.absolute(), create=False)
        try:
            for key in archive.iterkeys():
                with archive.get_file(key) as mail:
                    _add(mail.read(_LARGEST_MAIL + 1), messages, known)
        finally:
            archive.close()


def _add(content: bytes, messages: Messages, known: set[str]) -> None:
    if len(content) > _LARGEST_MAIL:
        messages.drop(TOO_LONG)
        return
    try:
        mail = message_from_bytes(content, policy=default)
        name, address = _hidden_sender(content) or parseaddr(str(mail.get("From", "")))
        identity = str(mail.get("Message-ID", "")).strip()
        automatic = str(mail.get("Auto-Submitted", "no")).strip().lower() != "no"
        part = mail.get_body(preferencelist=("plain",))
        text = None if part is None else str(part.get_content())
    except _DAMAGED:
        messages.drop(UNREADABLE)
        return
    if identity and identity in known:
        messages.drop(REPEATED)
        return
    known.add(identity)
    messages.meet(name, address)
    if "@" not in address:
        messages.drop(NO_AUTHOR)
    elif automatic or is_bot(name, address):
        messages.drop(BOT)
    elif text is None:
        messages.drop(NO_PLAIN_TEXT)
    else:
        messages.add(address, text, name=name, address=address)


def _hidden_sender(content: bytes) -> tuple[str, str] | None:
    """Return the name and the address that an archive has hidden, None if it has not.

    Of the header as it stands: that is no address to the package, which would mend it.
    """
    header = str(BytesHeaderParser().parsebytes(content).get("From", ""))
    hidden = _HIDDEN.match(header)
    if hidden is None:
        return None
    name = str(make_header(decode_header(hidden.group(3) or "")))
    return name, f"{hidden.group(1)}@{hidden.group(2)}"
