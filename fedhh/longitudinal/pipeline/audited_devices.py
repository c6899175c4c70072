"""A pipeline's devices as an audit of their histories sees them: what reaches the ingestor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.audit import Transcripts
from fedhh.longitudinal.devices.model import Delay, DeviceModel, DeviceUseCase, EventLaw
from fedhh.longitudinal.devices.worker import DayDiagnostics, DeviceWorker
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.records import Arrivals, OracleRecords, RecordQuery
from fedhh.oracles import FrequencyOracle
from fedhh.queries.cohort import Cohort
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet

Numbers = npt.NDArray[np.int64]

_NAME = "audited"


@dataclass(frozen=True, kw_only=True)
class PipelineDevices:
    """Devices of a pipeline with one use case; a `fedhh.longitudinal.audit.LivingDevice`.

    A client worker answers a query for every day, as in a run; all that is read are the reports
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

    def live(self, life: Numbers, *, num_devices: int, rng: np.random.Generator) -> Transcripts:
        """Return transcripts of devices whose events all have one value.

        Args:
            life: ``(days, events) int64``, one value throughout; numbers of events in a day are
                Poisson with mean ``events``, as everywhere in a pipeline.
            num_devices: At least 1.
            rng: Of the run's seed.
        """
        value = int(life[0, 0])
        if (life != value).any() or value < 0:
            raise InputError("Expected a life with one and the same value in all its events.")
        num_days, mean = life.shape
        weights = np.zeros(self.form.domain_size)
        weights[value] = 1.0
        use_case = DeviceUseCase(
            name=_NAME,
            form=self.form,
            cap=self.cap,
            events=EventLaw(mean=float(mean), spread=0.0, weights=weights),
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
            query = RecordQuery(
                pass_index=0,
                layer=day + 1,
                cohort=cohort,
                alphabet=Alphabet.named("lower"),
                max_items=1,
                sampler="random",
                use_case=_NAME,
                form=self.form,
            )
            answer = worker.answer(query, range(cohort.num_blocks))
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
