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
    from fedhh.experiments.comparison import comparison_of_runs
    from fedhh.experiments.console import print_result
    from fedhh.experiments.populations import build_population
    from fedhh.experiments.progress import LiveProgress
    from fedhh.experiments.protocols import build_protocol
    from fedhh.experiments.run import check_config, open_executor, run_config

    config = _resolve(request)
    baseline = config.of_baseline
    configs = [config] if baseline is None else [config, baseline]
    # Refuse what cannot work before any client is drawn.
    for each in configs:
        build_protocol(each)
    if request.out is not None and not request.resume:
        output.check_directory(request.out)
    console = Console(stderr=as_json)
    directories = _Directories(request)
    with LiveProgress(console) as listener:
        started = time.perf_counter()
        population, facts = build_population(config.population, seed=config.seed)
        drawn = time.perf_counter() - started
        for each in configs:
            check_config(each, population.num_clients)
        with open_executor(config, population) as executor:
            runs = [
                run_config(
                    each, population, executor=executor, listener=listener, checkpoint_in=make
                )
                for each, make in zip(configs, directories.makers, strict=False)
            ]
        runs[0][1].timings["population"] = drawn
        # The run's own result comes last, since it says that all is done.
        for (each, result), made in reversed(list(zip(runs, directories.made, strict=True))):
            output.write_result(made, result, each, facts)
    directory = directories.made[0]
    if as_json:
        record, *beside = (output.result_record(result, each, facts) for each, result in runs)
        if beside:
            record[output.BASELINE_FOLDER] = beside[0]
        print_json({**record, "directory": str(directory)})
        return
    table = None if baseline is None else comparison_of_runs(runs, facts)
    print_result(console, runs[0][1], directory, beside=table)


class _Directories:
    """Makes the directory of a run, and below it that of its baseline, when it is time.

    Attributes:
        made: What has been made.
        makers: What makes the run's directory, then the baseline's, from a settled configuration.
    """

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self.made: list[Path] = []
        self.makers = (self._make_own, self._make_baseline)

    def _make_own(self, config: Config) -> Path:
        self.made.append(_directory(self._request, config))
        return self.made[-1]

    def _make_baseline(self, config: Config) -> Path:
        directory = self.made[0] / output.BASELINE_FOLDER
        if not (self._request.resume and directory.exists()):
            output.new_directory(config, directory, name=output.BASELINE_FOLDER)
        self.made.append(directory)
        return directory


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
    """Return the request with every "auto" of its protocol replaced by the stored run's value."""
    asked, kept = requested.protocol, stored.protocol
    changes = {
        key: getattr(kept, key, value)
        for key, value in asked.model_dump().items()
        if value == "auto"
    }
    return requested.model_copy(update={"protocol": asked.model_copy(update=changes)})


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
