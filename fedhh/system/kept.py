"""What takes seconds to make and is always the same: kept on disk, never needed.

It stands in the user's cache directory, in files that are written whole and whose names say all
they depend on. Whatever goes wrong costs making it again.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from fedhh.system.files import whole_file

_MOST_KEPT = 64
"""Texts, the newest ones; each may have some 10 MB."""

_log = logging.getLogger(__name__)


def kept_text(
    name: str, made_of: bytes, make: Callable[[], str], sources: Iterable[Traversable] = ()
) -> str:
    """Return a text, from the disk if it is there.

    The file is called by ``name`` and a digest of ``made_of`` and what files hold, all that the
    text depends on.
    """
    digest = hashlib.sha256(made_of)
    try:
        for source in sources:
            content = source.read_bytes()
            digest.update(len(content).to_bytes(8, "little") + content)
    except OSError:  # They may be packed in a way that cannot be read.
        return make()
    path = cache_directory() / f"{name}-{digest.hexdigest()[:32]}.txt"
    with suppress(OSError, UnicodeDecodeError):  # Mostly, it is not there.
        if text := path.read_bytes().decode():
            return text
    text = make()
    keep(path, text.encode())
    with suppress(OSError):
        for old in sorted(path.parent.glob("*.txt"), key=os.path.getmtime)[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)
    return text


def keep(path: Path, content: bytes) -> None:
    """Write a file if it can be written; a process says once for each folder why it cannot."""
    try:
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        _say_once(f"Nothing is kept in {path.parent}, so it is made again: {error.strerror}")


@cache
def _say_once(text: str) -> None:
    _log.info("%s", text)


def cache_directory() -> Path:
    """Return the user's cache directory, or ``NUMBA_CACHE_DIR``: one place for all that is kept."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / "fedhh"
    # Imported late: only those that draw clients need it.
    from platformdirs import user_cache_path

    return user_cache_path("fedhh", appauthor=False)
