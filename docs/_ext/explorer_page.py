"""Makes the report that the site shows: a small run, its baseline beside it, as users make it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

RUN = ("run", "--preset", "small", "--workers", "0", "--quiet", "--out")
"""What `fedhh` is asked for; the directory follows."""


def write(folder: Path) -> Path:
    """Run, and write the page into a folder; return the page."""
    page = folder / "explorer-example.html"
    run = folder.parent / f"{folder.name}-run"
    if not (run / "result.json").exists():
        subprocess.run([sys.executable, "-m", "fedhh", *RUN, str(run)], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "fedhh", "report", str(run), "--out", str(page)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return page


def setup(app: Any) -> dict[str, bool]:
    """Have the page made, and copied beside the site's own."""
    folder = Path(app.confdir) / "_build" / ".explorer"
    app.connect("builder-inited", lambda _: write(folder))
    return {"parallel_read_safe": True}
