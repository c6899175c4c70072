"""A pipeline's configuration: one TOML file, checked before anything happens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from fedhh.experiments.config.load import apply_settings, explain
from fedhh.experiments.config.schema import ExecutionConfig, OutputConfig, PopulationConfig
from fedhh.experiments.config.section import Section, one_of
from fedhh.experiments.config.toml_file import literal
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import load_source
from fedhh.longitudinal.ledger.cap import Cap, Charge
from fedhh.oracles import oracle_class
from fedhh.settings import Count
from fedhh.validation import SMALLEST_EPSILON, InputError, did_you_mean

SFP = "sfp"
_TABLE, _USE_CASES = "pipeline", "use_cases"
_MOST_DAYS = 3_660
_MOST_RECORDS = 10_000
_MOST_DEVICES = 50_000_000
_MOST_VALUES = 10_000_000
_LARGEST_EPSILON = 700.0
"""Beyond it, e**epsilon is no double."""


def _epsilons(value: Any) -> float | tuple[float, ...]:
    """Return one epsilon or two; of one record's reports."""
    parts = value if isinstance(value, list | tuple) else [value]
    for part in parts:
        is_number = isinstance(part, int | float) and not isinstance(part, bool)
        if not is_number or not SMALLEST_EPSILON <= part <= _LARGEST_EPSILON:
            bounds = f"from {SMALLEST_EPSILON:g} to {_LARGEST_EPSILON:g}"
            raise PydanticCustomError("epsilon", f"a number {bounds}")
    if parts is not value:
        return float(value)
    if len(parts) != 2:
        raise PydanticCustomError("epsilon", "one number, or two for sfp")
    return tuple(float(part) for part in parts)


_Epsilon = Annotated[float | tuple[float, ...], BeforeValidator(_epsilons)]
_Days = Annotated[int, Ge(1), Le(_MOST_DAYS)]
_Records = Annotated[int, Ge(1), Le(_MOST_RECORDS)]
_Rollover = Annotated[int, Ge(0), Le(_MOST_RECORDS)] | Literal["unlimited"]
_Threshold = Annotated[float, Field(allow_inf_nan=False)] | Literal["auto"]


class DomainConfig(Section):
    """What events are about: so many values, the words of a file, or those of a population.

    Attributes:
        values: How many values, numbered; for oracles.
        words: A file with a word per line, the most frequent first.
        population: A population, whose words (without those that devices know) are drawn as often
            as its clients typed them: keys of a run's [population].
        exponent: Of Zipf's law, for ``values`` and ``words``: the weight of rank r is r^-exponent.
        alphabet: Of words; those with other symbols are left out.
    """

    values: Annotated[int, Ge(2), Le(_MOST_VALUES)] | None = None
    words: str = ""
    population: PopulationConfig | None = None
    exponent: Annotated[float, Ge(0), Le(50)] = 1.0
    alphabet: Annotated[str, Field(min_length=1)] = "lower"

    @property
    def given(self) -> list[str]:
        """The keys that say what the values are."""
        return [name for name in ("values", "words", "population") if getattr(self, name)]


