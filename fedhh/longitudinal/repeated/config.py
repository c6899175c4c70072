"""The configuration of a repeated collection: that of a run, and `[longitudinal]`."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field, ValidationError

from fedhh.accounting.plan import Plan
from fedhh.experiments.config.client_file import refuse_layout
from fedhh.experiments.config.domain import FROM_DATA
from fedhh.experiments.config.load import apply_settings, explain, parse_config, use_data
from fedhh.experiments.config.population import (
    has_none_of,
    is_synthetic,
    own_list,
    population_class,
    population_model,
)
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import (
    DEFAULT_PROTOCOL,
    CountOrAuto,
    Section,
    one_of,
    switch_protocol,
)
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import load_source
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.protocol import DiscoveryProtocol
from fedhh.settings import AUTO, Count, Positive
from fedhh.validation import InputError

SECTION = "longitudinal"
YEAR = 365
"""Days of the window that a yearly loss is about."""

_DAYS_OF = {"keyboard60d": 60.0}
"""Days that a preset's model describes, where its source says so; others are taken for a week."""
_WEEK = 7.0

_Days = Annotated[int, Ge(1), Le(36_500)]
_DaysOrAll = _Days | Literal["all"]
_CountOrUnlimited = Annotated[int, Ge(0)] | Literal["unlimited"]
_Share = Annotated[float, Ge(0), Le(1)]
_DaysOrAuto = Positive | Literal["auto"]
_DaysOrForever = Positive | Literal["forever"]
_ArrivalsOrAuto = Annotated[int, Ge(0)] | Literal["auto"]


class CapSection(Section):
    """How often a device may answer, see `fedhh.longitudinal.ledger.cap.Cap`.

    Attributes:
        amount: Rounds that a device may answer in a session.
        session_days: Days of a session.
        rollover: Most unused rounds that the next session inherits, or "unlimited".
        lifetime: Most rounds that a device ever answers, or "unlimited".
    """

    amount: Count = 1
    session_days: Count = 28
    rollover: Annotated[_CountOrUnlimited, one_of(_CountOrUnlimited)] = 0
    lifetime: Annotated[Count | Literal["unlimited"], one_of(Count | Literal["unlimited"])] = (
        "unlimited"
    )

    @property
    def cap(self) -> Cap:
        """The cap that the table says."""
        return Cap(
            amount=self.amount,
            session_days=self.session_days,
            rollover=self.rollover if isinstance(self.rollover, int) else None,
            lifetime=self.lifetime if isinstance(self.lifetime, int) else None,
        )


