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

from fedhh.arrays import Floats, Ints, UInts
from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.variates import draw_binomial, draw_hypergeometric

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
def _weights(left: int, right: int, members: int, weights: Floats, sums: Floats) -> Any:
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
    lefts: Ints,
    rights: Ints,
    scratch: tuple[Floats, Floats],
    state: UInts,
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
    reports: Ints


def root(bound: Ints, num_free: int, subset_size: int) -> Node:
    """Return the node of all values, with ``(s,) int64`` reports bound to each, and free ones."""
    reports = np.zeros((2, subset_size + 1), dtype=np.int64)
    reports[0, subset_size] = num_free
    # Those of one member are their client's value, and have none left to place.
    reports[1, subset_size - 1] = bound.sum() if subset_size > 1 else 0
    return Node(0, len(bound), reports)


@compiled
def halve(node: Node, before: Ints, state: UInts) -> tuple[Node, Node]:
    """Return the halves of a node of two or more values, with what falls into each drawn.

    Args:
        node: The range, and its reports.
        before: ``(s + 1,) int64``: how many reports are bound to values before each one.
        state: ``(4,) uint64`` of the generator.
    """
    left = left_size(node.size)
    right = node.size - left
    classes = node.reports.shape[1]
    # A half has as many members as it has values at most.
    at_left = np.zeros((2, min(classes, left + 1)), dtype=np.int64)
    at_right = np.zeros((2, min(classes, right + 1)), dtype=np.int64)
    most = min(classes - 1, node.size)
    scratch = (np.empty(most + 2), np.empty(most + 2))
    middle, end = node.start + left, node.start + node.size
    bound_left, bound_right = before[middle] - before[node.start], before[end] - before[middle]
    for members in range(1, most + 1):
        reports = node.reports[0, members]
        if reports:
            _place(reports, left, right, members, at_left[0], at_right[0], scratch, state)
    for members in range(1, most + 1):
        reports = node.reports[1, members]
        if reports:
            here = draw_hypergeometric(bound_left, bound_right, reports, state)
            there = reports - here
            bound_left -= here
            bound_right -= there
            if here:
                _place(here, left - 1, right, members, at_left[1], at_right[0], scratch, state)
            if there:
                _place(there, left, right - 1, members, at_left[0], at_right[1], scratch, state)
    return Node(node.start, left, at_left), Node(middle, right, at_right)


@compiled
def add_members(node: Node, before: Ints, votes: Ints, state: UInts) -> None:
    """Place a node's members by halving its range again and again, and add them to the votes.

    Cost: O(s) draws at most, and far fewer where there are fewer members than values; it does not
    grow with the number of reports.

    Args:
        node: Where to begin.
        before: ``(s + 1,) int64``, as in `halve`.
        votes: ``(s,) int64``, changed in place.
        state: ``(4,) uint64`` of the generator.
    """
    classes = node.reports.shape[1]
    while classes > 1 and not node.reports[0, classes - 1] and not node.reports[1, classes - 1]:
        classes -= 1
    if classes == 1:
        return
    if node.size == 1:
        votes[node.start] += node.reports[0, 1]
        return
    trimmed = Node(node.start, node.size, node.reports[:, :classes])
    left, right = halve(trimmed, before, state)
    add_members(left, before, votes, state)
    add_members(right, before, votes, state)


@compiled
def count_into(values: Ints, counts: Ints) -> None:
    """Add one to the count of each value; values beyond the counts must have been refused."""
    for value in values:
        counts[value] += 1
