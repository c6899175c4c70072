"""What `fedhh account ledger` was asked for: rules, a life, and what a busy device does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedhh.accounting.ledger import (
    APPLE,
    Charge,
    Ledger,
    LedgerReport,
    Rules,
    Spending,
    before_under_reports,
    most_under_reports,
    rules_of_configuration,
    rules_of_run,
)
from fedhh.budgets.cap import Cap
from fedhh.budgets.macos import HOUR, live, loss_by_day, most_within, records_by_day
from fedhh.budgets.macos_configuration import INITIALLY_ANNOUNCED, Configuration
from fedhh.budgets.macos_presets import CONFIGURATIONS
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_choice, require_positive, shown

if TYPE_CHECKING:
    from fedhh.experiments.config.schema import Config
    from fedhh.protocol import AnyProtocol

_UNLIMITED = "unlimited"
_RULE = "NAME=EPSILON:RECORDS[/DAYS][:ROLLOVER[:LIFETIME]]"
_PERMANENT = "NAME=EPSILON:VALUES"
_EVENTS, _EVERY, _KEY_NAMES = 10, 7, 1
_LONGEST = 3_650
"""Days: ten years."""
_MOST_EVENTS, _MOST_NAMES, _MOST_A_DAY = 100, 160, 400
_LARGEST_INTEGER = 10**5


@dataclass(frozen=True, kw_only=True)
class LedgerRequest:
    """Options of the command, as they were given."""

    preset: str | None
    use_cases: tuple[str, ...]
    permanent: tuple[str, ...]
    run: str | None
    settings: tuple[str, ...]
    every: int | None
    num_days: int
    without: tuple[str, ...]
    key_names: int | None
    idle_days: int | None
    busy_days: int | None
    events: int | None
    delta: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class BusyDevice:
    """What a device under an audited budget manager really sent.

    Attributes:
        permitted_per_day: Epsilon times SessionAmount per day of its session, of all budgets and of
            the applications announced in 2016 (Tang et al. 2017, section 4.2.3).
        spending: Losses of it, as a ledger of one device.
        by_day: Sums of epsilons on each day from opt-in.
        largest_in_24_hours: In any 24 hours.
        reports: Reports that it sent.
        events: Events of each name on each day that is not idle.
        idle_days: Days without any.
    """

    permitted_per_day: dict[str, float]
    spending: Spending
    by_day: list[float]
    largest_in_24_hours: float
    reports: int
    events: int
    idle_days: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is printed.

    Attributes:
        title: Of what rules.
        rules: The rules.
        most_in_life: The most records of each use case in so many days of life.
        report: Guarantees for all of it.
        busy: What a busy device sent; None but for audited systems.
        notes: What a reader has to know besides.
    """

    title: str
    rules: Rules
    most_in_life: Callable[[int], list[int]]
    report: LedgerReport
    busy: BusyDevice | None
    notes: tuple[str, ...]


def answer(request: LedgerRequest) -> Answer:
    """Return what a device loses under the rules that were asked for.

    Raises:
        InputError: Options contradict each other, or one is out of range.
    """
    require_at_least(1, days=request.num_days)
    if request.num_days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={request.num_days}.")
    own = bool(request.use_cases or request.permanent)
    if sum([request.preset is not None, own, request.run is not None]) != 1:
        raise InputError(
            "Expected one of --preset, --run, and rules of your own by --use-case and --permanent."
        )
    if request.run is None and (request.settings or request.every is not None):
        raise InputError("Expected --set and --every only with --run.")
    if request.preset is not None and request.preset in CONFIGURATIONS:
        return _of_audited(request, CONFIGURATIONS[request.preset])
    given = (request.key_names, request.idle_days, request.busy_days, request.events)
    if any(each is not None for each in given):
        raise InputError(
            "Expected --key-names, --idle-days, --busy-days and --events only with a --preset of "
            f"{', '.join(CONFIGURATIONS)}."
        )
    rules, title = _rules(request)
    rules = rules.without(request.without)
    ledger = Ledger(charges=rules.charges, num_days=request.num_days, delta=request.delta)

    return Answer(
        title=title,
        rules=rules,
        most_in_life=lambda days: ledger.most_in_life(rules.caps, num_days=days),
        report=ledger.before(rules.caps),
        busy=None,
        notes=rules.notes,
    )


def _rules(request: LedgerRequest) -> tuple[Rules, str]:
    """Return rules that are caps alone, and what they are called."""
    if request.preset is not None:
        require_choice(["apple", *CONFIGURATIONS], preset=request.preset)
        return APPLE, "Apple's published caps"
    if request.run is not None:
        return _of_run(request, request.run)
    pairs = [
        *(use_case_rule(text) for text in request.use_cases),
        *(_permanent(text) for text in request.permanent),
    ]
    rules = Rules(
        charges=tuple(charge for charge, _ in pairs),
        caps={charge.use_case: cap for charge, cap in pairs},
    )
    return rules, "your own rules"


def _of_run(request: LedgerRequest, run: str) -> tuple[Rules, str]:
    """Return the rules of a run that starts anew every so many days."""
    every = _EVERY if request.every is None else request.every
    require_at_least(1, every=every)
    config, protocol = _planned(run, request.settings)
    rules = rules_of_run(protocol.mechanism, every=every, name=config.protocol.name)
    return rules, f"{protocol.title} every {every} days"


