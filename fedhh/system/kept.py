"""Text that takes seconds to make and is always the same: kept on disk, never needed.

As compiled code (`fedhh.kernels.cache`, by the same functions) it stands in the user's cache
directory. A file's name says all that the text depends on, it is written whole, and read back only
if its checksum holds. Whatever goes wrong costs making it again.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

from fedhh.system.files import whole_file

_CHECKSUM_BYTES = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)


def kept_text(name: str, made_of: bytes, make: Callable[[], str]) -> str:
    """Return a text, from the disk if it is there.

    The file is called by ``name`` and a digest of ``made_of``, all that the text depends on.
    """
    path = cache_directory() / f"{name}-{hashlib.sha256(made_of).hexdigest()[:32]}.txt"
    try:
        return read_kept(path).decode()
    except OSError:  # Mostly, it is not there. What else is wrong is said on saving.
        pass
    except ValueError:
        _log.info("%s is damaged, so it is made again", path)
    text = make()
    try:
        write_kept(path, text.encode())
    except OSError as error:
        _log.info("%s is not kept, so it is made again: %s", name, error.strerror)
    return text


def read_kept(path: Path) -> bytes:
    """Return what `write_kept` wrote to a file; ValueError if its checksum does not hold."""
    content = path.read_bytes()
    checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if hashlib.sha256(payload).digest() != checksum:
        raise ValueError(f"{path} is damaged.")
    return payload


def write_kept(path: Path, payload: bytes) -> None:
    """Write a file whole, with a checksum in front."""
    with whole_file(path) as temporary:
        temporary.write_bytes(hashlib.sha256(payload).digest() + payload)


def cache_directory() -> Path:
    """Return the user's cache directory, or ``NUMBA_CACHE_DIR``: one place for all that is kept."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / "fedhh"
    # Imported late: only those that draw clients need it.
    from platformdirs import user_cache_path

    return user_cache_path("fedhh", appauthor=False)
