"""Files and directories: written whole or not at all, and whether one is there."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedhh.system.stopping import before_leaving

_unfinished: set[Path] = set()


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
        unfinished = path.with_name(f".{secrets.token_hex(8)}{''.join(path.suffixes)}")
        with _renamed(unfinished, path) as temporary:
            yield temporary
    except OSError as error:
        # Writing to a full disk fails without a name.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def require_replaceable(path: Path) -> None:
    """Raise OSError unless a file can take a path: nothing stands there, or a regular file.

    To rename over a device or a FIFO would replace it. Links are followed.
    """
    for place in path.parents:
        if is_there(place):
            if not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
            break
    if not is_there(path) or path.is_file():
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise PermissionError(errno.EPERM, "Neither absent nor a regular file", str(path))


@contextmanager
def whole_directory(path: Path) -> Iterator[Path]:
    """Yield an empty directory next to ``path``, renamed to it on success and removed on failure.

    Raises:
        OSError: It cannot be made or renamed; where something stands at ``path``, too.
    """
    before_leaving(_remove_unfinished)
    unfinished = path.with_name(f".{secrets.token_hex(8)}")
    _unfinished.add(unfinished)
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        _unfinished.discard(unfinished)


@contextmanager
def _renamed(temporary: Path, path: Path) -> Iterator[Path]:
    before_leaving(_remove_unfinished)
    # Known before it is there: a signal may come in between.
    _unfinished.add(temporary)
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def _remove_unfinished() -> None:
    for temporary in tuple(_unfinished):
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


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
