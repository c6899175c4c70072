"""Answers that a device gives every day: memoised, so that the second is made from the first.

Each is a `DailyAnswer`: `begin` draws what devices keep, `answer` makes a day's reports,
`log_prob` states the law of a device's reports over many days.
"""

from fedhh.oracles.memoised.bits import BitPair, MemoisedBits
from fedhh.oracles.memoised.d_bit_flip import MemoisedDBitFlip
from fedhh.oracles.memoised.daily import DailyAnswer, Memo
from fedhh.oracles.memoised.fresh import FreshAnswer
from fedhh.oracles.memoised.one_bit_mean import MemoisedOneBitMean
from fedhh.oracles.memoised.rappor import MemoisedRappor, OwnBits

__all__ = [
    "BitPair",
    "DailyAnswer",
    "FreshAnswer",
    "Memo",
    "MemoisedBits",
    "MemoisedDBitFlip",
    "MemoisedOneBitMean",
    "MemoisedRappor",
    "OwnBits",
]
