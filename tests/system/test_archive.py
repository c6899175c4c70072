"""Archives come back as they were written, or are refused in one line; reading runs nothing."""

from __future__ import annotations

import hashlib
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


def rewrite(path: Path, old: bytes, new: bytes, *, forged: bool = False) -> None:
    """Replace a part of an archive, and its digest, too, if that is to be forged."""
    digest, _, content = path.read_bytes().partition(b"\n")
    assert old in content
    content = content.replace(old, new)
    if forged:
        digest = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(digest + b"\n" + content)


def test_another_schema_is_refused(path):
    rewrite(path, b'_version": 4', b'_version": 3', forged=True)
    with pytest.raises(InputError, match="schema 3, expected 4"):
        read_archive(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seconds": 1', b'"seconds": 2'),
        (b"\1\0", b"\3\0"),
        (b"<i8", b"<u8"),
        (b"[2]", b"[1, 2]"),
    ],
)
def test_whatever_was_changed_is_refused_unless_its_digest_is_too(path, old, new):
    rewrite(path, old, new)
    with pytest.raises(InputError, match="its content is not that of its digest"):
        read_archive(path)
    rewrite(path, new, new, forged=True)
    read_archive(path)


def test_what_stands_behind_the_last_array_is_refused(path):
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(InputError, match="its content is not that of its digest"):
        read_archive(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"[2]", b"[1000000000000]"), (b"<i8", b"|O"), (b"<i8", b"<U9"), (b"<i8", b"V0")],
)
def test_what_claims_to_be_more_than_its_file_or_no_numbers_is_not_read(
    path, monkeypatch, old, new
):
    rewrite(path, old, new, forged=True)
    monkeypatch.setattr(np, "fromfile", lambda *_: pytest.fail("read"))
    with pytest.raises(InputError, match="is larger than the file, or no numbers"):
        read_archive(path)


def test_what_does_not_fit_in_memory_is_not_read(path, monkeypatch):
    size = path.stat().st_size
    monkeypatch.setattr("fedhh.system.archive.memory_bytes", lambda: size - 1)
    with pytest.raises(InputError, match="this machine's memory"):
        read_archive(path)
