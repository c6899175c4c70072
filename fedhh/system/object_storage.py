"""Files in object storage, by addresses such as ``s3://bucket/words``: copied here, then read.

Addresses are those of Arrow's file systems (``s3://``, ``gs://``, ``hdfs://``, with their options
as a query). Credentials are in the usual places: environment variables and files.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from fedhh.system.files import unwritable, whole_directory
from fedhh.system.kept import cache_directory
from fedhh.validation import InputError, reason_of, shown

# Of a path, one of the slashes is lost; a single letter is a drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?!/)(.+)", re.ASCII | re.DOTALL)
_SECRET = re.compile(r"[a-z0-9+.-]+://[^/@?]*:[^/@?]*@")
_RETRIED_SECONDS = 30
"""How long Google's storage is asked again; Arrow does so for many minutes otherwise."""


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


def remote_files(address: str) -> list[str]:
    """Return the names of the files below an address, with slashes; empty for a file's own address.

    Raises:
        InputError: It cannot be reached, or nothing is there.
    """
    return [name for name, _, _ in _listed(address)]


def local_copy(address: str) -> Path:
    """Return a copy of what is at an address, a file or a directory, in the user's cache directory.

    It is copied once for each content, by its names, sizes and times, and appears whole.

    Raises:
        InputError: As `remote_files`, or it cannot be written.
    """
    files = _listed(address)
    digest = hashlib.sha256(repr((address, files)).encode()).hexdigest()[:32]
    folder = cache_directory() / "copies" / digest
    there = folder / PurePosixPath(place_of(address)).name
    if there.exists():
        return there
    try:
        with whole_directory(folder) as unfinished:
            if files[0][0]:
                (unfinished / there.name).mkdir()
            _copy(address, "", unfinished / there.name)
    except OSError as error:
        # Another process may have been quicker.
        if not there.exists():
            raise unwritable(folder, str(error.strerror or error), "directory") from None
    return there


@contextmanager
def temporary_copy(address: str, name: str, folder: Path) -> Iterator[Path]:
    """Yield a copy of a file below an address, in a folder, as long as it is read."""
    with tempfile.TemporaryDirectory(prefix=".", dir=folder, ignore_cleanup_errors=True) as place:
        copy = Path(place) / PurePosixPath(name or place_of(address)).name
        _copy(address, name, copy)
        yield copy


def _copy(address: str, name: str, place: Path) -> None:
    import pyarrow.fs as pafs

    with _reached(address) as (system, root):
        source = f"{root}/{name}" if name else root
        pafs.copy_files(source, str(place.absolute()), source_filesystem=system)


def _listed(address: str) -> list[tuple[str, int, int | None]]:
    """Return the names, sizes and times of the files below an address, by name."""
    import pyarrow.fs as pafs

    with _reached(address) as (system, root):
        found = [system.get_file_info(root)]
        if found[0].type == pafs.FileType.Directory:
            found = system.get_file_info(pafs.FileSelector(root, recursive=True))
    files = sorted(
        (info.path.removeprefix(root).lstrip("/"), info.size, info.mtime_ns)
        for info in found
        if info.type == pafs.FileType.File
    )
    if not files:
        raise InputError(f"Expected files at {shown(address)}, found none; check the address.")
    return files


@contextmanager
def _reached(address: str) -> Iterator[tuple[Any, str]]:
    """Yield an address's file system, and the path in it; say in one line what goes wrong there."""
    import pyarrow as pa
    import pyarrow.fs as pafs

    if _SECRET.match(address):
        raise InputError(
            "Expected an address without a password, which would be kept with every result, got "
            "one before an @; put it in the environment, such as AWS_SECRET_ACCESS_KEY."
        )
    limited, option = address, "retry_limit_seconds"
    if address.startswith(("gs://", "gcs://")) and f"{option}=" not in address:
        limited += f"{'&' if '?' in address else '?'}{option}={_RETRIED_SECONDS}"
    try:
        yield pafs.FileSystem.from_uri(limited)
    except (OSError, ValueError, ImportError, pa.ArrowException) as error:
        raise InputError(
            f"Expected an address that can be read, got {shown(address)}: {reason_of(error)}."
        ) from None
