"""Which answers of a run's clients were refused, and what is checked of faults before it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fedhh.clients.faulty_answers import FaultyAnswers, reports_can_have
from fedhh.devices import Devices
from fedhh.experiments.config.load import devices_of, faults_of
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.calendar import check_devices
from fedhh.experiments.run.layers import REFUSED
from fedhh.faults import Fault, Faults
from fedhh.oracles import make_oracle
from fedhh.plans.base import Plan
from fedhh.protocol import AnyProtocol
from fedhh.queries.base import Query
from fedhh.queries.intake import oracle_of_reports
from fedhh.queries.refusals import IntakeCounts
from fedhh.validation import InputError

HEAVY_FIRST = (
    "Clients were asked in the order of how much they typed (faults.order): central guarantees "
    "hold only if that is no secret; local ones hold in any order."
)
"""A note on the privacy of a run with skewed cohorts."""


def accepting(devices: Devices | None, faults: Faults | None) -> Devices | None:
    """Return when devices are there, where a round may accept fewer answers than it asks for.

    Faults alone have devices that always answer at once: a round then accepts any two answers.
    """
    if devices is None and faults is not None and faults.refused:
        return Devices()
    return devices


def accepting_of(config: Config) -> Devices | None:
    """Return the same for the tables of a configuration."""
    return accepting(devices_of(config), faults_of(config))


def check_clients(devices: Devices | None, faults: Faults | None, protocol: AnyProtocol) -> None:
    """Raise InputError if clients cannot be there, or cannot have their faults, as stated."""
    devices = accepting(devices, faults)
    if devices is not None:
        check_devices(devices, protocol.plan)
    if faults is not None:
        check_faults(faults, devices, protocol)


def check_faults(faults: Faults, devices: Devices | None, protocol: AnyProtocol) -> None:
    """Raise InputError unless a run's clients can have their faults, and enough have none.

    Args:
        faults: Which clients have which.
        devices: When their devices are there, see `accepting`.
        protocol: What is run, settled.
    """
    plan = protocol.plan
    if plan.uploads_once and faults.configured:
        raise InputError(
            "Expected no shares in the table faults for a protocol whose clients upload once for "
            "all layers: who answers differs from layer to layer; leave them out, or run another."
        )
    if devices is not None:
        devices.check_cohort(plan.smallest_cohort, refused=faults.refused)
    query = protocol.next_query(protocol.initialize())
    if query is None:
        return
    made = FaultyAnswers(query, round_before=(0, 0))
    for fault in faults.configured:
        if not (made.can_have(fault) or _later_ones_can_have(fault, query, plan)):
            raise InputError(
                f"Expected faults.{fault} = 0, got {faults.share_of(fault):g}: an answer to a "
                f"{type(query).__name__} {_of_oracle(query)}cannot have that fault."
            )
    if faults.stale_answers and len(plan.layers) == 1:
        raise InputError(
            f"Expected faults.{Fault.STALE} = 0, got {faults.stale_answers:g}: the protocol has "
            "one round, and none before it."
        )


def _later_ones_can_have(fault: Fault, query: Query, plan: Plan) -> bool:
    """Return whether answers to a later query can have a fault, whose domain may be larger."""
    if oracle_of_reports(query) is None or len(query.randomizers) != 1:
        return False
    largest = max(each.largest_domain for each in plan.layers)
    return reports_can_have(fault, make_oracle(query.randomizers[0], largest))


def intake_of(layers: pd.DataFrame) -> IntakeCounts | None:
    """Return how many answers a run received and refused, by its layers; None without faults."""
    if "answers_received" not in layers:
        return None
    sums = {reason: int(layers[column].sum()) for reason, column in REFUSED.items()}
    received = int(layers["answers_received"].sum())
    return IntakeCounts(
        received=received,
        accepted=received - sum(sums.values()),
        refused={reason: count for reason, count in sums.items() if count},
    )


def intake_record(counts: IntakeCounts) -> dict[str, Any]:
    """Return the counts as ``result.json`` has them.

    Columns:
        received: Answers of clients that arrived, in all rounds.
        accepted: Those that counted.
        refused: How many of the others were refused, by reason.
    """
    return {
        "received": counts.received,
        "accepted": counts.accepted,
        "refused": {str(reason): count for reason, count in counts.refused.items()},
    }


def _of_oracle(query: Query) -> str:
    names = ", ".join(spec.name for spec in query.randomizers)
    return f"with oracle {names} " if names else ""
