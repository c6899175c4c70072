"""The ledger: what a device loses per day and over its life, for records with pure local privacy.

`Charge` is the price of one record, `Ledger` adds up: `Ledger.before` what caps allow, whatever
happens; `Ledger.spent` what happened. `Rules` are charges and caps together: `APPLE`, those of an
audited configuration (`rules_of_configuration`), of a run that is repeated (`rules_of_run`).
"""

from fedhh.accounting.ledger.charge import Charge
from fedhh.accounting.ledger.ledger import Ledger
from fedhh.accounting.ledger.ledger_report import LedgerReport
from fedhh.accounting.ledger.of_run import rules_of_run
from fedhh.accounting.ledger.presets import (
    APPLE,
    Rules,
    before_under_reports,
    most_under_reports,
    rules_of_configuration,
)
from fedhh.accounting.ledger.spending import Distribution, Losses, Spending

__all__ = [
    "APPLE",
    "Charge",
    "Distribution",
    "Ledger",
    "LedgerReport",
    "Losses",
    "Rules",
    "Spending",
    "before_under_reports",
    "most_under_reports",
    "rules_of_configuration",
    "rules_of_run",
]