class LongitudinalSection(Section):
    """A repeated collection.

    Attributes:
        days: Days that are simulated; of a file, its first ones, or "all".
        every_days: Days of a period: each ends with a run.
        model_days: Of a synthetic population: the days that its model describes, of which a period
            types its part; "auto": 60 for keyboard60d, a week for others.
        born_share: Of a synthetic population: share of its new words that is born in these days.
        rise_days: From a word's birth to half of its peak.
        fading_share: Share of the words that are born that falls again after the rise.
        half_life_days: Of those.
        lifetime_days: Of a synthetic population: mean days that a device takes part, or "forever".
        arrivals: Of a synthetic population: devices that arrive with each period; "auto": as many
            as leave in the mean.
        cap: How often a device may answer.
        yearly_loss: In place of ``cap``: what a device may lose in each year since it arrived, by
            basic composition at user level. Each value is a case of its own, in which a device
            answers as many rounds in a session of 365 days as that allows.
        devices_per_run: Devices that a run asks; "auto": so many that each answers as often as its
            cap allows, spread evenly over time.
        min_devices: A period in which fewer devices have budget left is skipped.
        publish: Which words a run publishes: the "significant" ones (``metrics.significance_z``),
            or "all" that the protocol returns. Published words are known to all devices from the
            next period on.
        classes: Lower bounds of classes of words, by how many people in 1,000 use one in its best
            period.
        protocols: Protocols to compare: a table of `[protocol]` settings for each label. A table
            with the name of `[protocol]` changes it; another one keeps of it what a client
            contributes.
    """

    days: Annotated[_DaysOrAll, one_of(_DaysOrAll)] = 182
    every_days: Annotated[int, Ge(1), Le(3_650)] = 7
    model_days: Annotated[_DaysOrAuto, one_of(_DaysOrAuto)] = "auto"
    born_share: _Share = 0.3
    rise_days: Annotated[float, Gt(0), Lt(math.inf)] = 14.0
    fading_share: _Share = 0.5
    half_life_days: Annotated[float, Gt(0), Lt(math.inf)] = 60.0
    lifetime_days: Annotated[_DaysOrForever, one_of(_DaysOrForever)] = 730.0
    arrivals: Annotated[_ArrivalsOrAuto, one_of(_ArrivalsOrAuto)] = "auto"
    cap: CapSection | None = None
    yearly_loss: tuple[Positive, ...] = Field(default=(), strict=False)
    devices_per_run: CountOrAuto = "auto"
    min_devices: Count = 1_000
    publish: Literal["significant", "all"] = "significant"
    classes: tuple[Positive, ...] = Field(default=(1.0, 2.0, 5.0, 10.0, 20.0), strict=False)
    protocols: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One protocol under one cap, over all periods.

    Attributes:
        label: What tables call the protocol.
        config: The configuration of its runs.
        cap: How often a device may answer.
        asked_loss: The yearly loss that the cap was made for; None if it was given as a cap.
        reports: Local epsilons of what a device sends in one round; they add up to what it tells.
        cost: Rounds that a device answers in one run.
    """

    label: str
    config: Config
    cap: Cap
    asked_loss: float | None
    reports: tuple[float, ...]
    cost: int

    @property
    def run_loss(self) -> float:
        """What one run tells of a device that answers: a local epsilon, at user level."""
        return math.fsum(self.reports) * self.cost

    @property
    def name(self) -> str:
        """Label, with the yearly loss where that was asked for."""
        return self.label if self.asked_loss is None else f"{self.label} @ {self.asked_loss:g}"

    def most_runs(self, days: int, *, of_days: int, every_days: int) -> int:
        """Return the most runs that a device answers in any ``days`` of ``of_days`` in a row.

        Rounds are asked for on the first day of each period, in at most ``ceil(days / every_days)``
        periods of such a window.
        """
        window = min(days, of_days)
        allowed = self.cap.most_in_any(window, of_days=of_days) // self.cost
        return min(allowed, -(-window // every_days))


@dataclass(frozen=True, kw_only=True)
class RepeatedPlan:
    """A repeated collection, checked.

    Attributes:
        config: That of a run, without `[longitudinal]`.
        section: `[longitudinal]`.
        arms: What is compared; at least one.
    """

    config: Config
    section: LongitudinalSection
    arms: tuple[Arm, ...]

    @property
    def result_key(self) -> str:
        """Hexadecimal hash of everything that makes the result."""
        content = [self.config.result_key, self.section.model_dump(mode="json")]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def to_toml(self) -> str:
        """Return the file that gives this plan again."""
        table = self.config.model_dump(mode="json", exclude_none=True)
        table[SECTION] = self.section.model_dump(mode="json", exclude_none=True)
        return tomli_w.dumps(table)


def load_plan(
    source: str | Path | None = None, *, settings: Sequence[str] = (), data: Path | None = None
) -> RepeatedPlan:
    """Return the plan of a preset or a file, see `Request.source`; of "weekly" without one.

    Raises:
        InputError: One line with the setting's path, its value, and what is allowed.
    """
    request = Request(source=source, settings=settings, data=data)
    request.search_modules()
    found = load_source(request, kind="repeated-collection")
    return parse_plan(found.table, found.origin)


def changed_plan(
    table: dict[str, Any],
    *,
    settings: Sequence[str] = (),
    data: Path | None = None,
    protocols: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a file's content with some settings changed.

    Args:
        table: The content.
        settings: ``section.key=value`` each.
        data: A file of clients with a column of days, in place of the configured ones.
        protocols: Names of protocols to compare, in place of the configured ones.
    """
    if data is not None:
        use_data(table, data)
        table.setdefault(SECTION, {}).setdefault("days", "all")
    apply_settings(table, settings)
    section = table.setdefault(SECTION, {})
    if protocols and isinstance(section, dict):
        listed = section.get("protocols", {})
        section["protocols"] = {name: listed.get(name, {"name": name}) for name in protocols}
    return table


