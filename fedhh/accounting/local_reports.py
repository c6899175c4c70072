"""Local privacy: each client randomizes its contributions, and nobody sees them before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from fedhh import oracles
from fedhh.accounting.amplification import (
    central_before_run,
    central_of_answers,
    central_realised,
)
from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.collusion import Collusion
from fedhh.accounting.guarantees import AnonymityGuarantee, Guarantee, Unit
from fedhh.accounting.layer_anonymity import anonymity_of_run
from fedhh.accounting.plan import Plan
from fedhh.accounting.report_notes import notes_of
from fedhh.accounting.rounds import PlannedRound, Rounds, RoundSummary
from fedhh.accounting.sources import (
    APPLE_CMS,
    APPLE_HCMS,
    APPLE_SFP,
    PADDED_SAMPLE,
    SUN_LOCAL,
    USER_LOCAL,
)
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.client_votes import VotesPerClient
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.accounting.terms import PrivacyTerms
    from fedhh.questions.question import Question

_ITEM_THEOREMS = {
    "ss": SUN_LOCAL,
    "cms": APPLE_CMS,
    "hcms": APPLE_HCMS,
    "none": "no randomizer",
}
_SEVERAL_REPORTS = f"basic composition: the epsilons of a record's reports add up; {APPLE_SFP}"
_OF_ITEM = "an item enters one report of each round its client takes part in"
_OF_WHOLE_SET = (
    "a client sends one report in each round it takes part in, about one value drawn from its set"
)


@dataclass(frozen=True, kw_only=True)
class LocalReports(Plan):
    """Clients contribute up to B items a round; all of a contribution goes through randomizers.

    Attributes:
        randomizers: What each contribution is reported through: one report of each, whose
            epsilons add up. A layer's domain is that of the last one. None where these are no
            frequency oracles; rounds state the local epsilon.
        validation_randomizer: What the last layer's contributions go through instead, whole, if
            that is another; with all their epsilons together.
        anonymity_k: k of the validation round: a word that at most k clients of the population
            hold passes it with probability at most ``false_discovery_rate``.
        votes_per_client: "one" where a client's reports are counted together. What is computed
            from them is then no function of shuffled reports, so that what holds for these does not
            follow: see docs/accounting.md, section 12.
        theorem: Why a contribution is private, where that does not follow from its randomizers.
        note: What else has to be known of the reports; empty without anything.
    """

    randomizers: tuple[OracleSpec, ...] = ()
    validation_randomizer: OracleSpec | None = None
    anonymity_k: int = 0
    votes_per_client: VotesPerClient = "all"
    theorem: str = ""
    note: str = ""

    rests_on_clients: ClassVar[bool] = True
    without_event: ClassVar[str] = (
        "shuffled reports; it has none. The local reports of a client have one."
    )

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return the best bound before the run, and the best realised one, if there is any.

        Subset Selection has bounds of its own; for other randomizers those that hold for all. Under
        collusion they are for the honest clients.
        """
        check_delta(terms.delta)
        if self.padded:
            self._check_reports(rounds)
        collusion = terms.collusion
        honest = self if collusion is None else collusion.honest_part(self)
        found = [central_before_run(honest, unit, terms, broken=_below_plan(self, rounds))]
        if self.realises_answers:
            answered = self._answered(rounds)
            if collusion is not None:
                answered = collusion.honest_part(answered)
            found += central_of_answers(honest, answered, unit, terms)
        else:
            heard = [_as_heard(each, self, honest, collusion) for each in rounds]
            found += central_realised(honest, heard, unit, terms)
        if collusion is not None:
            uses = self.most_rounds_per_client
            found = [collusion.stated(each, rounds=uses) for each in found]
        return found

    def anonymity(self, terms: PrivacyTerms, rounds: Rounds) -> Sequence[AnonymityGuarantee]:
        """Return `anonymity_of_run`, which is about what a run returns, whoever colludes."""
        return anonymity_of_run(rounds, self, alpha=terms.alpha)

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        asked = sum(self.planned(each.pass_index, each.layer).num_clients for each in rounds)
        lost = asked - sum(each.num_clients for each in rounds)
        told = () if terms.collusion is None else (f"{terms.collusion}.",)
        return (*notes_of(self, central, lost=lost), *told)

    def local_guarantee(self, unit: Unit) -> Guarantee:
        """Return what holds against the server: epsilons of all reports about a unit add up."""
        if not self.local_epsilon > 0:
            raise InputError(
                f"Expected 0 < local_epsilon <= inf, got local_epsilon={self.local_epsilon!r}."
            )
        uses, whole = self.most_rounds_per_client, self.is_of_whole_set
        assumptions = _OF_WHOLE_SET if whole else _OF_ITEM
        theorem, epsilon = self.item_theorem, uses * self.local_epsilon
        if unit == "user":
            epsilon *= self.max_items
            if not (whole and uses == 1):
                theorem = USER_LOCAL
            if not whole:
                reports = "report" if self.max_items == 1 else "reports"
                assumptions = f"a client sends at most {self.max_items} {reports} in one round"
        return Guarantee(
            unit=unit,
            trust="local",
            method="randomizer",
            epsilon=epsilon,
            delta=0.0,
            theorem=theorem,
            assumptions=assumptions + self.same_size,
            smallest_cohort=self.fewest_answers,
            best=True,
        )

    @property
    def item_theorem(self) -> str:
        if self.theorem:
            return self.theorem
        if self.is_of_whole_set:
            return PADDED_SAMPLE
        if len(self.randomizers) > 1:
            return _SEVERAL_REPORTS
        names = [spec.name for spec in self.randomizers]
        return _ITEM_THEOREMS.get("".join(names), "definition of the randomizer")

    @property
    def same_size(self) -> str:
        """What must be assumed of neighbors if the number of a client's reports tells of it."""
        return "" if self.padded else "; neighbors send equally many reports"

    def in_collections(self, times: int) -> Self:
        """Return the plan of so many collections.

        They are composed as rounds are, whatever earlier ones decide. Where a client answers
        in one round, each counts as a round of the fewest answers, with any domain of the plan.
        """
        if times == 1:
            return self
        rounds, participation = self.layers, self.participation
        if participation == "one-round":
            participation, (low, high) = "every-round", self.domains
            fewest = min(rounds, key=lambda each: each.fewest_clients)
            rounds = (replace(fewest, smallest_domain=low, largest_domain=high),)
        layers = tuple(replace(each, pass_index=n) for n in range(times) for each in rounds)
        epochs = self.epochs * times if participation == "epochs" else self.epochs
        return replace(self, layers=layers, participation=participation, epochs=epochs)

    @property
    def domains(self) -> tuple[int, int]:
        """Fewest and most values that a round's randomizer may have."""
        return (
            min(each.smallest_domain for each in self.layers),
            max(each.largest_domain for each in self.layers),
        )

    @property
    def domains_vary(self) -> bool:
        """Whether votes decide how large the domain of a later layer is."""
        return any(each.smallest_domain < each.largest_domain for each in self.layers)

    @property
    def epsilons_of_contribution(self) -> tuple[float, ...]:
        """Local epsilons of the reports that one contribution is made of, which add up.

        A validation round may report it whole: then only their sum holds for every round.
        """
        if len(self.randomizers) > 1 and self.validation_randomizer is None:
            return tuple(spec.epsilon for spec in self.randomizers)
        return (self.local_epsilon,)

    def values_per_report(self, domain_size: int) -> int | None:
        """Return Subset Selection's d, if it is the last randomizer, over so many values."""
        if not self.randomizers:
            return None
        oracle = make_oracle(self.randomizers[-1], domain_size)
        return oracle.d if isinstance(oracle, oracles.SubsetSelection) else None

    @property
    def is_subset_selection(self) -> bool:
        """Whether a contribution is one report of Subset Selection and nothing else."""
        others = self.validation_randomizer not in {None, *self.randomizers}
        return [spec.name for spec in self.randomizers] == ["ss"] and not others

    def check_question(self, question: Question) -> None:
        """Raise InputError unless a question asks for no more than the plan states."""
        super().check_question(question)
        self.check_report(question)

    def _answered(self, rounds: Rounds) -> Self:
        """Return the plan whose rounds accept at least the answers that came to them."""
        layers = list(self.layers)
        for each in rounds:
            planned = self.planned(each.pass_index, each.layer)
            layers[planned.place] = replace(planned, least_clients=each.num_clients)
        return replace(self, layers=tuple(layers))

    def _check_reports(self, rounds: Rounds) -> None:
        for each in rounds:
            if each.num_reports != (expected := each.num_clients * self.max_items):
                raise InputError(
                    f"Expected num_reports = num_clients * max_items = {expected} in pass "
                    f"{each.pass_index + 1}, layer {each.layer}, got {each.num_reports}; if "
                    "clients do not send exactly max_items reports, say padded=False."
                )

    def check_report(self, question: Question) -> None:
        """Raise InputError unless a question's contributions are randomized as stated."""
        where = f"pass {question.pass_index + 1}, layer {question.layer}"
        asked = getattr(question.channel, "votes_per_client", "all")
        if asked != self.votes_per_client:
            raise InputError(
                f"Expected votes_per_client={self.votes_per_client!r} in {where}, as planned, got "
                f"{asked!r}."
            )
        if self.is_subset_selection and question.randomizers != self.randomizers:
            raise InputError(
                f"Expected the randomizer {self.randomizers[0]} in {where}, as planned, got "
                f"{question.randomizers}."
            )


def _as_heard(
    heard: RoundSummary, plan: LocalReports, honest: LocalReports, collusion: Collusion | None
) -> PlannedRound:
    """Return a round of honest clients as it took place: what they contributed to it at least."""
    planned = honest.planned(heard.pass_index, heard.layer)
    clients = heard.num_clients
    if collusion is not None:
        clients = collusion.fewest_honest(planned.num_clients, clients)
    told = (heard.num_clients - clients) * plan.max_items
    return replace(
        planned,
        num_clients=clients,
        least_clients=None,
        num_reports=max(1, heard.num_reports - told),
        smallest_domain=heard.domain_size,
        largest_domain=heard.domain_size,
    )


def _below_plan(plan: LocalReports, rounds: Rounds) -> str | None:
    """Return which round had fewer answers than the plan accepts; None if none had."""
    for each in rounds:
        needed = plan.planned(each.pass_index, each.layer).fewest_clients
        if each.num_clients < needed:
            return (
                f"pass {each.pass_index + 1}, layer {each.layer} had {each.num_clients:,} "
                f"clients, fewer than the {needed:,} of the plan"
            )
    return None
