"""Two runs on one machine at the same time do not disturb each other."""

from __future__ import annotations

import pytest

from tests.processes import start

pytest.importorskip("ray")

SMALL = (
    "run", "-q", "--preset", "small", "--set", "population.clients=12000", "--set",
    "protocol.depth=6",
)  # fmt: skip


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
def test_two_runs_with_workers_side_by_side_give_what_each_gives_alone(tmp_path, command):
    def words(seed: int, workers: int, out: str):
        return *SMALL, "--seed", f"{seed}", "--workers", f"{workers}", "--out", out

    for process in [start(*words(seed, 1, f"{seed}-together"), cwd=tmp_path) for seed in (1, 2)]:
        _, complaint = process.communicate(timeout=300)
        assert (process.returncode, complaint) == (0, "")
    for seed in (1, 2):
        assert command(*words(seed, 0, f"{seed}-alone"), cwd=tmp_path).returncode == 0
        for file in ("discoveries.csv", "discoveries.parquet", "layers.parquet"):
            alone = (tmp_path / f"{seed}-alone" / file).read_bytes()
            assert (tmp_path / f"{seed}-together" / file).read_bytes() == alone
    one, two = ((tmp_path / f"{seed}-alone" / "discoveries.csv").read_bytes() for seed in (1, 2))
    assert one != two
