"""Epochs of secret order: all clients of an epoch hide each other, and what would be false.

Every order, transcript and data set of a few clients is enumerated in fractions. Readers see all
outputs in order, which is more than tallies.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from fedhh.accounting import Clones2023
from fedhh.accounting.bounds.blanket import SlotwiseBlanket
from fedhh.accounting.bounds.composition import FINE, Use, composed_epsilon
from fedhh.accounting.bounds.selection import dominating_blanket, subset_selection_blanket
from tests.accounting.enumerated_epochs import (
    about,
    blanket_law,
    composed_divergence,
    divergence,
    in_orders,
    mean_positive_part,
    neighbors,
    pair,
    pair_law,
    randomized_response,
    subset_selection,
    transcripts,
)

VALUES = 3


def is_it(value, growth):
    """The question whether a client holds a value."""
    return about(randomized_response(2, growth), [int(each == value) for each in range(VALUES)])


def leading(outputs):
    return max(range(VALUES), key=outputs.count)


def binary_by_the_first_tally(growth, first):
    """Whether clients hold 0; then the others, whether they hold what the tally decides."""

    def protocol(before):
        if len(before) < first:
            return is_it(0, growth)
        return is_it(0 if sum(before[:first]) * 2 > first else 1, growth)

    return protocol


def binary_then_all(growth, first):
    """Whether clients hold 0; then which value they hold."""

    def protocol(before):
        return is_it(0, growth) if len(before) < first else randomized_response(VALUES, growth)

    return protocol


def domain_by_the_first_tally(growth, first):
    """Which value clients hold; then a domain of three or of four values, by the tally."""

    def protocol(before):
        if len(before) < first or before[:first].count(0) * 2 <= first:
            return randomized_response(VALUES, growth)
        return about(subset_selection(4, 2, growth), range(VALUES))

    return protocol


def leader_or_all(growth, first):
    """Which value clients hold; then whether they hold the leader, if it leads by enough."""

    def protocol(before):
        seen = before[:first]
        if len(before) < first or seen.count(leading(seen)) < first:
            return randomized_response(VALUES, growth)
        return is_it(leading(seen), growth)

    return protocol


PROTOCOLS = [
    binary_by_the_first_tally,
    binary_then_all,
    domain_by_the_first_tally,
    leader_or_all,
]


def odds_up_to(growth):
    """Five odds ratios e**epsilon, from 1 to nearly e**eps0."""
    return [1 + Fraction(i * (growth - 1), 5) for i in range(5)]


def check_against_the_pair(protocol, num_clients, growth, epochs):
    """Return the largest share of the pair's divergence that any data set reaches."""
    product = [pair(num_clients, growth)] * epochs
    bounds = {odds: composed_divergence(product, odds) for odds in odds_up_to(growth)}
    return check(bounds, protocol, num_clients, epochs)


def check(bounds, protocol, num_clients, epochs=1):
    """Return the largest share of the bounds, by odds, that any data set reaches."""
    found = {}
    for data in itertools.combinations_with_replacement(range(VALUES), num_clients):
        found[data] = transcripts(data, protocol, epochs)
    closest = Fraction(0)
    for one, other in neighbors(VALUES, num_clients):
        laws = found[tuple(sorted(one))], found[tuple(sorted(other))]
        for odds, bound in bounds.items():
            truth = divergence(*laws, odds)
            assert truth <= bound, (one, other, odds)
            closest = max(closest, truth / bound)
    return closest


@pytest.mark.parametrize("growth", [3, 8])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_clients_of_an_epoch_hide_each_other(protocol, growth):
    assert check_against_the_pair(protocol(growth, 1), 3, growth, 1) > 0.75