def _planned(run: str, settings: tuple[str, ...]) -> tuple[Config, AnyProtocol]:
    """Return a run's configuration and its settled protocol: of a preset, a file, a directory."""
    from fedhh.experiments.config.built_in import preset_names
    from fedhh.experiments.config.population import build_population
    from fedhh.experiments.config.schema import load_config
    from fedhh.experiments.run.run import check_config
    from fedhh.experiments.run.stored_result import read_protocol

    is_preset = run in preset_names()
    if not is_preset and Path(run).is_dir():
        if settings:
            raise InputError(
                f"Expected no --set with the directory of a finished run, {run}; give the file "
                "config.toml in it to ask about other settings."
            )
        return read_protocol(Path(run))
    config = load_config(
        preset=run if is_preset else None,
        file=None if is_preset else Path(run),
        settings=settings,
    )
    population, _ = build_population(config.population, seed=config.seed)
    return config, check_config(config, population)[1]


def _of_audited(request: LedgerRequest, shipped: Configuration) -> Answer:
    """Return the ledger of an audited system, and what a busy device sends under it."""
    short = {name.rpartition(".")[2]: name for name in shipped.paid_budgets}
    configuration = shipped.without([short.get(name, name) for name in request.without])
    rules = rules_of_configuration(configuration)
    ledger = Ledger(charges=rules.charges, num_days=request.num_days, delta=request.delta)
    key_names = _KEY_NAMES if request.key_names is None else request.key_names
    events = _EVENTS if request.events is None else request.events
    idle_days = 0 if request.idle_days is None else request.idle_days
    for most, name, value in (
        (_MOST_NAMES, "key_names", key_names),
        (_MOST_EVENTS, "events", events),
    ):
        require_at_least(1, **{name: value})
        if value > most:
            raise InputError(f"Expected {name} <= {most}, got {name}={value}.")
    if events * key_names > _MOST_A_DAY:
        raise InputError(
            f"Expected events * key_names <= {_MOST_A_DAY}, got {events} * {key_names}."
        )

    device = live(
        configuration,
        num_days=request.num_days,
        idle_days=idle_days,
        busy_days=request.busy_days,
        events_per_day=events,
        key_names=key_names,
        rng=generator(request.seed, Stream.QUEUE),
    )
    sent = records_by_day(device.reports, ledger.use_cases, request.num_days)
    announced = [name for name in INITIALLY_ANNOUNCED if name in configuration.paid_budgets]
    permitted = {
        "all": configuration.loss_per_day(),
        "announced in 2016": configuration.loss_per_day(announced),
    }
    return Answer(
        title=f"{request.preset}, as audited",
        rules=rules,
        most_in_life=lambda days: most_under_reports(
            configuration, ledger, key_names=key_names, num_days=days
        ),
        report=before_under_reports(configuration, ledger, key_names=key_names),
        busy=BusyDevice(
            permitted_per_day=permitted,
            spending=ledger.spent(np.expand_dims(sent, 2)),
            by_day=loss_by_day(device.reports, request.num_days),
            largest_in_24_hours=most_within(device.reports, 24 * HOUR),
            reports=len(device.reports),
            events=events,
            idle_days=idle_days,
        ),
        notes=rules.notes,
    )


def use_case_rule(text: str) -> tuple[Charge, Cap]:
    """Return the charge and the cap of one --use-case."""
    name, epsilons, fields = _fields(text, "--use-case", _RULE, most=3)
    records, _, days = fields[0].partition("/")
    unlimited = len(fields) > 1 and fields[1] == _UNLIMITED
    rollover = None if unlimited else _integer(fields[1], text) if len(fields) > 1 else 0
    cap = Cap(
        amount=_integer(records, text),
        session_days=_integer(days, text) if "/" in fields[0] else 1,
        rollover=rollover,
        lifetime=_integer(fields[2], text) if len(fields) > 2 else None,
    )
    reports = epsilons if len(epsilons) > 1 else ()
    return Charge(use_case=name, epsilon=sum(epsilons), reports=reports), cap


def _permanent(text: str) -> tuple[Charge, Cap]:
    """Return the charge and the cap of one --permanent."""
    name, epsilons, fields = _fields(text, "--permanent", _PERMANENT, most=1)
    if len(epsilons) != 1:
        raise InputError(f"Expected one epsilon in --permanent {_PERMANENT}, got {shown(text)}.")
    values = _integer(fields[0], text)
    # All of a device's values may come up on one day.
    cap = Cap(amount=values, rollover=None, lifetime=values)
    charge = Charge(use_case=name, epsilon=epsilons[0], once_per_value=True, most_values=values)
    return charge, cap


def _fields(
    text: str, option: str, form: str, *, most: int
) -> tuple[str, tuple[float, ...], list[str]]:
    """Return the name, the epsilons, and what follows them."""
    name, equals, rest = text.partition("=")
    first, *fields = rest.split(":")
    if not (name and equals and first and 1 <= len(fields) <= most):
        raise InputError(f"Expected {option} {form}, got {shown(text)}.")
    epsilons = []
    for part in first.split("+"):
        try:
            epsilons.append(float(part))
        except ValueError:
            raise InputError(
                f"Expected a number as epsilon in {option} {form}, got {shown(text)}."
            ) from None
    for epsilon in epsilons:
        require_positive(**{f"epsilon of {name}": epsilon})
    return name, tuple(epsilons), fields


def _integer(part: str, text: str) -> int:
    try:
        number = int(part)
    except ValueError:
        raise InputError(f"Expected an integer for {shown(part)} in {shown(text)}.") from None
    if number > _LARGEST_INTEGER:
        raise InputError(
            f"Expected at most {_LARGEST_INTEGER}, got {shown(part)} in {shown(text)}."
        )
    return number
