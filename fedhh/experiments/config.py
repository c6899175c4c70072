"""A run's configuration: one TOML file, checked before anything runs.

`[execution]` and `[output]` may change how fast and where a run happens, never what comes out; all
other sections make the result. `Config.result_key` is a hash of those.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from fedhh.experiments.config_section import Count, CountOrAuto, Section
from fedhh.experiments.protocol_config import (
    PROTOCOL_SECTIONS,
    LdpTrieHHConfig,
    ProtocolConfig,
    switch_protocol,
)
from fedhh.validation import InputError, did_you_mean

DEFAULT_PRESET = "default"

RUNS, SWEEPS = "presets", "sweeps"
"""Folders of the built-in configurations."""

_PROTOCOL_TABLES = ("protocol", "baseline")


class ModelConfig(Section):
    """Changes to a synthetic population's model, see `fedhh.clients.synthetic.PopulationModel`.

    Attributes:
        base: For "wordfreq-tail": the preset whose clients type; keyboard60d if none.
        vocabulary: For "wordfreq-tail": the size of the vocabulary; 60,000 if none. For "zipf":
            the number of words; 5,000 if none.
        tail_mass: For "wordfreq-tail": share of the vocabulary's mass that is new; 0.05 if none.
        exponent: For "zipf": of the law; 1.1 if none.
        word_length: For "zipf": letters of every word; 6 if none.
        copy_exponent: How soon clients copy themselves; 0: every word is a fresh draw.
        adoption: Share of all new words that a client can use.
        log_words_mean: Mean of the logarithm of how many words a client types.
        log_words_sd: Its standard deviation.
        oov_share_log_sd: How much clients differ in their share of new words.
    """

    base: str | None = None
    vocabulary: Count | None = None
    tail_mass: Annotated[float, Field(gt=0, lt=1)] | None = None
    exponent: float | None = None
    word_length: Count | None = None
    copy_exponent: float | None = None
    adoption: float | None = None
    log_words_mean: float | None = None
    log_words_sd: float | None = None
    oov_share_log_sd: float | None = None


class PopulationConfig(Section):
    """Who is simulated.

    Attributes:
        source: A preset of the synthetic population (chat, keyboard60d, tweet, post),
            "wordfreq-tail", "zipf", or a file.
        clients: Size of a synthetic population; not for files.
        virtual: Whether clients of a synthetic population are drawn again whenever they are
            asked, instead of being held in memory; "auto": if they are many.
        known: Words that devices know and keep to themselves: "scowl70", "none", or a file with a
            word per line.
        alphabet: "printable", "lower", or the symbols themselves.
        user_column: The file's column of users; found by its usual names if empty.
        word_column: Likewise, of words.
        count_column: Likewise, of counts.
        text_column: Likewise, of texts, for files without words.
        model: Changes to the model of a synthetic population.
    """

    source: str = "chat"
    clients: Count | None = None
    virtual: bool | Literal["auto"] = "auto"
    known: str = "scowl70"
    alphabet: Annotated[str, Field(min_length=1)] = "lower"
    user_column: str = ""
    word_column: str = ""
    count_column: str = ""
    text_column: str = ""
    model: ModelConfig = ModelConfig()


class PrivacyConfig(Section):
    """What privacy costs are stated for.

    Attributes:
        local_epsilon: Of one contribution.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
    """

    local_epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 8.0
    delta: Annotated[float, Field(ge=1e-14, le=0.1)] = 1e-10
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.95


class SimulationConfig(Section):
    """How faithfully clients are simulated.

    Attributes:
        fidelity: "per-report": every client randomizes every contribution. "approximate-tally":
            votes are drawn from true counts, each value on its own; for plans beyond what can be
            drawn report by report.
        drawn_clients: For approximate tallies, the most clients of a layer that are drawn; the
            counts of a larger layer are scaled up.
    """

    fidelity: Literal["per-report", "approximate-tally"] = "per-report"
    drawn_clients: Count = 1_000_000


class MetricsConfig(Section):
    """What the result is measured against.

    Attributes:
        top_k: Sizes of the true top to compare with.
        min_clients: Words held by at least so many clients are the ones to find; "auto": by one
            client in a thousand, and at least 10.
        significance_z: A discovery is significant if its votes lie above the noise's by more than
            so many standard deviations, or as improbably.
    """

    top_k: tuple[Count, ...] = Field(default=(20, 100, 500), strict=False)
    min_clients: CountOrAuto = "auto"
    significance_z: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0


class ExecutionConfig(Section):
    """How fast; changes no result.

    Attributes:
        workers: Ray actors that hold clients; 0: this process alone, without Ray.
        ray_address: A running Ray cluster; a local one if empty.
    """

    workers: Annotated[int, Field(ge=0)] = 2
    ray_address: str = ""


class OutputConfig(Section):
    """Where files go.

    Attributes:
        directory: The folder in which each run makes its own.
        keep_checkpoint: Keep the last state after the run.
    """

    directory: str = "runs"
    keep_checkpoint: bool = False


def _none_if_named(value: Any) -> Any:
    return None if value == "none" else value


class Config(Section):
    """The whole file.

    Attributes:
        seed: Of everything that is drawn.
        population: Who is simulated.
        protocol: How words are discovered.
        baseline: A protocol that `fedhh run` runs on the same clients to show beside the other;
            "none" for none. What a client contributes is as in ``protocol`` where it is left out.
        privacy: What privacy costs are stated for.
        simulation: How faithfully clients are simulated.
        metrics: What the result is measured against.
        execution: How fast.
        output: Where files go.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    population: PopulationConfig = PopulationConfig()
    protocol: ProtocolConfig = LdpTrieHHConfig()
    baseline: Annotated[ProtocolConfig | None, BeforeValidator(_none_if_named)] = None
    privacy: PrivacyConfig = PrivacyConfig()
    simulation: SimulationConfig = SimulationConfig()
    metrics: MetricsConfig = MetricsConfig()
    execution: ExecutionConfig = ExecutionConfig()
    output: OutputConfig = OutputConfig()

    @property
    def result_key(self) -> str:
        """Hexadecimal hash of everything that makes the result."""
        content = self.model_dump(mode="json", exclude={"execution", "output"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def of_baseline(self) -> Config | None:
        """The same with the baseline as its protocol; None without one that differs."""
        if self.baseline is None or self.baseline == self.protocol:
            return None
        return self.model_copy(update={"protocol": self.baseline, "baseline": None})

    def to_toml(self) -> str:
        """Return the file that gives this configuration again."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


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
        file: A TOML file.
        settings: ``section.key=value`` each; the value is read as TOML, else taken as text.
        data: A file of clients, in place of the configured ones. A preset's cohorts, which were
            chosen for its own population, become "auto".

    Raises:
        InputError: One line with the setting's path, its value, and what is allowed.
    """
    if preset is not None and file is not None:
        raise InputError("Expected --preset or --config, got both; choose one.")
    if file is not None:
        table, origin = read_toml(file), str(file)
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
    """Return the configuration of a parsed TOML table; ``origin`` names it in errors."""
    baseline, protocol = table.get("baseline"), table.get("protocol", {})
    if isinstance(baseline, dict) and isinstance(protocol, dict) and "name" in baseline:
        table = {**table, "baseline": {**switch_protocol(protocol, baseline["name"]), **baseline}}
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{origin}: {explain(error)}") from None


def use_data(table: dict[str, Any], data: Path) -> None:
    """Put a file of clients in the place of a table's population."""
    population = table.setdefault("population", {})
    for key in ("clients", "model", "virtual"):
        population.pop(key, None)
    population["source"] = str(data)


def change_config(config: Config, settings: Sequence[str], origin: str) -> Config:
    """Return a configuration with some ``section.key=value`` settings changed."""
    table = config.model_dump(mode="json", exclude_none=True)
    apply_settings(table, settings)
    return parse_config(table, origin)


def preset_names(kind: str = RUNS) -> list[str]:
    """Return the names of the built-in configurations, of runs or of sweeps."""
    folder = resources.files("fedhh.experiments") / kind
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def preset_text(name: str, kind: str = RUNS) -> str:
    """Return a built-in configuration as TOML text."""
    if name not in preset_names(kind):
        what = "preset" if kind == RUNS else "sweep"
        raise InputError(f"Unknown {what} {name!r}{did_you_mean(name, preset_names(kind))}")
    folder = resources.files("fedhh.experiments") / kind
    return (folder / f"{name}.toml").read_text(encoding="utf-8")


def read_toml(file: Path) -> dict[str, Any]:
    """Return a TOML file's content; InputError says what is wrong with it."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read the config {file}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text at byte {error.start}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not valid TOML: {error}.") from None


def apply_settings(table: dict[str, Any], settings: Sequence[str]) -> None:
    """Put ``section.key=value`` each into a table; the value is read as TOML, else as text."""
    put_settings(table, dict(_parse_setting(setting) for setting in settings))


def put_settings(table: dict[str, Any], values: dict[str, Any]) -> None:
    """Put values by path into a table; protocols' names first, see `switch_protocol`."""
    names = {f"{protocol}.name" for protocol in _PROTOCOL_TABLES}
    for path, value in sorted(values.items(), key=lambda item: item[0] not in names):
        *parents, last = path.split(".")
        inner = table
        for key in parents:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise InputError(f"Expected --set SECTION.KEY=VALUE, got {path} below a value.")
        if path in names:
            table[parents[0]] = switch_protocol(inner, value)
        else:
            inner[last] = value


def _parse_setting(setting: str) -> tuple[str, Any]:
    path, separator, text = setting.partition("=")
    path = path.strip()
    if not separator or not all(path.split(".")):
        raise InputError(f"Expected --set SECTION.KEY=VALUE, got {setting!r}.")
    try:
        return path, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return path, text


def explain(error: ValidationError, section: type[BaseModel] = Config, prefix: str = "") -> str:
    """Return the first finding as one line: path, value, and what is expected."""
    first = error.errors()[0]
    loc, fields = _without_tags(first["loc"], section)
    path = ".".join(str(part) for part in (prefix, *loc) if part != "")
    if first["type"] == "extra_forbidden":
        return f"unknown key {path}{did_you_mean(str(loc[-1]), fields)}"
    if first["type"] == "union_tag_invalid":
        name = first["ctx"]["tag"]
        return f"{path}.name = {name!r}: no such protocol{did_you_mean(name, PROTOCOL_SECTIONS)}"
    expected = first["msg"].removeprefix("Input should be ")
    return f"{path} = {_literal(first['input'])}: expected {expected}."


def _without_tags(
    loc: Sequence[str | int], section: type[BaseModel]
) -> tuple[list[str | int], list[str]]:
    """Return an error's path without pydantic's tags, and the keys of the table it is in."""
    path: list[str | int] = []
    for number, part in enumerate(loc):
        if number == 1 and loc[0] in _PROTOCOL_TABLES and part in PROTOCOL_SECTIONS:
            section = PROTOCOL_SECTIONS[str(part)]
            continue
        path.append(part)
        field = section.model_fields.get(str(part))
        annotation = None if field is None else field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            section = annotation
    return path, list(section.model_fields)


def _literal(value: Any) -> str:
    return json.dumps(value, default=str)
