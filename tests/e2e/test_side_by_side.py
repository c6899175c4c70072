"""Two runs on one machine at the same time do not disturb each other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")

SMALL = (
    "run", "--preset", "small", "--set", "population.clients=20000", "--set", "protocol.depth=6",
)  # fmt: skip


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fedhh", *SMALL, *words],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> None:
    _, complaint = process.communicate(timeout=300)
    assert (process.returncode, complaint) == (0, "")


def test_two_runs_with_workers_side_by_side_give_what_each_gives_alone(tmp_path):
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
