"""The joint distribution of Subset Selection's votes, by halving the domain; no report is drawn.

A report is free, a uniform d-subset of all values, or bound to its client's value, with a uniform
(d - 1)-subset of the others next to it. A node is a range of values with two histograms: of free
reports, by how many members they have to place in it; and of those that are bound to a value of
the range, which these members must avoid. Reports bound elsewhere are free here. Halving a node
draws how many members go to each half: uniform subsets restricted to a half are uniform again,
given their sizes, and what happens in one half is then independent of the other.

Which bound reports have their value in the left half is a hypergeometric draw, class by class: a
report's value says nothing about its number of members here. Reports with none left are dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.variates import draw_binomial, draw_hypergeometric

_Counts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_State = npt.NDArray[np.uint64]

_NEGLIGIBLE = 1e-60
"""Chance, relative to the likeliest, below which an outcome is left out: it never happens."""


@numba.njit(inline="always")
def left_size(size: int) -> int:
    """Return the size of a range's left half: the largest power of two below ``size``."""
    left = 1
    while 2 * left < size:
        left *= 2
    return left


@subroutine
def _weights(left: int, right: int, members: int, weights: _Floats, sums: _Floats) -> Any:
    """Fill in the distribution of how many of 2 or more members fall into the left part of a range.

    Entry k - first of ``weights`` is the chance of k, up to a factor; ``sums`` are these added up,
    towards the mode from either side. Returned are the first and the last k that are likely enough,
    and the mode.
    """
    least, most = max(0, members - right), min(members, left)
    mode = int((members + 1.0) * ((left + 1.0) / (left + right + 2.0)))
    mode = min(max(mode, least), most)
    first, weight = mode, 1.0
    while first > least:
        step = float(first) * float(right - members + first)
        weight *= step / (float(left - first + 1) * float(members - first + 1))
        if weight < _NEGLIGIBLE:
            break
        first -= 1
    weights[mode - first] = 1.0
    weight = 1.0
    for k in range(mode, first, -1):
        step = float(k) * float(right - members + k)
        weight *= step / (float(left - k + 1) * float(members - k + 1))
        weights[k - 1 - first] = weight
    last, weight = mode, 1.0
    while last < most:
        step = float(left - last) * float(members - last)
        weight *= step / (float(last + 1) * float(right - members + last + 1))
        if weight < _NEGLIGIBLE:
            break
        last += 1
        weights[last - first] = weight
    total = 0.0
    for k in range(first, mode):
        total += weights[k - first]
        sums[k - first] = total
    total = 0.0
    for k in range(last, mode - 1, -1):
        total += weights[k - first]
        sums[k - first] = total
    return first, last, mode


@subroutine
def _place(
    reports: int,
    left: int,
    right: int,
    members: int,
    lefts: _Counts,
    rights: _Counts,
    scratch: tuple[_Floats, _Floats],
    state: _State,
) -> None:
    """Split reports with equally many members by how many of them fall to the left."""
    if members == 1:
        on_left = draw_binomial(reports, float(left), float(right), state)
        lefts[1] += on_left
        rights[1] += reports - on_left
        return
    weights, sums = scratch
    first, last, mode = _weights(left, right, members, weights, sums)
    below = 0
    if mode > first:
        below = draw_binomial(reports, sums[mode - 1 - first], sums[mode - first], state)
    above = reports - below
    # From the mode outwards, each outcome against those farther out: few steps, full precision.
    k = mode - 1
    while below > 0:
        drawn = below
        if k > first:
            drawn = draw_binomial(below, weights[k - first], sums[k - 1 - first], state)
        lefts[k] += drawn
        rights[members - k] += drawn
        below -= drawn
        k -= 1
    k = mode
    while above > 0:
        drawn = above
        if k < last:
            drawn = draw_binomial(above, weights[k - first], sums[k + 1 - first], state)
        lefts[k] += drawn
        rights[members - k] += drawn
        above -= drawn
        k += 1


@subroutine
def _last_class(reports: _Counts) -> int:
    """Return the largest number of members that a report of a node has, 0 if there is none."""
    last = len(reports) - 1
    while last > 0 and reports[last] == 0:
        last -= 1
    return last


@subroutine
def _halve(
    free: _Counts,
    bound: _Counts,
    bound_left: int,
    bound_right: int,
    left: int,
    right: int,
    halves: tuple[_Counts, _Counts, _Counts, _Counts],
    scratch: tuple[_Floats, _Floats],
    state: _State,
) -> None:
    """Draw a node's halves; ``halves`` are free and bound on the left, then on the right."""
    free_left, kept_left, free_right, kept_right = halves
    for half in halves:
        half[:] = 0
    for members in range(1, len(free)):
        if free[members]:
            _place(free[members], left, right, members, free_left, free_right, scratch, state)
    for members in range(1, len(bound)):
        reports = bound[members]
        if reports:
            here = draw_hypergeometric(bound_left, bound_right, reports, state)
            bound_left -= here
            bound_right -= reports - here
            if here:
                _place(here, left - 1, right, members, kept_left, free_right, scratch, state)
            there = reports - here
            if there:
                _place(there, left, right - 1, members, free_left, kept_right, scratch, state)


