from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.checkpoint import load_checkpoint, save_checkpoint
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.system.files import whole_file
from fedhh.testing import LETTERS
from fedhh.validation import InputError


@dataclass(frozen=True)
class Leaf:
    name: str
    size: float


@dataclass(frozen=True)
class Tree:
    numbers: np.ndarray
    leaves: tuple[Leaf, ...]
    note: str | None = None


def test_a_state_comes_back_as_it_was(tmp_path):
    state = Tree(np.array([1, 2**62]), (Leaf("nan", float("inf")), Leaf("é", 0.1)), None)
    save_checkpoint(tmp_path / "s.npz", state, {"rows": [1, 2]})
    back, notes = load_checkpoint(tmp_path / "s.npz", (Tree, Leaf))
    assert np.array_equal(back.numbers, state.numbers)
    assert back.numbers.dtype == state.numbers.dtype
    assert back.leaves == state.leaves
    assert back.note is None
    assert notes == {"rows": [1, 2]}


def test_foreign_types_are_refused_when_read_and_when_written(tmp_path):
    save_checkpoint(tmp_path / "s.npz", Leaf("a", 1.0), {})
    with pytest.raises(InputError, match="holds Leaf, which the protocol lacks"):
        load_checkpoint(tmp_path / "s.npz", (Tree,))
    with pytest.raises(TypeError, match=r"cannot hold set at state\.name"):
        save_checkpoint(tmp_path / "t.npz", Leaf({1}, 1.0), {})  # type: ignore[arg-type]
    assert not (tmp_path / "t.npz").exists()


def test_a_damaged_checkpoint_is_refused_with_a_cure(tmp_path):
    save_checkpoint(tmp_path / "s.npz", Leaf("a", 1.0), {})
    whole = (tmp_path / "s.npz").read_bytes()
    (tmp_path / "s.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged or of another version"):
        load_checkpoint(tmp_path / "s.npz", (Leaf,))


@pytest.mark.slow(
    "tests/experiments/run/test_resume.py::test_the_same_run_goes_on_to_the_same_words"
)
def test_resuming_after_any_round_gives_the_same_bits(population, tmp_path):
    protocol = LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=300, depth=3, passes=2, eta_max=20, max_items=4
    )
    executor = InProcessExecutor(ClientWorker(population, seed=3))
    states = [r.state for r in rounds(protocol, executor)]
    for number, state in enumerate(states[:-1]):
        path = tmp_path / f"{number}.npz"
        save_checkpoint(path, state, {})
        loaded, _ = load_checkpoint(path, protocol.checkpoint_types)
        fresh = InProcessExecutor(ClientWorker(population, seed=3))
        *_, last = rounds(protocol, fresh, state=loaded)
        for name in ("codes", "estimate", "layer", "pass_index"):
            assert np.array_equal(getattr(last.state.found, name), getattr(states[-1].found, name))
        assert last.state.history == states[-1].history


def test_a_failing_writer_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def rewrite(path: Path, *, save=np.savez, **arrays: np.ndarray) -> None:
    """Put other arrays in the place of a checkpoint's own."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    save(path, **{**content, **arrays})


def test_a_checkpoint_of_another_schema_is_refused(tmp_path):
    path = tmp_path / "s.npz"
    save_checkpoint(path, Leaf("a", 1.0), {})
    with np.load(path) as archive:
        tree = json.loads(archive["tree"].tobytes())
    tree["schema_version"] -= 1
    rewrite(path, tree=np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8))
    with pytest.raises(InputError, match="schema 1, expected 2"):
        load_checkpoint(path, (Leaf,))


@pytest.mark.parametrize("numbers", [[1, 3], [1.0, 2.0], [[1, 2]], [1, 2, 0], [1]], ids=str)
def test_a_value_that_was_changed_is_refused(tmp_path, numbers):
    path = tmp_path / "s.npz"
    save_checkpoint(path, Tree(np.array([1, 2]), ()), {})
    rewrite(path, **{"state.numbers": np.array([1, 2])})
    load_checkpoint(path, (Tree,))
    rewrite(path, **{"state.numbers": np.array(numbers)})
    with pytest.raises(InputError, match="its content is not that of its digest"):
        load_checkpoint(path, (Tree,))


def test_a_note_that_was_changed_and_a_digest_that_is_missing_are_refused(tmp_path):
    path = tmp_path / "s.npz"
    save_checkpoint(path, Leaf("a", 1.0), {"seconds": 1})
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    tree = content["tree"].tobytes().replace(b'"seconds": 1', b'"seconds": 2')
    rewrite(path, tree=np.frombuffer(tree, dtype=np.uint8))
    with pytest.raises(InputError, match="its content is not that of its digest"):
        load_checkpoint(path, (Leaf,))
    np.savez(path, tree=content["tree"])
    with pytest.raises(InputError, match="its content is not that of its digest"):
        load_checkpoint(path, (Leaf,))


def test_what_unpacks_to_more_than_its_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    save_checkpoint(path, Leaf("a", 1.0), {})
    whole = path.read_bytes()

    def read(*_: object, **__: object) -> None:
        raise AssertionError("the archive was read")

    rewrite(path, save=np.savez_compressed, more=np.zeros(2**20, dtype=np.uint8))
    bombs = {"it is compressed": path.read_bytes(), "larger than the file": overlapping(whole)}
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", read)
    for complaint, bomb in bombs.items():
        path.write_bytes(bomb)
        with pytest.raises(InputError, match=complaint):
            load_checkpoint(path, (Leaf,))
    path.write_bytes(whole)
    monkeypatch.setattr("fedhh.simulation.checkpoint.memory_bytes", lambda: len(whole) - 1)
    with pytest.raises(InputError, match="this machine's memory"):
        load_checkpoint(path, (Leaf,))


def overlapping(whole: bytes) -> bytes:
    """Return an archive whose directory lists its entries ten times over."""
    end = whole.rindex(b"PK\x05\x06")
    entries, size, start = (
        struct.unpack("<H", whole[end + 10 : end + 12])[0],
        *struct.unpack("<II", whole[end + 12 : end + 20]),
    )
    listed = whole[start : start + size] * 10
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, *[entries * 10] * 2, 10 * size, start, 0)
    return whole[:start] + listed + tail


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("exploded"),)  # type: ignore[return-value]


def test_a_checkpoint_runs_nothing_that_it_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.npz"
    save_checkpoint(path, Tree(np.arange(3), ()), {})
    rewrite(path, **{"state.numbers": np.array([Bomb()], dtype=object)})
    with pytest.raises(InputError, match="damaged or of another version"):
        load_checkpoint(path, (Tree, Leaf))
    assert not (tmp_path / "exploded").exists()
