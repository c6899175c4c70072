"""The page of configuration keys, from the JSON schema of a configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fedhh.experiments.config.schema import json_schema
from fedhh.longitudinal.pipeline.config import PipelineConfig
from fedhh.longitudinal.repeated.config import SECTION, LongitudinalSection
from fedhh_reference.markdown import code, entries, prose, table

Schema = dict[str, Any]

_INTRODUCTION = """# Configuration keys

A run is one TOML file of these tables; `fedhh presets show default` prints one to start from, and
`--set SECTION.KEY=VALUE` changes one key. A key that is left out has its default. What is unknown
or out of bounds is refused in one line before anything runs.

"""

_LONGITUDINAL = """# Configuration keys of a repeated collection

The file of `fedhh longitudinal run`: [that of a run](config.md) without `[baseline]`, and this
table; `fedhh presets show weekly-small` prints one to start from.

"""

_PIPELINE = """# Configuration keys of a pipeline

The file of `fedhh pipeline run`; `fedhh presets show pipeline-small` prints one to start from. NAME
stands for the name of a use case, of which there is at least one.

"""


def page() -> str:
    """Return the page."""
    return _page(_INTRODUCTION, json_schema())


def pipeline_page() -> str:
    """Return the page of a pipeline's keys."""
    return _page(_PIPELINE, pipeline_schema())


def pipeline_schema() -> Schema:
    """Return the JSON schema of a pipeline."""
    return PipelineConfig.model_json_schema()


def longitudinal_page() -> str:
    """Return the page of the keys of a repeated collection."""
    return _page(_LONGITUDINAL, longitudinal_schema())


def longitudinal_schema() -> Schema:
    """Return the JSON schema of the table that a repeated collection adds to a run's."""
    section = LongitudinalSection.model_json_schema()
    kinds = {**section.pop("$defs", {}), SECTION: section}
    return {"properties": {SECTION: {"$ref": f"#/$defs/{SECTION}"}}, "$defs": kinds}


def _page(introduction: str, whole: Schema) -> str:
    parts = [introduction]
    for title, section in sections(whole):
        rows = [
            (code(key), allowed(field, whole), default(key, field, section), meaning(key, section))
            for key, field in section["properties"].items()
            if is_leaf(field, whole)
        ]
        if rows:
            about = prose(section.get("description", "").partition("\n\nAttributes:")[0])
            parts += [
                f"## {title}\n\n{about}\n\n",
                table(("key", "allowed", "default", "meaning"), rows),
                "\n",
            ]
    return "".join(parts)


def sections(whole: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the title and schema of each table of the file, the file itself first."""
    yield "The file", whole
    seen: set[str] = set()
    yield from _below(whole, whole, "", seen)


def _below(
    section: Schema, whole: Schema, path: str, seen: set[str]
) -> Iterator[tuple[str, Schema]]:
    for key, field in section["properties"].items():
        references = list(_references(field))
        for reference in references:
            if reference in seen:
                continue
            seen.add(reference)
            inner = whole["$defs"][reference]
            here = f"{path}{key}" + (".NAME" if "additionalProperties" in field else "")
            name = inner["properties"].get("name", {}).get("const") if len(references) > 1 else None
            yield f"`[{here}]`" + (f' with `name = "{name}"`' if name else ""), inner
            yield from _below(inner, whole, f"{here}.", seen)


def is_leaf(field: Schema, whole: Schema) -> bool:
    """Return whether a key holds a value and no table."""
    return not list(_references(field))


def allowed(field: Schema, whole: Schema) -> str:
    """Return a key's type and bounds in words."""
    if "anyOf" in field:
        options = [allowed(option, whole) for option in field["anyOf"]]
        return " or ".join(option for option in options if option)
    if "const" in field:
        return code(json.dumps(field["const"]))
    if "enum" in field:
        return ", ".join(code(json.dumps(value)) for value in field["enum"])
    if field.get("type") == "null":
        return "left out"
    if field.get("type") == "array":
        several = field.get("prefixItems")
        kinds = ", ".join(allowed(item, whole) for item in several or [field["items"]])
        return f"list of {kinds}" if several else f"list, each {kinds}"
    words = {
        "integer": "integer",
        "number": "number",
        "boolean": "`true`, `false`",
        "string": "text",
        "object": "table",
    }
    return ", ".join([words[field["type"]], *_bounds(field)])


def default(key: str, field: Schema, section: Schema) -> str:
    """Return a key's default as TOML."""
    if "default" not in field:
        return "required" if key in section.get("required", ()) else ""
    return "none" if field["default"] is None else code(json.dumps(field["default"]))


def meaning(key: str, section: Schema) -> str:
    """Return what a key means."""
    field = section["properties"][key]
    return prose(field.get("description") or entries(section.get("description")).get(key, ""))


def _bounds(field: Schema) -> Iterator[str]:
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        yield f"{_number(low)} to {_number(high)}"
        return
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {_number(field[name])}" for name, sign in signs.items() if name in field]
    if bounds:
        yield " and ".join(bounds)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _references(field: Schema) -> Iterator[str]:
    if "$ref" in field:
        yield field["$ref"].removeprefix("#/$defs/")
    if isinstance(named := field.get("additionalProperties"), dict):
        yield from _references(named)
    for option in (*field.get("anyOf", ()), *field.get("oneOf", ())):
        yield from _references(option)
