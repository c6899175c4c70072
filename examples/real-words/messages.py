"""Commit messages and mails as a CSV of user and text, for `fedhh data prepare` and `fedhh run`.

    python examples/real-words/messages.py --git ~/src/project --mbox list.mbox messages.csv
    fedhh data prepare messages.csv words.parquet

A user is a hash of the author's address, with a random key that is not kept, or with --salt. Bots,
merges, quotes, code, diffs, trailers and signatures are left out, as are the parts of authors'
names, in everybody's texts. Rows are in the order of the hashes.
"""

from __future__ import annotations

import argparse
import csv
import mailbox
import os
import re
import secrets
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.parser import BytesHeaderParser
from email.policy import default
from email.utils import parseaddr
from hashlib import blake2b
from pathlib import Path

SHORTEST_SALT = 16  # shorter ones can be guessed, and addresses checked by them
LONGEST_TEXT = 2**20
Message = tuple[str, str, str]  # the author's name, the address, the text

BOT = re.compile(
    r"\[bot\]|(?:^|[-_. ])(?:ro)?bot$|^(?:buildbot|codecov|dependabot|gerrit|github|jenkins"
    r"|mailer-daemon|no-?reply|notifications?|patchwork-bot|postmaster|renovate|weblate|zuul)$",
    re.IGNORECASE,
)
# The clone may come from anybody: git starts no program that it names, and fetches nothing.
GIT = (
    "git", "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false", "-c", "mailmap.file=",
    "-c", "protocol.allow=never", "log", "-z", "--no-merges", "--no-show-signature", "--no-notes",
    "--no-color", "--no-patch", "--encoding=UTF-8", "--format=tformat:%aN%x00%aE%x00%B",
    "--end-of-options", "HEAD", "--",
)  # fmt: skip
# What follows one of these is not the author's typing: all of it, or what belongs to a diff.
REST = re.compile(r"-- ?$|-----BEGIN PGP SIGNATURE|-{2,}\s*(?:original|forwarded) message", re.I)
DIFF = re.compile(r"diff --git |Index: \S|@@ -\d|--- [^\s-]")
IN_DIFF = re.compile(r"[ +\-@\\]|$|index [0-9a-f]|(?:new|deleted) file|similarity|rename |diff ")
LEFT_OUT = re.compile(
    r"\s{0,3}>|\s?[A-Za-z]{1,3}>\s"  # quoted
    r"| {4}\S|\t\S"  # code
    r"|.{0,200}\b(?:wrote|writes|schrieb|écrit|escribió|ha scritto|escreveu)\b.{0,100}:\s*$"
    r"|\s{0,3}(?:[A-Za-z]+(?:-[A-Za-z]+)*-by|cc|fixes|closes|resolves|refs?|link|change-id"
    r"|reviewed-on|pull[- ]request|git-svn-id):(?:\s|\S+$)"  # trailers
    r"|\(?cherry[- ]picked from commit|This reverts commit|Hash: SHA|-----BEGIN PGP SIGNED",
    re.IGNORECASE,
)
FENCE = re.compile(r"\s*(?:```|~~~)")
PIECES = re.compile(r"`[^`]+`|\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b")
WORD = re.compile(r"[^\W_]+")
# Words that names share with every text.
ORDINARY = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "go",
    "had", "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "is", "it", "its",
    "just", "long", "may", "me", "more", "my", "new", "no", "not", "now", "of", "on", "or", "our",
    "out", "she", "so", "some", "that", "the", "their", "them", "then", "they", "this", "to",
    "up", "us", "was", "we", "what", "when", "will", "with", "you", "your",
})  # fmt: skip


def git_messages(directory: Path) -> Iterator[Message]:
    """Yield the messages of the commits that lead to HEAD, merges left out."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": str(directory.resolve().parent),
        "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }  # fmt: skip
    done = subprocess.run(
        GIT,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise ValueError(f"Expected a git clone with commits, got {directory}: {said}.")
    fields = iter(done.stdout.decode(errors="replace").split("\0")[:-1])
    yield from zip(fields, fields, fields, strict=True)


def mails(path: Path) -> Iterator[Message]:
    """Yield the plain text of an archive's mails; of those with one Message-ID, the first."""
    with path.open("rb") as file:
        if file.read(5) != b"From ":
            raise ValueError(f"Expected an unpacked archive in mbox form, got {path}.")
    known: set[str] = set()
    with closing(mailbox.mbox(path.absolute(), create=False)) as archive:
        for key in archive.iterkeys():
            try:
                name, address, identity, text = mail_of(archive.get_bytes(key))
            except (
                AttributeError,
                LookupError,
                MessageError,
                RecursionError,
                TypeError,
                ValueError,
            ):
                continue  # damaged
            if not (identity and identity in known):
                known.add(identity)
                yield name, address, text


