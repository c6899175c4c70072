"""Virtual environments of the packages that fedhh is compared with; fedhh never depends on them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent / "peers"

REQUIREMENTS = {
    # multi-freq-ldpy imports SciPy without naming it, and hashes text, which xxhash 4 refuses.
    "multi-freq-ldpy": ["multi-freq-ldpy==0.2.5", "scipy", "xxhash==3.5.0"],
    # pure-ldp 1.2.0 makes arrays of shape None, which NumPy 2 refuses, and hashes text, which
    # xxhash 4 refuses; and it imports scikit-learn and statsmodels without naming them.
    "pure-ldp": [
        "pure-ldp==1.2.0",
        "numpy==1.26.4",
        "xxhash==3.5.0",
        "scikit-learn",
        "statsmodels",
    ],
}


def run_peer(package: str, script: str, *words: str, settings: Any) -> Any:
    """Run a script of `benchmarks.peers` in a package's own environment.

    Args:
        package: A key of `REQUIREMENTS`; its environment is made when it is first asked for.
        script: File name of the script.
        words: Its first arguments.
        settings: What it reads, as JSON.

    Returns:
        What it wrote, as JSON.
    """
    python = _environment(package)
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "settings.json", Path(folder) / "result.json"
        given.write_text(json.dumps(settings))
        subprocess.run(
            [str(python), str(PEERS / script), *words, str(given), str(result)], check=True
        )
        return json.loads(result.read_text())


def _environment(package: str) -> Path:
    """Return the interpreter of a package's environment, below the user's cache directory."""
    requirements = REQUIREMENTS[package]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fedhh-benchmarks"
    key = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    folder = cache / f"{package}-{key}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"Making an environment with {', '.join(requirements)} in {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *requirements], check=True)
        ready.touch()
    return python
