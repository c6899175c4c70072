"""The ledger: what a device loses per day and over its life, for records with pure local privacy.

`Charge` is the price of one record, `Ledger` adds up: `Ledger.before` what caps allow, whatever
happens; `Ledger.spent` what happened.
"""

from fedhh.accounting.ledger.charge import Charge
from fedhh.accounting.ledger.ledger import Ledger
from fedhh.accounting.ledger.ledger_report import LedgerReport
from fedhh.accounting.ledger.spending import Distribution, Losses, Spending

__all__ = ["Charge", "Distribution", "Ledger", "LedgerReport", "Losses", "Spending"]
