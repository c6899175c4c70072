"""Files and directories: written whole or not at all, owned by one process, and which are there."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fedhh.system.stopping import before_leaving
from fedhh.validation import InputError

_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
"""A lock may hold on one machine alone, though others have the file system, too."""
_PREFIX = f".fedhh-{_MACHINE}-"

_unfinished: set[Path] = set()
_tidied: set[Path] = set()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path``, renamed to it on success and removed on failure.

    The temporary name keeps the suffix, since writers choose their format by it.

    Raises:
        OSError: The file cannot be written, or not to its end; it names ``path``. PermissionError
            where something else than a regular file stands there, such as a device.
    """
    require_replaceable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _unfinished_next_to(path, Path.touch) as temporary:
            yield temporary
            os.replace(temporary, path)
    except OSError as error:
        # Writing to a full disk fails without a name.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def require_replaceable(path: Path) -> None:
    """Raise PermissionError unless a file can take a path: nothing or a regular file stands there.

    To rename over a device or a FIFO would replace it. Links are followed.
    """
    if is_there(path) and not path.is_file():
        raise PermissionError(errno.EPERM, "Neither absent nor a regular file", str(path))


@contextmanager
def whole_directory(path: Path) -> Iterator[Path]:
    """Yield an empty directory next to ``path``, renamed to it on success and removed on failure.

    Raises:
        OSError: It cannot be made or renamed; where something stands at ``path``, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _unfinished_next_to(path, Path.mkdir) as unfinished:
        yield unfinished
        unfinished.rename(path)


def is_unfinished(path: Path) -> bool:
    """Return whether a name is one of this machine's files and directories that are being written.

    Where their process was killed, nobody is left who renames them.
    """
    return path.name.startswith(_PREFIX)


@contextmanager
def _unfinished_next_to(path: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield what is made under a temporary name, locked, and remove it if that is still there."""
    before_leaving(_remove_unfinished)
    _tidy(path.parent)
    temporary = path.with_name(f"{_PREFIX}{secrets.token_hex(8)}{''.join(path.suffixes)}")
    # Known before it is there: a signal may come in between.
    _unfinished.add(temporary)
    with ExitStack() as held:
        try:
            make(temporary)
            with suppress(OSError):
                held.enter_context(_locked(temporary))
            yield temporary
        finally:
            _remove(temporary)
            _unfinished.discard(temporary)


def _tidy(folder: Path) -> None:
    """Remove what processes of this machine that were killed have left unfinished in a folder.

    Looked for once by a process. What is being written is locked, and stays; all of it does where
    the file system knows no locks.
    """
    if folder in _tidied:
        return
    _tidied.add(folder)
    with suppress(OSError):
        for each in set(filter(is_unfinished, folder.iterdir())) - _unfinished:
            with suppress(OSError), _locked(each):
                _remove(each)


def _remove_unfinished() -> None:
    for temporary in tuple(_unfinished):
        _remove(temporary)


def _remove(temporary: Path) -> None:
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.unlink(missing_ok=True)


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Be the only one that makes results in a directory, where its file system knows locks.

    Raises:
        InputError: Somebody else does.
    """
    with ExitStack() as held:
        try:
            held.enter_context(_locked(directory.resolve()))
        except BlockingIOError:
            raise InputError(
                f"{directory} belongs to a command that is still running; wait for its end or stop "
                "it, or give another --out."
            ) from None
        except OSError:
            pass  # What is wrong with it is said by whoever reads or writes.
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of what stands at a path; the system takes it back from a process that ends.

    Raises:
        BlockingIOError: Somebody else holds it.
        OSError: It cannot be opened, or its file system knows no locks.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def is_there(path: Path) -> bool:
    """Return whether something stands at a path that a user may have given.

    A path that cannot be, such as one with a name that is too long, is one where nothing stands.
    """
    # os.path answers so; pathlib raises.
    return os.path.exists(path)


def require_absent(path: Path, kind: str = "file") -> None:
    """Raise InputError unless nothing stands at a path, and something could."""
    if is_there(path):
        raise InputError(f"Expected a path where nothing stands, got {path}; name another one.")
    # Of a name that is too long, pathlib raises.
    if not os.path.isdir(path.parent):
        raise unwritable(path, os.strerror(errno.ENOENT), kind)


def unwritable(path: Path, reason: str, kind: str = "file") -> InputError:
    """Return the one line for a file or a directory that cannot be written."""
    return InputError(f"Expected a {kind} that can be written, got {path}: {reason}.")
