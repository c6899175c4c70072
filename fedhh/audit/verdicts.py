"""Whole audits in one call, as `fedhh audit` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.audit import pipelines
from fedhh.audit.audit import Finding, Verdict
from fedhh.audit.caps import CapReplay, replay_cap
from fedhh.audit.device_log import read_device_log
from fedhh.audit.devices import (
    FEWEST_DEVICES,
    Level,
    audit_device,
    neighboring_histories,
    stated_records,
    telling_epsilon,
)
from fedhh.audit.memory import audit_answer
from fedhh.audit.sources import audit_oracle, messages_to_sample
from fedhh.longitudinal.ledger import Charge, Rules, rules_of_configuration
from fedhh.longitudinal.ledger.macos import records_by_day, simulate
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
from fedhh.longitudinal.memoization import MemoizedBits, make_answer
from fedhh.longitudinal.records import OracleRecords
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.random import Stream, generator
from fedhh.validation import (
    InputError,
    did_you_mean,
    require_at_least,
    require_choice,
    require_inside,
    shown,
)

_LONGEST = 1_000
_EVENTS = 10
_CANDIDATES = 64
_MOST_RECORDS = 10**8
_LEVELS: tuple[Level, ...] = ("day", "user")


def audit_randomizer(
    oracle: str = "ss",
    *,
    local_epsilon: float,
    domain_size: int,
    num_samples: int | None = None,
    confidence: float = 0.999,
    seed: int = 0,
) -> Verdict:
    """Return a lower bound on the epsilon that a randomizer really gives, next to what it states.

    Audited are single reports, read as messages. Unit: an item; neighbors replace it.

    Args:
        oracle: The randomizer's key.
        local_epsilon: Its stated privacy.
        domain_size: Its values, the dummy included.
        num_samples: Reports; chosen if None.
        confidence: Of the verdict, in (0, 1).
        seed: Of all samples.

    Raises:
        InputError: A value is out of range.
    """
    randomizer = make_oracle(OracleSpec(name=oracle, epsilon=local_epsilon), domain_size)
    found = audit_oracle(
        randomizer,
        num_samples=messages_to_sample(randomizer) if num_samples is None else num_samples,
        rng=generator(seed, Stream.RANDOMIZER),
        confidence=confidence,
    )
    name = f"one report of {oracle}"
    return Verdict(
        title=name, confidence=confidence, findings={name: found}, facts={"unit": "item"}
    )


def audit_devices(
    rules: Rules,
    *,
    waiting: Mapping[str, Any] | None = None,
    num_days: int = 30,
    num_devices: int = 20_000,
    confidence: float = 0.99,
    seed: int = 0,
) -> Verdict:
    """Return lower bounds on what a pipeline's devices gave away, next to their caps.

    Devices are simulated, and what reaches the ingestor is read: numbers of records against every
    window of the caps, and reports of neighboring inputs (all events of a day, or of all days,
    replaced) against the number of records that is stated, at a smaller epsilon.

    Args:
        rules: Charges and caps.
        waiting: ``delay`` and ``store_days`` of `PipelineDevices`; no delay if None.
        num_days: Days of every device, 1 to 1000.
        num_devices: With each of two neighboring inputs, at least 8.
        confidence: Of the verdict, all parts together, in (0, 1).
        seed: Of the devices.

    Raises:
        InputError: A value is out of range.
    """
    _check(num_days, confidence, seed)
    require_at_least(FEWEST_DEVICES, devices=num_devices)
    busiest = max(cap.amount for cap in rules.caps.values())
    if num_devices * num_days * busiest > _MOST_RECORDS:
        raise InputError(
            f"Expected devices times days times records of at most {_MOST_RECORDS:,}, got "
            f"{num_devices * num_days * busiest:,}; use fewer --devices or --days."
        )
    each = 1 - (1 - confidence) / (len(rules.charges) * len(_LEVELS))
    sent: list[CapReplay] = []
    findings: dict[str, Finding] = {}
    for index, charge in enumerate(rules.charges):
        cap = rules.caps[charge.use_case]
        owners, days = [], []
        for place, level in enumerate(_LEVELS):
            # A balance is largest when a session begins, and larger the later that is.
            last_session = (num_days - 1) // cap.session_days * cap.session_days
            histories = neighboring_histories(
                level,
                num_days=num_days,
                events_per_day=2 * cap.amount + 3,
                day=last_session if level == "day" else 0,
            )
            most = stated_records(charge.epsilon, cap, histories).times
            spec = OracleSpec(name="grr", epsilon=telling_epsilon(charge.epsilon, most))
            form = OracleRecords(spec=spec, domain_size=2)
            found = audit_device(
                pipelines.PipelineDevices(form=form, cap=cap, **(waiting or {})),
                histories,
                num_devices=num_devices,
                rng=generator(seed, Stream.RANDOMIZER, index, place),
                confidence=each,
            )
            # The devices of each level are others, two histories of them.
            owners.append(found.devices + 2 * num_devices * place)
            days.append(found.days)
            what = "one day" if level == "day" else f"all {num_days} days"
            findings[f"{charge.use_case}, {what}"] = found.found
        replay = replay_cap(cap, np.concatenate(owners), np.concatenate(days))
        sent.append(_replay_of(charge, num_days, replay))
    return Verdict(
        title="devices of a pipeline",
        confidence=confidence,
        findings=findings,
        sent=tuple(sent),
        facts=_facts(num_devices, num_days),
        notes=(
            "Rules of sending are audited with two values and a smaller epsilon, on which they do "
            "not depend: of the stated one, many records identify a history, however few. "
            "What one record gives away: fedhh audit randomizer.",
        ),
    )


def audit_log(rules: Rules, log: Path) -> Verdict:
    """Return whether devices kept to caps, by a log of what they sent.

    Args:
        rules: What is stated.
        log: Columns device, day, use_case and perhaps records; Parquet, CSV or JSON Lines.

    Raises:
        InputError: The log cannot be read, or has a use case without a cap.
    """
    read = read_device_log(log)
    charges = {charge.use_case: charge for charge in rules.charges}
    sent = []
    for use_case in read.use_cases:
        if use_case not in charges:
            raise InputError(
                f"Unknown use case {shown(use_case)} in {log.name}{did_you_mean(use_case, charges)}"
            )
        replay = replay_cap(rules.caps[use_case], *read.of(use_case))
        spoken_of = [each.device for each in (replay.first, replay.worst) if each is not None]
        names = {device: read.name_of(device) for device in spoken_of}
        sent.append(_replay_of(charges[use_case], read.num_days, replace(replay, names=names)))
    return Verdict(
        title=f"the log {log.name}",
        confidence=1.0,
        sent=tuple(sent),
        facts=_facts(read.num_devices, read.num_days),
        notes=("Only numbers of records are read; reports of single histories show nothing.",),
    )


def audit_memo(
    answer: str,
    *,
    local_epsilon: float,
    num_days: int = 60,
    num_devices: int = 3_000,
    confidence: float = 0.99,
    seed: int = 0,
    **settings: Any,
) -> Verdict:
    """Return lower bounds on what a memoized answer gave away, next to what is stated.

    Devices answer every day about one value, and about two in turn; neighbors have the other value
    on every day. Unit: all reports of one device, linked; delta 0. The control draws the permanent
    response again every day.

    Args:
        answer: One of `fedhh.longitudinal.memoization.ANSWERS` but "fresh".
        local_epsilon: Of all reports about one value, as stated.
        num_days: A report on each, 1 to 1000.
        num_devices: With each of two neighboring inputs, at least 8.
        confidence: Of the verdict, all parts together, in (0, 1).
        seed: Of the devices.
        settings: Of the answer.

    Raises:
        InputError: A value is out of range, or the answer is not memoized.
    """
    _check(num_days, confidence, seed)
    require_at_least(FEWEST_DEVICES, devices=num_devices)
    made = make_answer(answer, local_epsilon=local_epsilon, **settings)
    if not isinstance(made, MemoizedBits):
        raise InputError(
            "Expected a memoized answer, which states what all its reports give away, got "
            f"{answer}."
        )
    pair = _pair(made)
    histories = {"always one value": (np.full(num_days, pair[0]), np.full(num_days, pair[1]))}
    if num_days > 1:
        turns = np.resize(pair, num_days), np.resize(pair[::-1], num_days)
        histories["two values in turn"] = turns
    findings: tuple[dict[str, Finding], ...] = ({}, {})
    for place, (what, (first, second)) in enumerate(histories.items()):
        for redrawn in (False, True):
            findings[redrawn][f"{answer}, {what}"] = audit_answer(
                made,
                first,
                second,
                num_devices=num_devices,
                rng=generator(seed, Stream.MEMOIZATION, place, int(redrawn)),
                confidence=1 - (1 - confidence) / len(histories),
                redrawn=redrawn,
            )
    return Verdict(
        title=f"{answer}, a report a day",
        confidence=confidence,
        findings=findings[0],
        controls=findings[1],
        facts=_facts(num_devices, num_days),
        notes=(
            "Of histories whose values repeat and differ on the same days: that a value changed is "
            "not hidden by memoization.",
        ),
    )


def audit_budget_manager(preset: str, *, num_days: int = 30, seed: int = 0) -> Verdict:
    """Return what a saturating device sent under an audited budget manager, next to its balances.

    Args:
        preset: One of `fedhh.longitudinal.ledger.macos_presets.CONFIGURATIONS`.
        num_days: Days from opt-in, 1 to 1000.
        seed: Of the device.

    Raises:
        InputError: A value is out of range, or there is no such system.
    """
    _check(num_days, seed=seed)
    require_choice(CONFIGURATIONS, preset=preset)
    rules = rules_of_configuration(CONFIGURATIONS[preset])
    device = simulate(
        CONFIGURATIONS[preset],
        num_days=num_days,
        events_per_day=_EVENTS,
        rng=generator(seed, Stream.QUEUE),
    )
    names = [charge.use_case for charge in rules.charges]
    counts = records_by_day(device.reports, names, num_days)
    days = np.arange(num_days)
    return Verdict(
        title=f"a saturating device under {preset}",
        confidence=1.0,
        sent=tuple(
            _replay_of(charge, num_days, replay_cap(cap, np.zeros_like(days), days, sent))
            for charge, cap, sent in zip(rules.charges, rules.caps.values(), counts.T, strict=True)
        ),
        facts=_facts(1, num_days),
        notes=("Its caps are those of balances, which unused budget raises without limit.",),
    )


def _replay_of(charge: Charge, num_days: int, replay: CapReplay) -> CapReplay:
    return replace(replay, use_case=charge.use_case, epsilon=charge.epsilon, num_days=num_days)


def _facts(num_devices: int, num_days: int) -> dict[str, Any]:
    return {"num_devices": num_devices, "num_days": num_days}


def _check(num_days: int, confidence: float = 0.5, seed: int = 0) -> None:
    """Raise InputError unless days, confidence and seed are those of an audit."""
    require_inside(0, 1, confidence=confidence)
    require_at_least(0, seed=seed)
    require_at_least(1, days=num_days)
    if num_days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={num_days}.")


def _pair(answer: MemoizedBits) -> tuple[float, float]:
    """Return two values that are the easiest to distinguish, or nearly so."""
    if answer.step is not None or answer.most < _CANDIDATES:
        return 0, 1
    # Values whose permanent bits are as likely are harder to distinguish: filters share bits.
    public = answer.draw_public(1, np.random.default_rng(0))
    chances = [answer.chances(public, np.array([value])) for value in range(_CANDIDATES)]
    return 0, int(np.argmax([np.abs(each - chances[0]).sum() for each in chances]))
