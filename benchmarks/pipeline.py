"""What a pipeline saves by making records only when they are sent, and by sums in few bytes.

Three rows, each of two ways to the same, in turn and in the same run:

* devices: a day of a use case, records made of what is sent, next to the same day with a record
  made of every event at once, as a device does;
* sums: a day's reports added to Apple's sketch of emoji in 16 bits, next to 64;
* top: the ten most frequent values of a day asked of its reports, next to asking their sketch.

Times are the thread's own, medians of at least three rounds.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Rows, benchmark, medians
from fedhh.kernels.device_days import values_of
from fedhh.longitudinal.aggregation.sums import SketchSums
from fedhh.longitudinal.devices.model import Delay, DeviceModel, DeviceUseCase, EventDistribution
from fedhh.longitudinal.devices.worker import DayDiagnostics, DeviceWorker
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.records import DayQuestion, OracleRecords
from fedhh.oracles import CountMeanSketch, OracleSpec
from fedhh.questions.cohort import Cohort

DEVICES, EPSILON, VALUES = 50_000, 4.0, 2_600
SKETCH: dict[str, str | int | float] = {"num_hashes": 65_536, "num_cells": 1024}
EVENTS_PER_DAY = 4.0


def measure_devices() -> dict[str, object]:
    """Return the row of devices."""
    form = OracleRecords(
        spec=OracleSpec(name="cms", epsilon=EPSILON, params=SKETCH), domain_size=VALUES
    )
    events = EventDistribution(
        mean=EVENTS_PER_DAY, spread=1.0, weights=1 / np.arange(1.0, VALUES + 1)
    )
    emoji = DeviceUseCase(name="emoji", form=form, cap=Cap(amount=1), events=events)
    model = DeviceModel(
        num_devices=DEVICES, opt_in=1.0, delay=Delay(), store_days=14, use_cases=(emoji,)
    )
    worker = DeviceWorker(model, seed=0)
    rng = np.random.default_rng(0)
    day, sent, made = 0, 0, 0

    def live() -> None:
        nonlocal day, sent, made
        day += 1
        question = DayQuestion(
            cohort=Cohort(start=0, size=DEVICES),
            use_case="emoji",
            use_case_index=0,
            day=day - 1,
            form=form,
        )
        answer = worker.answer(question, range(question.cohort.num_blocks))
        assert isinstance(answer.diagnostics, DayDiagnostics)
        sent, made = answer.aggregate.num_reports, int(answer.diagnostics.counts[1].sum())

    def make_all() -> None:
        numbers = np.arange(made)
        values = values_of(np.zeros(made, dtype=np.uint64), numbers, events.values)
        for part in np.array_split(values, 64):
            form.oracle.privatize(part, rng=rng)

    live()
    live_s, all_s = medians([live, make_all])
    return {
        "what": f"devices: {DEVICES:,}, {made:,} events, {sent:,} sent",
        "slow_s": live_s + all_s * (1 - sent / made),
        "fast_s": live_s,
    }


def measure_sums() -> list[dict[str, object]]:
    """Return the rows of sums and of the top values."""
    oracle = CountMeanSketch(epsilon=EPSILON, domain_size=VALUES, num_hashes=65_536, num_cells=1024)
    rng = np.random.default_rng(0)
    values = np.minimum(rng.zipf(1.5, DEVICES), VALUES) - 1
    reports = oracle.privatize(values, rng=rng)
    narrow = SketchSums(oracle)
    wide = np.zeros((oracle.num_hashes, oracle.num_cells), dtype=np.int64)
    top = np.arange(10)
    wide_s, narrow_s, sketch_s, direct_s = medians(
        [
            lambda: oracle.add_to_table(reports, wide),
            lambda: narrow.add(reports),
            lambda: oracle.support(oracle.aggregate(reports), top),
            lambda: oracle.support(reports=reports, candidates=top),
        ]
    )
    return [
        {"what": f"sums: {len(reports):,} reports", "slow_s": wide_s, "fast_s": narrow_s},
        {"what": f"top: {len(reports):,} reports", "slow_s": sketch_s, "fast_s": direct_s},
    ]


@benchmark("pipeline")
def rows() -> Rows:
    """Yield all rows, with their ratios."""
    for row in (measure_devices(), *measure_sums()):
        yield {**row, "ratio": float(str(row["slow_s"])) / float(str(row["fast_s"]))}
