"""Configurations and sweeps, damaged as text and as tables: accepted, or refused in one line."""

from __future__ import annotations

import copy
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fedhh.experiments.config.built_in import LONGITUDINAL, PIPELINES, preset_text
from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.config.population import check_population
from fedhh.experiments.config.protocol import build_protocol, settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.sweep.plan import load_sweep_table, parse_sweep
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.repeated.config import load_plan
from fedhh.validation import InputError
from tests.fuzz.cases import Record, feed, survives
from tests.fuzz.mutation import any_value, mutate_bytes, mutate_table, paths_of

PRESETS = ("default", "small")
PROTOCOLS = ("ldp-triehh", "sfp", "pem", "triehh")
# Whole tables, so that every key of every protocol is met.
TABLES = [
    parse_config({"population": {"clients": 5_000}, "protocol": {"name": name}}, name).model_dump(
        mode="json", exclude_none=True
    )
    for name in PROTOCOLS
]
SWEEP: dict[str, Any] = {
    "seed": 5,
    "population": {"source": "chat", "clients": 2_000},
    "protocol": {"depth": 4, "passes": 1, "eta_max": 50, "clients_per_layer": 100},
    "sweep": {
        "title": "x",
        "seeds": 1,
        "axes": {
            "privacy": {"local_epsilon": [2.0, 8]},
            "protocol.eta_max": {"from": 10, "to": 20, "step": 10},
        },
        "linked": [{"protocol.depth": [3, 4], "protocol.max_items": [1, 2]}],
        "extra": [{"protocol.sampler": "greedy"}],
        "skip": ["duplicate"],
    },
}
PROTOCOL_SWEEP: dict[str, Any] = {
    "population": {"source": "chat", "clients": 2_000},
    "sweep": {
        "protocols": {"one": {"passes": 1}, "sfp": {"name": "sfp"}, "pem": {"name": "pem"}},
        "axes": {"privacy.local_epsilon": [4.0]},
    },
}


MONTHS = preset_text("weekly-small", LONGITUDINAL)
DAYS = preset_text("pipeline-small", PIPELINES)


def check(config: Config) -> None:
    """Do what a run does before it draws a client."""
    build_protocol(config)
    check_population(config.population)
    for baseline in config.of_baselines:
        build_protocol(baseline)
    settle(config, 5_000)
    assert parse_config(tomllib.loads(config.to_toml()), "again").result_key == config.result_key


def dumped(table: dict[str, Any]) -> bytes | None:
    """Return a table as TOML; None of what TOML has no words for."""
    try:
        return tomli_w.dumps(table).encode()
    except (TypeError, ValueError, AttributeError, UnicodeEncodeError):
        return None


def damaged(tables: list[dict[str, Any]], texts: list[str], rng: random.Random) -> bytes:
    """Return a file made of a damaged table, or a damaged text."""
    data = None
    if rng.random() < 0.6:
        data = dumped(mutate_table(copy.deepcopy(rng.choice(tables)), rng))
    return mutate_bytes(rng.choice(texts).encode(), rng) if data is None else data


@pytest.mark.slow("::test_damaged_sweeps")
def test_damaged_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
):
    monkeypatch.chdir(tmp_path)
    texts = [preset_text(name) for name in PRESETS]

    def run(rng: random.Random) -> bool:
        data = damaged(TABLES, texts, rng)
        Path("c.toml").write_bytes(data)
        return survives(lambda: check(load_config(file=Path("c.toml"))), data)

    feed("config", run, record_property)


def test_any_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record):
    monkeypatch.chdir(tmp_path)
    paths = sorted({path for table in TABLES for path in paths_of(table)})

    def run(rng: random.Random) -> bool:
        settings = []
        for _ in range(rng.randint(1, 3)):
            data = dumped({"x": any_value(rng)})
            text = "x" if data is None else data.decode().removeprefix("x = ").strip()
            setting = f"{rng.choice(paths)}={text}".encode()
            if rng.random() < 0.2:
                setting = mutate_bytes(setting, rng)
            settings.append(setting.decode(errors="surrogateescape"))
        start = f"protocol.name={rng.choice(PROTOCOLS)}"
        return survives(lambda: check(load_config(settings=[start, *settings])), settings)

    feed("settings", run, record_property)


def test_damaged_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record):
    monkeypatch.chdir(tmp_path)
    tables = [SWEEP, PROTOCOL_SWEEP]
    texts = [tomli_w.dumps(table) for table in tables]

    def plan() -> None:
        table, origin = load_sweep_table(Path("s.toml"))
        sweep = parse_sweep(table, origin)
        assert sweep.key
        tomllib.loads(sweep.to_toml())

    def run(rng: random.Random) -> bool:
        data = damaged(tables, texts, rng)
        Path("s.toml").write_bytes(data)
        return survives(plan, data)

    feed("sweep", run, record_property)


@pytest.mark.parametrize(
    ("kind", "text", "load"),
    [("months", MONTHS, load_plan), ("pipeline", DAYS, load_pipeline)],
    ids=["months", "pipeline"],
)
def test_damaged_plans_over_time(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
    kind: str,
    text: str,
    load: Callable[..., Any],
):
    monkeypatch.chdir(tmp_path)

    def plan() -> None:
        text = load(Path("p.toml")).to_toml()
        Path("again.toml").write_text(text)
        try:
            load(Path("again.toml"))
        except InputError as error:
            raise AssertionError("what was accepted is refused when it is written") from error

    def run(rng: random.Random) -> bool:
        data = damaged([tomllib.loads(text)], [text], rng)
        Path("p.toml").write_bytes(data)
        return survives(plan, data)

    feed(kind, run, record_property)
