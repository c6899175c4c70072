"""Makes the report that the site shows: a small run and its baseline, as users make it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fedhh

RUN = ("run", "--preset", "small", "--workers", "0", "--quiet", "--out")
"""What `fedhh` is asked for; the directory follows."""


def write(folder: Path) -> Path:
    """Run, and write the page into a folder; return the page."""
    page = folder / "explorer-example.html"
    run = folder.parent / f"{folder.name}-run"
    if not (run / "result.json").exists():
        _fedhh(*RUN, str(run))
    folder.mkdir(parents=True, exist_ok=True)
    _fedhh("report", str(run), "--out", str(page))
    return page


def _fedhh(*words: str) -> None:
    # The package that these pages are about, wherever it was imported from.
    environment = os.environ | {"PYTHONPATH": str(Path(fedhh.__file__).parent.parent)}
    command = [sys.executable, "-m", "fedhh", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def setup(app: Any) -> dict[str, bool]:
    """Have the page made, and copied next to the site's own."""
    folder = Path(app.confdir) / "_build" / ".explorer"
    # Paths to copy are looked at before anything is built.
    app.connect("config-inited", lambda *_: write(folder))
    return {"parallel_read_safe": True}