def mail_of(content: bytes) -> tuple[str, str, str, str]:
    """Return a mail's sender, Message-ID and plain text; no text of what a machine answered."""
    mail = message_from_bytes(content, policy=default)
    # Archives hide addresses: "ana at example.org (Ana)".
    raw = BytesHeaderParser().parsebytes(content).get("From", "")
    hidden = re.match(r"\s*([^\s()<>@]+) at ([^\s()<>@]+)\s*(?:\((.*)\))?\s*$", str(raw))
    name, address = parseaddr(str(mail.get("From", "")))
    if hidden:
        name, address = str(make_header(decode_header(hidden[3] or ""))), f"{hidden[1]}@{hidden[2]}"
    automatic = str(mail.get("Auto-Submitted", "no")).strip().lower() != "no"
    part = None if automatic else mail.get_body(preferencelist=("plain",))
    text = "" if part is None else str(part.get_content())
    return name, address, str(mail.get("Message-ID", "")).strip(), text


def prose(text: str) -> str:
    """Return what of a message its author typed as prose."""
    kept: list[str] = []
    in_code = in_diff = False
    for line in text.splitlines():
        if FENCE.match(line):
            in_code = not in_code
            continue
        in_diff = bool(DIFF.match(line)) or (in_diff and bool(IN_DIFF.match(line)))
        if REST.match(line):
            break
        if not (in_code or in_diff or LEFT_OUT.match(line)):
            kept.append(PIECES.sub(" ", line))
    return "\n".join(kept).strip()


def plain(text: str) -> str:
    """Return a text in the form in which authors and words are compared."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def rows_of(messages: Iterable[Message], key: bytes) -> tuple[list[tuple[int, str]], Counter[str]]:
    """Return users with their texts, and how many messages were kept and left out."""
    rows, names, counts = [], set(), Counter[str]()
    for name, address, text in messages:
        local = address.rpartition("@")[0].rpartition("+")[2]
        if not local or BOT.search(name) or BOT.search(local):
            counts["of bots or without an address"] += 1
            continue
        names.update(part for part in WORD.findall(plain(name)) if len(part) > 1)
        typed = prose(text) if len(text) <= LONGEST_TEXT else ""
        if not typed:
            counts["without prose"] += 1
            continue
        counts["kept"] += 1
        digest = blake2b(plain(address).encode("utf-8", "replace"), key=key, digest_size=8).digest()
        rows.append((int.from_bytes(digest, "big") >> 1, typed))
    names -= ORDINARY

    def without_names(text: str) -> str:
        return WORD.sub(lambda word: "" if plain(word[0]) in names else word[0], text)

    ordered = sorted(rows, key=lambda row: row[0])
    return [(user, without_names(text)) for user, text in ordered], counts


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--git", type=Path, action="append", default=[], help="a clone")
    parser.add_argument("--mbox", type=Path, action="append", default=[], help="an archive")
    parser.add_argument("--salt", help="of the hashes, for files to be joined; secret")
    parser.add_argument("out", type=Path, help="a new CSV file")
    asked = parser.parse_args(arguments)
    try:
        if asked.salt is not None and len(asked.salt) < SHORTEST_SALT:
            raise ValueError(f"Expected a salt of at least {SHORTEST_SALT} symbols.")
        salt = secrets.token_bytes(32) if asked.salt is None else asked.salt.encode()
        key = blake2b(salt, digest_size=32).digest()
        read = [*map(git_messages, asked.git), *map(mails, asked.mbox)]
        rows, counts = rows_of((message for each in read for message in each), key)
        if not rows:
            raise ValueError("Expected a message of a person, got none; name --git or --mbox.")
        with asked.out.open("x", encoding="utf-8", errors="replace", newline="") as file:
            csv.writer(file).writerows([("user", "text"), *rows])
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    authors = len({user for user, _ in rows})
    print(
        f"{authors:,} authors; " + ", ".join(f"{n:,} messages {why}" for why, n in counts.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
