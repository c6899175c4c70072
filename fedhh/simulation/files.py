"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedhh.simulation.stopping import before_leaving

_unfinished: set[Path] = set()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, renamed to it on success and removed on failure.

    The temporary name keeps the suffix, since writers choose their format by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(
        prefix=f".{path.stem}-", suffix="".join(path.suffixes), dir=path.parent
    )
    os.close(descriptor)
    temporary = Path(name)
    before_leaving(_remove_unfinished)
    _unfinished.add(temporary)
    try:
        yield temporary
        # mkstemp makes files that only their owner may read; results are ordinary files.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def _remove_unfinished() -> None:
    for temporary in tuple(_unfinished):
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
