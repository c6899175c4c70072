"""Epochs enumerated in fractions: every order of a few clients, every transcript, every data set.

A kernel is a matrix ``[value][output]`` of fractions; a protocol returns the kernel of the next
place for all outputs before it, those of earlier epochs included. A law is a dictionary from
values of V to probabilities, for an odds ratio x and E = e**eps0 (docs/accounting.md, section 14).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

Kernel = Sequence[Sequence[Fraction]]
Protocol = Callable[[tuple[int, ...]], Kernel]
Distribution = dict[tuple[int, ...], Fraction]
Law = dict[Fraction, Fraction]


def randomized_response(size: int, growth: int) -> Kernel:
    return [
        [Fraction(growth if value == said else 1, growth + size - 1) for said in range(size)]
        for value in range(size)
    ]


def subset_selection(size: int, subset_size: int, growth: int) -> Kernel:
    subsets = list(itertools.combinations(range(size), subset_size))
    weights = [[growth if value in each else 1 for each in subsets] for value in range(size)]
    return [[Fraction(weight, sum(row)) for weight in row] for row in weights]


def about(kernel: Kernel, values: Iterable[int]) -> Kernel:
    """The kernel in which each client's value is asked for by what it means in this question."""
    return [kernel[value] for value in values]


def transcripts(data: Iterable[int], protocol: Protocol, epochs: int = 1) -> Distribution:
    """The law of all outputs in order, each epoch in a fresh uniform order of all clients."""
    everybody = Counter(data)
    states = {(): {tuple(sorted(everybody.items())): Fraction(1)}}
    for _ in range(epochs):
        whole = tuple(sorted(everybody.items()))
        states = {before: {whole: sum(left.values())} for before, left in states.items()}
        for place in range(everybody.total()):
            states = _one_more(states, protocol, everybody.total() - place)
    return {outputs: sum(left.values()) for outputs, left in states.items()}


def _one_more(states, protocol, num_left):
    following = defaultdict(lambda: defaultdict(Fraction))
    for before, lefts in states.items():
        kernel = protocol(before)
        for left, weight in lefts.items():
            for i, (value, count) in enumerate(left):
                rest = left[:i] + (((value, count - 1),) if count > 1 else ()) + left[i + 1 :]
                chosen = weight * Fraction(count, num_left)
                for output, probability in enumerate(kernel[value]):
                    following[(*before, output)][rest] += chosen * probability
    return following


def in_orders(
    data: Sequence[int], protocol: Protocol, orders: Sequence[Sequence[int]]
) -> Distribution:
    """The law of all outputs where the places of all epochs follow one of some equal orders."""
    found: Distribution = defaultdict(Fraction)
    alike = Counter(tuple(data[client] for client in order) for order in orders)
    for values, count in alike.items():
        states = {(): Fraction(count, len(orders))}
        for value in values:
            following = defaultdict(Fraction)
            for before, weight in states.items():
                for output, probability in enumerate(protocol(before)[value]):
                    following[(*before, output)] += weight * probability
            states = following
        for outputs, weight in states.items():
            found[outputs] += weight
    return found


def neighbors(num_values: int, num_clients: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All pairs of data sets that differ in one client, up to the others' order."""
    others = itertools.combinations_with_replacement(range(num_values), num_clients - 1)
    for rest in others:
        for one, other in itertools.permutations(range(num_values), 2):
            yield (one, *rest), (other, *rest)


def divergence(one: Distribution, other: Distribution, odds: Fraction) -> Fraction:
    """D_x: how much more likely the best event is under one than x times under the other."""
    return sum(
        max(Fraction(0), mass - odds * other.get(outputs, 0)) for outputs, mass in one.items()
    )


def pair_law(growth: int, odds: Fraction) -> Law:
    """W of the pair of 2023."""
    corner = Fraction(1, growth + 1)
    return {growth - odds: corner, 1 - odds * growth: corner, Fraction(0): 1 - 2 * corner}


def blanket_law(kernel: Kernel, one: int, other: int, odds: Fraction) -> Law:
    """V of a kernel, by its pointwise minimum over all values."""
    law: Law = defaultdict(Fraction)
    for output in range(len(kernel[0])):
        mass = min(row[output] for row in kernel)
        law[(kernel[one][output] - odds * kernel[other][output]) / mass] += mass
    law[Fraction(0)] += 1 - sum(law.values())
    return law


def mean_positive_part(laws: Sequence[Law]) -> Fraction:
    """(1/n) E[(V_1 + ... + V_n)_+] of independent laws."""
    sums: Law = {Fraction(0): Fraction(1)}
    for law in laws:
        following: Law = defaultdict(Fraction)
        for total, weight in sums.items():
            for value, probability in law.items():
                following[total + value] += weight * probability
        sums = following
    return sum(max(Fraction(0), total) * weight for total, weight in sums.items()) / len(laws)


def pair(num_clients: int, growth: int, values: int = 2) -> list[tuple[Fraction, Fraction]]:
    """The blanket's pair of randomized response: the masses of all outcomes, under both worlds.

    Of two values it is the pair of 2023.
    """
    one = Fraction(1, growth + values - 1)
    chances = one, one, (values - 2) * one, 1 - values * one
    found = []
    for counts in itertools.product(range(num_clients + 1), repeat=3):
        if (rest := num_clients - sum(counts)) < 0:
            continue
        mass = Fraction(math.factorial(num_clients), num_clients)
        for count, chance in zip((*counts, rest), chances, strict=True):
            mass *= chance**count / math.factorial(count)
        ones, others, neither = counts
        weights = ones * growth + others + neither, ones + others * growth + neither
        found.append((mass * weights[0], mass * weights[1]))
    return [masses for masses in found if masses[0]]


def composed_divergence(
    pairs: Sequence[Sequence[tuple[Fraction, Fraction]]], odds: Fraction
) -> Fraction:
    """D_x of a product of pairs."""
    products = [(Fraction(1), Fraction(1))]
    for each in pairs:
        products = [(p * mass, q * other) for p, q in products for mass, other in each]
    return sum(max(Fraction(0), p - odds * q) for p, q in products)
