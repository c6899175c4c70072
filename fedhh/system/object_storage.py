"""Files in object storage, by addresses such as ``s3://bucket/words``: copied here, then read.

Addresses are those of Arrow's file systems (``s3://``, ``gs://``, ``hdfs://``, with their options
as a query). Credentials are in the usual places: environment variables and files.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fedhh.system.files import whole_directory
from fedhh.system.kept import cache_directory
from fedhh.validation import InputError, shown

if TYPE_CHECKING:
    import pyarrow.fs as pafs

# Of a path, one of the slashes is lost; a single letter is a drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?!/)(.+)", re.ASCII | re.DOTALL)
_SECRET = re.compile(r"[a-z0-9+.-]+://[^/@?]*:[^/@?]*@")
_AT_ONCE = 2**24
_RETRIED_SECONDS = 30
"""How long Google's storage is asked again; Arrow does so for many minutes otherwise."""


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file in object storage.

    Attributes:
        path: In its file system.
        name: Below the address, with slashes; empty where the address is the file's.
        bytes: Its size.
        changed: When it was last written, in nanoseconds; -1 if that is not known.
    """

    path: str
    name: str
    bytes: int
    changed: int


def as_address(source: str | Path) -> str | None:
    """Return an address, also of a path made of it; None for other paths.

    It is as it is written, with its file system in small letters, as Arrow knows it.

    >>> as_address(Path("S3://bucket/Words")), as_address("words.csv"), as_address("mine:Clients")
    ('s3://bucket/Words', None, None)
    """
    found = _ADDRESS.fullmatch(str(source))
    return None if found is None else f"{found[1].lower()}://{found[2]}"


def place_of(address: str) -> str:
    """Return an address without its options.

    >>> place_of("s3://bucket/words?region=eu-west-1")
    's3://bucket/words'
    """
    return address.partition("?")[0]


def remote_files(address: str) -> list[RemoteFile]:
    """Return the files below an address, by name, or the one that it is.

    Raises:
        InputError: It cannot be reached, or nothing is there.
    """
    with _reached(address):
        system, root = _system(address)
        found = _listed(system, root)
    if not found:
        raise InputError(f"Expected files at {shown(address)}, found none; check the address.")
    return found


def local_copy(address: str) -> Path:
    """Return a copy of what is at an address, a file or a directory, in the user's cache directory.

    It is copied once for each content, by its names, sizes and times, and appears whole.

    Raises:
        InputError: As `remote_files`, or it cannot be written.
    """
    files = remote_files(address)
    digest = hashlib.sha256(repr((address, files)).encode()).hexdigest()[:32]
    folder = cache_directory() / "copies" / digest
    # A file's own name is empty below its address.
    there = folder / PurePosixPath(files[0].path.removesuffix(files[0].name)).name
    if there.exists():
        return there
    try:
        with whole_directory(folder) as unfinished:
            for file in files:
                _copy(address, file, unfinished / there.name / file.name)
    except OSError as error:
        # Another process may have been quicker.
        if not there.exists():
            raise InputError(
                f"Expected a directory that can be written, got {folder}: "
                f"{error.strerror or error}."
            ) from None
    return there


@contextmanager
def temporary_copy(address: str, file: RemoteFile, folder: Path) -> Iterator[Path]:
    """Yield a copy of a file below an address, in a folder, as long as it is read."""
    place = folder / secrets.token_hex(8)
    copy = place / PurePosixPath(file.path).name
    try:
        _copy(address, file, copy)
        yield copy
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _copy(address: str, file: RemoteFile, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as copy, _reached(address):
        system, _ = _system(address)
        with system.open_input_stream(file.path) as stream:
            shutil.copyfileobj(stream, copy, _AT_ONCE)


def _listed(system: pafs.FileSystem, root: str) -> list[RemoteFile]:
    import pyarrow.fs as pafs

    at = system.get_file_info(root)
    if at.type == pafs.FileType.NotFound:
        return []
    if at.type == pafs.FileType.File:
        return [_remote(at, "")]
    below = system.get_file_info(pafs.FileSelector(root, recursive=True))
    found = [
        _remote(info, info.path.removeprefix(root.rstrip("/") + "/"))
        for info in below
        if info.type == pafs.FileType.File
    ]
    return sorted(found, key=lambda file: file.name)


def _remote(info: pafs.FileInfo, name: str) -> RemoteFile:
    changed = -1 if info.mtime_ns is None else info.mtime_ns
    return RemoteFile(path=info.path, name=name, bytes=info.size, changed=changed)


def _system(address: str) -> tuple[pafs.FileSystem, str]:
    """Return an address's file system, and the path in it."""
    import pyarrow as pa
    import pyarrow.fs as pafs

    if _SECRET.match(address):
        raise InputError(
            "Expected an address without a password, which would be kept with every result, got "
            "one before an @; put it in the environment, such as AWS_SECRET_ACCESS_KEY."
        )
    try:
        found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(_limited(address))
    except pa.ArrowInvalid as problem:
        if "Unrecognized filesystem" not in str(problem):
            raise
        raise InputError(
            f"Expected an address of Arrow's file systems, such as s3:// or gs://, got "
            f"{shown(address)}; copy the files here."
        ) from None
    return found


def _limited(address: str) -> str:
    """Return an address whose retries end, if it says nothing of them itself."""
    option = "retry_limit_seconds"
    if not address.startswith(("gs://", "gcs://")) or f"{option}=" in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}{option}={_RETRIED_SECONDS}"


@contextmanager
def _reached(address: str) -> Iterator[None]:
    """Turn what a file system or its network says into one line."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, ImportError, pa.ArrowException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise InputError(
            f"Expected an address that can be read, got {shown(address)}: {reason}."
        ) from None
