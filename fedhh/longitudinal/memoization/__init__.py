"""Memoization: answers drawn once and given every day, and what their observer learns.

Each answer is a `DailyAnswer`: `begin` draws what devices keep, `answer` makes a day's reports,
`log_prob` states the distribution of a device's reports over many days.

What an observer of all reports of one device learns, linked; delta is 0 everywhere:

* one history of values against another: `history_epsilon`, and the distinguishing probability:
  `distinguish`
* which of several values it was, by simulation: `guess_value`
* whether a permanent response changes with the value, exactly: `response_changes`
* whether a device is recognized under a new pseudonym, by simulation: `find_device`
* all of it after each of some numbers of days: `observed_after`; for an answer by name, as
  `fedhh account memo` prints it: `account_memo`
"""

from fedhh.longitudinal.memoization.bits import BitPair, MemoizedBits
from fedhh.longitudinal.memoization.daily import DailyAnswer, FreshAnswer, MemoizedState
from fedhh.longitudinal.memoization.histories import (
    OTHER_DEVICE,
    A,
    B,
    HistoryEpsilon,
    Observer,
    always,
    changing,
    distinguish,
    history_epsilon,
    one_day,
)
from fedhh.longitudinal.memoization.memo_account import (
    ANSWERS,
    MemoAccount,
    account_memo,
    make_answer,
)
from fedhh.longitudinal.memoization.observer import (
    DeviceFound,
    ObservedDays,
    ValueGuess,
    find_device,
    guess_value,
    observed_after,
    response_changes,
)
from fedhh.longitudinal.memoization.rappor import MemoizedRappor, OwnBits
from fedhh.longitudinal.memoization.telemetry import MemoizedDBitFlip, MemoizedOneBitMean

__all__ = [
    "ANSWERS",
    "OTHER_DEVICE",
    "A",
    "B",
    "BitPair",
    "DailyAnswer",
    "DeviceFound",
    "FreshAnswer",
    "HistoryEpsilon",
    "MemoAccount",
    "MemoizedBits",
    "MemoizedDBitFlip",
    "MemoizedOneBitMean",
    "MemoizedRappor",
    "MemoizedState",
    "ObservedDays",
    "Observer",
    "OwnBits",
    "ValueGuess",
    "account_memo",
    "always",
    "changing",
    "distinguish",
    "find_device",
    "guess_value",
    "history_epsilon",
    "make_answer",
    "observed_after",
    "one_day",
    "response_changes",
]  # fmt: skip
