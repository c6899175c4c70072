"""Options of all commands, with good and bad values: accepted, or refused in one line.

What would draw clients or simulate ends where it begins: `Began` counts as accepted.
"""

from __future__ import annotations

import contextlib
import io
import pkgutil
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from fedhh.validation import InputError
from tests.fuzz.cases import Record, feed, survives
from tests.fuzz.mutation import mutate_bytes
from tests.fuzz.work import COMMAND, TEXTS, call, make

WORK = (
    "fedhh.experiments.run.study.build_population",
    "fedhh.experiments.sweep.sweep.sweep",
    "fedhh.experiments.sweep.study.run_sweep",
    "fedhh.longitudinal.repeated.study.build_over_time",
    "fedhh.audit.audit_devices",
    "fedhh.longitudinal.pipeline.study.build_use_cases",
    "fedhh.experiments.planner.planner.build_population",
)
"""Where work begins."""

AROUND = tuple(
    f"fedhh.experiments.run.study.{name}" for name in ("check_cluster", "start_in_background")
)

NUMBERS = ("0", "1", "2", "7", "50", "0.5", "1e-6", "8", "0.999", "100")
HOSTILE = (
    "", " ", "-1", "nan", "inf", "-inf", "1e999", "1e-320", "9" * 30, "9" * 5_000, "0x10", "1_000",
    "١٢", "x", "--", "-", "=", "a=b", "a.b=1", "=1", "[", "{", "[/]", "\x1b[2J", "\ud800", "\n",
    "x" * 5_000, "é", "../..", "/dev/zero", "/dev/null", "/proc/self/mem", "absent", ".", "fifo",
    "true", "auto", "1,2", ",", "1:2", "NULL", "%s", "{0}", "protocol.name=7",
    "privacy.local_epsilon=nan", "population.clients=1e9", "protocol=1",
)  # fmt: skip
GOOD: dict[str, tuple[str, ...]] = {
    "--preset": ("small", "default", "field-quick", "pipeline-small", "weekly-small", "macos"),
    "--config": ("run.toml", "sweep.toml", "months.toml"),
    "--data": ("data.csv",),
    "--sep": (";", "tab", ","),
    "--column": ("user=user", "word=word", "day=day"),
    "--known": ("none", "words.txt"),
    "--set": (
        "protocol.depth=3", 'protocol.oracle="oue"', "privacy.local_epsilon=4", "seed=3",
        'protocol.name="pem"', 'baseline.name="sfp"', "population.clients=300",
    ),
    "--workers": ("0", "auto"),
    "--out": ("new/one", "new/two"),
    "--table": ("main", "summary"),
    "--format": ("table", "json", "csv", "markdown", "latex"),
    "--alphabet": ("lower", "abc", "from-data"),
    "--depth": ("3", "5"),
    "--oracle": ("ss", "oue", "grr", "olh", "hr"),
    "--answer": ("rappor", "1bitmean", "dbitflip"),
    "--unit": ("item", "user"),
    "--protocol": ("sfp", "ldp-triehh"),
    "--at": ("item-central-epsilon=1", "user-central-epsilon=8"),
    "--held-by": ("1/100", "0.01"),
    "--max-bytes": ("100kB", "5000"),
    "--trust-model": ("local", "all"),
    "--figure": ("drawn.png",),
    "--x": ("privacy.local_epsilon",),
    "--metric": ("coverage",),
    # What is drawn or sampled, and not only computed with.
    "--clients": ("100", "1000"),
    "--devices": ("100", "1000"),
    "--samples": ("100", "1000"),
    "--seeds": ("1", "2"),
    "file": ("data.csv", "sweep.toml"),
    "directory": ("run",),
    "other": ("run",),
    "source": ("data.csv", "run", "run.toml", "small"),
    "--source": ("chat", "tweet"),
    "--rules": ("apple", "macos-10.12"),
    "--use-case": ("emoji=4:1",),
    "--pipeline": ("pipeline-small",),
    "out": ("new/file.parquet",),
    "name": ("summary", "small", "pem", "triehh"),
}  # fmt: skip
NEEDED = 0.9
"""Share of required options, and of those of which a command needs one, that are given."""


class Began(InputError):  # noqa: N818 - nothing is wrong
    """Work would begin."""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands with their paths."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*path, name))
        else:
            yield (*path, name), each


ALL = dict(commands(COMMAND))


def words_of(rng: random.Random) -> list[str]:
    """Return a command with some options."""
    path, command = rng.choice(list(ALL.items()))
    words = list(path)
    for param in command.params:
        name = param.opts[0]
        is_option = name.startswith("-")
        share = NEEDED if param.required or not is_option or len(command.params) < 12 else 0.25
        # A page of a run that never begins is of no use.
        if name == "--live" or rng.random() > share:
            continue
        value = rng.choice(GOOD.get(name, NUMBERS))
        if rng.random() < 0.1:
            value = rng.choice(HOSTILE)
        if rng.random() < 0.03:
            value = mutate_bytes(value.encode(errors="replace"), rng).decode(errors="replace")
        # What a shell cannot pass.
        value = value.replace("\0", "")
        if not is_option:
            words.append(value)
        elif getattr(param, "is_flag", False):
            words.append(name)
        else:
            words += [name, value] if rng.random() < 0.8 else [f"{name}={value}"]
    if rng.random() < 0.05:
        words.insert(
            rng.randint(0, len(words)), rng.choice(("--absent", "-z", "--help", "-qv", "x"))
        )
    return words


def ask(words: list[str]) -> None:
    """Give words to the command line; what is no usage is refused as an InputError is."""
    try:
        call(*words)
    except Began:
        return
    except typer.BadParameter.__mro__[2] as error:  # type: ignore[misc]
        raise InputError(f"{error.format_message()}") from error
    except typer.Exit:
        return


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make(tmp_path, "run")
    for kind, text in TEXTS.items():
        (tmp_path / f"{kind}.toml").write_text(text)
    rows = [f"u{number},{word}\n" for number in range(40) for word in ("lol", "so", "naive")]
    (tmp_path / "data.csv").write_text("user,word\n" + "".join(rows))
    (tmp_path / "words.txt").write_text("the\nof\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow("::test_every_command_has_options_that_are_known")
def test_any_options(folder: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record):
    def began(*_: object, **__: object) -> None:
        raise Began("Work would begin.")

    # Imported before the first is replaced: a module that comes later would keep the replacement.
    for place in (*WORK, *AROUND):
        pkgutil.resolve_name(place)
    for place in WORK:
        monkeypatch.setattr(place, began)
    # Neither Ray nor a cluster is looked for.
    for place in AROUND:
        monkeypatch.setattr(place, lambda *_: contextlib.nullcontext())

    def run(rng: random.Random) -> bool:
        shutil.rmtree(folder / "new", ignore_errors=True)
        words = words_of(rng)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return survives(lambda: ask(words), words)

    feed("options", run, record_property)


def test_every_command_has_options_that_are_known():
    names = {param.opts[0] for command in ALL.values() for param in command.params}
    assert set(GOOD) <= names
