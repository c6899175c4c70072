"""Longitudinal audits: lower bounds on the privacy loss of devices over their days, from samples.

Of all that a device sends: `audit_device`; of the numbers of its records: `replay_cap`; of memoized
answers: the module `fedhh.longitudinal.audit.answer_audit`.

What `fedhh audit device` finds is a `LongitudinalVerdict`: of memoized answers, `audit_memo`;
of audited systems, `audit_budget_manager`; of a pipeline's devices and of logs, `audit_devices` and
`audit_log` of the module `fedhh.longitudinal.pipeline.audits`.
"""

from fedhh.longitudinal.audit.cap_replay import CapReplay, Overspending, replay_cap
from fedhh.longitudinal.audit.findings import LongitudinalFinding
from fedhh.longitudinal.audit.longitudinal_audit import (
    NO_EVENT,
    AuditedDevice,
    LongitudinalAudit,
    NeighboringHistories,
    Transcripts,
    audit_device,
    neighboring_histories,
    stated_trade_off,
    telling_epsilon,
)
from fedhh.longitudinal.audit.trade_off import Answers, TradeOff
from fedhh.longitudinal.audit.verdict import (
    LongitudinalVerdict,
    SentRecords,
    ShownAnswers,
    audit_budget_manager,
    audit_memo,
)

__all__ = [
    "NO_EVENT", "Answers", "AuditedDevice", "CapReplay", "LongitudinalAudit", "LongitudinalFinding",
    "LongitudinalVerdict", "NeighboringHistories", "Overspending", "SentRecords", "ShownAnswers",
    "TradeOff", "Transcripts", "audit_budget_manager", "audit_device", "audit_memo",
    "neighboring_histories", "replay_cap", "stated_trade_off", "telling_epsilon",
]  # fmt: skip
