"""Checkpoints, damaged as files and in what they say: loaded, or refused in one line."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.checkpoint import load_checkpoint, save_checkpoint
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from tests.conftest import LETTERS, zipf_population
from tests.fuzz.mutation import feed, mutate_bytes, mutate_table, survives

pytestmark = pytest.mark.slow

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=20, depth=3, passes=1, eta_max=5, max_items=2
)


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("valid") / "state.npz"
    executor = InProcessExecutor(ClientWorker(zipf_population(200), seed=1))
    *_, last = rounds(PROTOCOL, executor)
    save_checkpoint(path, last.state, {"layers": [], "seconds": 0.0})
    return path.read_bytes()


def damaged_tree(tree: Any, rng: random.Random) -> Any:
    """Return the JSON of a checkpoint with some values replaced."""
    table = mutate_table(json.loads(tree.tobytes()), rng)
    try:
        text = json.dumps(table, default=str)
    except ValueError:  # An integer that Python does not write.
        text = '{"schema_version": ' + "9" * 5_000 + "}"
    return np.frombuffer(text.encode(), dtype=np.uint8)


def rebuilt(valid: bytes, rng: random.Random) -> bytes:
    """Return a whole archive whose content is damaged: its tree, or one of its arrays."""
    with np.load(io.BytesIO(valid)) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        hurt = rng.choice(list(arrays)) if rng.random() < 0.5 else ""
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array if hurt or name != "tree" else damaged_tree(array, rng))
            data = member.getvalue()
            archive.writestr(f"{name}.npy", mutate_bytes(data, rng) if name == hurt else data)
    return file.getvalue()


@pytest.mark.parametrize("chunk", range(8))
def test_damaged_checkpoints_are_loaded_or_refused_in_one_line(
    tmp_path: Path, valid: bytes, chunk: int
):
    path = tmp_path / "state.npz"

    def run(rng: random.Random) -> bool:
        data = rebuilt(valid, rng) if rng.random() < 0.6 else mutate_bytes(valid, rng)
        path.write_bytes(data)
        return survives(lambda: load_checkpoint(path, PROTOCOL.state_types), data)

    feed("checkpoint", chunk, run)
