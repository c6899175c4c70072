"""The validation round: a last cohort votes on the found words, and those return that stand out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedhh.accounting.rounds import PlannedRound
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.question import Question
from fedhh.server.evidence import Evidence

if TYPE_CHECKING:
    from fedhh.server.local_discovery import CohortProtocol


@dataclass(frozen=True)
class Validation:
    """What asks and hears the validation round of a local protocol.

    Attributes:
        protocol: Whose words it tests.
    """

    protocol: CohortProtocol

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return a broadcast of the found words to vote on; None if there is no word."""
        codes, protocol = run.found.codes, self.protocol
        return protocol.words_question(codes, protocol.validation_oracle) if len(codes) else None

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return the words that the votes let through."""
        protocol, noise, clients = self.protocol, answers.noise, answers.aggregate.num_clients
        votes = answers.votes
        validation = Evidence.nothing(len(votes)).with_votes(noise, votes, clients)
        earlier = protocol.earlier_evidence(run.own)
        limits = None if earlier is None else protocol.limits
        evidence = validation
        if earlier is not None:
            most = protocol.most_reports(answers.planned)
            evidence = earlier.with_votes(noise, votes, clients, limits=limits, planned=most)
        accepted, chosen = evidence.accepted(
            run.found,
            protocol.false_discovery_rate,
            validation=validation,
            anonymity_k=protocol.anonymity_k,
            limits=limits,
        )
        if (how := protocol.post_processing) != "none":
            # Intervals are about estimates without it.
            estimate = answers.processed(votes, how)[chosen]
            unknown = np.full(len(estimate), math.nan)
            accepted = replace(accepted, estimate=estimate, interval_z=unknown)
        decision = answers.decision(
            threshold=int(votes[chosen].min()) if chosen.any() else int(votes.max()) + 1,
            num_candidates=len(votes),
            num_kept=len(accepted.codes),
            kept_by="validation" if earlier is None else "evidence",
        )
        # Votes of several rounds decide together.
        z = decision.threshold_z if earlier is None else math.nan
        return Heard(
            own=run.own,
            decision=replace(decision, threshold_z=z),
            found=accepted,
        )
