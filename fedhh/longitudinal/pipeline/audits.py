"""Longitudinal audits of a pipeline's devices, by what reaches the ingestor, and of logs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedhh.experiments.config.built_in import PIPELINES, preset_names
from fedhh.longitudinal.audit import (
    Transcripts,
    audit_device,
    neighboring_histories,
    replay_cap,
    stated_trade_off,
    telling_epsilon,
)
from fedhh.longitudinal.audit.cap_replay import together
from fedhh.longitudinal.audit.longitudinal_audit import Level
from fedhh.longitudinal.audit.verdict import (
    FEWEST_DEVICES,
    LongitudinalVerdict,
    SentRecords,
    ShownAnswers,
    check_audit,
)
from fedhh.longitudinal.devices.model import Delay, DeviceModel, DeviceUseCase, EventDistribution
from fedhh.longitudinal.devices.worker import DayDiagnostics, DeviceWorker
from fedhh.longitudinal.ledger import Charge, Rules
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.pipeline.device_log import DeviceLog, read_device_log
from fedhh.longitudinal.records import Arrivals, DayQuestion, OracleRecords
from fedhh.oracles import FrequencyOracle, OracleSpec
from fedhh.questions.cohort import Cohort
from fedhh.random import Stream, generator
from fedhh.validation import InputError, did_you_mean, require_at_least, shown

Numbers = npt.NDArray[np.int64]

_MOST_RECORDS = 10**8
_ORACLE = "grr"
_NAME = "audited"
_LEVELS: tuple[Level, ...] = ("day", "user")
_AT_ONCE = Delay(hours=0.0)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How records wait on devices; not at all if nothing is said.

    Attributes:
        delay: Until they may be sent.
        store_days: Days after which they are dropped.
    """

    delay: Delay = _AT_ONCE
    store_days: int = 14


def rules_of_pipeline(source: str | Path) -> tuple[Rules, Waiting]:
    """Return a pipeline's charges and caps, and how its records wait.

    Args:
        source: A preset, or a TOML file.
    """
    is_preset = str(source) in preset_names(PIPELINES)
    days = load_pipeline(source if is_preset else Path(source)).pipeline
    charges = tuple(
        Charge(use_case=use_case, epsilon=math.fsum(config.epsilons))
        for use_case, config in days.use_cases.items()
    )
    caps = {use_case: config.cap for use_case, config in days.use_cases.items()}
    delay = Delay(distribution=days.delay_distribution, hours=days.delay_hours)
    return Rules(charges=charges, caps=caps), Waiting(delay=delay, store_days=days.store_days)


