"""One run of a repeated collection: the devices that are asked, without what is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import FiniteFloat
from typing_extensions import TypedDict

from fedhh.arrays import Ints
from fedhh.clients.clients import Clients, Table
from fedhh.experiments.config.protocol import build_protocol, fidelity_of
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.privacy import local_epsilon
from fedhh.experiments.run.result import MetricSettings
from fedhh.experiments.run.run import simulate
from fedhh.longitudinal.populations.over_time import Period
from fedhh.validation import InputError

RUN, TOO_FEW, REFUSED = "run", "too few devices", "refused"
"""The outcome of an arm in a period: a run, or why there was none."""


class Found(TypedDict):
    """What a run found and cost; empty where there was none.

    Attributes:
        status: `RUN`, `TOO_FEW` or `REFUSED`.
        reason: Why there was no run.
        words: The words that are published, the largest estimate first; none that was before.
        estimated_clients: Of the devices asked, how many contribute each: at most its holders.
        true_clients: Of all devices that are there, how many typed each in this period.
        rounds: Rounds of the run.
        answers: Devices that answered.
        run_loss: Local epsilon at user level that the run's accounting states.
    """

    status: str
    reason: str
    words: list[str]
    estimated_clients: list[FiniteFloat]
    true_clients: list[int]
    rounds: int
    answers: int
    run_loss: FiniteFloat


class Record(Found):
    """What a period's file holds of an arm.

    Attributes:
        with_budget: Devices whose cap leaves them enough rounds.
        wanted: How many the run would ask.
        asked: How many it asked.
        coverage: Of all words published so far, see `coverage`.
    """

    with_budget: int
    wanted: int
    asked: int
    coverage: FiniteFloat


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A run that is to be made.

    Attributes:
        config: Of the run, with a seed of its own.
        asked: ``(m,) int64``: positions of the devices that are asked, among those of the period.
        published: Words that every device knows from earlier runs.
        publishes_all: Whether words are published that are not significant.
        may_refuse: Whether the protocol may find its clients too few, which is recorded; else that
            is an error.
    """

    config: Config
    asked: Ints
    published: Sequence[str]
    publishes_all: bool
    may_refuse: bool


def run_job(job: Job, period: Period) -> Found:
    """Return what a run over some devices of a period found."""
    config = job.config
    devices = asked_devices(period.population, job)
    try:
        protocol = build_protocol(config).settle(num_clients=len(job.asked), seed=config.seed)
    except InputError as error:
        if not job.may_refuse:
            raise
        return unanswered(REFUSED, str(error))
    result = simulate(
        protocol,
        devices,
        seed=config.seed,
        fidelity=fidelity_of(config),
        settings=MetricSettings(significance_z=config.metrics.significance_z, top_k=()),
        delta=config.privacy.delta,
        alpha=config.privacy.alpha,
    )
    table = result.discoveries
    if not job.publishes_all:
        table = table[table["is_significant"]]
    table = table[~table["word"].isin(job.published)]
    lexicon = period.population.lexicon
    ids = lexicon.ids(table["word"])
    holders = np.append(period.population.word_counts().holders, 0)
    return {
        "status": RUN,
        "reason": "",
        "words": table["word"].tolist(),
        "estimated_clients": table["estimated_clients"].tolist(),
        "true_clients": holders[ids].tolist(),
        "rounds": result.cost["rounds"],
        "answers": result.cost["clients_asked"],
        "run_loss": local_epsilon(result.privacy, "user"),
    }


def unanswered(status: str, reason: str) -> Found:
    """Return the record of a period without a run."""
    return {
        "status": status,
        "reason": reason,
        "words": [],
        "estimated_clients": [],
        "true_clients": [],
        "rounds": 0,
        "answers": 0,
        "run_loss": 0.0,
    }


def coverage(period: Period, published: Sequence[str]) -> float:
    """Return the share of a period's contributions that fall on some words; 0 without any."""
    counts = period.population.word_counts().typed
    ids = period.population.lexicon.ids(published)
    total = int(counts.sum())
    return int(counts[ids[ids >= 0]].sum()) / total if total else 0.0


def asked_devices(population: Clients, job: Job) -> Clients:
    """Return the devices that are asked, without the words that all know by now."""
    rows = population.block(job.asked)
    asked = Clients(
        Table(population.lexicon, rows.offsets, rows.word_ids, rows.counts),
        name=f"{population.name}, {len(job.asked):,} asked",
        unit=population.unit,
    )
    keep = asked.word_counts().holders > 0
    ids = population.lexicon.ids(job.published)
    keep[ids[ids >= 0]] = False
    return asked.keep_words(keep)
