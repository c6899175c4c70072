"""The pages of what has a name in a configuration: protocols, oracles, presets."""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from typing import Any

from fedhh.experiments.config.built_in import (
    COMMANDS,
    LONGITUDINAL,
    PIPELINES,
    RUNS,
    SWEEPS,
    preset_names,
    preset_text,
)
from fedhh.oracles.registry import ORACLES, oracle_class
from fedhh.server.registry import PROTOCOLS, protocol_class
from fedhh_reference.markdown import code, entries, first_line, prose, table


def page() -> str:
    """Return the page of protocols and oracles."""
    protocols = {name: protocol_class(name) for name in PROTOCOLS}
    oracles = {name: oracle_class(name) for name in ORACLES}
    parts = [
        "# Protocols and oracles\n\nBy the names that a configuration gives them. The keys of each "
        "protocol are on the page of [configuration keys](config.md).\n\n## Protocols\n\n"
    ]
    rows = [
        (code(name), code(kind.__name__), kind.title, source(kind))
        for name, kind in protocols.items()
    ]
    parts += [table(("name", "class", "title", "source"), rows), "\n## Oracles\n\n"]
    rows = [(code(name), code(kind.__name__), first_line(kind)) for name, kind in oracles.items()]
    parts.append(table(("name", "class", "what it is"), rows))
    for name, kind in oracles.items():
        settings = parameters(kind)
        if settings:
            parts.append(f"\n## Parameters of `{name}`\n\n")
            parts.append(table(("parameter", "default", "meaning"), settings))
    return "".join(parts)


def source(kind: type[Any]) -> str:
    """Return the paper that the module of a class names as its source."""
    text = inspect.cleandoc(inspect.getmodule(kind).__doc__ or "")
    return prose(text.partition("\nSource: ")[2].partition("\n\n")[0])


def presets_page() -> str:
    """Return the page of built-in configurations, whole."""
    parts = ["# Presets\n\nBuilt-in configurations; `fedhh presets show NAME` prints one.\n\n"]
    titles = {
        RUNS: "Runs",
        SWEEPS: "Sweeps",
        LONGITUDINAL: "Repeated collection",
        PIPELINES: "Pipelines",
    }
    for kind, title in titles.items():
        parts.append(f"## {title}\n\n")
        for name in preset_names(kind):
            text = preset_text(name, kind)
            tomllib.loads(text)
            use = f"{COMMANDS[kind]} --preset {name}"
            parts.append(f"### {name}\n\n`{use}`\n\n```toml\n{text.strip()}\n```\n\n")
    return "".join(parts)


def parameters(kind: type[Any]) -> list[tuple[str, str, str]]:
    """Return name, default and meaning of a dataclass's settings beyond epsilon and domain size."""
    meanings: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        meanings |= entries(each.__doc__)
    return [
        (
            code(field.name),
            "required" if field.default is dataclasses.MISSING else code(field.default),
            meanings.get(field.name, ""),
        )
        for field in dataclasses.fields(kind)
        if field.init and field.name not in {"epsilon", "domain_size"}
    ]
