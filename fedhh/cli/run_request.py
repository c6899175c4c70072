"""What `fedhh run` was asked for: the configuration, and the directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedhh.experiments.config.alphabet import FROM_DATA
from fedhh.experiments.config.schema import Config, change_config, load_config
from fedhh.experiments.run import directory as output
from fedhh.settings import AUTO
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


def resolve(request: RunRequest) -> Config:
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
