"""What `fedhh run` was asked for: the configuration, and the directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fedhh.experiments.config.domain import FROM_DATA
from fedhh.experiments.config.load import change_config, load_config
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run import directory as output
from fedhh.experiments.study.directory import check_output
from fedhh.experiments.study.resume import require_same, require_unfinished, resumed_directory
from fedhh.settings import AUTO


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


def resolve(request: RunRequest) -> Config:
    """Return the run's configuration; a resumed run's is the one in its directory."""
    if not request.resume:
        return _requested(request)
    directory = resumed_directory(request.out, what=output.NAME)
    stored = output.resumed_config(directory)
    require_unfinished(directory, what=output.NAME)
    if any((request.preset, request.config, request.data)):
        requested = _as_stored(_requested(request), stored)
    else:
        requested = change_config(stored, request.settings, str(directory))
    require_same(
        directory,
        {"configuration": requested.result_key},
        {"configuration": stored.result_key},
        what=output.NAME,
    )
    return stored.model_copy(update={"execution": requested.execution})


def _as_stored(requested: Config, stored: Config) -> Config:
    """Return the request with what a run settles, such as "auto", as the stored run has it."""
    asked, kept = requested.protocol, dict(stored.protocol)
    changes = {key: kept.get(key, value) for key, value in asked if value == AUTO}
    settled: dict[str, Any] = {"protocol": asked.changed(changes)}
    if requested.population.alphabet == FROM_DATA == stored.population.alphabet_source:
        alphabet = stored.population.alphabet
        settled["population"] = requested.population.model_copy(
            update={"alphabet": alphabet, "alphabet_source": FROM_DATA}
        )
    return requested.model_copy(update=settled)


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
    protocol = config.protocol.name.replace(":", "_")
    return output.new_directory(config, request.out, name=f"{protocol}_{source}_seed{config.seed}")


class Directories:
    """Makes the directory of a run, and below it those of its baselines, when it is time.

    Attributes:
        made: What has been made.
    """

    def __init__(self, request: RunRequest, parent: str) -> None:
        """Refuse a request whose directory cannot be made, below ``parent`` if it names none."""
        check_output(request.out, parent, resume=request.resume)
        self._request = request
        self.made: list[Path] = []

    def makers(self, num_runs: int) -> list[Callable[[Config], Path]]:
        """Return what makes each run's directory from a settled configuration, its own first."""
        below = [partial(self._make_baseline, number) for number in range(num_runs - 1)]
        return [self._make_own, *below]

    def _make_own(self, config: Config) -> Path:
        self.made.append(_directory(self._request, config))
        return self.made[-1]

    def _make_baseline(self, number: int, config: Config) -> Path:
        directory = output.baseline_folder(self.made[0], number)
        if not (self._request.resume and directory.exists()):
            output.new_directory(config, directory, name=directory.name)
        self.made.append(directory)
        return directory