@pytest.mark.slow("::test_all_clients_of_an_epoch_hide_each_other")
@pytest.mark.parametrize(("num_clients", "first"), [(2, 1), (4, 1), (4, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("growth", [3, 8])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_more_clients_of_an_epoch_hide_each_other(protocol, growth, num_clients, first):
    assert check_against_the_pair(protocol(growth, first), num_clients, growth, 1) > 0.6


def test_the_pair_is_attained():
    assert check_against_the_pair(lambda _: is_it(1, 3), 4, 3, 1) == 1


@pytest.mark.parametrize(
    ("num_clients", "epochs", "odds"), [(40, 1, 1.5), (12, 2, 3), (6, 3, 6), (4, 3, 8)]
)
def test_what_is_claimed_is_the_divergence_of_the_pairs(num_clients, epochs, odds):
    exact = composed_divergence([pair(num_clients, 3)] * epochs, Fraction(odds))
    bound = Clones2023(local_epsilon=math.log(3), num_reports=num_clients)
    uses = [Use(bound=bound, times=epochs)]
    claimed = composed_epsilon(uses, delta=float(exact), precision=FINE)
    assert math.log(odds) * (1 - 1e-9) <= claimed <= math.log(odds) * 1.01


def later_ones_ask_by_what_led(protocol):
    """Every epoch of three clients asks about what led in the epochs before it."""

    def over_epochs(before):
        earlier = before[: len(before) // 3 * 3]
        meaning = leading(earlier) if earlier else 0
        kernel = protocol(3, 1)(before[len(earlier) :])
        return about(kernel, [(each + meaning) % VALUES for each in range(VALUES)])

    return over_epochs


@pytest.mark.parametrize("protocol", PROTOCOLS[:2])
def test_epochs_compose_although_later_ones_ask_by_earlier_tallies(protocol):
    assert check_against_the_pair(later_ones_ask_by_what_led(protocol), 3, 3, 2) > 0.6


@pytest.mark.slow("::test_epochs_compose_although_later_ones_ask_by_earlier_tallies")
@pytest.mark.parametrize("protocol", PROTOCOLS[2:])
def test_epochs_of_other_domains_compose(protocol):
    assert check_against_the_pair(later_ones_ask_by_what_led(protocol), 3, 3, 2) > 0.6


@pytest.mark.slow("::test_epochs_compose_although_later_ones_ask_by_earlier_tallies")
def test_three_epochs_compose():
    def protocol(before):
        return is_it(leading(before) if len(before) >= 3 else 0, 3)

    assert check_against_the_pair(protocol, 3, 3, 3) > Fraction(2, 3)


def slotwise(growth, odds, kernels):
    return mean_positive_part([blanket_law(kernel, 2, 1, odds) for kernel in kernels])


def own_laws(growth, firsts, others):
    """Of an epoch: first so many of three values, then so many above two and three values."""
    return {
        odds: mean_positive_part(
            [blanket_law(randomized_response(3, growth), 2, 1, odds)] * firsts
            + [pair_law(growth, odds)] * others
        )
        for odds in odds_up_to(growth)
    }


OWN = [(leader_or_all, 3, 1, 2), (leader_or_all, 4, 2, 2), (domain_by_the_first_tally, 3, 1, 2)]


@pytest.mark.parametrize(("protocol", "num_clients", "first", "others"), OWN)
def test_votes_may_decide_a_domain_under_the_law_above_those_of_its_round(
    protocol, num_clients, first, others
):
    assert check(own_laws(8, first, others), protocol(8, first), num_clients) > 0.7


def four_then_leader(before):
    """Every round asks all three clients: which of four values, then whether the leader."""
    if len(before) < 3:
        return about(randomized_response(4, 3), range(VALUES))
    return is_it(leading(before[:3]), 3)


def of_two_rounds(*domains):
    product = [pair(3, 3, values) for values in domains]
    return {odds: composed_divergence(product, odds) for odds in odds_up_to(3)}


def test_rounds_of_every_client_compose_with_the_laws_of_their_own_domains():
    assert check(of_two_rounds(4, 2), four_then_leader, 3, epochs=2) > 0.8
    assert of_two_rounds(4, 2)[1] < 0.95 * of_two_rounds(2, 2)[1]


@pytest.mark.parametrize("sizes", [(2_000, 1_000), (500, 3_000), (20, 10)])
def test_laws_are_summed_from_above(sizes):
    # E = 8 and x = 5/4, at which four times every V is whole.
    growth, odds, width = 8, Fraction(5, 4), 1 << 18
    transform, laws = np.ones(width // 2 + 1, dtype=np.complex128), []
    for values, reports in zip((9, 3), sizes, strict=True):
        masses = np.zeros(width)
        for value, mass in blanket_law(randomized_response(values, growth), 2, 1, odds).items():
            masses[int(4 * value)] += mass
        transform *= np.fft.rfft(masses) ** reports
        local = {"local_epsilon": math.log(growth), "num_reports": reports}
        laws.append(subset_selection_blanket(**local, domain_size=values, subset_size=1))
    sums = np.fft.irfft(transform)[: width // 2]
    exact = sums @ np.arange(width // 2) / 4 / sum(sizes)
    found = SlotwiseBlanket.of(laws, above=dominating_blanket(laws).among(sum(sizes)))
    bound, above = found.delta(math.log(odds)), found.above.delta(math.log(odds))
    assert exact < bound <= above * (1 + 1e-9)
    if max(sizes) > 100:
        assert bound < min(1.8 * exact, 0.8 * above)


class TestWhatWouldBeFalse:
    """Each is exceeded: a claim that fedhh must not make."""

    def test_draws_of_the_mixture_of_the_rounds_laws(self):
        kernels = [is_it(1, 3), randomized_response(3, 3), randomized_response(3, 3)]
        worlds = [
            transcripts((value, 0, 0), lambda before: kernels[len(before)]) for value in (2, 1)
        ]
        mixture = {}
        for kernel in kernels:
            for value, probability in blanket_law(kernel, 2, 1, Fraction(1)).items():
                mixture[value] = mixture.get(value, 0) + probability / 3
        truth, claimed = divergence(*worlds, Fraction(1)), mean_positive_part([mixture] * 3)
        assert (truth, claimed) == (Fraction(43, 150), Fraction(15457, 54000))
        assert truth > claimed

    def test_the_law_of_another_rounds_domain(self):
        # Of the first round, for the second, which may have two values.
        with pytest.raises(AssertionError, match="Fraction"):
            check(own_laws(8, 3, 0), leader_or_all(8, 1), 3)
        with pytest.raises(AssertionError, match="Fraction"):
            check(of_two_rounds(4, 4), four_then_leader, 3, epochs=2)

    def test_readers_who_know_the_cohorts(self):
        # Cohorts of two and two: in a reader's eyes the victim is one of two, not of four.
        truth = mean_positive_part([pair_law(3, Fraction(1))] * 2)
        cohort = [transcripts((value, 0), lambda _: is_it(1, 3)) for value in (1, 0)]
        assert divergence(*cohort, Fraction(1)) == truth == Fraction(3, 8)
        assert truth > mean_positive_part([pair_law(3, Fraction(1))] * 4) == Fraction(35, 128)

    @pytest.mark.parametrize("reversed_", [False, True])
    def test_the_same_order_again(self, reversed_):
        orders = [
            (*order, *(order[::-1] if reversed_ else order))
            for order in itertools.permutations(range(4))
        ]
        worlds = [
            in_orders((value, 1, 1, 1), lambda _: randomized_response(2, 3), orders)
            for value in (0, 1)
        ]
        truth = divergence(*worlds, Fraction(1))
        claimed = composed_divergence([pair(4, 3)] * 2, Fraction(1))
        assert truth > claimed
        assert (round(float(truth), 4), round(float(claimed), 4)) == (0.4120, 0.3851)

    @pytest.mark.parametrize(("odds", "known"), [(1, (0.7343, 0.7213)), (1.5, (0.6913, 0.6874))])
    def test_nobody_twice_in_a_round(self, odds, known):
        # Two epochs of rounds of two and two: who was in the first round must be in the second.
        whole = list(itertools.permutations(range(4)))
        orders = [
            one + other for one in whole for other in whole if not set(one[:2]) & set(other[:2])
        ]
        worlds = [
            in_orders((value, 1, 1, 1), lambda _: randomized_response(2, 8), orders)
            for value in (0, 1)
        ]
        truth = divergence(*worlds, Fraction(odds))
        claimed = composed_divergence([pair(4, 8)] * 2, Fraction(odds))
        assert truth > claimed
        assert (round(float(truth), 4), round(float(claimed), 4)) == known

    def test_dropping_out_by_what_one_holds(self):
        # Who holds 1 stays away; a fresh order of those who come hides nobody's absence.
        worlds = [
            transcripts([each for each in data if each != 1], lambda _: randomized_response(3, 3))
            for data in ((0, 0, 0, 0, 2), (1, 0, 0, 0, 2))
        ]
        assert divergence(*worlds, Fraction(1)) == 1
        assert mean_positive_part([pair_law(3, Fraction(1))] * 4) < 1

    def test_contributions_counted_as_if_they_were_clients(self):
        # Two reports of a client stay together: its other one tells its round. E = e**2, four
        # values, rounds of two and two clients, epsilon 1.4.
        growth, odds = math.exp(2), math.exp(1.4)
        truth = _together((1, 0), (1, 2), growth=growth, odds=odds)
        corner = 1 / (growth + 3)
        law = {growth - odds: corner, 1 - odds * growth: corner, 1 - odds: 2 * corner}
        claimed = float(mean_positive_part([{**law, 0.0: 1 - 4 * corner}] * 8))
        assert truth > claimed
        assert (round(truth, 4), round(claimed, 4)) == (0.0685, 0.0552)


def _together(one, other, *, growth, odds):
    """D_x of two values' replacement, all others say 0 twice; the larger order."""
    rows = [
        [(growth if value == said else 1) / (growth + 3) for said in range(4)] for value in range(4)
    ]

    def shuffled(values):
        counts = {(0, 0, 0, 0): 1.0}
        for value in values:
            following = {}
            for seen, weight in counts.items():
                for said in range(4):
                    key = (*seen[:said], seen[said] + 1, *seen[said + 1 :])
                    following[key] = following.get(key, 0.0) + weight * rows[value][said]
            counts = following
        return counts

    def world(victim):
        found = {}
        for place in range(2):
            rounds = [shuffled((*(victim if i == place else (0, 0)), 0, 0)) for i in range(2)]
            for (a, p), (b, q) in itertools.product(rounds[0].items(), rounds[1].items()):
                found[a, b] = found.get((a, b), 0.0) + p * q / 2
        return found

    worlds = world(one), world(other)
    return max(
        sum(max(0.0, mass - odds * second[outputs]) for outputs, mass in first.items())
        for first, second in (worlds, worlds[::-1])
    )
