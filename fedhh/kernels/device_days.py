"""Days of devices: events happen, records wait until they may go, a few of them are sent.

What is sent depends on how many records wait, never on what they say, so values come last: an
event's value is a function of its day's key and its number, drawn when somebody asks for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from fedhh.arrays import Bools, Floats, Ints, SmallInts, UInts
from fedhh.kernels.cache import compiled
from fedhh.kernels.drawing import poisson
from fedhh.kernels.prng import U11, mix, next_below
from fedhh.kernels.ranks import alias_table
from fedhh.kernels.variates import draw_binomial
from fedhh.random import GOLDEN


class ValueDistribution(NamedTuple):
    """How values of events are drawn: Walker's alias method.

    Attributes:
        cuts: ``(p,) float64``: chance that a column keeps its own value.
        others: ``(p,) int32``: the value that it gives otherwise.
    """

    cuts: Floats
    others: SmallInts


def value_distribution(weights: Floats) -> ValueDistribution:
    """Return the distribution that draws each value with its share of the weights."""
    return ValueDistribution(*alias_table(weights))


@compiled
def draw_day(
    rates: Floats,
    is_in: Bools,
    allowed: Ints,
    ready_chances: Floats,
    firsts: Ints,
    held: SmallInts,
    ready: SmallInts,
    taken: SmallInts,
    sent: Ints,
    event_state: UInts,
    queue_state: UInts,
) -> Any:
    """Let devices live for a day, and return which records they send.

    Columns of the arrays by age are days ago, today's in column 0.

    Args:
        rates: ``(n,) float64``: expected events of each device.
        is_in: ``(n,) bool``: whether it has opted in; only then it makes records.
        allowed: ``(n,) int64``: most records that it may send today.
        ready_chances: ``(a,) float64``: chance that a record of each age, which was not ready
            before, is ready today.
        firsts: ``(n + 1,) int64``, overwritten: the number of each device's first event today.
        held: ``(n, a) int32``, changed: records that are not ready yet.
        ready: ``(n, a) int32``, changed: records that are ready.
        taken: ``(n, a) int32``, changed: records that have been sent.
        sent: ``(n,) int64``, overwritten: records that each device sends today.
        event_state: ``(4,) uint64`` of the generator of events.
        queue_state: ``(4,) uint64`` of the generator of delays and samples.

    Returns:
        ``(r, 2) int64``: for each record sent its age and the number of its event on its device
        and day, in the order of devices.
    """
    n, ages = held.shape
    picks = np.empty((max(n, 16), 2), dtype=np.int64)
    num_picks = 0
    events = np.int64(0)
    for i in range(n):
        firsts[i] = events
        made = np.int64(0)
        if rates[i] > 0.0:
            made = np.int64(poisson(event_state, rates[i]))
        events += made
        sent[i] = 0
        if not is_in[i]:
            continue
        held[i, 0] = made
        total = 0
        for age in range(ages):
            waiting = held[i, age]
            if waiting:
                # Also where the chance is 0 or 1, which draws nothing.
                chance = ready_chances[age]
                now = np.int64(draw_binomial(np.int64(waiting), chance, 1.0 - chance, queue_state))
                held[i, age] -= now
                ready[i, age] += now
            total += ready[i, age]
        most = min(allowed[i], total)
        sent[i] = most
        for number in range(most):
            # Uniform among those that are left, so that any set of them is as likely.
            place = np.int64(next_below(queue_state, np.uint64(total - number)))
            age = 0
            while place >= ready[i, age]:
                place -= ready[i, age]
                age += 1
            if num_picks == len(picks):
                longer = np.empty((2 * num_picks, 2), dtype=np.int64)
                for pick in range(num_picks):
                    longer[pick, 0], longer[pick, 1] = picks[pick, 0], picks[pick, 1]
                picks = longer
            picks[num_picks, 0] = age
            picks[num_picks, 1] = taken[i, age]
            num_picks += 1
            ready[i, age] -= 1
            taken[i, age] += 1
    firsts[n] = events
    return picks[:num_picks]


@numba.njit(inline="always")
def _value(key: Any, event: Any, distribution: ValueDistribution) -> Any:
    """Return the value of an event: two words of SplitMix64, addressed by its number."""
    place = key + (np.uint64(event) * np.uint64(2) + np.uint64(1)) * GOLDEN
    size = len(distribution.cuts)
    column = np.int64(np.float64(mix(place) >> U11) * 2.0**-53 * size)
    # Rounding may reach the end.
    column = min(column, np.int64(size - 1))
    if np.float64(mix(place + GOLDEN) >> U11) * 2.0**-53 < distribution.cuts[column]:
        return column
    return np.int64(distribution.others[column])


@compiled
def values_of(keys: UInts, events: Ints, distribution: ValueDistribution) -> Any:
    """Return ``(n,) int64``: the value of each event, given its day's key and its number."""
    values = np.empty(len(events), dtype=np.int64)
    for i in range(len(events)):
        values[i] = _value(keys[i], events[i], distribution)
    return values


@compiled
def count_events(
    key: np.uint64, firsts: Ints, is_in: Bools, distribution: ValueDistribution, counts: Ints
) -> None:
    """Count a day's events by value: of all devices, and of those that opted in, ``(2, p) int64``.

    Its key and who opted in are given, and ``firsts`` as `draw_day` leaves it.
    """
    for i in range(len(is_in)):
        for event in range(firsts[i], firsts[i + 1]):
            value = _value(key, event, distribution)
            counts[0, value] += 1
            if is_in[i]:
                counts[1, value] += 1
