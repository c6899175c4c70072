"""Configurations that come with fedhh, by name and by the command that runs them.

Nothing that runs one is loaded for their names.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
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

_COST = re.compile(
    r"# Cost: about (?P<number>\d+) (?P<unit>s|min) on two cores, (?P<basis>measured|derived)\."
)
"""The second line of a built-in configuration."""

_CALLED = {SWEEPS: "sweep", PIPELINES: "pipeline"}


def preset_names(kind: str = RUNS) -> list[str]:
    """Return the names of the built-in configurations of a kind."""
    folder = resources.files("fedhh.experiments.config") / kind
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def preset_text(name: str, kind: str = RUNS) -> str:
    """Return a built-in configuration as TOML text."""
    if name not in preset_names(kind):
        for other, command in COMMANDS.items():
            if other != kind and name in preset_names(other):
                raise InputError(f"{name} is a preset of {command}: {command} --preset {name}.")
        what = _CALLED.get(kind, "preset")
        raise InputError(f"Unknown {what} {name!r}{did_you_mean(name, preset_names(kind))}")
    folder = resources.files("fedhh.experiments.config") / kind
    return (folder / f"{name}.toml").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What is known of a built-in configuration before it runs.

    Attributes:
        name: Its name.
        command: What runs it.
        what: What it does, in a line.
        clients: Clients of its first population; devices of a pipeline.
        seconds: About how long it takes on two cores.
        basis: "measured", as docs/results or docs/performance.md say, or "derived" from the number
            of clients that are asked, see `fedhh.experiments.run.workers.seconds_of_answers`.
    """

    name: str
    command: str
    what: str
    clients: int
    seconds: int
    basis: str


def presets() -> list[Preset]:
    """Return all built-in configurations: what the first lines of their files say."""
    return [_described(name, kind) for kind in COMMANDS for name in preset_names(kind)]


def _described(name: str, kind: str) -> Preset:
    text = preset_text(name, kind)
    what, cost = text.splitlines()[:2]
    stated = _COST.fullmatch(cost)
    if stated is None or not what.startswith("# "):
        raise ValueError(f"{name} has no line of what it does, or none of its cost: {cost!r}")
    table = tomllib.loads(text)
    size = table["pipeline"]["devices"] if kind == PIPELINES else table["population"]["clients"]
    return Preset(
        name=name,
        command=COMMANDS[kind],
        what=what.removeprefix("# "),
        clients=size,
        seconds=int(stated["number"]) * (60 if stated["unit"] == "min" else 1),
        basis=stated["basis"],
    )
