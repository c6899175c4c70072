"""What the commands do, between the command line and the package."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fedhh.experiments import output
from fedhh.experiments.config import Config, change_config, load_config
from fedhh.experiments.json_output import print_json
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What `fedhh run` was asked for.

    Attributes:
        preset: Name of a preset, or None.
        config: A TOML file, or None.
        settings: ``KEY=VALUE`` changes.
        data: A file of clients, or None.
        out: The run's directory, or None.
        resume: Go on with the run in ``out``.
    """

    preset: str | None
    config: Path | None
    settings: tuple[str, ...]
    data: Path | None
    out: Path | None
    resume: bool


def run_command(request: RunRequest, *, as_json: bool) -> None:
    """Run, print the summary, and leave the run's directory."""
    from fedhh.experiments.console import LiveProgress, print_result
    from fedhh.experiments.populations import build_population
    from fedhh.experiments.protocols import build_protocol
    from fedhh.experiments.run import run_config

    config = _resolve(request)
    # Refuse what cannot work before any client is drawn.
    build_protocol(config)
    if request.out is not None and not request.resume:
        output.check_directory(request.out)
    console = Console(stderr=as_json)
    directory: Path | None = None

    def make_directory(resolved: Config) -> Path:
        nonlocal directory
        directory = _directory(request, resolved)
        return directory

    with LiveProgress(console) as listener:
        started = time.perf_counter()
        population, facts = build_population(config.population, seed=config.seed)
        drawn = time.perf_counter() - started
        config, result = run_config(
            config, population, listener=listener, checkpoint_in=make_directory
        )
        result.timings["population"] = drawn
        assert directory is not None
        output.write_result(directory, result, config, facts)
    if as_json:
        print_json({**output.result_record(result, config, facts), "directory": str(directory)})
    else:
        print_result(console, result, directory)


def describe_command(file: Path, *, known: str, as_json: bool) -> None:
    """Print what a file of clients holds."""
    from fedhh.clients.describe import describe
    from fedhh.clients.known_words import load_known
    from fedhh.clients.sources import read_population

    facts = asdict(describe(read_population(file), load_known(known)))
    if as_json:
        print_json(facts)
    else:
        Console().print(_facts_table(str(file), facts))


def prepare_command(source: Path, out: Path) -> None:
    """Turn text into counted words."""
    from fedhh.clients.text import prepare_text

    prepare_text(source, out)
    Console().print(f"Wrote {out}", soft_wrap=True, highlight=False)


def synthesize_command(out: Path, *, preset: str, clients: int, seed: int) -> None:
    """Write a synthetic population."""
    from fedhh.clients.sources import write_population
    from fedhh.clients.synthetic import synthetic_population

    write_population(synthetic_population(preset, clients, seed=seed), out)
    Console().print(f"Wrote {out}", soft_wrap=True, highlight=False)


def _resolve(request: RunRequest) -> Config:
    """Return the run's configuration; a resumed run's is the one in its directory."""
    if not request.resume:
        return _requested(request)
    if request.out is None:
        raise InputError(
            "Expected --out DIR with --resume: the directory of the run to go on with."
        )
    stored = output.resumed_config(request.out)
    if output.is_finished(request.out):
        raise InputError(f"The run in {request.out} is finished; there is nothing to resume.")
    if any((request.preset, request.config, request.data)):
        requested = _as_stored(_requested(request), stored)
    else:
        requested = change_config(stored, request.settings, str(request.out))
    if requested.result_key != stored.result_key:
        raise InputError(
            f"The run in {request.out} has another configuration; resume it without options "
            "that change the result, or start a new run in another directory."
        )
    return stored.model_copy(update={"execution": requested.execution})


def _as_stored(requested: Config, stored: Config) -> Config:
    """Return the request with "auto" cohorts replaced by those of the stored run."""
    if requested.protocol.clients_per_layer != "auto":
        return requested
    size = stored.protocol.clients_per_layer
    section = requested.protocol.model_copy(update={"clients_per_layer": size})
    return requested.model_copy(update={"protocol": section})


def _requested(request: RunRequest) -> Config:
    return load_config(
        preset=request.preset,
        file=request.config,
        settings=request.settings,
        data=request.data,
    )


def _directory(request: RunRequest, config: Config) -> Path:
    if request.resume:
        assert request.out is not None
        return request.out
    source = Path(config.population.source).name.split(".")[0]
    return output.new_directory(
        config, request.out, name=f"{config.protocol.name}_{source}_seed{config.seed}"
    )


def _facts_table(title: str, facts: dict[str, Any]) -> Table:
    table = Table(title=title, show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    for name, value in _flat(facts):
        table.add_row(name, value)
    return table


def _flat(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield rows of a nested dictionary: its path in words, and its value as text."""
    for name, value in facts.items():
        words = str(name).replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{words}: {path}", text) for path, text in _flat(value))
        elif isinstance(value, float):
            yield words, f"{value:,.4f}" if value < 1 else f"{value:,.1f}"
        else:
            yield words, f"{value:,}" if isinstance(value, int) else str(value)
