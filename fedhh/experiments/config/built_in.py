"""Configurations that come with fedhh, by name and by the command that runs them.

Nothing that runs one is loaded for their names.
"""

from __future__ import annotations

from importlib import resources

from fedhh.validation import InputError, did_you_mean

DEFAULT_PRESET = "default"

RUNS, SWEEPS, PIPELINES, LONGITUDINAL = "presets", "sweeps", "pipelines", "longitudinal"
"""Folders of the built-in configurations."""

COMMANDS = {
    RUNS: "fedhh run",
    SWEEPS: "fedhh sweep",
    PIPELINES: "fedhh pipeline run",
    LONGITUDINAL: "fedhh longitudinal run",
}
"""What runs the configurations of a folder."""

_CALLED = {SWEEPS: "sweep", PIPELINES: "pipeline"}


def preset_names(kind: str = RUNS) -> list[str]:
    """Return the names of the built-in configurations of a kind."""
    folder = resources.files("fedhh.experiments.config") / kind
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def preset_text(name: str, kind: str = RUNS) -> str:
    """Return a built-in configuration as TOML text.

    Raises:
        InputError: There is no such name; perhaps it is of another command.
    """
    if name not in preset_names(kind):
        for other, command in COMMANDS.items():
            if other != kind and name in preset_names(other):
                raise InputError(f"{name} is a preset of {command}: {command} --preset {name}.")
        what = _CALLED.get(kind, "preset")
        raise InputError(f"Unknown {what} {name!r}{did_you_mean(name, preset_names(kind))}")
    folder = resources.files("fedhh.experiments.config") / kind
    return (folder / f"{name}.toml").read_text(encoding="utf-8")
