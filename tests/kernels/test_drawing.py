import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import zeta

from fedhh.kernels.drawing import (
    TypingDistribution,
    count_tokens,
    draw_ranks,
    poisson,
    seed_client,
    typed_words,
)
from fedhh.kernels.ranks import (
    BATCH,
    MAX_RANK,
    RankTable,
    alias_table,
    draw_adopted,
    rank_table,
)
from tests.every import every
from tests.kernels.drawing_reference import KEYS, reference_rows
from tests.thinned import thinned

ALPHA = 1e-9
# A normal variable passes this bound with probability ALPHA.
Z = stats.norm.isf(ALPHA / 2)
CHAT = TypingDistribution(
    log_mean=3.7,
    log_sd=1.6,
    min_words=1,
    max_words=30_000,
    log_share_mean=-2.7,
    log_share_sd=0.5,
    copy_scale=7.34,
    copy_exponent=0.08,
    adoption=0.3,
)


def power_law(head=50, exponent=0.9, tail_exponent=1.4):
    weights = np.arange(1.0, head + 1) ** -exponent
    scale = weights[-1] * head**tail_exponent
    return rank_table(weights, tail_scale=scale, tail_exponent=tail_exponent)


def flat_table(size):
    """Ranks 1 to ``size``, a power of two, all alike."""
    bits = size.bit_length() - 1
    assert size == 2**bits
    columns = np.arange(size)
    return RankTable(
        entries=columns.astype(np.uint64),
        starts=columns + 1,
        widths=np.ones(size),
        bits=bits,
        tail_exponent=2.0,
    )


def draw(clients, distribution=CHAT, table=None, keys=KEYS):
    clients = np.asarray(clients)
    table = power_law() if table is None else table
    return draw_ranks(keys, clients, distribution, table)


def rows_of(offsets, ranks, counts):
    rows = list(zip(ranks.tolist(), counts.tolist(), strict=True))
    return [rows[first:last] for first, last in itertools.pairwise(offsets.tolist())]


def new_state(number=0):
    state = np.empty(4, dtype=np.uint64)
    seed_client(state, KEYS[0], number)
    return state


def p_value(observed, chances):
    """Chi-square of counts against chances that sum to 1, rare cells merged into one."""
    expected = np.asarray(chances) * observed.sum()
    rare = expected < 5
    observed = np.r_[observed[~rare], observed[rare].sum()]
    expected = np.r_[expected[~rare], expected[rare].sum()]
    if expected[-1] < 5:
        observed = np.r_[observed[:-2], observed[-2:].sum()]
        expected = np.r_[expected[:-2], expected[-2:].sum()]
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)


@pytest.mark.parametrize(
    "distribution", [CHAT, CHAT._replace(copy_exponent=1.5, log_share_mean=-0.2)]
)
def test_kernel_types_what_the_reference_types(distribution):
    clients = [*range(150), 10**9, 2**40]
    table = power_law()
    expected = [reference_rows(client, distribution, table) for client in clients]
    assert rows_of(*draw(clients, distribution, table)) == expected
    assert max(count for row in expected for _, count in row) > 3


def test_a_client_is_the_same_alone_in_a_block_or_out_of_order():
    rows = rows_of(*draw(range(200)))
    assert rows_of(*draw([17])) == [rows[17]]
    shuffled = np.random.default_rng(0).permutation(200)
    assert rows_of(*draw(shuffled)) == [rows[i] for i in shuffled]
    assert rows_of(*draw(range(50))) + rows_of(*draw(range(50, 200))) == rows
    assert rows_of(*draw(range(200))) == rows


def test_both_keys_and_the_client_number_change_what_is_typed():
    rows = rows_of(*draw(range(50)))
    other_stream = rows_of(*draw(range(50), keys=KEYS + np.array([1, 0], dtype=np.uint64)))
    other_adoption = rows_of(*draw(range(50), keys=KEYS + np.array([0, 1], dtype=np.uint64)))
    assert rows[:49] != rows[1:]
    assert rows != other_stream
    assert rows != other_adoption


def test_rows_are_distinct_within_a_client_and_sum_to_its_tokens():
    clients = np.arange(2000)
    offsets, ranks, counts = draw(clients)
    owners = np.repeat(clients, np.diff(offsets))
    assert len(set(zip(owners.tolist(), ranks.tolist(), strict=True))) == len(ranks)
    tokens = count_tokens(KEYS, clients, CHAT)
    assert np.array_equal(np.bincount(owners, counts, minlength=2000), tokens)
    assert ranks.min() >= 1
    assert ranks.max() < MAX_RANK
    assert counts.min() >= 1
    assert (ranks.dtype, counts.dtype) == (np.int64, np.int32)


