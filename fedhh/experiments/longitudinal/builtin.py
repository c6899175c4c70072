"""Built-in discoveries over months, as text: nothing that runs one is loaded for their names."""

from __future__ import annotations

from importlib import resources

from fedhh.validation import InputError, did_you_mean


def preset_names() -> list[str]:
    """Return the names of the built-in discoveries over months."""
    folder = resources.files("fedhh.experiments.longitudinal") / "presets"
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def preset_text(name: str) -> str:
    """Return a built-in discovery over months as TOML text."""
    if name not in preset_names():
        raise InputError(
            f"Unknown longitudinal preset {name!r}{did_you_mean(name, preset_names())}"
        )
    folder = resources.files("fedhh.experiments.longitudinal") / "presets"
    return (folder / f"{name}.toml").read_text(encoding="utf-8")
