"""What `fedhh account audit-life` was asked for, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.accounting import (
    LifeFinding,
    audit_device,
    neighboring_lives,
    replay_cap,
    stated_trade_off,
    telling_epsilon,
)
from fedhh.accounting.answer_audit import RedrawnDaily, audit_answer
from fedhh.accounting.ledger import APPLE, Charge, Rules, rules_of_configuration
from fedhh.accounting.life_audit import Level
from fedhh.budgets.cap import Cap
from fedhh.budgets.macos import live, records_by_day
from fedhh.budgets.macos_presets import CONFIGURATIONS
from fedhh.cli.account.ledger_request import use_case_rule
from fedhh.cli.account.life_audit_verdict import LifeVerdict, SentRecords, ShownAnswers
from fedhh.cli.account.memo_table import make_answer, settings_of
from fedhh.clients.devices.model import Delay
from fedhh.experiments.pipeline.audited_devices import PipelineDevices
from fedhh.experiments.pipeline.config import load_pipeline, pipeline_presets
from fedhh.experiments.pipeline.device_log import DeviceLog, read_device_log
from fedhh.oracles import OracleSpec
from fedhh.oracles.memoised import DailyAnswer, MemoisedRappor
from fedhh.queries.records import OracleRecords
from fedhh.random import Stream, generator
from fedhh.validation import (
    InputError,
    did_you_mean,
    require_at_least,
    require_choice,
    require_inside,
    shown,
)

DAYS, ANSWERING_DAYS = 30, 60
DEVICES, ANSWERING_DEVICES = 20_000, 3_000
_LONGEST = 1_000
_MOST_RECORDS = 10**8
_EVENTS = 10
_ORACLE = "grr"
_AT_ONCE = Delay(hours=0.0)
_LEVELS: tuple[Level, ...] = ("day", "user")


@dataclass(frozen=True, kw_only=True)
class LifeAuditRequest:
    """Options of the command, as they were given; in ``given`` those of an answer."""

    preset: str | None
    use_cases: tuple[str, ...]
    pipeline: str | None
    transcript: Path | None
    answer: str | None
    local_epsilon: float | None
    given: Mapping[str, Any]
    days: int | None
    devices: int | None
    confidence: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How records wait on devices; not at all if nothing is said.

    Attributes:
        delay: Until they may be sent.
        store_days: Days after which they are dropped.
    """

    delay: Delay = _AT_ONCE
    store_days: int = 14


def audit_lives(request: LifeAuditRequest) -> LifeVerdict:
    """Return what devices gave away, beside what is stated of them.

    Raises:
        InputError: Options contradict each other, one is out of range, or the log cannot be read.
    """
    require_inside(0, 1, confidence=request.confidence)
    require_at_least(0, seed=request.seed)
    if request.answer is not None:
        if request.preset or request.use_cases or request.pipeline or request.transcript:
            raise InputError(
                "Expected --answer without --preset, --use-case, --pipeline and --transcript: it "
                "has no caps."
            )
        return _of_answer(request, request.answer)
    given = {"local_epsilon": request.local_epsilon, **request.given}
    for option, value in given.items():
        if value is not None:
            raise InputError(f"Expected --{option.replace('_', '-')} only with --answer.")
    given_rules = (request.preset is not None, bool(request.use_cases), bool(request.pipeline))
    if sum(given_rules) != 1:
        raise InputError("Expected one of --preset, --use-case, --pipeline and --answer.")
    rules, waiting = _rules(request)
    if request.transcript is not None:
        if request.days is not None or request.devices is not None:
            raise InputError("Expected --transcript without --days and --devices: a log has both.")
        return _of_log(rules, read_device_log(request.transcript), request.transcript.name)
    num_days = DAYS if request.days is None else request.days
    require_at_least(1, days=num_days)
    if num_days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={num_days}.")
    if request.preset in CONFIGURATIONS:
        return _of_audited_system(request, rules, num_days)
    return _of_pipeline(request, rules, waiting, num_days)


def _rules(request: LifeAuditRequest) -> tuple[Rules, Waiting]:
    """Return what is stated, and how records wait."""
    if request.pipeline is not None:
        return _rules_of_pipeline(request.pipeline)
    if request.preset is not None:
        require_choice(["apple", *CONFIGURATIONS], preset=request.preset)
        if request.preset in CONFIGURATIONS:
            return rules_of_configuration(CONFIGURATIONS[request.preset]), Waiting()
        return APPLE, Waiting()
    pairs = [use_case_rule(text) for text in request.use_cases]
    caps = {charge.use_case: cap for charge, cap in pairs}
    if len(caps) < len(pairs):
        raise InputError("Expected each use case once in --use-case.")
    return Rules(charges=tuple(charge for charge, _ in pairs), caps=caps), Waiting()


