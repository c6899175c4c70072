"""What discoveries under local differential privacy share.

What they ask, their plan, and when they validate words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan import Participation
from fedhh.accounting.rounds import PlannedRound, epoch_of
from fedhh.found import Found
from fedhh.oracles import OracleSpec
from fedhh.oracles.client_votes import VotesPerClient
from fedhh.oracles.consistency import PostProcessing
from fedhh.protocol import RunState
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports
from fedhh.server.cohorts import Cohorts, Contributing
from fedhh.server.evidence import Evidence
from fedhh.server.validation import Validation
from fedhh.settings import Count, FromConfig, PrivacyBudget, Share, ShareOrNone
from fedhh.validation import InputError
from fedhh.words.known_words import NO_WORDS, KnownWords, named_list
from fedhh.words.trie import Codes

AnonymityK = Annotated[int, Ge(0), Le(1_000)]
"""Clients that may hold a word which is still not to be returned."""


@dataclass(frozen=True, kw_only=True)
class CohortProtocol(Cohorts):
    """A discovery under local privacy that asks cohorts of clients, and may validate its words.

    Attributes:
        local_epsilon: Privacy of one contribution.
        known_words: What devices know and keep to themselves; none of it is found.
        clients_per_layer: N, size of each cohort, or of each epoch; "auto" divides the whole
            population among the cohorts, and is the whole where a client answers in several rounds.
        false_discovery_rate: Of the words that a run returns, the expected share that at most
            ``anonymity_k`` clients hold is at most this: a last cohort is held out and asked about
            the found words only (the validation round), and those return that Benjamini and
            Hochberg's rule lets through. 0 for no validation round.
        anonymity_k: k of the validation round: a word that at most so many clients of the
            population hold is returned with probability at most ``false_discovery_rate``. With 0,
            the round tests only whether anybody holds it.
        validation_share: Share of all clients that the validation round asks, where there is one
            and a client answers in one round.
        participation: "one-round", the papers': a client answers in the round of its cohort.
            "every-round": all clients answer in each round. "epochs": a client answers in one round
            of each of ``epochs`` epochs. An epoch puts all clients in a fresh random order and cuts
            it into the cohorts of its rounds, which are alike.
        epochs: In "epochs", how many there are, at most one for each round.
        cohorts: In "epochs", what readers of the results know. "secret": they do not learn who
            answered in which round, so that all clients of an epoch hide each other. "known": they
            may, so that a client hides in its own cohort alone.
    """

    local_epsilon: Annotated[PrivacyBudget, FromConfig("privacy.local_epsilon")] = 8.0
    known_words: Annotated[KnownWords, FromConfig("population.known")] = field(
        default_factory=lambda: named_list(NO_WORDS)
    )
    false_discovery_rate: ShareOrNone = 0.0
    anonymity_k: AnonymityK = 20
    validation_share: Share = 0.25
    participation: Participation = "one-round"
    epochs: Count = 1
    cohorts: Literal["known", "secret"] = "known"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_participation()

    def _check_participation(self) -> None:
        if self.participation == "epochs":
            if self.max_items != 1:
                raise InputError(
                    "Expected max_items=1 with participation='epochs', one report of a client in "
                    f"each, got max_items={self.max_items}; set max_items=1, or "
                    "participation='every-round'."
                )
            if self.cohorts == "secret" and not getattr(self, "pad", True):
                raise InputError(
                    "Expected pad=true with cohorts='secret', since who sends nothing hides "
                    "nobody, got pad=false; set pad=true, or cohorts='known'."
                )
            return
        for name, alone in (("epochs", 1), ("cohorts", "known")):
            if (value := getattr(self, name)) != alone:
                raise InputError(
                    f"Expected {name}={alone} with participation={self.participation!r}, got "
                    f"{name}={value}; set {name}={alone}, or participation='epochs'."
                )

    def require_one_round(self, reason: str) -> None:
        """Raise InputError unless ``participation`` is "one-round"; with a reason."""
        if self.participation != "one-round":
            raise InputError(
                f"Expected participation='one-round' of {self.title}, {reason}, got "
                f"participation={self.participation!r}; set participation='one-round', or take "
                "another protocol, such as ldp-triehh."
            )

    @property
    def votes_per_client(self) -> VotesPerClient:
        """Whether a client has "one" vote for a value, or one for "all" of its reports."""
        return "all"

    def largest_cohort(self, num_clients: int) -> int:
        if self.participation != "one-round":
            return num_clients
        return super().largest_cohort(num_clients)

    def kept_back(self, num_clients: int) -> float:
        """Return how many of all clients the validation round asks, 0 if there is none."""
        return num_clients * self.validation_share if self.validates else 0

    @property
    def validates(self) -> bool:
        """Whether a last cohort says which words are real."""
        return self.false_discovery_rate > 0

    @property
    def validation_oracle(self) -> OracleSpec:
        """The validation round's randomizer, which spends a contribution's whole budget."""
        params = {"subset_size": "optimal"}
        return OracleSpec(name="ss", epsilon=self.local_epsilon, params=params)

    @property
    def num_validation_clients(self) -> int:
        """Clients of the validation round, so that ``validation_share`` of all are its."""
        size = self.cohort_clients * self.num_cohorts
        return max(1, int(size * self.validation_share / (1 - self.validation_share)))

    @property
    def fewest_candidates(self) -> int:
        """Values of a round at least, the dummy not counted; fillers, if it has fewer candidates.

        No client can say a filler. A larger domain of Subset Selection amplifies more.
        """
        return 1

    @property
    def fewest_validated(self) -> int:
        """The same of the validation round."""
        return self.fewest_candidates

    def planned_reports(
        self,
        rounds: Sequence[PlannedRound],
        *,
        most_words: int,
        **more: Any,
    ) -> LocalReports:
        """Return a plan of local reports: some rounds, and the validation round after them.

        Args:
            rounds: All but the validation round; a contribution to each spends all randomizers'
                epsilons, or ``local_epsilon`` where the plan has none.
            most_words: Words that the validation round may be about.
            more: What else the plan has; ``validation_randomizer`` is `validation_oracle` if it is
                left out, and None where the validation round's is that of the rounds.
        """
        spent = sum(spec.epsilon for spec in more.get("randomizers", ())) or self.local_epsilon
        shared: dict[str, Any] = {
            "false_discovery_rate": self.false_discovery_rate,
            "anonymity_k": self.anonymity_k,
            "votes_per_client": self.votes_per_client,
            "validation_randomizer": self.validation_oracle if self.validates else None,
            "participation": self.participation,
            "epochs": self.epochs,
            "secret_cohorts": self.cohorts == "secret",
        }
        layers = list(rounds)
        if self.validates:
            validation = self.planned_round(
                rounds[-1].layer + 1,
                self.num_validation_clients,
                2,
                most_words + 1,
                pass_index=rounds[-1].pass_index,
            )
            layers.append(replace(validation, validates=True))
        spending = [replace(self._filled(each), local_epsilon=spent) for each in layers]
        return LocalReports(layers=self._taking_part(spending), **{**shared, **more})

    def _filled(self, planned: PlannedRound) -> PlannedRound:
        """Return a round with the values that it has where fillers are counted."""
        fewest = self.fewest_validated if planned.validates else self.fewest_candidates
        return replace(
            planned,
            smallest_domain=max(planned.smallest_domain, fewest + 1),
            largest_domain=max(planned.largest_domain, fewest + 1),
        )

    def _taking_part(self, rounds: Sequence[PlannedRound]) -> tuple[PlannedRound, ...]:
        """Return rounds of as many clients as take part in each."""
        if self.participation == "one-round":
            return tuple(rounds)
        orders: Sequence[int] = range(len(rounds))
        if self.participation == "epochs":
            orders = [epoch_of(place, len(rounds), self.epochs) for place in orders]
        sharing = Counter(orders)
        return tuple(
            replace(each, num_clients=self.cohort_clients // sharing[order])
            for each, order in zip(rounds, orders, strict=True)
        )

    def asker(self, planned: PlannedRound) -> Any:
        return Validation(self) if planned.validates else self

    def words_question(self, codes: Codes, oracle: OracleSpec) -> Question:
        """Return a broadcast that asks which of some whole words clients hold.

        Args:
            codes: ``(c, width) uint16``, at most `longest_word` symbols and the end symbol each.
            oracle: The randomizer.
        """
        words = np.zeros((len(codes), self.longest_word + 1), dtype=np.uint16)
        words[:, : codes.shape[1]] = codes
        names = TrieNames.of_words(words, self.symbols)
        return self.votes_question(names, oracle, fewest=self.fewest_validated)

    def votes_question(
        self, names: TrieNames, oracle: OracleSpec, *, fewest: int | None = None
    ) -> Question:
        """Return a broadcast of candidates to vote on.

        Args:
            names: The candidates.
            oracle: The randomizer.
            fewest: Values at least, the dummy not counted; ``fewest_candidates`` if None.
        """
        fewest = self.fewest_candidates if fewest is None else fewest
        shared: dict[str, Any] = {"votes_per_client": self.votes_per_client, "fewest": fewest}
        return self.asking(names, Reports.on(names, oracle, **shared))

    def unknown_of(self, found: Found) -> Found:
        # Devices keep known words, so nobody holds one.
        known = self.known_words.contains_all(self.symbols.decode(found.codes))
        return found.only(np.flatnonzero(~known)) if known.any() else found

    def earlier_evidence(self, run: RunState) -> Evidence:
        """Return what clients said about found words who were asked after these were found."""
        return Evidence.nothing(len(run.found.codes))

    def most_reports(self, planned: PlannedRound) -> int:
        """Return how many reports a planned round has at most; clients, where these are counted."""
        return planned.num_clients * (1 if self.votes_per_client == "one" else self.max_items)


@dataclass(frozen=True, kw_only=True)
class LocalProtocol(CohortProtocol, Contributing):
    """A discovery whose clients choose B items each and randomize every one of them.

    Attributes:
        pad: Fill up with dummies to exactly B contributions. Without it, the number of a client's
            reports depends on its data.
    """

    pad: bool = True


@dataclass(frozen=True, kw_only=True)
class PostProcessed(CohortProtocol):
    """A discovery whose estimates come from a round's counts of all its candidates.

    Attributes:
        post_processing: What is done with the estimates of the words found, and of nothing before:
            "none"; "norm-sub", so that those of all candidates and the rest of the reports are not
            negative and add up; "base-cut", 0 where they are not significant. Standard errors stay
            those of "none", of which alone estimates have no bias.
    """

    post_processing: PostProcessing = "none"