def audit_log(rules: Rules, log: Path) -> LongitudinalVerdict:
    """Return whether devices kept to caps, by a log of what they sent.

    Args:
        rules: What is stated.
        log: Columns device, day, use_case and perhaps records; Parquet, CSV or JSON Lines.

    Raises:
        InputError: The log cannot be read, or has a use case without a cap.
    """
    read = read_device_log(log)
    charges = {charge.use_case: charge for charge in rules.charges}
    for use_case in read.use_cases:
        if use_case not in charges:
            raise InputError(
                f"Unknown use case {shown(use_case)} in {log.name}{did_you_mean(use_case, charges)}"
            )
    return LongitudinalVerdict(
        title=f"the log {log.name}",
        num_days=read.num_days,
        num_devices=read.num_devices,
        confidence=1.0,
        sent=tuple(
            _sent_of_log(charges[use_case], rules.caps[use_case], read)
            for use_case in read.use_cases
        ),
        notes=("Only numbers of records are read; reports of single histories show nothing.",),
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


def audit_devices(
    rules: Rules,
    *,
    waiting: Waiting | None = None,
    num_days: int = 30,
    num_devices: int = 20_000,
    confidence: float = 0.99,
    seed: int = 0,
) -> LongitudinalVerdict:
    """Return lower bounds on what a pipeline's devices gave away, next to their caps.

    Devices are simulated, and what reaches the ingestor is read: numbers of records against every
    window of the caps, and reports of neighboring inputs (all events of a day, or of all days,
    swapped) against the number of records that is stated, at a smaller epsilon.

    Args:
        rules: Charges and caps.
        waiting: How records wait on devices; not at all if None.
        num_days: Days of every device, 1 to 1000.
        num_devices: With each of two neighboring inputs, at least 8.
        confidence: Of the verdict, all parts together, in (0, 1).
        seed: Of the devices.

    Raises:
        InputError: A value is out of range.
    """
    check_audit(num_days, confidence, seed)
    require_at_least(FEWEST_DEVICES, devices=num_devices)
    busiest = max(cap.amount for cap in rules.caps.values())
    if num_devices * num_days * busiest > _MOST_RECORDS:
        raise InputError(
            f"Expected devices times days times records of at most {_MOST_RECORDS:,}, got "
            f"{num_devices * num_days * busiest:,}; use fewer --devices or --days."
        )
    each = 1 - (1 - confidence) / (len(rules.charges) * len(_LEVELS))
    sent, found = [], []
    for index, charge in enumerate(rules.charges):
        cap = rules.caps[charge.use_case]
        replays = []
        for place, level in enumerate(_LEVELS):
            # A balance is largest when a session begins, and larger the later that is.
            last_session = (num_days - 1) // cap.session_days * cap.session_days
            histories = neighboring_histories(
                level,
                num_days=num_days,
                events_per_day=2 * cap.amount + 3,
                day=last_session if level == "day" else 0,
            )
            most = stated_trade_off(charge.epsilon, cap, histories).num_answers
            audit = audit_device(
                _device(cap, telling_epsilon(charge.epsilon, most), waiting or Waiting()),
                histories,
                num_devices=num_devices,
                rng=generator(seed, Stream.RANDOMIZER, index, place),
                confidence=each,
            )
            # The devices of each level are others, two histories of them.
            replays.append(audit.sent.of_devices_from(2 * num_devices * place))
            what = "one day" if level == "day" else f"all {num_days} days"
            found.append(
                ShownAnswers(
                    audited=f"{charge.use_case}, {what}",
                    unit="records",
                    epsilon=charge.epsilon,
                    found=audit.found,
                )
            )
        sent.append(
            SentRecords(
                use_case=charge.use_case,
                epsilon=charge.epsilon,
                cap=cap,
                num_days=num_days,
                replay=together(replays),
            )
        )
    return LongitudinalVerdict(
        title="devices of a pipeline",
        num_days=num_days,
        num_devices=num_devices,
        confidence=confidence,
        sent=tuple(sent),
        shown=tuple(found),
        notes=(
            "Rules of sending are audited with two values and a smaller epsilon, on which they do "
            "not depend: of the stated one, many records identify a history, however few. "
            "What one record gives away: fedhh audit randomizer.",
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


@dataclass(frozen=True, kw_only=True)
class PipelineDevices:
    """Devices of a pipeline with one use case; a `fedhh.longitudinal.audit.AuditedDevice`.

    A client worker answers a question for every day, as in a run; all that is read are the reports
    that arrive, and whose they are.

    Attributes:
        form: How events become records, which must cross one by one.
        cap: What a device may send.
        delay: How long records wait.
        store_days: Days after which a record that was not sent is dropped.
    """

    form: OracleRecords
    cap: Cap
    delay: Delay
    store_days: int

    def __post_init__(self) -> None:
        if not self.form.crosses_one_by_one:
            raise InputError(
                f"Expected an oracle whose reports are read one by one, got "
                f"{self.form.spec.name!r} over domain_size={self.form.domain_size}; audit a "
                "smaller domain."
            )

    @property
    def oracle(self) -> FrequencyOracle:
        """The stated distribution of a record's report."""
        return self.form.oracle

    def simulate(
        self, history: Numbers, *, num_devices: int, rng: np.random.Generator
    ) -> Transcripts:
        """Return transcripts of devices whose events all have one value.

        Args:
            history: ``(days, events) int64``, one value throughout; numbers of events in a day are
                Poisson with mean ``events``, as everywhere in a pipeline.
            num_devices: At least 1.
            rng: Of the run's seed.
        """
        value = int(history[0, 0])
        if (history != value).any() or value < 0:
            raise InputError("Expected a history of one and the same value in all its events.")
        num_days, mean = history.shape
        weights = np.zeros(self.form.domain_size)
        weights[value] = 1.0
        use_case = DeviceUseCase(
            name=_NAME,
            form=self.form,
            cap=self.cap,
            events=EventDistribution(mean=float(mean), spread=0.0, weights=weights),
        )
        model = DeviceModel(
            num_devices=num_devices,
            opt_in=1.0,
            delay=self.delay,
            store_days=self.store_days,
            use_cases=(use_case,),
        )
        worker = DeviceWorker(model, seed=int(rng.integers(2**62)))
        cohort = Cohort(start=0, size=num_devices)
        devices, days, reports = [], [], []
        for day in range(num_days):
            question = DayQuestion(
                cohort=cohort, use_case=_NAME, use_case_index=0, day=day, form=self.form
            )
            (answer,) = worker.answer(question, range(cohort.num_blocks))
            assert isinstance(answer.diagnostics, DayDiagnostics)
            owners = np.concatenate(
                [
                    np.repeat(np.arange(first, first + len(sent)), sent)
                    for first, sent in answer.diagnostics.sent
                ]
            )
            messages = answer.aggregate.messages
            assert messages is not None
            arrivals = Arrivals.of(_NAME, messages)
            _require_one_address_each(owners, arrivals.addresses)
            devices.append(owners)
            days.append(np.full(owners.size, day))
            reports.append(arrivals.reports)
        return Transcripts(
            num_devices=num_devices,
            num_days=num_days,
            devices=np.concatenate(devices),
            days=np.concatenate(days),
            reports=self.form.as_reports(np.concatenate(reports)),
        )


def _require_one_address_each(owners: Numbers, addresses: Numbers) -> None:
    """Check that reports come in the order of those who sent them: each has one address."""
    changes = np.flatnonzero(np.diff(addresses)) + 1
    assert np.isin(changes, np.flatnonzero(np.diff(owners)) + 1).all()
    assert owners.shape == addresses.shape