def parse_plan(table: dict[str, Any], origin: str) -> RepeatedPlan:
    """Return the plan of a parsed TOML table; ``origin`` names it in errors.

    Raises:
        InputError: The first thing that is wrong, in one line.
    """
    base = copy.deepcopy(table)
    content = base.pop(SECTION, {})
    if "baseline" in base:
        raise InputError(
            f"{origin}: [baseline] belongs to fedhh run; list protocols in [{SECTION}.protocols]."
        )
    try:
        section = LongitudinalSection.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{origin}: {explain(error, LongitudinalSection, SECTION)}") from None
    config = parse_config(base, origin)
    try:
        _require_local_epsilon(config)
        _check(config, section)
        arms = tuple(_arms(base, config, section, origin))
    except InputError as error:
        prefix = "" if str(error).startswith(origin) else f"{origin}: "
        raise InputError(f"{prefix}{error}") from None
    return RepeatedPlan(config=config, section=section, arms=arms)


def cap_of_loss(loss: float, run_loss: float, *, label: str, cost: int) -> Cap:
    """Return the cap under which a device loses at most so much in each of its years.

    A year is a session of 365 days from the day on which the device arrives. Days around the end of
    one may fall into two: 365 days in a row can take up to twice that, as `Arm.most_runs` says.

    Raises:
        InputError: Not even one run fits.
    """
    # A hair's breadth, as 416 / 8.32 may come out below 50.
    runs = math.floor(loss / run_loss * (1 + 1e-12))
    if not runs:
        raise InputError(
            f"{SECTION}.yearly_loss = {loss:g}: expected at least {run_loss:g}, what one run of "
            f"{label} takes from a device; raise it, or lower privacy.local_epsilon or "
            "protocol.max_items."
        )
    if runs > YEAR:
        raise InputError(
            f"{SECTION}.yearly_loss = {loss:g}: expected at most {YEAR * run_loss:g}, what a run "
            f"of {label} every day takes from a device; lower it."
        )
    return Cap(amount=cost * runs, session_days=YEAR)


def reports_of(plan: Plan, label: str) -> tuple[float, ...]:
    """Return the local epsilons of what a device sends in one round, one for each contribution.

    Their sum is the round's local epsilon at user level, by basic composition, as
    `Plan.local_guarantee` states it.

    Raises:
        InputError: Devices of the plan have no local privacy.
    """
    if not math.isfinite(plan.local_epsilon):
        raise InputError(
            f"{label}: expected a protocol whose devices all randomize what they send, since a "
            "device's loss over months is that of its own reports; choose another protocol."
        )
    times = 1 if plan.is_of_whole_set else plan.max_items
    return (plan.local_epsilon,) * times


def model_days(config: Config, section: LongitudinalSection) -> float:
    """Return the days that a synthetic population's model describes."""
    if isinstance(section.model_days, float | int):
        return section.model_days
    return _DAYS_OF.get(config.population.source, _WEEK)


def _require_local_epsilon(config: Config) -> None:
    if (target := config.privacy.central_target) is not None:
        raise InputError(
            f"privacy.{target[0]}_central_epsilon = {target[1]:g}: expected privacy.local_epsilon, "
            "since each period asks other numbers of devices."
        )


