"""Whose a directory is: a file in it says what makes its results, and a resume compares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedhh import doors
from fedhh.experiments.run.directory import check_directory
from fedhh.experiments.run.stored_files import read_json
from fedhh.system.files import is_there, write_text
from fedhh.system.reading import require_regular
from fedhh.validation import InputError

IDENTITY = "identity.json"


def open_directory(
    directory: Path,
    identity: Mapping[str, Any],
    *,
    resume: bool,
    what: str,
    write: Callable[[], None],
) -> None:
    """Make a directory with an identity, or make sure that it has this one.

    Args:
        directory: Where.
        identity: What makes its results, as JSON; its keys are named where a resume differs.
        resume: Whether it should be there already.
        what: What it holds, as a noun.
        write: Writes what else is there from the start.

    Raises:
        InputError: The directory holds something else, or cannot be written.
    """
    path = directory / IDENTITY
    if not resume:
        check_directory(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            doors.save_sources(directory)
            write()
            # Last: what has it is whole.
            write_text(path, json.dumps(identity, indent=2) + "\n")
        except OSError as error:
            raise InputError(f"Cannot write to {directory}: {error.strerror}.") from None
        return
    if not is_there(path):
        raise InputError(f"{directory} holds no {what} to resume: {path} is missing.")
    stored = read_json(path)
    if stored != identity:
        changed = [key for key in identity if stored.get(key) != identity[key]]
        raise InputError(
            f"{directory} holds another {what} (differs in: {', '.join(changed)}), and results of "
            "two must not be mixed; resume it without changes, or give another --out."
        )


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal.

    Raises:
        InputError: It cannot be read.
    """
    try:
        require_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
