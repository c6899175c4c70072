"""Two groups of clients, with two kinds of privacy: BLENDER's mix, and its arithmetic.

Source: Avent, Korolova, Zeber, Hovden, Livshits (2017), "BLENDER: enabling local search with a
hybrid differential privacy model", USENIX Security; the list of words is after Korolova,
Kenthapadi, Mishra, Ntoulas (2009), "Releasing search queries and clicks privately", WWW. Numbering
not verified.

Why the opt-in group is (epsilon, delta)-private. The unit is a user: neighbors replace all data of
one client of the group. A user adds at most m records, so a replacement moves the counts by at most
2 m in all, and Laplace noise of scale b = 2 m / epsilon on every count would be epsilon-private. It
is added to words that somebody holds only. Let U be the words that only the replaced user holds,
before the replacement, with a_u records each, and U' those after it. Unless a word of U is
released, outputs are words that others hold as well: their likelihoods differ by at most exp((2 m -
|U'|) / b), since the records for U' are not among them; and no word of U' is released after the
replacement with probability at least (1 - exp(-(tau - m) / b) / 2)**|U'|, which is at least
exp(-|U'| / b) wherever exp(-(tau - m) / b) <= 2 (1 - exp(-1 / b)). So outputs without U are covered
by epsilon, and one with U has a chance of at most the sum over U of exp(-(tau - a_u) / b) / 2.
(Both uses of the tail exp(-x) / 2 hold for x < 0 too, where it is an upper bound.) That sum is
largest with one word of m records or with m words of one each, since it is convex in how many words
there are when all but one have one record: it is at most exp(-tau / b) max(exp(m / b), m exp(1 /
b)) / 2, where m / b = epsilon / 2. With tau = b (ln max(exp(epsilon / 2), m exp(epsilon / (2 m))) -
ln(2 delta)) that is delta. For m = 1 nothing is lost: a word that only the replaced user holds is
released with probability delta, and never after the replacement. The paper's tau has exp(epsilon /
2) + m - 1 for the maximum, and delta for 2 delta; its delta is at least twice what is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from fedhh.accounting.guarantees import (
    ITEM_OF_USER,
    NEIGHBORS,
    AnonymityGuarantee,
    Guarantee,
    NotApplicable,
    Unit,
    or_infinite,
    unprotected,
)
from fedhh.accounting.layer_anonymity import claim_of_validation
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import PlannedRound, Rounds, RoundSummary
from fedhh.accounting.terms import PrivacyTerms
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

if TYPE_CHECKING:
    from fedhh.questions.question import Question

_CURATOR = (
    "Avent et al. (2017), head list after Korolova et al. (2009) and Laplace counts; proof in "
    "fedhh.accounting.opt_in"
)


@dataclass(frozen=True, kw_only=True)
class OptInBlend(Plan):
    """Some clients trust a curator, who adds noise to what it publishes; the others randomize.

    No client is in both groups. The first two layers are the curator's.

    Attributes:
        opt_in_epsilon: Central privacy of a client who opted in, over both layers: it takes part
            in one of them.
        opt_in_delta: Its delta.
        local: What the other clients do, in the remaining layers.
    """

    opt_in_epsilon: float
    opt_in_delta: float
    local: LocalReports

    rests_on_clients: ClassVar[bool] = True
    without_event: ClassVar[str] = "a list of words above a noisy threshold; it has none."

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return what a run guarantees in which some clients trust a curator.

        Each guarantee says whom it is for. The best ones are those that hold for every client,
        whichever group it is in: locally none, as the curator reads plain words. Delta is for the
        clients who randomize; only a validation round claims k-anonymity. Colluders change nothing
        for the clients who opted in, whose curator adds the noise by itself.
        """
        opt_in = self._opt_in(unit)
        others = self.local.guarantees(unit, terms, self._of_others(rounds))
        before = next(each for each in others if each.best and not each.realised)
        local = self.local.local_guarantee(unit)
        return [opt_in, *map(_of_others, (local, *others)), _of_all(opt_in, before)]

    def anonymity(self, terms: PrivacyTerms, rounds: Rounds) -> Sequence[AnonymityGuarantee]:
        validation = claim_of_validation(self.local, alpha=terms.alpha)
        return () if validation is None else (validation,)

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        return (
            NEIGHBORS,
            "Who opted in does not depend on the data, and no client is in two groups: what holds "
            "for both groups holds for every client.",
            "Clients who opted in trust the curator; all others trust nobody.",
            *self.local.notes(terms, self._of_others(rounds), central)[1:],
        )

    def local_guarantee(self, unit: Unit) -> Guarantee:
        said = "for clients who opted in: the curator reads their words as they are"
        return unprotected(unit, self._curators_cohort, assumptions=said)

    @property
    def who_trust(self) -> str:
        return (
            "For clients who did not opt in: those who did trust a curator, with "
            f"epsilon {self.opt_in_epsilon:g} at delta {self.opt_in_delta:g} each run."
        )

    @property
    def who_randomize(self) -> LocalReports:
        return self.local

    @property
    def _curators_cohort(self) -> int:
        own = (each for each in self.layers if not self._is_of_others(each))
        return min(each.fewest_clients for each in own)

    def _is_of_others(self, asked: PlannedRound | RoundSummary | Question) -> bool:
        planned = {(each.pass_index, each.layer) for each in self.local.layers}
        return (asked.pass_index, asked.layer) in planned

    def _of_others(self, rounds: Rounds) -> list[RoundSummary]:
        return [each for each in rounds if self._is_of_others(each)]

    def _opt_in(self, unit: Unit) -> Guarantee:
        assumptions = "for clients who opted in; each is in one of the curator's two layers"
        return Guarantee(
            unit=unit,
            trust="central",
            method="opted in: Laplace and threshold",
            epsilon=self.opt_in_epsilon,
            delta=self.opt_in_delta,
            theorem=_CURATOR,
            assumptions=assumptions + (ITEM_OF_USER if unit == "item" else ""),
            smallest_cohort=self._curators_cohort,
        )

    def accepting(self, fewest: Callable[[int], int]) -> Self:
        """Return the plan whose rounds accept fewer answers than they ask for, in both groups."""
        return replace(super().accepting(fewest), local=self.local.accepting(fewest))

    def check_question(self, question: Question) -> None:
        """Raise InputError unless a question asks for no more than its group's plan states."""
        super().check_question(question)
        if self._is_of_others(question):
            self.local.check_report(question)