def _rules_of_pipeline(name: str) -> tuple[Rules, Waiting]:
    is_preset = name in pipeline_presets()
    days = load_pipeline(
        preset=name if is_preset else None, file=None if is_preset else Path(name)
    ).pipeline
    charges = tuple(
        Charge(use_case=use_case, epsilon=math.fsum(config.epsilons))
        for use_case, config in days.use_cases.items()
    )
    caps = {use_case: config.cap for use_case, config in days.use_cases.items()}
    waiting = Waiting(
        delay=Delay(law=days.delay_law, hours=days.delay_hours), store_days=days.store_days
    )
    return Rules(charges=charges, caps=caps), waiting


def _of_log(rules: Rules, log: DeviceLog, name: str) -> LifeVerdict:
    """Hold a log against caps."""
    charges = {charge.use_case: charge for charge in rules.charges}
    for use_case in log.use_cases:
        if use_case not in charges:
            raise InputError(
                f"Unknown use case {shown(use_case)} in {name}{did_you_mean(use_case, charges)}"
            )
    return LifeVerdict(
        title=f"the log {name}",
        num_days=log.num_days,
        num_devices=log.num_devices,
        confidence=1.0,
        sent=tuple(
            _sent_of_log(charges[use_case], rules.caps[use_case], log) for use_case in log.use_cases
        ),
        notes=("Only numbers of records are read; reports of single lives show nothing.",),
    )


def _sent_of_log(charge: Charge, cap: Cap, log: DeviceLog) -> SentRecords:
    replay = replay_cap(cap, *log.of(charge.use_case))
    spoken_of = [each.device for each in (replay.first, replay.worst) if each is not None]
    return SentRecords(
        use_case=charge.use_case,
        epsilon=charge.epsilon,
        cap=cap,
        num_days=log.num_days,
        replay=replay,
        names={device: log.name_of(device) for device in spoken_of},
    )


def _of_audited_system(request: LifeAuditRequest, rules: Rules, num_days: int) -> LifeVerdict:
    """Let one busy device live under an audited budget manager; its numbers are nobody's chance."""
    if request.devices is not None:
        raise InputError("Expected no --devices with an audited system, whose devices are alike.")
    assert request.preset is not None
    names = [charge.use_case for charge in rules.charges]
    device = live(
        CONFIGURATIONS[request.preset],
        num_days=num_days,
        events_per_day=_EVENTS,
        rng=generator(request.seed, Stream.QUEUE),
    )
    counts = records_by_day(device.reports, names, num_days)
    return LifeVerdict(
        title=f"a busy device under {request.preset}",
        num_days=num_days,
        num_devices=1,
        confidence=1.0,
        sent=tuple(
            SentRecords(
                use_case=charge.use_case,
                epsilon=charge.epsilon,
                cap=rules.caps[charge.use_case],
                num_days=num_days,
                replay=replay_cap(
                    rules.caps[charge.use_case],
                    np.zeros(num_days, dtype=np.int64),
                    np.arange(num_days),
                    counts[:, index],
                ),
            )
            for index, charge in enumerate(rules.charges)
        ),
        notes=("Its caps are those of balances, which unused budget raises without limit.",),
    )