def test_no_clients_and_clients_without_a_word_are_fine():
    assert [len(part) for part in draw(np.zeros(0, dtype=np.int64))] == [1, 0, 0]
    offsets, ranks, _ = draw(range(10), CHAT._replace(log_share_mean=-60.0))
    assert offsets.tolist() == [0] * 11
    assert len(ranks) == 0


@every("weights", [[1.0], [3.0, 1.0, 2.0], np.arange(1.0, 200) ** -0.9])
@every("empty", [0, 3])
def test_alias_table_holds_exactly_its_distribution(weights, empty):
    weights = np.r_[weights, np.zeros(empty)]
    cuts, aliases = alias_table(weights)
    held = cuts.copy()
    np.add.at(held, aliases, 1 - cuts)
    np.testing.assert_allclose(held / len(weights), weights / weights.sum(), rtol=1e-12)
    assert (held[len(weights) - empty :] == 0).all()


def test_columns_hold_every_rank_once_and_are_narrow():
    table = power_law()
    used = table.starts[: np.argmax(table.starts) + 1]
    widths = table.widths[: len(used)]
    assert used[0] == 1
    assert np.array_equal(used[1:], used[:-1] + widths[:-1].astype(np.int64))
    assert used[-1] + int(widths[-1]) == MAX_RANK
    # The squeeze of the draws is tight, and rejection rare, because of this.
    assert (widths <= np.maximum(1, used / 16)).all()


def draw_many(table, size, number=0):
    """Ranks of clients that adopt all words."""
    ranks = np.empty(size, dtype=np.int64)
    candidates = np.empty((4, BATCH + 1), dtype=np.int64)
    draw_adopted(new_state(number), table, np.uint64(0), 1.0, ranks, size, candidates)
    return ranks


@pytest.mark.parametrize(("size", "off"), thinned([(200_000, 0.04), (2_000_000, 0.01)]))
def test_ranks_follow_their_distribution_and_neighboring_distributions_fail(size, off):
    head = 20
    table = power_law(head, 0.9, 1.4)
    # Single ranks, then ever wider cells across the columns of one rank and the groups.
    edges = np.unique(np.r_[1:200, np.geomspace(200, 10**12, 120).astype(np.int64)])
    assert 200 < table.starts[table.widths > 1].min() < 10**4
    ranks = draw_many(table, size)
    observed = np.bincount(np.searchsorted(edges, ranks, side="right") - 1, minlength=len(edges))

    def chances(exponent, tail_exponent):
        weights = np.arange(1.0, head + 1) ** -exponent
        scale = weights[-1] * head**tail_exponent
        # Sums of the distribution from each edge on.
        beyond = np.array(
            [
                weights[edge - 1 :].sum() + scale * zeta(tail_exponent, max(edge, head + 1))
                for edge in edges.tolist()
            ]
        )
        distribution = -np.diff(np.r_[beyond, 0])
        return distribution / distribution.sum()

    assert p_value(observed, chances(0.9, 1.4)) > ALPHA
    for wrong in [(0.9 - off, 1.4), (0.9 + off, 1.4), (0.9, 1.4 - off), (0.9, 1.4 + off)]:
        assert p_value(observed, chances(*wrong)) < ALPHA


def test_ranks_within_a_group_follow_the_power_law_and_an_even_spread_fails():
    # A steep distribution, so that a rank weighs much less at a group's end than at its start.
    table = power_law(20, 0.9, 6.0)
    group = np.flatnonzero(table.widths >= 16)[0]
    only = RankTable(
        entries=np.zeros(2, dtype=np.uint64),
        starts=np.full(2, table.starts[group]),
        widths=np.full(2, table.widths[group]),
        bits=1,
        tail_exponent=6.0,
    )
    start, width = int(table.starts[group]), int(table.widths[group])
    observed = np.bincount(draw_many(only, 200_000) - start, minlength=width)
    distribution = (start + np.arange(width)) ** -6.0
    assert p_value(observed, distribution / distribution.sum()) > ALPHA
    assert p_value(observed, np.full(width, 1 / width)) < ALPHA
    steeper = (start + np.arange(width)) ** -7.0
    assert p_value(observed, steeper / steeper.sum()) < ALPHA


