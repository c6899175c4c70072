"""The interface of a discovery protocol: a pure state machine on the server's side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
import numpy.typing as npt

from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import Decision, KeptBy, PlannedRound, RoundSummary
from fedhh.arrays import Floats, Ints
from fedhh.found import Discoveries, Found
from fedhh.oracles.consistency import PostProcessing, post_process
from fedhh.questions.question import Aggregate, Question
from fedhh.settings import Settings
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes

__all__ = [
    "Answers",
    "Decision",
    "Discoveries",
    "DiscoveryProtocol",
    "Found",
    "Heard",
    "KeptBy",
    "RoundSummary",
    "RunState",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """The answers to a question, as the server reads them.

    Attributes:
        planned: The round.
        question: What it asked.
        aggregate: What came back, of a length that has been checked.
    """

    planned: PlannedRound
    question: Question
    aggregate: Aggregate

    @cached_property
    def votes(self) -> Ints:
        """``(num_candidates,) int64``: what supports each candidate that the question lists."""
        return self.question.votes(self.aggregate)

    @cached_property
    def noise(self) -> Any:
        """What chance does to votes: `fedhh.questions.noise.AnyNoise`."""
        return self.question.channel.noise_of(self.question, self.aggregate)

    def found(
        self,
        codes: Codes,
        *,
        estimate: Floats | None = None,
        variance: Floats | None = None,
        z: Floats | None = None,
    ) -> Found:
        """Return words with what the round says about them, see `Discoveries`.

        Args:
            codes: ``(h, width) uint16``.
            estimate: ``(h,) float64``; None, as the others, if the round did not ask about them.
            variance: ...
            z: ...
        """
        size, nothing = len(codes), np.zeros(len(codes))
        return Found(
            codes=codes,
            pass_index=np.full(size, self.question.pass_index),
            layer=np.full(size, self.question.layer),
            estimate=nothing if estimate is None else estimate,
            variance=nothing if variance is None else variance,
            z=nothing if z is None else z,
            num_clients=np.full(size, 0 if estimate is None else self.aggregate.num_clients),
            interval_z=np.full(size, math.nan),
        )

    def counted(
        self,
        codes: Codes,
        support: Ints,
        which: Ints | None = None,
        *,
        post_processing: PostProcessing = "none",
    ) -> Found:
        """Return words with the estimates that follow from their support.

        Args:
            codes: ``(h, width) uint16``.
            support: ``(c,) int64``: reports that support each candidate.
            which: ``(h,) int64``: which of them are the words; all if None.
            post_processing: Of all candidates' estimates; standard errors stay those of "none".
        """
        own = support if which is None else support[which]
        estimate = self.noise.estimate(own)
        variance = self.noise.variance(estimate)
        if post_processing != "none":
            estimate = self.processed(support, post_processing)
            estimate = estimate if which is None else estimate[which]
        return self.found(codes, estimate=estimate, variance=variance, z=self.noise.z(own))

    def processed(self, support: Ints, how: PostProcessing) -> Floats:
        """Return the post-processed estimates of all candidates.

        Args:
            support: ``(c,) int64``: reports that support each.
            how: See `fedhh.oracles.consistency.post_process`.
        """
        noise = self.noise
        estimate, reports = noise.estimate(support), noise.num_reports
        return post_process(how, estimate, total=reports, std=noise.std, has_rest=True)

    def decision(
        self,
        *,
        threshold: int = 0,
        num_kept: int | None = None,
        num_candidates: int | None = None,
        kept_by: KeptBy = "votes",
    ) -> Decision:
        """Return the decision of a round that judges its candidates by votes.

        Args:
            threshold: Fewest votes with which a candidate is kept; 0 where none is dropped.
            num_kept: Candidates kept; all if None.
            num_candidates: Candidates judged; those that the question lists if None.
            kept_by: See `Decision`.
        """
        candidates = self.question.num_candidates if num_candidates is None else num_candidates
        kept = candidates if num_kept is None else num_kept
        z = self.noise.z(np.array([threshold]))
        return Decision(
            num_candidates=candidates,
            num_kept=kept,
            threshold=threshold,
            # If none is dropped, no votes decided.
            threshold_z=float(z[0]) if kept < candidates else math.nan,
            noise_std=self.noise.std,
            kept_by=kept_by,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Heard:
    """What a protocol makes of a round's answers.

    Attributes:
        decision: What became of the candidates.
        own: What the protocol knows now.
        found: Words that the round found, or that it made candidates of the validation round.
        kept: What later rounds extend: ``(k,) int64``, ascending numbers of candidates of
            `TrieNames`; or ``(k, width) uint16`` codes of prefixes where the server listed the
            candidates itself. None where no round extends prefixes.
        posterior: ``(c,) float32``: by what the first c candidates of a `TrieNames` are kept,
            where that is the posterior probability that enough clients hold each; NaN where it is
            not computed. None for another rule.
    """

    decision: Decision
    own: Any = None
    found: Found | None = None
    kept: Ints | npt.NDArray[np.uint16] | None = None
    posterior: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunState:
    """Where a run stands; it says all that is needed to go on.

    Attributes:
        place: Rounds of the plan that are over, those included that were not needed.
        own: What the protocol knows.
        found: Words found so far; after a validation round those that it returned.
        kept: What the last round kept, see `Heard`.
        posterior: By what, see there.
        history: One summary per finished round.
    """

    place: int
    own: Any
    found: Found
    kept: Ints | npt.NDArray[np.uint16] | None = None
    posterior: npt.NDArray[np.float32] | None = None
    history: tuple[RoundSummary, ...] = ()


class DiscoveryProtocol(Settings, ABC):
    """A server's side of a discovery: a plan, a question and an ear.

    `plan` is the plan: every round that may happen. For each of them in turn, `ask` makes the
    question, or skips the round, and `hear` digests the answers. What is claimed of a run comes
    from the plan: it says whom each round asks, for how many contributions, and the loop refuses a
    question that spends more, or has another domain, than planned.

    Subclasses are frozen dataclasses of settings, see `fedhh.settings`. There is no I/O, no
    randomness and no client in here, and a `RunState` says all that is needed to go on: a run can
    stop and resume at any round. Settings may be "auto" until `settle` has decided them.
    """

    name: ClassVar[str]
    """What a configuration calls the protocol."""

    title: ClassVar[str]
    """What tables and figures call it."""

    truncates_words: ClassVar[bool] = False
    """Whether words that are longer take part, by as many of their first symbols."""

    trust_model: ClassVar[str] = ""
    """Whom clients have to trust with what they send, in a word or two; empty where the plan says
    it: "local" if every contribution has a finite local epsilon, else "central"."""

    @property
    @abstractmethod
    def symbols(self) -> Alphabet:
        """Symbols that a discovered word may have."""

    @property
    @abstractmethod
    def longest_word(self) -> int:
        """Symbols of the longest word that can be discovered."""

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """What a run does with its clients' data; known once the settings are settled."""

    @property
    def rounds_in_turn(self) -> int:
        """Rounds that have to wait for each other; how long a discovery takes follows from it."""
        plan = self.plan
        if plan.uploads_once:
            return 1
        return sum(not each.opens_with_previous for each in plan.layers)

    @abstractmethod
    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings for one population and seed: nothing is "auto", hashes are drawn.

        Args:
            num_clients: Clients of the population.
            seed: The run's seed.

        Raises:
            InputError: There are too few clients; with the numbers and a cure.
        """

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        """Return the settings for a central epsilon that they state themselves, at their delta.

        Protocols with a trusted aggregator replace the settings that noise, samples and thresholds
        follow from. Others return themselves: accounting says what their local epsilon is worth.

        Args:
            epsilon: Central privacy of a unit, above 0.
            unit: Whose; a protocol that knows users alone gives them the epsilon, and so their
                items.

        Raises:
            InputError: The settings are such that nothing follows from a central epsilon.
        """
        return self

    def check_population(self, num_clients: int) -> None:
        """Raise InputError, with the numbers and a cure, if there are too few clients."""
        plan = self.plan
        if plan.most_asked > num_clients:
            once = "" if plan.reuses_clients else ", since no client is asked twice"
            raise InputError(
                f"The population has {num_clients:,} clients, but {len(plan.layers)} rounds need "
                f"{plan.most_asked:,}{once}. Set clients_per_layer <= "
                f"{self.largest_cohort(num_clients):,}, or ask for fewer passes or layers."
            )

    def largest_cohort(self, num_clients: int) -> int:
        """Return the largest ``clients_per_layer`` that so many clients allow."""
        return num_clients // len(self.plan.layers)

    def begin(self) -> Any:
        """Return what the protocol knows before the first round; nothing here."""
        return None

    @abstractmethod
    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return the question of a planned round, or None if the round is not needed.

        Whom it asks, for how many contributions, the plan says: what the question itself says of
        that is not used.
        """

    @abstractmethod
    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return what a round's answers say.

        Args:
            run: Where the run stood when it asked.
            answers: The answers.
        """

    def discoveries(self, run: RunState) -> Discoveries:
        """Return the words found so far."""
        return run.found.discoveries(self.symbols)

    def stopped(self, run: RunState) -> RunState:
        """Return the state of a run that ends before its plan does.

        Words that a validation round would still have tested are not returned: what is claimed of
        returned words is claimed of those that passed it.
        """
        if any(planned.validates for planned in self.plan.layers[run.place :]):
            return replace(run, found=Found.nothing(self.longest_word + 1))
        return run

    def initialize(self) -> RunState:
        """Return the state before the first question."""
        return RunState(place=0, own=self.begin(), found=Found.nothing(self.longest_word + 1))

    @final
    def next_question(self, run: RunState) -> Question | None:
        """Return what to broadcast next, to whom the plan says; None if the discovery is over."""
        for planned in self.plan.layers[run.place :]:
            question = self.asker(planned).ask(planned, run)
            if question is not None:
                return self.addressed(planned, question)
        return None

    @final
    def addressed(self, planned: PlannedRound, question: Question) -> Question:
        """Return a question to those whom a planned round asks, for as many contributions."""
        return replace(
            question,
            pass_index=planned.pass_index,
            layer=planned.layer,
            cohort=planned.cohort,
            alphabet=self.symbols,
            max_items=planned.max_items,
            pad=planned.padded,
        )

    def finish_round(self, run: RunState, question: Question, aggregate: Aggregate) -> RunState:
        """Return the state after the answers to a question.

        Raises:
            ValueError: The aggregate does not belong to the question.
            InputError: The plan has no such round.
        """
        aggregate.check_answers(question)
        planned = self.plan.planned(question.pass_index, question.layer)
        answers = Answers(planned=planned, question=question, aggregate=aggregate)
        heard = self.asker(planned).hear(run, answers)
        found = Found.nothing(self.longest_word + 1) if heard.found is None else heard.found
        if not planned.validates:
            found = self.unknown_of(found)
        summary = RoundSummary(
            **vars(heard.decision),
            pass_index=question.pass_index,
            layer=question.layer,
            num_prefixes=question.names.num_prefixes,
            domain_size=question.domain_size or planned.largest_domain,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            num_finished=len(found.codes),
            report_bits=question.report_bits,
            download_bits=question.download_bits,
        )
        return RunState(
            place=planned.place + 1,
            own=heard.own,
            found=found if planned.validates else run.found.append(found),
            kept=heard.kept,
            posterior=heard.posterior,
            history=(*run.history, summary),
        )

    def asker(self, planned: PlannedRound) -> Any:
        """Return what has `ask` and `hear` of a planned round: this, or a part for the round."""
        return self

    def unknown_of(self, found: Found) -> Found:
        """Return the words of a round that are not known to all; all of them here."""
        return found
