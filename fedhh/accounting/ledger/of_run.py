"""The ledger of a discovery run that is repeated: what its clients lose over a year of it."""

from __future__ import annotations

import math

from fedhh.accounting.ledger.charge import Charge
from fedhh.accounting.ledger.presets import Rules
from fedhh.accounting.local import item_theorem
from fedhh.budgets.cap import Cap
from fedhh.mechanisms.base import Mechanism
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.mechanisms.opt_in import OptInBlend
from fedhh.validation import InputError, require_at_least


def rules_of_run(mechanism: Mechanism, *, every: int, name: str) -> Rules:
    """Return the charge and the cap of a run's clients, when it starts anew every so many days.

    A client sends at most B reports in a round, and takes part in one round of a run, or in each
    where clients are reused; that is the cap of a session as long as the pause between runs. An
    item that stays on the device may be reported in every run, by a record each.

    Args:
        mechanism: Of the run's protocol.
        every: Days from one run's start to the next, at least 1.
        name: Of the use case.

    Raises:
        InputError: The protocol has no local privacy, or every < 1.
    """
    require_at_least(1, every=every)
    local = mechanism.local if isinstance(mechanism, OptInBlend) else mechanism
    if not isinstance(local, LocalReports) or not math.isfinite(local.local_epsilon):
        raise InputError(
            f"Expected a protocol with local privacy, got {name!r}; a ledger adds up what each "
            "record tells, and this one's records are not randomized on the device."
        )
    reports = tuple(spec.epsilon for spec in local.randomizers)
    plain = type(local) is LocalReports and len(reports) > 1 and local.recount_randomizer is None
    rounds = local.most_rounds_per_client
    notes = [
        f"A run every {every} days; a client takes part in {rounds} of its rounds at most, with "
        f"up to {local.max_items} records in each.",
        "An item that stays on a device may enter a record of every run.",
    ]
    if isinstance(mechanism, OptInBlend):
        notes.append(
            "For clients who did not opt in: those who did trust a curator, with "
            f"epsilon {mechanism.opt_in_epsilon:g} at delta {mechanism.opt_in_delta:g} each run."
        )
    if local.is_of_whole_set:
        notes.append("A record is about one value drawn from all that a client holds.")
    return Rules(
        charges=(
            Charge(
                use_case=name,
                epsilon=local.local_epsilon,
                reports=reports if plain else (),
                records_per_event=rounds,
                theorem=item_theorem(local),
            ),
        ),
        caps={name: Cap(amount=local.max_items * rounds, session_days=every)},
        notes=tuple(notes),
    )