def test_heavy_tails_stay_below_the_largest_rank():
    ranks = draw_many(power_law(20, 0.9, 1.05), 20_000)
    assert ranks.max() < MAX_RANK
    assert ranks.min() >= 1
    assert (ranks > MAX_RANK // 1000).sum() > 100


@pytest.mark.parametrize("mean", [0.02, 0.8, 9.99, 10.01, 37.0, 800.0])
def test_poisson_numbers_follow_their_distribution_and_neighboring_distributions_fail(mean):
    state, size = new_state(), 50_000
    numbers = np.array([poisson(state, mean) for _ in range(size)])
    observed = np.bincount(numbers)

    def chances(wanted):
        distribution = stats.poisson.pmf(np.arange(len(observed)), wanted)
        return np.r_[distribution[:-1], stats.poisson.sf(len(observed) - 2, wanted)]

    assert p_value(observed, chances(mean)) > ALPHA
    # Twenty standard errors of the mean: chi-square over all cells is less sharp than a mean.
    off = 20 * math.sqrt(mean / size)
    assert p_value(observed, chances(mean + off)) < ALPHA
    assert p_value(observed, chances(mean - off)) < ALPHA


def draw_typed(distribution, size):
    state = new_state()
    return np.array([typed_words(state, distribution) for _ in range(size)]).T


@pytest.mark.parametrize(("size", "off"), thinned([(5_000, 0.15), (100_000, 0.03)]))
def test_numbers_of_words_are_rounded_and_clipped_log_normals(size, off):
    distribution = CHAT._replace(log_mean=2.0, log_sd=0.7, min_words=2, max_words=40)
    words, _ = draw_typed(distribution, size)
    observed = np.bincount(words.astype(int), minlength=41)[2:]
    assert observed.sum() == len(words)

    def chances(mean, deviation):
        edges = stats.norm.cdf(np.log(np.arange(2.5, 40)), mean, deviation)
        return np.diff(np.r_[0, edges, 1])

    assert p_value(observed, chances(2.0, 0.7)) > ALPHA
    for wrong in [(2.0 - off, 0.7), (2.0 + off, 0.7), (2.0, 0.7 - off), (2.0, 0.7 + off)]:
        assert p_value(observed, chances(*wrong)) < ALPHA


@pytest.mark.parametrize(("size", "off"), thinned([(20_000, 0.06), (100_000, 0.02)]))
def test_shares_are_log_normal_at_most_one_and_independent_of_lengths(size, off):
    distribution = CHAT._replace(log_mean=10.0, log_sd=0.5, log_share_mean=-0.5, log_share_sd=0.5)
    words, shares = draw_typed(distribution, size)
    assert shares.max() == 1.0
    normal = stats.norm.cdf(np.log(shares[shares < 1]), -0.5, 0.5)
    below_one = stats.norm.cdf(1.0)
    observed = np.r_[np.histogram(normal, 20, (0, below_one))[0], (shares == 1).sum()]
    chances = np.r_[np.full(20, below_one / 20), 1 - below_one]
    assert p_value(observed, chances) > ALPHA
    wrong = stats.norm.cdf(np.log(shares[shares < 1]), off - 0.5, 0.5)
    observed = np.r_[np.histogram(wrong, 20, (0, below_one))[0], (shares == 1).sum()]
    assert p_value(observed, chances) < ALPHA
    quadrants = np.histogram2d(words > math.exp(10.0), shares > math.exp(-0.5), bins=2)[0]
    assert p_value(quadrants.ravel(), np.full(4, 0.25)) > ALPHA


def test_words_are_copied_as_often_as_the_rule_says():
    distribution = CHAT._replace(adoption=1.0, log_share_mean=-1.0)
    clients = np.arange(3000)
    # So many ranks that two fresh draws of a client are all but never the same.
    offsets, _, _ = draw(clients, distribution, flat_table(2**22))
    tokens = count_tokens(KEYS, clients, distribution)
    state = np.empty(4, dtype=np.uint64)
    shares = []
    for client in clients.tolist():
        seed_client(state, KEYS[0], client)
        shares.append(typed_words(state, distribution)[1])

    def z(exponent):
        positions = [np.arange(n) / share for n, share in zip(tokens, shares, strict=True)]
        fresh = (1 + np.concatenate(positions) / distribution.copy_scale) ** -exponent
        return (offsets[-1] - fresh.sum()) / math.sqrt((fresh * (1 - fresh)).sum())

    assert abs(z(0.08)) < Z
    assert z(0.076) < -Z
    assert z(0.084) > Z


def test_each_client_adopts_its_own_share_of_the_ranks():
    clients, ranks_in_all = 300, 512
    # Long texts without copies: a client types every rank that it adopts.
    distribution = CHAT._replace(log_mean=9.5, log_sd=0.0, copy_exponent=0.0)
    distribution = distribution._replace(log_share_mean=0.0, log_share_sd=0.0)
    offsets, ranks, _ = draw(range(clients), distribution, flat_table(ranks_in_all))
    holders = np.bincount(ranks, minlength=ranks_in_all + 1)[1:]

    def p_values(adoption):
        for numbers, size in ((holders, clients), (np.diff(offsets), ranks_in_all)):
            distribution = stats.binom.pmf(np.arange(size + 1), size, adoption)
            yield p_value(np.bincount(numbers, minlength=size + 1), distribution)

    assert min(p_values(0.3)) > ALPHA
    assert max(p_values(0.28)) < ALPHA
    assert max(p_values(0.32)) < ALPHA
