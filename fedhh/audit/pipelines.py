"""The devices of a pipeline, as an audit sees them: by what reaches the ingestor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.arrays import Ints
from fedhh.audit.devices import Transcripts
from fedhh.experiments.config.built_in import PIPELINES, preset_names
from fedhh.longitudinal.devices.model import Delay, DeviceModel, DeviceUseCase, EventDistribution
from fedhh.longitudinal.devices.worker import DayDiagnostics, DeviceWorker
from fedhh.longitudinal.ledger import Rules
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.records import Arrivals, DayQuestion, OracleRecords
from fedhh.oracles import FrequencyOracle
from fedhh.questions.cohort import Cohort
from fedhh.validation import InputError

_NAME = "audited"
_AT_ONCE = Delay(hours=0.0)


def rules_of_pipeline(source: str | Path) -> tuple[Rules, dict[str, Any]]:
    """Return a pipeline's charges and caps, and ``delay`` and ``store_days`` of its devices.

    Args:
        source: A preset, or a TOML file.
    """
    is_preset = str(source) in preset_names(PIPELINES)
    days = load_pipeline(source if is_preset else Path(source)).pipeline
    charges = tuple(config.charge(use_case) for use_case, config in days.use_cases.items())
    caps = {use_case: config.cap for use_case, config in days.use_cases.items()}
    delay = Delay(distribution=days.delay_distribution, hours=days.delay_hours)
    return Rules(charges=charges, caps=caps), {"delay": delay, "store_days": days.store_days}


@dataclass(frozen=True, kw_only=True)
class PipelineDevices:
    """Devices of a pipeline with one use case; a `fedhh.audit.AuditedDevice`.

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
    delay: Delay = _AT_ONCE
    store_days: int = 14

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

    def simulate(self, history: Ints, *, num_devices: int, rng: np.random.Generator) -> Transcripts:
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
            answer = worker.answer(question, range(cohort.num_blocks))
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
            # Reports come in the order of those who sent them: each has one address.
            changes = np.flatnonzero(np.diff(arrivals.addresses)) + 1
            assert np.isin(changes, np.flatnonzero(np.diff(owners)) + 1).all()
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
