"""Archives come back as they were written, or are refused in one line; reading runs nothing."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from fedhh.system.archive import part, read_archive, within, write_archive
from fedhh.validation import InputError


@pytest.fixture
def path(tmp_path):
    write_archive(tmp_path / "s.npz", {"numbers": np.array([1, 2])}, {"seconds": 1})
    return tmp_path / "s.npz"


def test_arrays_and_notes_come_back_as_they_were(tmp_path):
    arrays = {"a": np.array([1, 2**62]), "b": np.zeros((0, 3), np.uint16), "n": np.array(5)}
    notes = {"rows": [1, 2], "word": "é", "none": None, "far": float("inf")}
    write_archive(tmp_path / "s.npz", {**within("x", arrays), "y": arrays["a"]}, notes)
    back, said = read_archive(tmp_path / "s.npz")
    assert said == notes
    assert set(back) == {"x.a", "x.b", "x.n", "y"}
    for name, array in part("x", back).items():
        assert array.dtype == arrays[name].dtype
        assert np.array_equal(array, arrays[name])


def test_a_file_that_ends_early_is_refused_with_a_cure(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"damaged or of another version.* new directory"):
        read_archive(path)


def rewrite(path: Path, *, save=np.savez, **arrays: np.ndarray) -> None:
    """Put other arrays in the place of an archive's own."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    save(path, **{**content, **arrays})


def test_another_schema_is_refused(path):
    with np.load(path) as archive:
        tree = json.loads(archive["notes"].tobytes())
    tree["schema_version"] -= 1
    rewrite(path, notes=np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8))
    with pytest.raises(InputError, match="schema 2, expected 3"):
        read_archive(path)


@pytest.mark.parametrize("numbers", [[1, 3], [1.0, 2.0], [[1, 2]], [1, 2, 0], [1]], ids=str)
def test_a_value_that_was_changed_is_refused(path, numbers):
    rewrite(path, numbers=np.array([1, 2]))
    read_archive(path)
    rewrite(path, numbers=np.array(numbers))
    with pytest.raises(InputError, match="its content is not that of its digest"):
        read_archive(path)


def test_a_note_that_was_changed_and_a_digest_that_is_missing_are_refused(path):
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    tree = content["notes"].tobytes().replace(b'"seconds": 1', b'"seconds": 2')
    rewrite(path, notes=np.frombuffer(tree, dtype=np.uint8))
    with pytest.raises(InputError, match="its content is not that of its digest"):
        read_archive(path)
    np.savez(path, notes=content["notes"])
    with pytest.raises(InputError, match="its content is not that of its digest"):
        read_archive(path)


def test_what_unpacks_to_more_than_its_file_is_refused_before_it_is_read(path, monkeypatch):
    whole = path.read_bytes()

    def read(*_: object, **__: object) -> None:
        raise AssertionError("the archive was read")

    rewrite(path, save=np.savez_compressed, more=np.zeros(2**20, dtype=np.uint8))
    bombs = {"it is compressed": path.read_bytes(), "larger than the file": overlapping(whole)}
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", read)
    for complaint, bomb in bombs.items():
        path.write_bytes(bomb)
        with pytest.raises(InputError, match=complaint):
            read_archive(path)
    path.write_bytes(whole)
    monkeypatch.setattr("fedhh.system.archive.memory_bytes", lambda: len(whole) - 1)
    with pytest.raises(InputError, match="this machine's memory"):
        read_archive(path)


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


def test_an_archive_runs_nothing_that_it_holds(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rewrite(path, numbers=np.array([Bomb()], dtype=object))
    with pytest.raises(InputError, match="damaged or of another version"):
        read_archive(path)
    assert not (tmp_path / "exploded").exists()
