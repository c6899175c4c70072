"""Locks of files and directories, which the system takes back from a process that ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedhh.validation import InputError

if sys.platform != "win32":
    import fcntl


def take(path: Path) -> int | None:
    """Return a descriptor that holds the lock of what stands at a path until it is closed.

    None where the system or the file system knows no locks.

    Raises:
        BlockingIOError: Somebody else holds it.
        OSError: It cannot be opened.
    """
    if sys.platform == "win32":
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(error.errno, error.strerror, str(path)) from None
        return None
    return descriptor


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Be the only one that makes results in a directory, where its file system knows locks.

    Raises:
        InputError: Somebody else does.
    """
    try:
        descriptor = take(directory.resolve())
    except BlockingIOError:
        raise InputError(
            f"{directory} belongs to a command that is still running; wait for its end or stop "
            "it, or give another --out."
        ) from None
    except OSError:
        # What is wrong with it is said by whoever reads or writes.
        descriptor = None
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