def _check(config: Config, section: LongitudinalSection) -> None:
    population = config.population
    key = "population.source"
    if population_class(population.source) is not None:
        raise InputError(f"{key} = {population.source!r}: expected a preset, or a file with days.")
    if config.devices is not None:
        raise InputError(
            "devices: expected no such table, since the rounds of a repeated collection have all "
            "their answers within a period; remove it."
        )
    if section.cap is not None and section.yearly_loss:
        raise InputError(
            f"{SECTION}.yearly_loss: expected it or [{SECTION}.cap], got both; remove one."
        )
    if any(high <= low for low, high in zip(section.classes, section.classes[1:], strict=False)):
        raise InputError(f"{SECTION}.classes: expected rising bounds, got {section.classes}.")
    if not section.classes or section.classes[-1] >= 1_000:
        raise InputError(f"{SECTION}.classes: expected bounds below 1,000, got {section.classes}.")
    if FROM_DATA in (population.alphabet, population.candidates):
        raise InputError(
            "population: expected an alphabet and candidates that are public, got from-data, "
            "which would be another one in each period."
        )
    if not is_synthetic(population):
        if population.clients is not None:
            raise InputError(
                f"population.clients: expected all users of {population.source}; remove the key."
            )
        return
    refuse_layout(population)
    model = population_model(population)
    if population.clients is None:
        raise InputError("population.clients is missing: say how many devices there are at first.")
    if not has_none_of(population.known, model):
        raise InputError(
            f"population.known = {population.known!r}: expected {own_list(model)} or none for a "
            "synthetic population, whose words are made to be in neither."
        )
    if section.days == "all":
        raise InputError(f'{SECTION}.days = "all": expected a number for a synthetic population.')
    if section.days < section.every_days:
        raise InputError(
            f"{SECTION}.days = {section.days}: expected at least one period of "
            f"{SECTION}.every_days = {section.every_days} days."
        )


def _arms(
    base: dict[str, Any], config: Config, section: LongitudinalSection, origin: str
) -> list[Arm]:
    table = base.get("protocol", {})
    listed = section.protocols or {table.get("name", DEFAULT_PROTOCOL): {}}
    arms = []
    for label, changes in listed.items():
        if not label.strip():
            raise InputError(f"{SECTION}.protocols: expected a label for each, got an empty one.")
        name = changes.get("name", table.get("name", DEFAULT_PROTOCOL))
        whole = copy.deepcopy(base)
        try:
            whole["protocol"] = {**switch_protocol(table, name), **changes}
        except InputError as error:
            raise InputError(f"{SECTION}.protocols.{label}: {error}") from None
        own = parse_config(whole, f"{origin}, protocol {label}")
        protocol = _settled(own, section)
        plan = protocol.plan
        reports, cost = reports_of(plan, label), plan.most_rounds_per_client
        loss = math.fsum(reports) * cost
        caps: list[tuple[float | None, Cap]] = [
            (each, cap_of_loss(each, loss, label=label, cost=cost)) for each in section.yearly_loss
        ] or [(None, (section.cap or CapSection()).cap)]
        for asked, cap in caps:
            if cap.amount < cost and cap.rollover is not None:
                raise InputError(
                    f"{SECTION}.cap.amount = {cap.amount}: expected at least {cost}, the rounds "
                    f"that a device answers in one run of {label}."
                )
            arms.append(
                Arm(label=label, config=own, cap=cap, asked_loss=asked, reports=reports, cost=cost)
            )
    return arms


def _settled(config: Config, section: LongitudinalSection) -> DiscoveryProtocol:
    """Return the protocol of a first run, which says what a device loses in it."""
    devices = config.population.clients or 10**9
    if section.devices_per_run != AUTO:
        devices = min(devices, int(section.devices_per_run))
    return build_protocol(config).settle(num_clients=devices, seed=config.seed)
