"""Memoization: answers drawn once and given every day, and what their observer learns.

An answer is `MemoizedBits`: `rappor`, `one_bit_mean`, `dbitflip`. What an observer of all reports
of one device learns, linked, with delta 0: of one history of values against another, `observe`;
after some days, `observed_after`; whether a device is recognized under a new pseudonym, by
simulation, `find_device`; all of it for an answer by name, as `fedhh account memo` prints it,
`account_memo`.
"""

from fedhh.longitudinal.memoization.bits import BitPair, MemoizedBits, Memory
from fedhh.longitudinal.memoization.histories import (
    OTHER_DEVICE,
    A,
    B,
    DeviceFound,
    Observed,
    ObservedDays,
    always,
    changing,
    find_device,
    observe,
    observed_after,
    one_day,
)
from fedhh.longitudinal.memoization.kinds import (
    dbitflip,
    error_of_mean,
    estimate_buckets,
    estimate_mean,
    one_bit_mean,
    rappor,
)
from fedhh.longitudinal.memoization.memo_account import (
    ANSWERS,
    MemoAccount,
    account_memo,
    make_answer,
)

__all__ = [
    "ANSWERS", "OTHER_DEVICE", "A", "B", "BitPair", "DeviceFound", "MemoAccount", "MemoizedBits",
    "Memory", "Observed", "ObservedDays", "account_memo", "always", "changing", "dbitflip",
    "error_of_mean", "estimate_buckets", "estimate_mean", "find_device", "make_answer", "observe",
    "observed_after", "one_bit_mean", "one_day", "rappor",
]  # fmt: skip
