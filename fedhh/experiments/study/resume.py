"""What a resume goes on with: whose a directory is, and whether there is anything left to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from fedhh.experiments.config.toml_file import read_toml
from fedhh.experiments.study.directory import CONFIG, RESULT, check_directory, fill_directory
from fedhh.experiments.study.stored_files import read_json
from fedhh.system.files import is_there, write_text
from fedhh.system.reading import require_regular
from fedhh.validation import InputError

IDENTITY = "identity.json"


class Resumable(Protocol):
    """A configuration whose results a key identifies."""

    @property
    def result_key(self) -> str:
        """Hash of everything that makes the result."""

    @property
    def execution(self) -> Any:
        """How fast."""

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return it with some parts changed."""


ConfigT = TypeVar("ConfigT", bound=Resumable)


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
    """
    path = directory / IDENTITY
    if not resume:

        def write_all() -> None:
            write()
            # Last: what has it is whole.
            write_text(path, json.dumps(identity, indent=2) + "\n")

        check_directory(directory)
        fill_directory(directory, write_all)
        return
    _require_there(path, what)
    require_same(directory, identity, read_json(path), what=what)


def require_same(
    directory: Path, asked: Mapping[str, Any], stored: Mapping[str, Any], *, what: str
) -> None:
    """Raise InputError unless what is asked for makes the results that a directory is for."""
    if asked != stored:
        changed = [key for key in {**asked, **stored} if stored.get(key) != asked.get(key)]
        raise InputError(
            f"{directory} holds another {what} (differs in: {', '.join(changed)}), and results of "
            "two must not be mixed; resume it without changes, or give another --out."
        )


def resumed_directory(out: Path | None, *, what: str) -> Path:
    """Return the directory to go on with; InputError if none is given."""
    if out is None:
        raise InputError(
            f"Expected --out DIR with --resume: the directory of the {what} to go on with."
        )
    return out


def require_unfinished(directory: Path, *, what: str) -> None:
    """Raise InputError if a directory's `RESULT` says that nothing is left to do."""
    if is_there(directory / RESULT):
        raise InputError(f"The {what} in {directory} is finished; there is nothing to resume.")


def resumed(asked: ConfigT, stored: ConfigT, directory: Path, *, what: str) -> ConfigT:
    """Return the stored configuration, executed as asked; InputError if results would differ."""
    require_unfinished(directory, what=what)
    require_same(
        directory,
        {"configuration": asked.result_key},
        {"configuration": stored.result_key},
        what=what,
    )
    return stored.model_copy(update={"execution": asked.execution})


def stored_toml(directory: Path, name: str = CONFIG, *, what: str) -> dict[str, Any]:
    """Return the configuration that a directory holds."""
    _require_there(directory / name, what)
    return read_toml(directory / name)


def _require_there(path: Path, what: str) -> None:
    if not is_there(path):
        raise InputError(f"{path.parent} holds no {what} to resume: {path} is missing.")


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    try:
        require_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
