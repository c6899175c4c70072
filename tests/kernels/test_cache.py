"""Compiled code is kept in the user's cache directory, and nothing that happens there matters."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import platformdirs
import pytest
from numba.core.dispatcher import Dispatcher

import fedhh
from fedhh import kernels
from fedhh.kernels import cache
from fedhh.kernels.cache import cache_directory, compiled, hearing_of_compilations
from fedhh.system.kept import _say_once


def total(values):
    result = values[0]
    for value in values[1:]:
        result += value
    return result


def compiled_total(values: np.ndarray) -> tuple[float, int]:
    """The total by code that is compiled or loaded now, and how often it was loaded."""
    kernel = compiled(total)
    return kernel(values), sum(kernel.stats.cache_hits.values())


INTEGERS = np.arange(5)
DECIMALS = np.arange(5) / 2


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    caplog.set_level(logging.INFO, logger="fedhh")
    _say_once.cache_clear()


def kept() -> list[Path]:
    return list(cache_directory().iterdir())


def test_code_is_compiled_once_and_loaded_afterwards():
    assert compiled_total(INTEGERS) == (10, 0)
    assert compiled_total(INTEGERS) == (10, 1)
    assert len(kept()) == 1


def test_the_place_is_the_users_and_names_versions_and_platform(monkeypatch):
    assert cache_directory().parent == Path(os.environ["NUMBA_CACHE_DIR"]) / "fedhh"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    place = cache_directory()
    assert place.parent == Path(platformdirs.user_cache_dir("fedhh", appauthor=False))
    assert place.name.startswith(f"{fedhh.__version__}-numba-{numba.__version__}-cpython-3")
    monkeypatch.setattr(numba, "__version__", "0.1")
    assert cache_directory() != place


def test_no_kernel_uses_numbas_own_cache_next_to_the_source():
    caches = []
    for module in pkgutil.iter_modules(kernels.__path__, "fedhh.kernels."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Dispatcher):
                caches.append(value._cache)
    assert {type(one).__name__ for one in caches} == {"NullCache", "_Cache"}
    assert {one.cache_path for one in caches} == {None, str(cache_directory())}


def test_a_change_of_any_kernels_source_compiles_again(tmp_path, monkeypatch):
    (tmp_path / "prng.py").write_text("SHIFT = 1\n")
    monkeypatch.setattr(cache, "files", lambda package: tmp_path)
    monkeypatch.setattr(cache, "digest_of_sources", cache.digest_of_sources.__wrapped__)
    assert compiled_total(INTEGERS) == (10, 0)
    assert compiled_total(INTEGERS) == (10, 1)
    (tmp_path / "prng.py").write_text("SHIFT = 2\n")
    assert compiled_total(INTEGERS) == (10, 0)


def test_a_place_that_cannot_be_made_costs_one_line(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiled_total(INTEGERS) == (10, 0)
    assert compiled_total(DECIMALS) == (5.0, 0)
    (line,) = caplog.messages
    assert str(tmp_path / "file") in line


@pytest.mark.slow("::test_a_damaged_file_costs_one_line_and_is_written_again")
def test_a_full_disk_costs_one_line_and_leaves_no_part_of_a_file(monkeypatch, caplog):
    def write_half(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_half)
        assert compiled_total(INTEGERS) == (10, 0)
        assert compiled_total(DECIMALS) == (5.0, 0)
    assert kept() == []
    (line,) = caplog.messages
    assert os.strerror(errno.ENOSPC) in line
    assert compiled_total(INTEGERS) == (10, 0)
    assert compiled_total(INTEGERS) == (10, 1)


def test_code_that_cannot_be_written_down_costs_one_line(monkeypatch, caplog):
    def refuse(content: object) -> bytes:
        raise pickle.PicklingError("no bytes")

    monkeypatch.setattr(cache, "dumps", refuse)
    assert compiled_total(INTEGERS) == (10, 0)
    assert not cache_directory().exists()
    (line,) = caplog.messages
    assert "no bytes" in line


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:1000],
        lambda content: pickle.dumps(("another", "numba's")),
    ],
    ids=["empty", "cut off", "other content"],
)
def test_a_damaged_file_costs_one_line_and_is_written_again(damage, caplog):
    compiled_total(INTEGERS)
    (file,) = kept()
    content = file.read_bytes()
    file.write_bytes(damage(content))
    assert compiled_total(INTEGERS) == (10, 0)
    assert len(caplog.messages) == 1
    assert compiled_total(INTEGERS) == (10, 1)
    assert len(caplog.messages) == 1


def test_two_that_look_before_either_saves_keep_both_codes():
    """With an index they would give one name to two codes."""
    first, second = compiled(total), compiled(total)
    assert first(INTEGERS) == 10
    assert second(DECIMALS) == 5.0
    assert compiled_total(INTEGERS) == (10, 1)
    assert compiled_total(DECIMALS) == (5.0, 1)


@pytest.mark.slow("::test_code_is_compiled_once_and_loaded_afterwards")
def test_processes_that_compile_two_signatures_at_once_share_a_directory():
    code = (
        "import sys; import numpy as np; from fedhh.kernels.reports import count_supports as count;"
        "u = np.full(3, 2, dtype=np.uint64);"
        "print(*(count(u, u, u, u * 4, np.arange(5, dtype=d), False) for d in sys.argv[1:]),"
        "sum(count.stats.cache_hits.values()))"
    )
    root = Path(fedhh.__file__).parent.parent

    def said(*kinds: tuple[str, ...]) -> list[tuple[str, str]]:
        runs = [
            subprocess.Popen(
                [sys.executable, "-c", code, *own], cwd=root, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for own in kinds
        ]  # fmt: skip
        return [run.communicate() for run in runs]

    assert said(("i8",), ("i4",)) == [("[3 3 3 0 0] 0\n", "")] * 2
    assert [file.suffix for file in kept()] == [".bin"] * 2
    assert said(("i8", "i4")) == [("[3 3 3 0 0] [3 3 3 0 0] 2\n", "")]


def test_who_wants_to_hear_of_compilations_hears_of_those_that_happen():
    heard: list[str] = []
    with hearing_of_compilations(heard.append):
        assert compiled_total(INTEGERS) == (10, 0)
        assert heard == ["test_cache.total", ""]
        assert compiled_total(INTEGERS) == (10, 1)
        assert heard == ["test_cache.total", ""]
    assert compiled_total(DECIMALS) == (5.0, 0)
    assert heard == ["test_cache.total", ""]
