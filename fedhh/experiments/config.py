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
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from fedhh.validation import InputError, did_you_mean

DEFAULT_PRESET = "default"

RUNS, SWEEPS = "presets", "sweeps"
"""Folders of the built-in configurations."""

Count = Annotated[int, Field(ge=1)]


def _check_count_or_auto(value: Any) -> Any:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise PydanticCustomError("count_or_auto", 'an integer of at least 1, or "auto"')


_CountOrAuto = Annotated[int | Literal["auto"], BeforeValidator(_check_count_or_auto)]


class Section(BaseModel):
    """A frozen table of the file; unknown keys and loose types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelConfig(Section):
    """Changes to a synthetic population's model, see `fedhh.clients.synthetic.PopulationModel`.

    Attributes:
        base: For "wordfreq-tail": the preset whose clients type; keyboard60d if none.
        vocabulary: For "wordfreq-tail": the size of the vocabulary; 60,000 if none.
        tail_mass: For "wordfreq-tail": share of the vocabulary's mass that is new; 0.05 if none.
        copy_exponent: How soon clients copy themselves; 0: every word is a fresh draw.
        adoption: Share of all new words that a client can use.
        log_words_mean: Mean of the logarithm of how many words a client types.
        log_words_sd: Its standard deviation.
        oov_share_log_sd: How much clients differ in their share of new words.
    """

    base: str | None = None
    vocabulary: Count | None = None
    tail_mass: Annotated[float, Field(gt=0, lt=1)] | None = None
    copy_exponent: float | None = None
    adoption: float | None = None
    log_words_mean: float | None = None
    log_words_sd: float | None = None
    oov_share_log_sd: float | None = None


class PopulationConfig(Section):
    """Who is simulated.

    Attributes:
        source: A preset of the synthetic population (chat, keyboard60d, tweet, post),
            "wordfreq-tail", or a file.
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


class ProtocolConfig(Section):
    """How words are discovered; see `fedhh.LdpTrieHH` for what each setting means.

    ``clients_per_layer`` may be "auto": the whole population is divided among the layers.
    """

    name: Literal["ldp-triehh"] = "ldp-triehh"
    clients_per_layer: _CountOrAuto = "auto"
    depth: Count = 15
    eta_max: Count = 1_000
    max_items: Count = 10
    sampler: Literal["random", "greedy"] = "random"
    passes: Count = 2
    ties: Literal["strict", "paper"] = "strict"
    skip_free_layers: bool = True
    oracle: str = "ss"
    subset_size: Literal["optimal", "paper"] = "optimal"
    pad: bool = True
    reuse_clients: bool = False


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
    min_clients: _CountOrAuto = "auto"
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


class Config(Section):
    """The whole file."""

    seed: Annotated[int, Field(ge=0)] = 0
    population: PopulationConfig = PopulationConfig()
    protocol: ProtocolConfig = ProtocolConfig()
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
        population = table.setdefault("population", {})
        population.pop("clients", None)
        population["source"] = str(data)
        if file is None:
            table.setdefault("protocol", {})["clients_per_layer"] = "auto"
    for setting in settings:
        apply_setting(table, setting)
    return parse_config(table, origin)


def parse_config(table: dict[str, Any], origin: str) -> Config:
    """Return the configuration of a parsed TOML table; ``origin`` names it in errors."""
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{origin}: {explain(error)}") from None


def change_config(config: Config, settings: Sequence[str], origin: str) -> Config:
    """Return a configuration with some ``section.key=value`` settings changed."""
    table = config.model_dump(mode="json", exclude_none=True)
    for setting in settings:
        apply_setting(table, setting)
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


def apply_setting(table: dict[str, Any], setting: str) -> None:
    """Put one ``section.key=value`` into a table; the value is read as TOML, else as text."""
    path, separator, text = setting.partition("=")
    keys = path.strip().split(".")
    if not separator or not all(keys):
        raise InputError(f"Expected --set SECTION.KEY=VALUE, got {setting!r}.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise InputError(f"Expected --set SECTION.KEY=VALUE, got {setting!r}.")
    table[keys[-1]] = value


def explain(error: ValidationError, section: type[BaseModel] = Config, prefix: str = "") -> str:
    """Return the first finding as one line: path, value, and what is expected."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in (prefix, *first["loc"]) if part != "")
    if first["type"] == "extra_forbidden":
        *parents, key = first["loc"]
        known = _fields_at(section, parents)
        return f"unknown key {path}{did_you_mean(str(key), known)}"
    expected = first["msg"].removeprefix("Input should be ")
    return f"{path} = {_literal(first['input'])}: expected {expected}."


def _fields_at(section: type[BaseModel], parents: Sequence[str | int]) -> list[str]:
    for parent in parents:
        annotation = section.model_fields[str(parent)].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        section = annotation
    return list(section.model_fields)


def _literal(value: Any) -> str:
    return json.dumps(value, default=str)
