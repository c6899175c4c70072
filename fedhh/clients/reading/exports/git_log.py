"""Commit messages of a git clone, by author.

The clone may come from anybody, and its configuration names programs that git would start. So git
runs with those that `git log` can start switched off, fetches nothing, asks nothing, and takes
nothing from the environment that would lead it to another repository.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fedhh.clients.reading.exports.messages import LONGEST_MESSAGE, MERGE, Messages
from fedhh.validation import InputError, shown

_FIELDS = ("%aE", "%aN", "%cN", "%P", "%B")
_COMMAND = (
    "git", "--no-pager", "--no-replace-objects",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false",
    "-c", "mailmap.file=", "-c", "protocol.allow=never",
    "log", "-z", "--no-show-signature", "--no-notes", "--no-color", "--no-patch",
    "--encoding=UTF-8",
    f"--format=tformat:{'%x00'.join(_FIELDS)}", "--end-of-options", "HEAD", "--",
)  # fmt: skip
_LONGEST_FIELD = 8 * LONGEST_MESSAGE
_CHUNK = 2**16


def read_git(directory: Path, messages: Messages) -> None:
    """Add the commit messages that lead to HEAD, as the clone's mailmap names their authors.

    Merges are dropped: git writes their messages.

    Raises:
        InputError: The directory is no repository, git cannot read it, or there is no git.
    """
    if not directory.is_dir():
        raise InputError(f"Expected the directory of a git clone, got {directory}; check the path.")
    fields = _fields(directory)
    for address in fields:
        name, committer, parents, text = (next(fields, "") for _ in _FIELDS[1:])
        messages.meet(committer)
        messages.meet(name, address)
        if " " in parents:
            messages.drop(MERGE)
        else:
            messages.add(address or name, text, name=name, address=address)


def _fields(directory: Path) -> Iterator[str]:
    """Yield what git writes, from one NUL to the next.

    Its complaints go to a file, so that it never waits for somebody to read them.
    """
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                _COMMAND,
                cwd=directory,
                env=_environment(directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        except FileNotFoundError:
            raise InputError(
                "Expected git on the PATH for --git, found none; install it."
            ) from None
        except OSError as error:
            raise InputError(
                f"Expected a readable git clone, got {directory}: {error.strerror}."
            ) from None
        try:
            if process.stdout is not None:
                yield from _split(process.stdout, directory)
            status = process.wait()
        finally:
            process.kill()
            process.communicate()
        if status:
            complaints.seek(0)
            said = complaints.read(2_000).decode(errors="replace").strip().splitlines()
            reason = said[0].removeprefix("fatal: ").rstrip(".") if said else f"status {status}"
            raise InputError(
                f"Expected a git clone with at least one commit, got {directory}: git says "
                f"{shown(reason)}."
            )


def _split(stream: IO[bytes], directory: Path) -> Iterator[str]:
    rest = bytearray()
    while chunk := stream.read(_CHUNK):
        *whole, last = chunk.split(b"\0")
        for piece in whole:
            rest += piece
            yield rest.decode(errors="replace")
            rest.clear()
        rest += last
        if len(rest) > _LONGEST_FIELD:
            raise InputError(
                f"Expected commit messages of at most {_LONGEST_FIELD:,} bytes, got a longer one "
                f"in {directory}; leave this clone out."
            )


def _environment(directory: Path) -> dict[str, str]:
    """Return the environment without git's own variables, and with those that hold it back."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "LC_ALL": "C",
        # A directory within a repository is none itself.
        "GIT_CEILING_DIRECTORIES": str(directory.resolve().parent),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }
