"""The ledger: privacy loss per day and over all days, for records with pure local privacy.

`Charge` is the price of one record, `Ledger` adds up: `Ledger.before` what caps allow, whatever
happens; `Ledger.spent` what happened. `Rules` are charges and caps together: `APPLE`, those of an
audited configuration (`rules_of_configuration`), of a run that is repeated (`rules_of_run`).
`account_ledger` and `account_audited_ledger` are what `fedhh account ledger` states.
"""

from fedhh.longitudinal.ledger.cap import Charge
from fedhh.longitudinal.ledger.ledger import Ledger
from fedhh.longitudinal.ledger.ledger_account import (
    Curve,
    LedgerAccount,
    SaturatingDevice,
    account_audited_ledger,
    account_ledger,
)
from fedhh.longitudinal.ledger.rules import (
    APPLE,
    Rules,
    before_under_reports,
    most_under_reports,
    rules_of_configuration,
    rules_of_run,
    rules_of_source,
)
from fedhh.longitudinal.ledger.spending import Distribution, Losses, Spending
from fedhh.longitudinal.ledger.statements import LedgerReport

__all__ = [
    "APPLE", "Charge", "Curve", "Distribution", "Ledger", "LedgerAccount", "LedgerReport",
    "Losses", "Rules", "SaturatingDevice", "Spending", "account_audited_ledger", "account_ledger",
    "before_under_reports", "most_under_reports", "rules_of_configuration", "rules_of_run",
    "rules_of_source",
]  # fmt: skip