class UseCaseConfig(Section):
    """One use case.

    Attributes:
        oracle: Which randomizer makes a record of a value, by name; empty with a protocol.
        protocol: "sfp" for words that the server does not know; empty with an oracle.
        epsilon: Of one record. For SFP two, of the whole word and of the fragment.
        params: Further parameters of the oracle, or settings of the protocol.
        records_per_day: The cap: most records that a device sends in a session.
        session_days: Days of a session.
        rollover: Most unused records that a session inherits, or "unlimited".
        lifetime: Most records that a device ever sends; no limit if left out.
        events_per_day: Mean over devices of a device's events in a day.
        events_spread: Standard deviation over devices of their own means, in units of the mean.
        threshold: Estimates above it are published, in records; "auto": so high that noise alone
            publishes anything in one publication of twenty.
        source: Where the numbers come from; text for people.
        domain: What events are about.
    """

    oracle: str = ""
    protocol: Literal["", "sfp"] = ""
    epsilon: _Epsilon
    params: dict[str, str | int | float] = Field(default_factory=dict)
    records_per_day: _Records
    session_days: _Days = 1
    rollover: Annotated[_Rollover, one_of(_Rollover)] = 0
    lifetime: Count | None = None
    events_per_day: Annotated[float, Gt(0), Le(1_000)] = 1.0
    events_spread: Annotated[float, Ge(0), Le(100)] = 1.0
    threshold: Annotated[_Threshold, one_of(_Threshold)] = "auto"
    source: str = ""
    domain: DomainConfig

    @property
    def cap(self) -> Cap:
        """What a device may send."""
        rollover = None if isinstance(self.rollover, str) else self.rollover
        return Cap(
            amount=self.records_per_day,
            session_days=self.session_days,
            rollover=rollover,
            lifetime=self.lifetime,
        )

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Of each report that a record is made of."""
        return self.epsilon if isinstance(self.epsilon, tuple) else (self.epsilon,)

    def charge(self, use_case: str) -> Charge:
        """Return what a record costs."""
        parts = self.epsilons
        reports = parts if len(parts) > 1 else ()
        return Charge(use_case=use_case, epsilon=sum(parts), reports=reports)


class DaysConfig(Section):
    """Devices and days.

    Attributes:
        days: How many.
        devices: How many.
        opt_in: Chance that a device takes part.
        delay_distribution: "fixed" or "geometric", see `fedhh.longitudinal.devices.model.Delay`.
        delay_hours: How long a record waits on its device.
        store_days: Days after which a record that was not sent is dropped.
        retention_days: Most days that reports are kept; every publication rests on no more.
        publish_every: Days of a publication; as many as reports are kept if left out.
        top: How many of the most frequent values are estimated every day.
        delta: Of statements about privacy that have one.
        use_cases: What is collected, by name.
    """

    days: _Days = 30
    devices: Annotated[int, Ge(1), Le(_MOST_DEVICES)] = 10_000
    opt_in: Annotated[float, Gt(0), Le(1)] = 1.0
    delay_distribution: Literal["fixed", "geometric"] = "fixed"
    delay_hours: Annotated[float, Ge(0), Le(720)] = 12.0
    store_days: Annotated[int, Ge(1), Le(90)] = 14
    retention_days: _Days = 90
    publish_every: _Days | None = None
    top: Annotated[int, Ge(1), Le(100)] = 10
    delta: Annotated[float, Field(ge=1e-14, le=0.1)] = 1e-10
    use_cases: dict[str, UseCaseConfig] = Field(min_length=1)

    @property
    def window(self) -> int:
        """Days of a publication."""
        return self.publish_every or self.retention_days


class PipelineConfig(Section):
    """The whole file.

    Attributes:
        seed: Of everything that is drawn.
        pipeline: Devices, days and use cases.
        execution: How fast.
        output: Where files go.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    pipeline: DaysConfig
    execution: ExecutionConfig = ExecutionConfig()
    output: OutputConfig = OutputConfig(directory="runs")

    @property
    def result_key(self) -> str:
        """Hexadecimal hash of everything that makes the result."""
        content = self.model_dump(mode="json", exclude={"execution", "output"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def to_toml(self) -> str:
        """Return the file that gives this configuration again."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def load_pipeline(
    source: str | Path, *, settings: Sequence[str] = (), use_cases: Sequence[str] = ()
) -> PipelineConfig:
    """Return the configuration of a preset or a file, see `Request.source` and `changed_pipeline`.

    Raises:
        InputError: One line with the setting's path, its value, and what is allowed.
    """
    request = Request(source=source, settings=settings, options={"use_cases": use_cases})
    request.search_modules()
    found = load_source(request, kind="pipeline")
    return parse_pipeline(found.table, found.origin)


def changed_pipeline(
    table: dict[str, Any], settings: Sequence[str], use_cases: Sequence[str], origin: str
) -> dict[str, Any]:
    """Return a file's content with some settings changed.

    Args:
        table: The content.
        settings: ``section.key=value`` each.
        use_cases: The only use cases to keep; all if none is named.
        origin: Names the content in errors.

    Raises:
        InputError: There is no such use case.
    """
    inner = table.get(_TABLE)
    known = inner.get(_USE_CASES) if isinstance(inner, dict) else None
    if not isinstance(known, dict) or not known:
        raise InputError(f"{origin}: expected a table [pipeline.use_cases.NAME], got none.")
    paths = [setting.partition("=")[0].strip().split(".") for setting in settings]
    changed = [path[2] for path in paths if path[:2] == [_TABLE, _USE_CASES] and len(path) > 2]
    for name in (*changed, *use_cases):
        if name not in known:
            raise InputError(f"{origin}: unknown use case {name!r}{did_you_mean(name, known)}")
    apply_settings(table, settings)
    if use_cases:
        table[_TABLE][_USE_CASES] = {name: known[name] for name in known if name in use_cases}
    return table


def parse_pipeline(table: dict[str, Any], origin: str) -> PipelineConfig:
    """Return the configuration of a parsed TOML table; ``origin`` names it in errors."""
    try:
        config = PipelineConfig.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{origin}: {_explain(error)}") from None
    days = config.pipeline
    if days.publish_every is not None and days.publish_every > days.retention_days:
        raise InputError(
            f"{origin}: pipeline.publish_every = {days.publish_every}: expected at most "
            f"retention_days={days.retention_days}, as reports are kept no longer."
        )
    longest = 24 * (days.store_days + 1)
    if days.delay_distribution == "fixed" and days.delay_hours >= longest:
        raise InputError(
            f"{origin}: pipeline.delay_hours = {days.delay_hours:g}: expected less than {longest}, "
            f"as devices drop what was not sent after store_days={days.store_days}."
        )
    for name, use_case in days.use_cases.items():
        _check(use_case, f"{origin}: pipeline.use_cases.{name}")
    return config


def _check(use_case: UseCaseConfig, where: str) -> None:
    """Raise InputError where keys of a use case do not go together."""
    if bool(use_case.oracle) == bool(use_case.protocol):
        raise InputError(f'{where}: expected either oracle = NAME or protocol = "sfp".')
    given = use_case.domain.given
    if len(given) != 1:
        raise InputError(
            f"{where}.domain: expected one of values, words and population, got "
            f"{' and '.join(given) or 'none'}."
        )
    if use_case.protocol == SFP:
        if len(use_case.epsilons) != 2:
            raise InputError(
                f"{where}.epsilon = {literal(use_case.epsilon)}: expected two for sfp, of the word "
                "and of the fragment, such as [2.0, 6.0]."
            )
        if given == ["values"]:
            raise InputError(f"{where}.domain.values: sfp finds words; give words or population.")
    elif len(use_case.epsilons) != 1:
        raise InputError(
            f"{where}.epsilon = {literal(list(use_case.epsilons))}: expected one number for an "
            "oracle."
        )
    elif ":" in use_case.oracle:
        # Later, nobody knows which folder is next to the configuration.
        try:
            oracle_class(use_case.oracle)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


def _explain(error: ValidationError) -> str:
    """Return the first finding as one line."""
    first = error.errors()[0]
    loc = [part for part in first["loc"] if not _is_branch(part)]
    if first["type"] == "missing":
        return f"{'.'.join(map(str, loc))}: expected a value, got none."
    if first["type"] == "extra_forbidden":
        section: type[Section] = PipelineConfig
        if loc[:2] == [_TABLE, _USE_CASES]:
            section = DomainConfig if loc[3:4] == ["domain"] else UseCaseConfig
            known = list(section.model_fields)
            return f"unknown key {'.'.join(map(str, loc))}{did_you_mean(str(loc[-1]), known)}"
        return explain(error, section)
    expected = first["msg"].removeprefix("Input should be ")
    return f"{'.'.join(map(str, loc))} = {literal(first['input'])}: expected {expected}."


def _is_branch(part: Any) -> bool:
    """Return whether a part of a place is a branch of a union and no key."""
    return part in {"float", "int"} or any(sign in str(part) for sign in "[(")