def _of_pipeline(
    request: LifeAuditRequest, rules: Rules, waiting: Waiting, num_days: int
) -> LifeVerdict:
    """Let a pipeline's devices live, and read what reaches the ingestor."""
    num_devices = DEVICES if request.devices is None else request.devices
    require_at_least(8, devices=num_devices)
    busiest = max(cap.amount for cap in rules.caps.values())
    if num_devices * num_days * busiest > _MOST_RECORDS:
        raise InputError(
            f"Expected devices times days times records of at most {_MOST_RECORDS:,}, got "
            f"{num_devices * num_days * busiest:,}; use fewer --devices or --days."
        )
    each = 1 - (1 - request.confidence) / (len(rules.charges) * len(_LEVELS))
    sent, found = [], []
    for index, charge in enumerate(rules.charges):
        cap = rules.caps[charge.use_case]
        for place, level in enumerate(_LEVELS):
            # A balance is largest when a session begins, and larger the later that is.
            last_session = (num_days - 1) // cap.session_days * cap.session_days
            lives = neighboring_lives(
                level,
                num_days=num_days,
                events_per_day=2 * cap.amount + 3,
                day=last_session if level == "day" else 0,
            )
            most = stated_trade_off(charge.epsilon, cap, lives).num_answers
            device = _device(cap, telling_epsilon(charge.epsilon, most), waiting)
            audit = audit_device(
                device,
                lives,
                num_devices=num_devices,
                rng=generator(request.seed, Stream.RANDOMIZER, index, place),
                confidence=each,
            )
            found.append(_shown(charge, level, num_days, audit.found))
        sent.append(
            SentRecords(
                use_case=charge.use_case,
                epsilon=charge.epsilon,
                cap=cap,
                num_days=num_days,
                replay=audit.sent,
            )
        )
    return LifeVerdict(
        title="devices of a pipeline",
        num_days=num_days,
        num_devices=num_devices,
        confidence=request.confidence,
        sent=tuple(sent),
        shown=tuple(found),
        notes=(
            "Rules of sending are audited with two values and a smaller epsilon, on which they do "
            "not depend: of the stated one, many records identify a life however few are stated. "
            "What one record gives away: fedhh account audit.",
        ),
    )


def _device(cap: Cap, epsilon: float, waiting: Waiting) -> PipelineDevices:
    spec = OracleSpec(name=_ORACLE, epsilon=epsilon)
    return PipelineDevices(
        form=OracleRecords(spec=spec, domain_size=2),
        cap=cap,
        delay=waiting.delay,
        store_days=waiting.store_days,
    )


def _shown(charge: Charge, level: str, num_days: int, found: LifeFinding) -> ShownAnswers:
    what = "one day" if level == "day" else f"all {num_days} days"
    return ShownAnswers(
        audited=f"{charge.use_case}, {what}", unit="records", epsilon=charge.epsilon, found=found
    )


def _of_answer(request: LifeAuditRequest, name: str) -> LifeVerdict:
    """Let devices answer every day about one value, and about two in turn."""
    if request.local_epsilon is None:
        raise InputError("Expected --local-epsilon with --answer.")
    settings = settings_of(name, request.given)
    num_days = ANSWERING_DAYS if request.days is None else request.days
    num_devices = ANSWERING_DEVICES if request.devices is None else request.devices
    require_at_least(1, days=num_days)
    require_at_least(8, devices=num_devices)
    if num_days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={num_days}.")
    answer = make_answer(name, request.local_epsilon, settings)
    if not math.isfinite(answer.epsilon_forever):
        raise InputError(
            f"Expected a memoised answer, which states what all its reports give away, got {name}."
        )
    pair = _pair(answer)
    lives = {
        "always one value": (np.full(num_days, pair[0]), np.full(num_days, pair[1])),
        "two values in turn": (np.resize(pair, num_days), np.resize(pair[::-1], num_days)),
    }
    if num_days == 1:
        del lives["two values in turn"]
    found = []
    for place, (what, (first, second)) in enumerate(lives.items()):
        finding, control = (
            audit_answer(
                each,
                first,
                second,
                num_devices=num_devices,
                rng=generator(request.seed, Stream.MEMO, place, number),
                confidence=1 - (1 - request.confidence) / len(lives),
            )
            for number, each in enumerate((answer, RedrawnDaily(memoised=answer)))
        )
        found.append(
            ShownAnswers(
                audited=f"{name}, {what}",
                unit="permanent bits",
                epsilon=finding.stated.answers[0].epsilon,
                found=finding,
                control=control,
            )
        )
    return LifeVerdict(
        title=f"{name}, a report a day",
        num_days=num_days,
        num_devices=num_devices,
        confidence=request.confidence,
        shown=tuple(found),
        notes=(
            "Of lives whose values repeat and differ on the same days: that a value changed is "
            "not hidden by any memo.",
        ),
    )


def _pair(answer: DailyAnswer) -> tuple[float, float]:
    """Return two values that are told apart best, or nearly so."""
    if not isinstance(answer, MemoisedRappor):
        return 0, 1
    # Values that share bits of a filter are told apart less.
    candidates = np.arange(64)
    filters = answer.filters.filters(np.zeros(len(candidates), dtype=np.int64), candidates)
    return 0, int((filters & filters[0]).sum(axis=1).argmin())
