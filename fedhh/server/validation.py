"""The validation round: a last cohort votes on the found words, and those return that stand out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedhh.accounting.plan import PlannedRound
from fedhh.protocol import Heard, RunState
from fedhh.questions.question import Aggregate
from fedhh.questions.reports import VoteQuestion
from fedhh.server.evidence import Evidence
from fedhh.server.noise import Noise, by_votes
from fedhh.words.rows import match_rows

if TYPE_CHECKING:
    from fedhh.server.local_discovery import CohortProtocol


@dataclass(frozen=True)
class Validation:
    """What asks and hears the validation round of a local protocol.

    Attributes:
        protocol: Whose words it tests.
    """

    protocol: CohortProtocol[Any, Any]

    def ask(self, planned: PlannedRound, run: RunState[Any]) -> VoteQuestion | None:
        """Return a broadcast of the found words to vote on; None if there is no word."""
        codes, protocol = run.found.codes, self.protocol
        if not len(codes):
            return None
        short = np.zeros((protocol.symbols.size, codes.shape[1]), dtype=np.uint16)
        short[:-1, 0] = np.arange(1, len(short))
        missing = max(0, protocol.fewest_validated - len(codes))
        filling = short[match_rows(short, codes) < 0][:missing]
        return protocol.words_question(np.concatenate([codes, filling]), protocol.validation_oracle)

    def hear(
        self,
        planned: PlannedRound,
        run: RunState[Any],
        question: VoteQuestion,
        aggregate: Aggregate,
    ) -> Heard[Any]:
        """Return the words that the votes let through."""
        protocol = self.protocol
        law, counted = question.channel.law(question, aggregate)
        noise, clients = Noise(oracle=law, num_reports=counted), aggregate.num_clients
        votes = question.votes(aggregate)[: len(run.found.codes)]
        validation = Evidence.nothing(len(votes)).with_votes(noise, votes, clients)
        earlier = protocol.earlier_evidence(run.own)
        limits = None if earlier is None else protocol.limits
        evidence = validation
        if earlier is not None:
            most = protocol.most_reports(planned)
            evidence = earlier.with_votes(noise, votes, clients, limits=limits, planned=most)
        accepted, chosen = evidence.accepted(
            run.found,
            protocol.false_discovery_rate,
            validation=validation,
            anonymity_k=protocol.anonymity_k,
            limits=limits,
        )
        decision = by_votes(
            noise,
            threshold=int(votes[chosen].min()) if chosen.any() else int(votes.max()) + 1,
            num_candidates=len(votes),
            num_kept=len(accepted.codes),
            kept_by="validation" if earlier is None else "evidence",
        )
        # Votes of several rounds decide together; words that fill up the domain are no candidates.
        z = decision.threshold_z if earlier is None else math.nan
        return Heard(
            own=run.own,
            decision=replace(decision, threshold_z=z, num_candidates=question.num_candidates),
            found=protocol.with_reported(accepted, chosen, noise, votes),
        )
