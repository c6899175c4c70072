"""Audits: claims of privacy against samples of what code really does.

A claim is a trade-off function (`EpsilonDelta`, `Answers`), and one routine tests it: `audit`. It
needs samples of two neighboring inputs, which come from an oracle's reports (`audit_oracle`), from
devices over their days (`audit_device`), or from memoized answers (`audit_answer`). Numbers of
records need no statistics: `replay_cap`. What `fedhh audit` finds is a `Verdict`:
`audit_randomizer`, `audit_devices`, `audit_memo`, `audit_budget_manager`, `audit_log`.
"""

from fedhh.audit.audit import Finding, Verdict, audit, clopper_pearson
from fedhh.audit.caps import CapReplay, Overspending, replay_cap
from fedhh.audit.claim import Answers, Claim, EpsilonDelta
from fedhh.audit.devices import (
    NO_EVENT,
    AuditedDevice,
    DeviceAudit,
    NeighboringHistories,
    Transcripts,
    audit_device,
    neighboring_histories,
    stated_records,
    telling_epsilon,
)
from fedhh.audit.memory import audit_answer, stated_bits
from fedhh.audit.sources import audit_guesses, audit_oracle
from fedhh.audit.verdicts import (
    audit_budget_manager,
    audit_devices,
    audit_log,
    audit_memo,
    audit_randomizer,
)

__all__ = [
    "NO_EVENT", "Answers", "AuditedDevice", "CapReplay", "Claim", "DeviceAudit", "EpsilonDelta",
    "Finding", "NeighboringHistories", "Overspending", "Transcripts", "Verdict",
    "audit", "audit_answer", "audit_budget_manager", "audit_device", "audit_devices",
    "audit_guesses", "audit_log", "audit_memo", "audit_oracle", "audit_randomizer",
    "clopper_pearson", "neighboring_histories", "replay_cap", "stated_bits", "stated_records",
    "telling_epsilon",
]  # fmt: skip
