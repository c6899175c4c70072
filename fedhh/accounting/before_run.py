"""What a plan can claim before its run: the central guarantee of one unit, and nothing else.

A search over settings asks for it many times, so that it has to be quick. `privacy_of_plan` of
`fedhh.experiments.run.privacy` states everything that a plan can claim.
"""

from __future__ import annotations

import math

from fedhh.accounting.account import account
from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.guarantees import Guarantee, NotApplicable, Unit
from fedhh.accounting.run_facts import RunFacts
from fedhh.accounting.run_guarantees import guarantee_before_run
from fedhh.mechanisms.base import Mechanism
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.validation import require_choice

_ALPHA = 0.5
"""Of approximate k-anonymity, which is not asked for here."""


def central_before_run(
    mechanism: Mechanism, *, num_clients: int, unit: Unit, delta: float
) -> Guarantee:
    """Return the central guarantee of a plan that holds before the run.

    Args:
        mechanism: What a run of settled settings does.
        num_clients: Clients of the population.
        unit: "item" or "user".
        delta: Of the guarantee, from 1e-14 to 0.1.

    Raises:
        InputError: A value is out of range, or no accounting is known for the mechanism.
    """
    require_choice(("item", "user"), unit=unit)
    check_delta(delta)
    if isinstance(mechanism, LocalReports):
        return guarantee_before_run(RunFacts.planned(mechanism, (), delta=delta), unit)
    report = account(mechanism, (), num_clients=num_clients, delta=delta, alpha=_ALPHA)
    return report.before_run(unit)


def epsilon_before_run(
    mechanism: Mechanism, *, num_clients: int, unit: Unit, delta: float
) -> float:
    """Return the epsilon of `central_before_run`, infinite where there is none at this delta."""
    found = central_before_run(mechanism, num_clients=num_clients, unit=unit, delta=delta)
    if isinstance(found.epsilon, NotApplicable) or found.delta > delta:
        return math.inf
    return found.epsilon
