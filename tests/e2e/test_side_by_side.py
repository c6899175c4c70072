"""Two runs on one machine at the same time do not disturb each other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

SMALL = (
    "run", "-q", "--data", "words.csv", "--known", "none", "--preset", "small", "--set",
    "protocol.depth=6", "--set", "protocol.passes=1",
)  # fmt: skip


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fedhh", *SMALL, *words],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> None:
    _, complaint = process.communicate(timeout=300)
    assert (process.returncode, complaint) == (0, "")


def write_words(path: Path) -> None:
    """Rows of 12,000 clients with words of three letters, whose frequencies fall by Zipf's law."""
    rng = np.random.default_rng(3)
    words = np.array(["".join(rng.permutation(list("abcdefgh"))[:3]) for _ in range(300)])
    distribution = 1 / np.arange(1.0, 301.0)
    said = rng.choice(words, size=(12_000, 3), p=distribution / distribution.sum())
    rows = (f"{user},{word},1" for user, each in enumerate(said) for word in sorted(set(each)))
    path.write_text("\n".join(["user,word,count", *rows]) + "\n")


@pytest.mark.slow
def test_two_runs_with_workers_side_by_side_give_what_each_gives_alone(tmp_path):
    write_words(tmp_path / "words.csv")
    seeds = {"a": ("--seed", "1"), "b": ("--seed", "2")}
    together = [
        start(*seed, "--workers", "2", "--out", f"{name}-together", cwd=tmp_path)
        for name, seed in seeds.items()
    ]
    for process in together:
        finish(process)
    for name, seed in seeds.items():
        finish(start(*seed, "--workers", "0", "--out", f"{name}-alone", cwd=tmp_path))
        for file in ("discoveries.csv", "discoveries.parquet", "layers.parquet"):
            alone = (tmp_path / f"{name}-alone" / file).read_bytes()
            assert (tmp_path / f"{name}-together" / file).read_bytes() == alone
    coverage = [
        json.loads((tmp_path / f"{name}-together" / "result.json").read_text())["metrics"]
        for name in seeds
    ]
    assert coverage[0] != coverage[1]
