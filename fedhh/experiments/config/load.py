"""A configuration from a preset or a file, with some settings changed by path.

What is wrong with it is said in one line: the setting's path, its value, and what is allowed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fedhh import plugins
from fedhh.accounting.guarantees import UNITS
from fedhh.adversary import Adversary
from fedhh.devices import Devices
from fedhh.experiments.config.built_in import DEFAULT_PRESET, preset_text
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import (
    DEFAULT_PROTOCOL,
    ProtocolSection,
    known_sections,
    section_class,
    switch_protocol,
    table_in,
)
from fedhh.experiments.config.toml_file import DEEPEST, TOO_DEEP, literal, parse_toml, read_toml
from fedhh.system.object_storage import as_address
from fedhh.validation import InputError, did_you_mean, shown

PROTOCOL, BASELINE = "protocol", "baseline"
"""The table of a protocol's settings, and the list of such tables."""

_EPSILONS = ("local_epsilon", *(f"{unit}_central_epsilon" for unit in UNITS))
"""Keys of `[privacy]`, of which one decides the others."""

_DIGITS = 4
_OTHERS = {
    "sweep": ("many runs", "fedhh sweep"),
    "longitudinal": ("a repeated collection", "fedhh longitudinal run"),
}
"""Tables of other files than a run's: what they are, and what takes them."""


def load_config(
    *,
    preset: str | None = None,
    file: Path | None = None,
    settings: Sequence[str] = (),
    data: Path | None = None,
) -> Config:
    """Return a preset's or a file's configuration with some settings changed.

    Args:
        preset: Name of a preset; "default" if neither it nor a file is given.
        file: A TOML file; modules next to it may be named as "module:Class". Without one, those of
            the current folder.
        settings: ``section.key=value`` each; the value is read as TOML, else taken as text.
        data: A file of clients, in place of the configured ones. A preset's cohorts, which were
            chosen for its own population, become "auto".
    """
    if preset is not None and file is not None:
        raise InputError("Expected --preset or --config, got both; choose one.")
    plugins.search(Path() if file is None else file.parent)
    if file is not None:
        table, origin = read_toml(file), str(file)
        for name, (what, command) in _OTHERS.items():
            if name in table:
                raise InputError(
                    f"{file} has a table [{name}], so it is {what}; give it to {command}."
                )
    else:
        name = preset or DEFAULT_PRESET
        table, origin = tomllib.loads(preset_text(name)), f"preset {name}"
    if data is not None:
        use_data(table, data)
        if file is None:
            table.setdefault("protocol", {})["clients_per_layer"] = "auto"
    apply_settings(table, settings)
    return parse_config(table, origin)


def parse_config(table: dict[str, Any], origin: str) -> Config:
    """Return the configuration of a parsed TOML table; ``origin`` names it in errors.

    An alphabet that is "auto" is settled, so that the configuration says which symbols it has.
    """
    table, protocol = dict(table), table.get("protocol", {})
    if PROTOCOL in table:
        table[PROTOCOL] = _parse_protocol(protocol, PROTOCOL, origin)
    if baselines := listed_baselines(table.pop(BASELINE, "none")):
        table[BASELINE] = tuple(
            _parse_baseline(
                each, f"{BASELINE}.{i}" if len(baselines) > 1 else BASELINE, origin, protocol
            )
            for i, each in enumerate(baselines)
        )
    try:
        config = Config.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{origin}: {explain(error)}") from None
    checked = {"devices": devices_of, "adversary": adversary_of}
    for key, made_of in checked.items():
        try:
            made_of(config)
        except InputError as error:
            raise InputError(f"{origin}: {key}: {error}") from None
    # The known words take a while to load, which only a run needs.
    from fedhh.experiments.config.domain import read_candidates, settle_public

    try:
        population = read_candidates(settle_public(config.population))
    except InputError as error:
        raise InputError(f"{origin}: {error}") from None
    return config.model_copy(update={"population": population})


def _parse_baseline(table: Any, key: str, origin: str, protocol: dict[str, Any]) -> ProtocolSection:
    """Return a baseline, which contributes as the protocol does where it says nothing of that."""
    if isinstance(table, dict) and "name" in table:
        try:
            table = {**switch_protocol(protocol, table["name"]), **table}
        except InputError as error:
            raise InputError(f"{origin}: {key}.name = {literal(table['name'])}: {error}") from None
    return _parse_protocol(table, key, origin)


def _parse_protocol(table: Any, key: str, origin: str) -> ProtocolSection:
    if not isinstance(table, dict):
        raise InputError(f"{origin}: {key} = {literal(table)}: expected a table.")
    name = table.get("name", DEFAULT_PROTOCOL)
    try:
        section = section_class(name)
    except InputError as error:
        raise InputError(f"{origin}: {key}.name = {literal(name)}: {error}") from None
    try:
        return section.model_validate({"name": name, **table})
    except ValidationError as error:
        raise InputError(f"{origin}: {explain(error, section, key)}") from None


def devices_of(config: Config) -> Devices | None:
    """Return when clients' devices are there; None if all of them always answer at once."""
    return None if config.devices is None else config.devices.made


def adversary_of(config: Config) -> Adversary | None:
    """Return a configuration's fake clients; None if all clients are honest."""
    return None if config.adversary is None else config.adversary.made


def use_data(table: dict[str, Any], data: Path) -> None:
    """Put a file of clients in the place of a table's population."""
    population = table.setdefault("population", {})
    for key in ("clients", "model", "virtual"):
        population.pop(key, None)
    population["source"] = as_address(data) or str(data)


