"""Links to other projects' documentation without asking the network for their inventories.

A text file for each project in ``docs/_inventories`` has its address in the first line, and then
the names that fedhh's docstrings use: name, role, page. Intersphinx reads inventories from disk in
Sphinx's own format, which is made from these.
"""

from __future__ import annotations

import zlib
from pathlib import Path


def compiled(folder: Path, into: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for each text file, and return Sphinx's ``intersphinx_mapping``."""
    into.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for file in sorted(folder.glob("*.txt")):
        address, *lines = file.read_text(encoding="utf-8").splitlines()
        entries = [line.split() for line in lines]
        body = "".join(f"{name} {role} 1 {page} -\n" for name, role, page in entries)
        head = (
            "# Sphinx inventory version 2\n"
            f"# Project: {file.stem}\n"
            "# Version: \n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        inventory = into / f"{file.stem}.inv"
        inventory.write_bytes(head.encode() + zlib.compress(body.encode()))
        mapping[file.stem] = (address, str(inventory))
    return mapping