class Node(NamedTuple):
    """A range of values, and the reports with members in it.

    Attributes:
        start: Its first value.
        size: How many values it has.
        reports: ``(2, k) int64``: free reports by their number of members in the range, and
            likewise those that are bound to a value of it, which is not among the members.
    """

    start: int
    size: int
    reports: _Counts


def root(bound: _Counts, num_free: int, subset_size: int) -> Node:
    """Return the node of all values, with ``(s,) int64`` reports bound to each, and free ones."""
    reports = np.zeros((2, subset_size + 1), dtype=np.int64)
    reports[0, subset_size] = num_free
    # Those of one member are their client's value, and have none left to place.
    reports[1, subset_size - 1] = bound.sum() if subset_size > 1 else 0
    return Node(0, len(bound), reports)


@compiled
def add_members(
    node: Node,
    before: _Counts,
    votes: _Counts,
    smallest: int,
    ranges: _Counts,
    reports: _Counts,
    state: _State,
) -> int:
    """Place a node's members by halving its range again and again, and add them to the votes.

    Cost: O(s) draws at most, and far fewer where there are fewer members than values; it does not
    grow with the number of reports.

    Args:
        node: Where to begin.
        before: ``(s + 1,) int64``: how many reports are bound to values before each one.
        votes: ``(s,) int64``, changed in place.
        smallest: Nodes below it of at most so many values are left over: what happens in one is
            independent of the others. 0 for none.
        ranges: ``(p, 2) int64``: start and size of what is left over, filled in.
        reports: ``(p, 2, k) int64``: its reports, filled in.

    Returns:
        How many nodes are left over.
    """
    left_over = 0
    depth = 1
    while 1 << (depth - 1) < node.size:
        depth += 1
    # Histograms of the nodes under way, free and bound, in the place of depth and side: a node has
    # at most 2**(depth - 1 - level) values. Of a place, only classes up to its top are in use.
    top = min(len(node.reports[0]) - 1, node.size)
    offsets = np.zeros(depth + 1, dtype=np.int64)
    for level in range(depth):
        room = min(top, 1 << (depth - 1 - level)) + 1
        offsets[level + 1] = offsets[level] + 4 * room
    memory = np.zeros(offsets[depth], dtype=np.int64)
    scratch = (np.empty(top + 2), np.empty(top + 2))
    starts = np.zeros(depth + 1, dtype=np.int64)
    sizes = np.zeros(depth + 1, dtype=np.int64)
    places = np.zeros(depth + 1, dtype=np.int64)
    tops = np.zeros(depth + 1, dtype=np.int64)
    levels = np.zeros(depth + 1, dtype=np.int64)
    for members in range(top + 1):
        memory[members] = node.reports[0, members]
        memory[top + 1 + members] = node.reports[1, members]
    starts[0], sizes[0], tops[0] = node.start, node.size, top
    waiting = 1
    while waiting:
        waiting -= 1
        start, size, level = starts[waiting], sizes[waiting], levels[waiting]
        place, top = places[waiting], tops[waiting] + 1
        node_free, node_bound = memory[place : place + top], memory[place + top : place + 2 * top]
        if level > 0 and size <= smallest:
            ranges[left_over, 0], ranges[left_over, 1] = start, size
            for members in range(top):
                reports[left_over, 0, members] = node_free[members]
                reports[left_over, 1, members] = node_bound[members]
            left_over += 1
            continue
        if size == 1:
            if top > 1:
                votes[start] += node_free[1]
            continue
        classes = max(_last_class(node_free), _last_class(node_bound)) + 1
        if classes == 1:
            continue
        left = left_size(size)
        middle = start + left
        # A half holds as many members as it has values, and as many as its parent's reports have.
        most_left, most_right = min(classes - 1, left) + 1, min(classes - 1, size - left) + 1
        at_left = offsets[level + 1]
        at_right = at_left + 2 * most_left
        _halve(
            node_free[:classes],
            node_bound[:classes],
            before[middle] - before[start],
            before[start + size] - before[middle],
            left,
            size - left,
            (
                memory[at_left : at_left + most_left],
                memory[at_left + most_left : at_right],
                memory[at_right : at_right + most_right],
                memory[at_right + most_right : at_right + 2 * most_right],
            ),
            scratch,
            state,
        )
        starts[waiting], sizes[waiting], levels[waiting] = middle, size - left, level + 1
        places[waiting], tops[waiting] = at_right, most_right - 1
        waiting += 1
        starts[waiting], sizes[waiting], levels[waiting] = start, left, level + 1
        places[waiting], tops[waiting] = at_left, most_left - 1
        waiting += 1
    return left_over


@compiled
def count_into(values: _Counts, counts: _Counts) -> None:
    """Add one to the count of each value; values beyond the counts must have been refused."""
    for value in values:
        counts[value] += 1