def change_config(config: Config, settings: Sequence[str], origin: str) -> Config:
    """Return a configuration with some ``section.key=value`` settings changed."""
    table = config.model_dump(mode="json", exclude_none=True)
    apply_settings(table, settings)
    return parse_config(table, origin)


def explain(error: ValidationError, section: type[BaseModel] = Config, prefix: str = "") -> str:
    """Return the first finding as one line: path, value, and what is expected."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in (prefix, *first["loc"]) if part != "")
    if first["type"] == "extra_forbidden":
        unknown = str(first["loc"][-1])
        # A setting of another protocol is no setting of this one.
        of_protocols = not issubclass(section, ProtocolSection)
        if homes := _sections_with(unknown, of_protocols=of_protocols):
            return f"unknown key {path}; did you mean {' or '.join(homes)}?"
        return f"unknown key {path}{did_you_mean(unknown, _keys_beside(first['loc'], section))}"
    expected = first["msg"].removeprefix("Input should be ")
    return f"{path} = {literal(first['input'])}: expected {expected}."


def _sections_with(key: str, *, of_protocols: bool) -> list[str]:
    """Return the paths of a configuration that end in a key, those of protocols if asked for."""
    others = (name for name in Config.model_fields if name not in (PROTOCOL, BASELINE))
    sections = {name: [table_in(Config.model_fields[name].annotation)] for name in others}
    if of_protocols:
        sections[PROTOCOL] = list(known_sections().values())
    at_top = [key] if key in Config.model_fields else []
    return at_top + [
        f"{name}.{key}"
        for name, models in sections.items()
        if any(key in getattr(model, "model_fields", ()) for model in models)
    ]


def _keys_beside(loc: Sequence[str | int], section: type[BaseModel]) -> list[str]:
    for part in loc[:-1]:
        field = section.model_fields.get(str(part))
        annotation = None if field is None else field.annotation
        for option in (annotation, *get_args(annotation)):
            if isinstance(option, type) and issubclass(option, BaseModel):
                section = option
    return list(section.model_fields)


def apply_settings(table: dict[str, Any], settings: Sequence[str]) -> list[str]:
    """Put ``section.key=value`` each into a table, and return the paths.

    A value is read as TOML, else as text.
    """
    values = dict(_parse_setting(setting) for setting in settings)
    put_settings(table, values)
    return list(values)


def put_settings(table: dict[str, Any], values: dict[str, Any]) -> None:
    """Put values by path into a table; protocols' names first, see `switch_protocol`.

    One of the epsilons of `[privacy]` takes the place of those that stand there.
    """
    privacy = table.get("privacy")
    if isinstance(privacy, dict) and any(f"privacy.{name}" in values for name in _EPSILONS):
        table["privacy"] = {key: x for key, x in privacy.items() if key not in _EPSILONS}
    for path, value in sorted(values.items(), key=lambda item: not item[0].endswith(".name")):
        *parents, last = path.split(".")
        if len(parents) > DEEPEST:
            raise InputError(TOO_DEEP.format(origin=shown(path)))
        if parents[:1] == [BASELINE]:
            _put_baseline(table, parents[1:], last, value)
            continue
        inner = table
        for key in parents:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise InputError(f"Expected --set SECTION.KEY=VALUE, got {path} below a value.")
        if path == f"{PROTOCOL}.name":
            table[PROTOCOL] = switch_protocol(inner, value)
        else:
            inner[last] = value


def listed_baselines(given: Any) -> list[Any]:
    """Return a configuration's baselines as a list of tables; a name stands for its table."""
    if given == "none":
        return []
    several = given if isinstance(given, list | tuple) else [given]
    return [{"name": each} if isinstance(each, str) else each for each in several]


def _put_baseline(table: dict[str, Any], place: list[str], key: str, value: Any) -> None:
    """Change one of the baselines: by its number from 0, or the only one; a name alone, all."""
    listed = listed_baselines(table.get(BASELINE, "none"))
    if not place and key == "name":
        only = listed[0] if len(listed) == 1 and isinstance(listed[0], dict) else {}
        table[BASELINE] = [switch_protocol(only, value)]
        return
    number, path = 0, ".".join([BASELINE, *place, key])
    if place and place[0].isdecimal() and len(place[0]) < _DIGITS:
        number = int(place[0])
    elif place or len(listed) > 1:
        raise InputError(
            f"Expected --set {BASELINE}.NUMBER.KEY=VALUE, NUMBER from 0 to {len(listed) - 1}, or "
            f"{BASELINE}.name for another one alone, got {path}."
        )
    if len(place) > 1 or number > len(listed):
        raise InputError(f"Expected a baseline from 0 to {len(listed)}, a key of it, got {path}.")
    listed += [{}] if number == len(listed) else []
    if not isinstance(listed[number], dict):
        raise InputError(f"Expected a table as baseline {number}, got {shown(listed[number])}.")
    listed[number] = (
        switch_protocol(listed[number], value) if key == "name" else {**listed[number], key: value}
    )
    table[BASELINE] = listed


def _parse_setting(setting: str) -> tuple[str, Any]:
    path, separator, text = setting.partition("=")
    path = path.strip()
    if not separator or not all(path.split(".")):
        raise InputError(f"Expected --set SECTION.KEY=VALUE, got {shown(setting)}.")
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return path, text
    except (ValueError, RecursionError):
        pass  # Refused below, with the setting's name.
    return path, parse_toml(f"value = {text}", path)["value"]
