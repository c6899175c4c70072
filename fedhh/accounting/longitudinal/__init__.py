"""What an observer of all reports of one device learns over its life.

Numbers are of all of a device's reports together, linked; delta is 0 everywhere.

* one life against another: `life_epsilon`, and how often the best observer is right: `tell_apart`
* which of several values it was, by simulation: `guess_value`
* whether a permanent response changes with the value, exactly: `response_changes`
* whether a device is known again under a new pseudonym, by simulation: `find_device`
* all of it after each of some numbers of days: `observed_after`
"""

from fedhh.accounting.longitudinal.lives import (
    OTHER_DEVICE,
    A,
    B,
    LifeEpsilon,
    Observer,
    always,
    changing,
    life_epsilon,
    one_day,
    tell_apart,
)
from fedhh.accounting.longitudinal.observer import (
    ObservedDays,
    ValueGuess,
    guess_value,
    observed_after,
    response_changes,
)
from fedhh.accounting.longitudinal.tracking import DeviceFound, find_device

__all__ = [
    "OTHER_DEVICE",
    "A",
    "B",
    "DeviceFound",
    "LifeEpsilon",
    "ObservedDays",
    "Observer",
    "ValueGuess",
    "always",
    "changing",
    "find_device",
    "guess_value",
    "life_epsilon",
    "observed_after",
    "one_day",
    "response_changes",
    "tell_apart",
]