def _of_others(guarantee: Guarantee) -> Guarantee:
    return replace(
        guarantee,
        method=f"others: {guarantee.method}",
        assumptions=f"for clients who did not opt in; {guarantee.assumptions}",
        best=False,
    )


def _of_all(opt_in: Guarantee, other: Guarantee) -> Guarantee:
    """Return what holds for a client of either group, readers of the results in view."""
    epsilon = other.epsilon
    return replace(
        opt_in,
        method="either group",
        epsilon=epsilon
        if isinstance(epsilon, NotApplicable)
        else max(epsilon, or_infinite(opt_in.epsilon)),
        delta=max(opt_in.delta, other.delta),
        theorem=f"the larger of both groups': {opt_in.theorem}; {other.theorem}",
        assumptions=f"for every client; {other.assumptions}",
        smallest_cohort=min(opt_in.smallest_cohort, other.smallest_cohort),
        best=True,
    )


def laplace_scale(*, epsilon: float, records: int) -> float:
    """Return b = 2 m / epsilon, the scale of the noise on counts of up to m records of a user.

    Args:
        epsilon: Central privacy of a user, under replace-one.
        records: m, most records of one user.
    """
    require_positive(epsilon=epsilon)
    require_at_least(1, records=records)
    return 2 * records / epsilon


def head_list_threshold(*, epsilon: float, delta: float, records: int) -> float:
    """Return the noisy count tau above which a word is published: the module's text has the proof.

    Args:
        epsilon: Central privacy of a user, under replace-one.
        delta: Its delta.
        records: m, most records of one user.

    Raises:
        InputError: Delta is so large that the proof does not hold.

    >>> round(head_list_threshold(epsilon=4.0, delta=1e-5, records=1), 2)
    6.41
    """
    require_inside(0, 1, delta=delta)
    scale = laplace_scale(epsilon=epsilon, records=records)
    # Of all records on one word, or of each on a word of its own.
    one_word, own_words = epsilon / 2, math.log(records) + epsilon / 2 / records
    standardized = max(one_word, own_words) - math.log(2 * delta)
    if math.exp(epsilon / 2 - standardized) > -2 * math.expm1(-epsilon / 2 / records):
        raise InputError(
            f"Expected a smaller delta for epsilon={epsilon} and {records} records per client, got "
            f"delta={delta}: the threshold of the word list protects only where delta is small "
            "against epsilon."
        )
    return scale * standardized
