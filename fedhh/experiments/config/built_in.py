"""Configurations that come with fedhh, by name: of runs and of sweeps."""

from __future__ import annotations

from importlib import resources

from fedhh.validation import InputError, did_you_mean

DEFAULT_PRESET = "default"

RUNS, SWEEPS = "presets", "sweeps"
"""Folders of the built-in configurations."""


def preset_names(kind: str = RUNS) -> list[str]:
    """Return the names of the built-in configurations, of runs or of sweeps."""
    folder = resources.files("fedhh.experiments.config") / kind
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def preset_text(name: str, kind: str = RUNS) -> str:
    """Return a built-in configuration as TOML text."""
    if name not in preset_names(kind):
        what, other, command = (
            ("preset", SWEEPS, "sweep") if kind == RUNS else ("sweep", RUNS, "run")
        )
        if name in preset_names(other):
            raise InputError(
                f"{name} is a preset of fedhh {command}: fedhh {command} --preset {name}."
            )
        raise InputError(f"Unknown {what} {name!r}{did_you_mean(name, preset_names(kind))}")
    folder = resources.files("fedhh.experiments.config") / kind
    return (folder / f"{name}.toml").read_text(encoding="utf-8")
