"""Which of the vote kernels counts a call's reports: one law, the speed of the best."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fedhh.kernels.bit_votes import add_bit_votes, bit_report_ns
from fedhh.kernels.counters import make_counters, move_counts
from fedhh.kernels.lanes import lane_states
from fedhh.kernels.quick_votes import add_quick_votes
from fedhh.kernels.subset_tally import Node, add_members, root
from fedhh.kernels.variates import binomials
from fedhh.kernels.votes import add_looked_through_votes, add_stamped_votes, shares_stamps
from fedhh.oracles.base import Tally, Values, require_in_domain
from fedhh.random import kernel_state
from fedhh.system.cores import num_cores

_LARGEST_QUICK_SUBSET = 16

# Tallies of domains from this size on are drawn in parts, side by side.
_WORTH_PARTS = 2**16
_MOST_PARTS = 16

# The stamped route's nanoseconds on one core; the constants of `fedhh.kernels.bit_votes` are alike.
_DRAW_NS = 0.8
_REPEAT_NS = 7.0

# Likewise, of votes by any route, in a table that fits the second cache or does not; and of a tally
# without reports: what counting a value takes more than a report's own coin, a value of the domain,
# a member near the root of the halving.
_VOTE_NS = 1.1
_FAR_VOTE_NS = 1.6
_NEAR_TABLE = 2**17
_COUNT_NS = 0.3
_VALUE_NS = 600.0
_MEMBER_NS = 8000.0


def coin_threshold(*, heads: float, tails: float) -> np.uint64:
    """Return ``tails * 2**64``: a uniform 64-bit word is below it with probability ``tails``.

    Args:
        heads: Probability of the other side; the smaller of the two keeps its precision.
        tails: 1 - heads.
    """
    if heads < tails:
        return np.uint64(2**64 - round(heads * 2.0**64))
    return np.uint64(round(tails * 2.0**64))


def add_subset_votes(
    values: Values,
    out: Tally,
    *,
    subset_size: int,
    miss: np.uint64,
    rng: np.random.Generator,
    route: str | None = None,
) -> None:
    """Draw one Subset Selection report per value and add its members to ``out``.

    Args:
        values: ``(n,) int64`` in [0, s), contiguous, n below 2**32. Others are refused, and then
            ``out`` is as it was.
        out: ``(s,) int64``, s below 2**32.
        subset_size: d, in [1, s).
        miss: Probability that a report lacks its client's value, times 2**64.
        rng: Source of the clients' coins.
        route: ``quick``, ``looked-through``, ``stamped`` or ``bits``; None chooses from s and d
            alone.
    """
    domain_size = len(out)
    route = route or best_route(domain_size, subset_size)
    if route != "quick":
        require_in_domain(values, domain_size)
    if len(values) == 0:
        return
    states = lane_states(rng)
    if route == "bits":
        add_bit_votes(values, subset_size, miss, out, states)
        return
    if route == "stamped":
        add_stamped_votes(values, subset_size, miss, out, states)
        return
    counters = make_counters(domain_size)
    if route == "quick":
        # It reads the values once, and hands back those outside the domain: a pass over them just
        # to look would cost a fifth of its time.
        values = add_quick_votes(values, subset_size, miss, counters, states)
        require_in_domain(values, domain_size)
    add_looked_through_votes(values, subset_size, miss, counters, states)
    move_counts(counters, out)


def best_route(domain_size: int, subset_size: int) -> str:
    """Return the fastest route: see `add_subset_votes`; by sizes, never by clock."""
    # About d (d + 1) / (2 s) of the quick route's reports have to be drawn again.
    few_repeats = 4 * subset_size * (subset_size + 1) <= domain_size
    if subset_size <= _LARGEST_QUICK_SUBSET and few_repeats:
        return "quick"
    draws = -domain_size * math.log1p(-subset_size / domain_size)
    stamped_ns = draws * _DRAW_NS + (draws - subset_size) * _REPEAT_NS
    if bit_report_ns(domain_size, subset_size) < stamped_ns:
        return "bits"
    return "looked-through" if shares_stamps(domain_size, subset_size) else "stamped"


def sample_subset_tally(
    true_counts: Values, *, subset_size: int, epsilon: float, rng: np.random.Generator
) -> Tally:
    """Return the votes of Subset Selection's reports, drawn without a report; the law is exact.

    With E = e**epsilon, a report contains its client's value in proportion to E, any other subset
    in proportion to 1. So it is a mixture: with probability s / (d E + s - d) it is *free*, a
    uniform d-subset whatever the client holds; otherwise it is *bound*, the client's value and a
    uniform (d - 1)-subset of the others. What the free and the bound place is drawn by halving the
    domain, see `fedhh.kernels.subset_tally`.

    Args:
        true_counts: ``(s,) int64``: clients that hold each value.
        subset_size: d, in [1, s).
        epsilon: Privacy of one report.
        rng: Source of the clients' coins.
    """
    state = kernel_state(rng)
    free_weight = len(true_counts) * math.exp(-epsilon)
    bound_weight = -subset_size * math.expm1(-epsilon)
    bound = binomials(true_counts, bound_weight, free_weight, state)
    votes: Tally = bound.copy()
    before = np.r_[0, np.cumsum(bound)]
    whole = root(bound, int((true_counts - bound).sum()), subset_size)
    # Parts follow from the domain's size, not from the cores, and each has its own stream.
    smallest = 0
    if len(bound) >= _WORTH_PARTS:
        smallest = 2 ** (len(bound) - 1).bit_length() // _MOST_PARTS
    ranges = np.zeros((_MOST_PARTS, 2), dtype=np.int64)
    reports = np.zeros((_MOST_PARTS, 2, subset_size + 1), dtype=np.int64)
    num_parts = add_members(whole, before, votes, smallest, ranges, reports, state)
    states = [kernel_state(rng) for _ in range(num_parts)]

    def place(part: int) -> None:
        node = Node(int(ranges[part, 0]), int(ranges[part, 1]), reports[part])
        add_members(node, before, votes, 0, ranges, reports, states[part])

    if num_parts:
        with ThreadPoolExecutor(min(num_cores(), num_parts)) as pool:
            list(pool.map(place, range(num_parts)))
    return votes


def subset_tally_saves_ns(domain_size: int, subset_size: int, num_reports: int) -> float:
    """Return about how many nanoseconds `sample_subset_tally` saves; by sizes, never by clock."""
    vote_ns = _VOTE_NS if domain_size <= _NEAR_TABLE else _FAR_VOTE_NS
    levels = math.log2(subset_size + 1)
    fixed_ns = domain_size * _VALUE_NS + subset_size * levels * _MEMBER_NS
    return num_reports * (subset_size * vote_ns - _COUNT_NS) - fixed_ns
